//! The log of `sluice run`, on standard error by a [`queue`].
//!
//! Its formats: an event is one line, whatever is in its fields, and shows on a terminal as what it is. Errors quote what servers and clients have sent; the library's own text passes line
//! breaks on, and its JSON such control characters as JSON allows.

use std::fmt::{self, Write};
use std::io;
use std::sync::Arc;

use proxy::telemetry::Telemetry;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::debug_fn;

use self::queue::Lines;
use crate::cli::LogFormat;

mod queue;

/// What is logged unless RUST_LOG says otherwise.
const LOG_FILTER: &str = "info";

/// The log, whose last lines are written when this is dropped.
#[must_use = "what is logged last is lost without it"]
pub(crate) struct Log(Lines);

impl Log {
    /// Logs to standard error from now on.
    ///
    /// # Errors
    /// When there can be no thread for it.
    pub(crate) fn start(format: LogFormat) -> io::Result<Self> {
        let queue = Lines::to(io::stderr())?;
        let filter =
            EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(LOG_FILTER));
        let lines = queue.clone();
        // The library would print its own errors, and panics where that fails.
        let log = tracing_subscriber::fmt().log_internal_errors(false).with_env_filter(filter);
        match format {
            LogFormat::Text => log
                .with_writer(move || lines.clone())
                .with_ansi(false)
                .fmt_fields(one_line())
                .init(),
            LogFormat::Json => {
                log.json().flatten_event(true).with_writer(move || Json(lines.clone())).init();
            }
        }
        Ok(Self(queue))
    }

    /// Has lines counted that are not written.
    pub(crate) fn count_in(&self, telemetry: Arc<Telemetry>) {
        let Self(lines) = self;
        lines.count_in(telemetry);
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let Self(lines) = self;
        io::Write::flush(lines).ok();
    }
}

/// The message and `name=value`, with nothing in them that ends a line or moves a terminal's
/// cursor.
fn one_line() -> impl for<'writer> FormatFields<'writer> + Send + Sync + 'static {
    debug_fn(|writer, field, value| {
        let mut line = OneLine(writer);
        match field.name() {
            "message" => write!(line, "{value:?}"),
            name => write!(line, "{name}={value:?}"),
        }
    })
    .delimited(" ")
}

/// Escapes what does not belong into a line.
struct OneLine<W>(W);

impl<W: Write> Write for OneLine<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let Self(writer) = self;
        for part in text.split_inclusive(is_foreign) {
            match part.char_indices().next_back() {
                Some((at, last)) if is_foreign(last) => {
                    writer.write_str(part.get(..at).unwrap_or_default())?;
                    write!(writer, "{}", last.escape_debug())?;
                }
                Some(_) | None => writer.write_str(part)?,
            }
        }
        Ok(())
    }
}

/// Writes what does not belong into a line as JSON does. Such characters stand in strings only: JSON's
/// own are none of them, but for the line's end.
struct Json<W>(W);

impl<W: io::Write> io::Write for Json<W> {
    /// The library writes whole lines. What is no UTF-8 is not of its making, and passes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Self(writer) = self;
        let escaped = str::from_utf8(bytes).ok().and_then(escaped);
        writer.write_all(escaped.as_ref().map_or(bytes, String::as_bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let Self(writer) = self;
        writer.flush()
    }
}

/// None: there is nothing to escape.
fn escaped(line: &str) -> Option<String> {
    let is_foreign = |c: char| c != '\n' && is_foreign(c);
    if !line.contains(is_foreign) {
        return None;
    }
    let mut escaped = String::with_capacity(line.len());
    for c in line.chars() {
        if is_foreign(c) {
            // All of them are below U+10000. Writing to a String cannot fail.
            write!(escaped, "\\u{:04x}", u32::from(c)).ok();
        } else {
            escaped.push(c);
        }
    }
    Some(escaped)
}

/// Control characters, and the two that Unicode has for ends of lines and paragraphs.
fn is_foreign(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// Hands each line over.
    struct Lines(Sender<String>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let line = String::from_utf8(bytes.to_vec()).expect("lines are UTF-8");
            self.0.send(line).expect("the test is there");
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(log: impl FnOnce()) -> String {
        let (sender, lines) = channel();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .without_time()
            .fmt_fields(one_line())
            .with_writer(move || Lines(sender.clone()))
            .finish();
        tracing::subscriber::with_default(subscriber, log);
        lines.iter().collect()
    }

    #[test]
    fn an_event_is_one_line_whatever_is_in_its_fields() {
        let line = logged(|| {
            let error = io::Error::other("no\r\nINFO all is well\u{2028}\x1b[2J\u{9b}");
            tracing::warn!(%error, text = "a\nb", count = 3, "a message\nof two lines");
        });
        let expected = r#"a message\nof two lines error=no\r\nINFO all is well\u{2028}\u{1b}[2J\u{9b} text="a\nb" count=3"#;
        assert_eq!(
            line.strip_prefix(" WARN sluice::log::tests: "),
            Some(&*format!("{expected}\n"))
        );
    }

    #[test]
    fn an_event_is_one_line_of_json_and_no_character_of_it_controls_a_terminal() {
        let (sender, lines) = channel();
        let subscriber = tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_writer(move || Json(Lines(sender.clone())))
            .finish();
        let hostile = "no\r\n\u{2028}\x1b[2J\u{9b}\u{7f}ä";
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(error = %hostile, count = 3_u64, none = None::<u64>, "text");
        });
        let lines: String = lines.iter().collect();
        let (line, rest) = lines.split_once('\n').unwrap();
        assert!(rest.is_empty() && !line.contains(is_foreign), "{lines:?}");
        let read: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(read["error"], hostile);
        assert_eq!((&read["count"], &read["message"]), (&3.into(), &"text".into()));
        assert!(read.get("none").is_none());
    }

    #[test]
    fn what_belongs_into_a_line_is_left_as_it_is() {
        let line = logged(|| tracing::info!(user = %"j\u{f6}rg \"x\" \\", "ä \u{1f980}"));
        assert!(line.ends_with("ä \u{1f980} user=j\u{f6}rg \"x\" \\\n"), "{line}");
    }
}

//! The text format of the log: an event is one line, whatever is in its fields. Errors quote what
//! servers and clients have sent, and the library's own format passes line breaks on.

use std::fmt::{self, Write};

use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::debug_fn;

/// The message and `name=value`, with nothing in them that ends a line or moves a terminal's
/// cursor.
pub(crate) fn one_line() -> impl for<'writer> FormatFields<'writer> + Send + Sync + 'static {
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

/// Control characters, and the two that Unicode has for ends of lines and paragraphs.
fn is_foreign(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use std::io;
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
    fn what_belongs_into_a_line_is_left_as_it_is() {
        let line = logged(|| tracing::info!(user = %"j\u{f6}rg \"x\" \\", "ä \u{1f980}"));
        assert!(line.ends_with("ä \u{1f980} user=j\u{f6}rg \"x\" \\\n"), "{line}");
    }
}

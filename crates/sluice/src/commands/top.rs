//! `sluice top`: a running Sluice, watched.

mod change;
mod course;
mod feed;
mod limits;
mod plain;
mod screen;
mod signals;
mod table;
mod view;

use std::io::{self, IsTerminal as _, Write};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{Event, KeyEventKind};

use self::change::Change;
use self::course::Watched;
use self::feed::{Came, Source};
use self::signals::Signals;
use self::table::{Order, Sorting};
use self::view::{Effect, View};
use super::door;
use super::http::Door;
use super::status::{look, style};
use crate::cli::Top;

pub(crate) fn run(top: &Top) -> ExitCode {
    let door = match door::door(&top.asked) {
        Ok(door) => door,
        Err(message) => {
            drop(writeln!(io::stderr(), "{message}"));
            return ExitCode::from(2);
        }
    };
    if top.plain || !io::stdout().is_terminal() {
        return told(plainly(top, &door).map(|()| ExitCode::SUCCESS));
    }
    told(on_screen(top, door))
}

fn told(ended: Result<ExitCode, String>) -> ExitCode {
    match ended {
        Ok(code) => code,
        Err(message) => {
            drop(writeln!(io::stderr(), "{message}"));
            ExitCode::FAILURE
        }
    }
}

/// Look by look as text, until the time is over or nobody reads.
fn plainly(top: &Top, door: &Door) -> Result<(), String> {
    let began = Instant::now();
    let every = Duration::from_secs(top.every);
    let sorting = sorting(top);
    let mut watched = Watched::default();
    for looks in 0_u32.. {
        let answer = look(door, 0).map(|(_, status)| status);
        if looks == 0 {
            let status = answer.as_ref().map_err(Clone::clone)?;
            known(top.cluster.as_deref(), status)?;
        }
        watched.take(began.elapsed().as_secs_f64(), answer);
        let text = plain::look(&watched, top.cluster.as_deref(), sorting, style());
        let mut out = io::stdout();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Ok(()) => {}
            Err(error) => return door::written(Err(error)).map_err(|failure| failure.message),
        }
        let next = began + every.saturating_mul(looks.saturating_add(1));
        let end = top.seconds.map(|seconds| began + Duration::from_secs(seconds));
        if let Some(end) = end.filter(|end| *end < next) {
            std::thread::sleep(end.saturating_duration_since(Instant::now()));
            break;
        }
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    watched.lost.map_or(Ok(()), Err)
}

fn sorting(top: &Top) -> Sorting {
    let order = if top.reverse { Order::Reversed } else { Order::Natural };
    Sorting { column: top.sort, order }
}

/// As a screen, until a key, a signal or the time ends it.
fn on_screen(top: &Top, door: Door) -> Result<ExitCode, String> {
    // Without an answer there is nothing to show: the reason is more use where it stays.
    let (_, status) = look(&door, 0)?;
    known(top.cluster.as_deref(), &status)?;
    let mut watched = Watched::default();
    watched.take(0.0, Ok(status));
    let every = Duration::from_secs(top.every);
    let (asked, token) = (top.asked.clone(), top.token.clone());
    // Before the terminal is another, which a signal would leave so.
    let signals = Signals::new().map_err(|error| format!("cannot take signals: {error}"))?;
    let mut terminal =
        ratatui::try_init().map_err(|error| format!("the terminal cannot be drawn on: {error}"))?;
    let came = feed::start(Source { door, asked, token, every }, signals);
    let watching = watch(top, &mut terminal, watched, came);
    // Behind SIGHUP it may be gone.
    drop(ratatui::try_restore());
    watching
}

fn watch(
    top: &Top,
    terminal: &mut DefaultTerminal,
    mut watched: Watched,
    (changes, came): (Sender<Change>, Receiver<Came>),
) -> Result<ExitCode, String> {
    let began = Instant::now();
    let end = top.seconds.map(|seconds| began + Duration::from_secs(seconds));
    let style = style();
    let mut view = View::new(top.cluster.clone(), sorting(top));
    loop {
        terminal
            .draw(|frame| screen::draw(frame, &watched, &view, style))
            .map_err(|error| format!("the terminal cannot be drawn on: {error}"))?;
        let left = end.map_or(FOR_EVER, |end| end.saturating_duration_since(Instant::now()));
        match came.recv_timeout(left) {
            Ok(Came::Looked(answer)) => watched.take(began.elapsed().as_secs_f64(), answer),
            Ok(Came::Done(told)) => view.done(told),
            Ok(Came::Terminal(Event::Key(key))) if key.kind != KeyEventKind::Release => {
                match view.press(key, &watched) {
                    Effect::Nothing => {}
                    // The feed is there as long as this is.
                    Effect::Make(change) => drop(changes.send(change)),
                    Effect::Quit => return Ok(ExitCode::SUCCESS),
                }
            }
            // Another size: it is drawn anew.
            Ok(Came::Terminal(_)) => {}
            Ok(Came::Signal(signal)) => return Ok(signals::status(signal)),
            Ok(Came::TerminalGone) | Err(RecvTimeoutError::Disconnected) => {
                return Ok(ExitCode::SUCCESS);
            }
            Err(RecvTimeoutError::Timeout) => break,
        }
    }
    watched.lost.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// Nobody looks at one screen for longer.
const FOR_EVER: Duration = Duration::from_secs(365 * 86_400);

/// A cluster that is asked for has to be there.
fn known(cluster: Option<&str>, status: &admin::status::Status) -> Result<(), String> {
    let names: Vec<&str> = status.clusters.iter().map(|cluster| &*cluster.cluster).collect();
    match cluster {
        Some(cluster) if !names.contains(&cluster) => {
            Err(format!("there is no cluster {cluster:?}; the clusters are {}", names.join(", ")))
        }
        Some(_) | None => Ok(()),
    }
}

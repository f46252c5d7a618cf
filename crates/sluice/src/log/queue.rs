//! Lines on their way to where the log is written. Whoever logs hands a line over and goes on, and
//! a thread of its own writes: a reader that has stopped reading and a disk that is full cost lines,
//! which are counted, and hold nobody up.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use proxy::telemetry::Telemetry;

/// What waits to be written: some thousand lines, half a minute of as many refusals as are told.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// How long the end of the process waits for a reader.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// How long a pipe or terminal that somebody has made non-blocking is left alone while it is full.
const FULL_INTERVAL: Duration = Duration::from_millis(10);

/// The one end of the queue: what is written to it at once is a line. It never fails.
#[derive(Clone)]
pub(crate) struct Lines(Arc<Queue>);

struct Queue {
    waiting: Mutex<Waiting>,
    added: Condvar,
    /// Nothing is left.
    emptied: Condvar,
}

#[derive(Default)]
struct Waiting {
    lines: VecDeque<Vec<u8>>,
    /// Of these and of the line that is being written.
    bytes: usize,
    /// Lines dropped of which the log does not tell yet.
    untold: u64,
    /// Where they are counted; there is none while the process starts.
    telemetry: Option<Arc<Telemetry>>,
}

impl Lines {
    /// Starts the thread that writes to `log`.
    ///
    /// # Errors
    /// When there can be no thread.
    pub(crate) fn to(log: impl Write + Send + 'static) -> io::Result<Self> {
        let queue =
            Queue { waiting: Mutex::default(), added: Condvar::new(), emptied: Condvar::new() };
        let lines = Self(Arc::new(queue));
        let Self(queue) = lines.clone();
        thread::Builder::new().name("log".into()).spawn(move || queue.write_to(log))?;
        Ok(lines)
    }

    /// Has lines that are dropped counted, and those that were.
    pub(crate) fn count_in(&self, telemetry: Arc<Telemetry>) {
        let Self(queue) = self;
        let mut waiting = queue.waiting.lock();
        telemetry.log_lines_dropped(waiting.untold);
        waiting.telemetry = Some(telemetry);
    }
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let Self(queue) = self;
        let mut waiting = queue.waiting.lock();
        let bytes = waiting.bytes.saturating_add(line.len());
        if bytes > WAITING_BYTES_MAX {
            waiting.drop_line();
        } else {
            waiting.bytes = bytes;
            waiting.lines.push_back(line.to_vec());
            queue.added.notify_one();
        }
        Ok(line.len())
    }

    /// Waits until everything is written, for a second at most.
    fn flush(&mut self) -> io::Result<()> {
        let Self(queue) = self;
        let mut waiting = queue.waiting.lock();
        queue.emptied.wait_while_for(&mut waiting, |waiting| waiting.bytes > 0, FLUSH_MAX);
        Ok(())
    }
}

impl Waiting {
    fn drop_line(&mut self) {
        self.untold = self.untold.saturating_add(1);
        if let Some(telemetry) = &self.telemetry {
            telemetry.log_lines_dropped(1);
        }
    }
}

impl Queue {
    fn write_to(&self, log: impl Write) {
        let mut log = WholeLines { log, rest: Vec::new() };
        loop {
            let line = self.next();
            let bytes = line.len();
            let written = log.write(line);
            let dropped = self.is_over(bytes, &written);
            if dropped > 0 {
                tracing::warn!(
                    dropped,
                    "the log could not be written, or was not read: lines are missing"
                );
            }
        }
    }

    fn next(&self) -> Vec<u8> {
        let mut waiting = self.waiting.lock();
        loop {
            if let Some(line) = waiting.lines.pop_front() {
                return line;
            }
            self.added.wait(&mut waiting);
        }
    }

    /// A line was written or could not be. How many dropped ones to tell of: all, once there is room.
    fn is_over(&self, bytes: usize, written: &io::Result<()>) -> u64 {
        let mut waiting = self.waiting.lock();
        waiting.bytes = waiting.bytes.saturating_sub(bytes);
        if waiting.bytes == 0 {
            self.emptied.notify_all();
        }
        if written.is_err() {
            waiting.drop_line();
        } else if waiting.lines.is_empty() {
            return std::mem::take(&mut waiting.untold);
        }
        0
    }
}

/// Writes a line as a whole or not at all: what is left of one that a full disk has cut is written ahead
/// of the next one.
struct WholeLines<W> {
    log: W,
    rest: Vec<u8>,
}

impl<W: Write> WholeLines<W> {
    fn write(&mut self, line: Vec<u8>) -> io::Result<()> {
        self.write_rest()?;
        let whole = line.len();
        self.rest = line;
        let written = self.write_rest();
        if self.rest.len() == whole {
            self.rest.clear();
            return written;
        }
        Ok(())
    }

    fn write_rest(&mut self) -> io::Result<()> {
        while !self.rest.is_empty() {
            match self.log.write(&self.rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => drop(self.rest.drain(..written)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(FULL_INTERVAL),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    use proxy::telemetry::TelemetryConfig;

    use super::*;

    /// Writes as much at once as the test says, or fails, and hands over what it has written.
    struct Told {
        steps: Receiver<io::Result<usize>>,
        written: SyncSender<Vec<u8>>,
    }

    impl Write for Told {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let step = self.steps.recv().unwrap_or(Ok(usize::MAX))?.min(bytes.len());
            self.written.send(bytes[..step].to_vec()).expect("the test reads");
            Ok(step)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn log() -> (Lines, SyncSender<io::Result<usize>>, Receiver<Vec<u8>>) {
        let (step, steps) = sync_channel(10_000);
        let (writes, written) = sync_channel(10_000);
        (Lines::to(Told { steps, written: writes }).unwrap(), step, written)
    }

    fn dropped(telemetry: &Telemetry) -> String {
        let metrics = telemetry.gather(&[]);
        let name = "sluice_log_lines_dropped_total ";
        metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned()
    }

    fn text(written: &Receiver<Vec<u8>>) -> String {
        String::from_utf8(written.try_iter().flatten().collect()).unwrap()
    }

    #[test]
    fn a_reader_that_stops_costs_the_lines_beyond_a_bound() {
        let (mut lines, step, written) = log();
        let telemetry = Telemetry::new(TelemetryConfig { max_apps: 1 });
        let line = [&[b'x'; 1_023][..], b"\n"].concat();
        for _ in 0..1_030 {
            lines.write_all(&line).unwrap();
        }
        lines.count_in(telemetry.clone());
        assert_eq!(dropped(&telemetry), "6");
        lines.write_all(&line).unwrap();
        assert_eq!(dropped(&telemetry), "7");
        drop(step);
        lines.flush().unwrap();
        assert_eq!(text(&written).lines().count(), 1_024);
    }

    #[test]
    fn a_line_that_a_full_disk_has_cut_is_finished_and_the_lines_it_had_no_room_for_are_counted() {
        let (mut lines, step, written) = log();
        let telemetry = Telemetry::new(TelemetryConfig { max_apps: 1 });
        lines.count_in(telemetry.clone());
        let full = || Err(ErrorKind::StorageFull.into());
        let outcomes = [Ok(2), full(), full(), Err(ErrorKind::WouldBlock.into()), Ok(9), full()];
        for outcome in outcomes {
            step.send(outcome).unwrap();
        }
        drop(step);
        for line in ["first\n", "second\n", "third\n", "fourth\n"] {
            lines.write_all(line.as_bytes()).unwrap();
        }
        lines.flush().unwrap();
        assert_eq!(text(&written), "first\nfourth\n");
        assert_eq!(dropped(&telemetry), "2");
    }
}

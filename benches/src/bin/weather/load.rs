//! Sessions that change rows of their own, and come back when they were told to.

use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use benches::Result;
use benches::beside::Failure;
use benches::web::Chance;
use integration::raw::{Login, RawConn, Response};
use integration::scenario::Refused;
use socket2::SockRef;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

/// What some sessions do, again and again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// Also the app's name.
    pub(crate) user: &'static str,
    pub(crate) table: &'static str,
    pub(crate) sessions: u32,
    /// That a statement changes.
    pub(crate) rows: u32,
    /// Of a transaction; one statement is its own.
    pub(crate) statements: u32,
    /// From the beginning of a transaction's statement to that of the next.
    pub(crate) each: Duration,
    /// From an answer to the next statement, on average.
    pub(crate) thinks: Duration,
    /// Whether the replica waits at its rows.
    pub(crate) priced: bool,
}

/// What a session met.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Event {
    /// Rows were changed, so long after they were first asked for.
    Done { rows: u32, took: Duration },
    /// A statement was refused.
    Refused,
    /// Who had been told this was admitted so much later.
    Admitted { told: Duration, after: Duration },
    /// A statement was sent, and the connection ended without an answer.
    Lost { at: Instant },
}

/// Sessions at work, until this is dropped.
#[derive(Debug)]
pub(crate) struct Sessions {
    met: UnboundedReceiver<Event>,
    tasks: JoinSet<std::result::Result<(), Failure>>,
}

impl Load {
    /// Rows in the table for each session.
    pub(crate) fn rows_each(&self) -> u32 {
        // One is changed by nobody: the end of a range must not be another's beginning.
        self.rows_at_once().saturating_add(1)
    }

    fn first_of(&self, session: u32) -> u32 {
        session.saturating_mul(self.rows_each()).saturating_add(1)
    }

    /// A statement of a transaction, by its number.
    fn statement(&self, session: u32, number: u32) -> String {
        let first = self.first_of(session).saturating_add(number.saturating_mul(self.rows));
        let last = first.saturating_add(self.rows).saturating_sub(1);
        let rows = if self.rows == 1 {
            format!("id = {first}")
        } else {
            format!("id BETWEEN {first} AND {last}")
        };
        format!("UPDATE {} SET n = n + 1 WHERE {rows}", self.table)
    }

    /// All that is changed between two answers that matter to the job.
    pub(crate) fn rows_at_once(&self) -> u32 {
        self.rows.saturating_mul(self.statements)
    }

    /// So many of its transactions, for whoever runs them on a connection of his own.
    pub(crate) fn transactions(&self, count: u32) -> Vec<String> {
        let mut all = Vec::new();
        for (session, _) in (0..self.sessions).cycle().zip(0..count) {
            let own = (0..self.statements).map(|number| self.statement(session, number));
            if self.statements == 1 {
                all.extend(own);
            } else {
                all.push("BEGIN".to_owned());
                all.extend(own);
                all.push("COMMIT".to_owned());
            }
        }
        all
    }
}

impl Sessions {
    pub(crate) async fn start(addr: SocketAddr, load: Load) -> Result<Self> {
        let (tell, met) = unbounded_channel();
        let mut tasks = JoinSet::new();
        for number in 0..load.sessions {
            let conn = connect(addr, load).await.map_err(|failure| failure.to_string())?;
            let session = Session { addr, conn, load, number, tell: tell.clone() };
            tasks.spawn(session.work());
        }
        Ok(Self { met, tasks })
    }

    /// What was met since the last call.
    ///
    /// # Errors
    /// When a session has failed.
    pub(crate) fn take(&mut self) -> Result<Vec<Event>> {
        if let Some(ended) = self.tasks.try_join_next() {
            return match ended? {
                Ok(()) => Err("a session has ended".into()),
                Err(failure) => Err(format!("a session has failed: {failure}").into()),
            };
        }
        let mut all = Vec::with_capacity(self.met.len());
        while let Ok(event) = self.met.try_recv() {
            all.push(event);
        }
        Ok(all)
    }
}

struct Session {
    addr: SocketAddr,
    conn: RawConn,
    load: Load,
    number: u32,
    tell: UnboundedSender<Event>,
}

/// What came of one try.
enum Tried {
    Done,
    Refused { told: Duration },
}

impl Session {
    async fn work(mut self) -> std::result::Result<(), Failure> {
        let mut chance = Chance(self.number);
        while !self.tell.is_closed() {
            let thinks = self.load.thinks.mul_f64(0.5 + f64::from(chance.below(1_000)) / 1e3);
            if !thinks.is_zero() {
                sleep(thinks).await;
            }
            self.change().await?;
        }
        Ok(())
    }

    /// Asks until it is done.
    async fn change(&mut self) -> std::result::Result<(), Failure> {
        let asked = Instant::now();
        let mut refusals = Vec::new();
        loop {
            // As a pool does before it lends a connection.
            if is_closed(&mut self.conn) {
                self.conn = self.connect_again().await?;
            }
            match self.attempt().await {
                Ok(Tried::Done) => break,
                Ok(Tried::Refused { told }) => {
                    self.tell.send(Event::Refused).ok();
                    refusals.push((Instant::now(), told));
                    sleep(told).await;
                }
                Err(failure) => {
                    eprintln!("weather: {failure}");
                    self.tell.send(Event::Lost { at: Instant::now() }).ok();
                    self.conn = self.connect_again().await?;
                }
            }
        }
        for (at, told) in refusals {
            self.tell.send(Event::Admitted { told, after: at.elapsed() }).ok();
        }
        let rows = self.load.rows_at_once();
        self.tell.send(Event::Done { rows, took: asked.elapsed() }).ok();
        Ok(())
    }

    async fn attempt(&mut self) -> std::result::Result<Tried, Failure> {
        let load = self.load;
        if load.statements == 1 {
            return tried(&self.conn.query(load.statement(self.number, 0)).await?);
        }
        self.conn.query("BEGIN").await?.accepted()?;
        let mut tick = interval(load.each);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for number in 0..load.statements {
            tick.tick().await;
            match tried(&self.conn.query(load.statement(self.number, number)).await?)? {
                Tried::Done => {}
                Tried::Refused { told } => {
                    self.conn.query("ROLLBACK").await?.accepted()?;
                    return Ok(Tried::Refused { told });
                }
            }
        }
        self.conn.query("COMMIT").await?.accepted()?;
        Ok(Tried::Done)
    }

    async fn connect_again(&self) -> std::result::Result<RawConn, Failure> {
        let began = Instant::now();
        loop {
            match connect(self.addr, self.load).await {
                Ok(conn) => return Ok(conn),
                Err(failure) if began.elapsed() > RECONNECT_LIMIT => return Err(failure),
                Err(_) => sleep(RECONNECT).await,
            }
        }
    }
}

async fn connect(addr: SocketAddr, load: Load) -> std::result::Result<RawConn, Failure> {
    let mut conn = RawConn::open(addr, &Login::new(load.user)).await?;
    conn.set_read_limit(ANSWER_LIMIT);
    Ok(conn)
}

fn tried(response: &Response) -> std::result::Result<Tried, Failure> {
    if response.affected_rows().is_some() {
        return Ok(Tried::Done);
    }
    let refused = Refused::of(response).ok_or("an answer that is neither OK nor ERR")?;
    match refused.part("retry_after_ms").map(str::parse) {
        Some(Ok(told_ms)) => Ok(Tried::Refused { told: Duration::from_millis(told_ms) }),
        Some(Err(_)) | None => Err(refused.message.into()),
    }
}

/// Whether the other side has ended the connection, or said that it will. Asks the kernel, as pools
/// do: the runtime may not have looked since.
fn is_closed(conn: &mut RawConn) -> bool {
    match SockRef::from(&*conn.stream()).peek(&mut [MaybeUninit::uninit()]) {
        Ok(_) => true,
        Err(failure) => failure.kind() != std::io::ErrorKind::WouldBlock,
    }
}

/// Longer than a statement may wait in a queue.
const ANSWER_LIMIT: Duration = Duration::from_secs(300);
const RECONNECT: Duration = Duration::from_millis(20);
const RECONNECT_LIMIT: Duration = Duration::from_secs(15);

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Load = Load {
        user: "etl",
        table: "job",
        sessions: 2,
        rows: 50,
        statements: 1,
        each: Duration::ZERO,
        thinks: Duration::ZERO,
        priced: true,
    };

    #[test]
    fn sessions_change_ranges_that_do_not_touch() {
        let second = "UPDATE job SET n = n + 1 WHERE id BETWEEN 52 AND 101";
        assert_eq!(LOAD.statement(0, 0), "UPDATE job SET n = n + 1 WHERE id BETWEEN 1 AND 50");
        assert_eq!(LOAD.statement(1, 0), second);
        assert_eq!(LOAD.transactions(4).get(3).map(String::as_str), Some(second));
    }

    #[test]
    fn a_transaction_changes_each_of_its_rows_once() {
        let load = Load { rows: 1, statements: 400, ..LOAD };
        assert_eq!(load.statement(0, 399), "UPDATE job SET n = n + 1 WHERE id = 400");
        assert_eq!(load.statement(1, 0), "UPDATE job SET n = n + 1 WHERE id = 402");
        let alone = Load { statements: 2, ..load }.transactions(1);
        assert_eq!(alone.first().map(String::as_str), Some("BEGIN"));
        assert_eq!((alone.len(), alone.last().map(String::as_str)), (4, Some("COMMIT")));
    }
}

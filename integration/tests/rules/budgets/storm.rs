//! Clients that do everything at once, for a while: they vanish while they wait and while the server
//! works, are killed, change their user, send several statements, open cursors, upload files, and
//! have a name of their own each time; meanwhile the limits are edited. The judge is the server.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use integration::raw::{Cursor, Execute, Login, RawConn, Shape, framed};
use integration::scenario::{Held, wait_for_sum, wait_until};
use integration::server::Server;
use integration::sluice::{Config, SluiceProcess};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::places::Lab;
use super::{RULES, send};

const TIME: Duration = Duration::from_secs(6);
const CLIENTS: u64 = 12;
/// The most that any file of the storm allows.
const MOST: usize = 3;

/// `tenants` has a bucket for each name that clients make up, in each of which one has room.
fn budgets(most: usize) -> String {
    format!(
        "budgets:\n  - {{ name: storm, match: {{ app: storm }}, max_concurrency: {most} }}\n  \
         - {{ name: tenants, match: {{ app: storm }}, per: 'tag:tenant', max_concurrency: 1 }}"
    )
}

impl Lab {
    /// Never more than the budget says, and nothing is left of it behind all of that.
    pub(super) async fn storm(&self) {
        self.at_once().await;
        let mut config = Config::in_front_of(self.server.addr(), Vec::new()).unwrap();
        config.rules = RULES.to_owned();
        config.top = budgets(MOST);
        let sluice = SluiceProcess::start(&config).await.unwrap();
        let until = Instant::now() + TIME;
        let mut all = JoinSet::new();
        for n in 0..CLIENTS {
            all.spawn(one(sluice.listen_addr(), Chance(n + 1), until));
        }
        while Instant::now() < until {
            for most in [2, 1, MOST] {
                config.top = budgets(most);
                sluice.write_config(&config.render()).unwrap();
                sleep(Duration::from_millis(700)).await;
                self.kill_one().await;
            }
        }
        while let Some(one) = all.join_next().await {
            one.unwrap();
        }
        for gauge in ["in_use", "waiting"] {
            let name = format!("sluice_budget_{gauge}");
            wait_for_sum(&sluice, &name, &[], 0.0).await.unwrap();
        }
        self.all_places_are_free(&sluice).await;
        let (statements, most) = self.most_at_once().await;
        assert!(
            statements > 40 && most.len() <= MOST,
            "{statements} statements, {most:?} ms at once"
        );
    }

    /// Somebody who works for the storm: what the client of it sees it makes nothing of.
    async fn kill_one(&self) {
        let find = "SELECT id FROM information_schema.processlist \
                    WHERE command <> 'Sleep' AND info LIKE '%place%storm%' \
                    AND info NOT LIKE '%processlist%' LIMIT 1";
        let ids: Vec<u64> = self.server.query(find).await.unwrap();
        if let [id] = ids[..] {
            // It may have gone by itself.
            self.server.run_sql(&[&format!("KILL {id}")]).await.ok();
        }
    }

    /// As many at once as the budget says, and at once.
    async fn all_places_are_free(&self, sluice: &SluiceProcess) {
        let held = self.hold().await;
        let mut conns = Vec::new();
        for _ in 0..MOST {
            let mut conn = opened(sluice.listen_addr(), "web").await.unwrap();
            let tenant = format!("free-{}", conns.len());
            let text = format!("{} /*tenant='{tenant}'*/", Held::statement("place of the storm"));
            send(&mut conn, &text).await;
            conns.push(conn);
        }
        let labels = [("budget", "storm")];
        wait_for_sum(sluice, "sluice_budget_in_use", &labels, 3.0).await.unwrap();
        held.release().await.unwrap();
        for mut conn in conns {
            conn.read_response(Shape::Query).await.unwrap().accepted().unwrap();
        }
        let quiet = || async { Ok(running(&self.server).await? == 0) };
        wait_until("nothing runs", Duration::from_secs(5), quiet).await.unwrap();
    }
}

async fn running(server: &Server) -> integration::error::Result<i64> {
    let text = "SELECT COUNT(*) FROM information_schema.processlist \
                WHERE info LIKE '%storm%' AND info NOT LIKE '%processlist%'";
    Ok(server.query(text).await?.first().copied().unwrap_or_default())
}

/// One after the other until the time is over, over connections that do not live long.
async fn one(addr: SocketAddr, mut chance: Chance, until: Instant) {
    while Instant::now() < until {
        let user = if chance.below(2) == 0 { "web" } else { "etl" };
        let Ok(mut conn) = opened(addr, user).await else { continue };
        while Instant::now() < until {
            let patience = Duration::from_millis(20 + 40 * chance.size(40));
            let done = timeout(patience, something(&mut conn, &mut chance)).await;
            // It was killed, or does not want to wait any longer: it is gone without a word.
            if !matches!(done, Ok(Ok(()))) {
                break;
            }
        }
    }
}

async fn opened(addr: SocketAddr, user: &str) -> integration::error::Result<RawConn> {
    RawConn::open(addr, &Login::new(user).attribute("sluice_app", "storm")).await
}

fn place(seconds: f64) -> String {
    format!("SELECT SLEEP({seconds}), 'place', 'storm'")
}

async fn something(conn: &mut RawConn, chance: &mut Chance) -> integration::error::Result<()> {
    let place = place(0.08 + 0.01 * f64::from(u8::try_from(chance.below(8)).unwrap_or(0)));
    let tenant = chance.next();
    let named = format!("{place} /*tenant='t{tenant}'*/");
    match chance.below(8) {
        0 => drop(conn.query(&place).await?),
        1 => drop(conn.query(&named).await?),
        2 => drop(conn.query(format!("{named}; {place}")).await?),
        3 => {
            drop(conn.query(format!("CALL test.place() /*tenant='t{tenant}',by='storm'*/")).await?)
        }
        4 => {
            let statement = conn.prepare(&named).await?;
            let cursor = if chance.below(2) == 0 { Cursor::None } else { Cursor::ReadOnly };
            let execute = Execute { id: statement.id, cursor, ..Execute::default() };
            conn.execute_as(&execute).await?.accepted()?;
            if matches!(cursor, Cursor::ReadOnly) {
                conn.fetch(statement.id, 9).await?;
            }
            conn.close_statement(statement.id).await?;
        }
        5 => {
            let load =
                "LOAD DATA LOCAL INFILE 'place' INTO TABLE test.places (@a) SET n = SLEEP(0.03)";
            conn.queue_infile(b"1\n2\n".to_vec());
            conn.query(format!("{load} /*tenant='t{tenant}',by='storm'*/")).await?;
        }
        6 => {
            let login = Login::new("quick").attribute("sluice_app", "storm");
            let change = conn.change_user_payload(&login);
            conn.send_command(&change).await?;
            let asked = conn.read_packet().await?;
            let query = [b"\x03", named.as_bytes()].concat();
            let both = [framed(asked.seq.wrapping_add(1), b""), framed(0, &query)].concat();
            conn.send_bytes(&both).await?;
            conn.read_packet().await?;
            conn.read_response(Shape::Query).await?;
        }
        _ => {
            // Two at once: the second waits for the first.
            let first = framed(0, &[b"\x03", named.as_bytes()].concat());
            conn.send_bytes(&[first.clone(), first].concat()).await?;
            conn.read_response(Shape::Query).await?;
            conn.read_response(Shape::Query).await?;
        }
    }
    Ok(())
}

/// The same for the same seed.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn size(&mut self, most: u64) -> u64 {
        self.next() % most
    }

    fn below(&mut self, most: u64) -> usize {
        usize::try_from(self.size(most)).unwrap_or(0)
    }
}

//! The report: an export of every order with its lines, which a tool takes row by row.
//!
//! It is neither all processor nor all waiting, as exports are: the server reads and sends rows for some
//! 20 µs each, and waits while the tool works with what it has got. So one of them takes a few hundredths of a
//! core, four are hardly a load, and forty with the web application are about what two cores have.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use benches::Result;
use benches::beside::{Failure, beside, ended};
use integration::client::connect_with_attributes;
use integration::server::Server;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tokio::task::JoinSet;

pub(crate) async fn fill(server: &Server) -> Result<()> {
    let depth = "SET SESSION cte_max_recursion_depth = 1000000";
    let orders = format!(
        "INSERT INTO orders WITH RECURSIVE n (i) AS \
         (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ORDERS}) \
         SELECT i, CONCAT('customer', i, '@example.com'), REPEAT(SHA2(i, 256), 32) FROM n"
    );
    server.run_sql(&[depth, ORDERS_TABLE, LINES_TABLE, &orders, LINES]).await?;
    Ok(())
}

/// One report that has come to its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Done {
    /// Since all were asked for.
    pub(crate) after: Duration,
    pub(crate) rows: u64,
}

/// Asks for so many at once, each on a session of its own, and takes them to their ends: for each row the tool
/// works for as long as this.
pub(crate) async fn at_once(addr: SocketAddr, count: usize, works: Duration) -> Result<Vec<Done>> {
    let thread = beside("reports", move || async move {
        let mut conns = Vec::new();
        for _ in 0..count {
            conns.push(connect_with_attributes(addr, "app", &[("sluice_app", "report")]).await?);
        }
        let began = Instant::now();
        let mut all = JoinSet::new();
        for conn in conns {
            all.spawn(one(conn, began, works));
        }
        let mut done = Vec::new();
        while let Some(one) = all.join_next().await {
            done.push(one??);
        }
        Ok(done)
    })?;
    ended(thread).await
}

async fn one(
    mut conn: Conn,
    began: Instant,
    works: Duration,
) -> std::result::Result<Done, Failure> {
    let mut rows = 0_u64;
    let mut result = conn.query_iter(REPORT).await?;
    while result.next().await?.is_some() {
        rows = rows.saturating_add(1);
        if rows.is_multiple_of(u64::from(ROWS_AT_A_TIME)) {
            tokio::time::sleep(works * ROWS_AT_A_TIME).await;
        }
    }
    drop(result);
    conn.disconnect().await?;
    Ok(Done { after: began.elapsed(), rows })
}

pub(crate) const ORDERS: u32 = 10_000;
/// A sleep is no shorter than a millisecond.
const ROWS_AT_A_TIME: u32 = 20;
const ORDERS_TABLE: &str = "CREATE TABLE orders (id INT PRIMARY KEY, email VARCHAR(60), note TEXT)";
const LINES_TABLE: &str = "CREATE TABLE order_lines (order_id INT, line INT, sku CHAR(12), qty INT, \
                           price DECIMAL(10, 2), PRIMARY KEY (order_id, line))";
const LINES: &str = "INSERT INTO order_lines WITH RECURSIVE n (i) AS \
     (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) \
     SELECT o.id, n.i, LEFT(SHA2(o.id * 10 + n.i, 256), 12), 1 + o.id % 7, 1 + o.id * n.i % 1000 / 10 \
     FROM orders o, n";
/// Customers are not to be known from it.
const REPORT: &str = "SELECT o.id, SHA2(o.email, 256), o.note, \
     (SELECT SUM(l.qty * l.price) FROM order_lines l WHERE l.order_id = o.id) FROM orders o";

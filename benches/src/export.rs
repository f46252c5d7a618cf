//! A report: an export of orders with their sums, which a tool takes row by row.
//!
//! It is neither all processor nor all waiting, as exports are: the server reads and sends rows for some
//! 20 µs each, and waits while the tool works with what it has got. So one of them takes a few hundredths of a
//! core, four are hardly a load, and forty with a web application are about what two cores have.

use std::net::SocketAddr;
use std::time::Duration;

use integration::raw::{Login, RawConn, capability};
use integration::server::Server;
use socket2::SockRef;

use crate::Result;
use crate::beside::Failure;

/// Makes the tables `orders`, of [`ORDERS`] rows, and `order_lines`.
///
/// # Errors
/// When the server does not run a statement.
pub async fn fill(server: &Server) -> Result<()> {
    let depth = "SET SESSION cte_max_recursion_depth = 1000000";
    let orders = format!(
        "INSERT INTO orders WITH RECURSIVE n (i) AS \
         (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ORDERS}) \
         SELECT i, CONCAT('customer', i, '@example.com'), REPEAT(SHA2(i, 256), 32) FROM n"
    );
    server.run_sql(&[depth, ORDERS_TABLE, LINES_TABLE, &orders, LINES]).await?;
    Ok(())
}

/// A tool with a session.
#[derive(Debug)]
pub struct Tool {
    conn: RawConn,
    works: Duration,
}

impl Tool {
    /// Logs in. It will work for so long on each row, not on this machine.
    ///
    /// # Errors
    /// When it is not let in.
    pub async fn open(addr: SocketAddr, login: &Login, works: Duration) -> Result<Self> {
        let mut conn = RawConn::open(addr, login).await?;
        conn.set_read_limit(ANSWER_LIMIT);
        SockRef::from(&*conn.stream()).set_recv_buffer_size(TOOL_BUFFER)?;
        Ok(Self { conn, works })
    }

    /// Exports so many orders, and says how many rows have come.
    ///
    /// # Errors
    /// When the server, or whoever is in between, refuses or breaks off.
    pub async fn export(&mut self, orders: u32) -> std::result::Result<u64, Failure> {
        let report = format!("{REPORT} WHERE o.id <= {orders}");
        let conn = &mut self.conn;
        conn.send_command(&conn.query_payload(report.as_bytes(), &[])).await?;
        // The number of columns, their definitions, and an EOF behind them if it is not given up.
        let eof = u32::from(conn.capabilities() & capability::DEPRECATE_EOF == 0);
        let mut ahead = 1 + COLUMNS + eof;
        let mut rows = 0_u64;
        loop {
            let packet = conn.read_packet().await?;
            match packet.first() {
                Some(0xff) => return Err(format!("the report failed: {packet:?}").into()),
                Some(_) | None if ahead > 0 => ahead -= 1,
                Some(0xfe) => return Ok(rows),
                Some(_) | None => rows = rows.saturating_add(1),
            }
            if ahead == 0 && rows > 0 && rows.is_multiple_of(u64::from(ROWS_AT_A_TIME)) {
                tokio::time::sleep(self.works * ROWS_AT_A_TIME).await;
            }
        }
    }
}

/// All orders that there are.
pub const ORDERS: u32 = 10_000;
/// A sleep is no shorter than a millisecond.
const ROWS_AT_A_TIME: u32 = 20;
const ORDERS_TABLE: &str = "CREATE TABLE orders (id INT PRIMARY KEY, email VARCHAR(60), note TEXT)";
const LINES_TABLE: &str = "CREATE TABLE order_lines (order_id INT, line INT, sku CHAR(12), qty INT, \
                           price DECIMAL(10, 2), PRIMARY KEY (order_id, line))";
const LINES: &str = "INSERT INTO order_lines WITH RECURSIVE n (i) AS \
     (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) \
     SELECT o.id, n.i, LEFT(SHA2(o.id * 10 + n.i, 256), 12), 1 + o.id % 7, 1 + o.id * n.i % 1000 / 10 \
     FROM orders o, n";
const COLUMNS: u32 = 4;
/// What the tool's socket keeps unread. The loopback of one machine would otherwise take megabytes of each report
/// at once, which no network does.
const TOOL_BUFFER: usize = 64 << 10;
/// A report may wait for others.
const ANSWER_LIMIT: Duration = Duration::from_secs(600);
/// Customers are not to be known from it.
const REPORT: &str = "SELECT o.id, SHA2(o.email, 256), o.note, \
     (SELECT SUM(l.qty * l.price) FROM order_lines l WHERE l.order_id = o.id) FROM orders o";

//! Budgets on a real server beside a web application.
//!
//!   budgets reports [ROUNDS = 1] [SECONDS alone = 15] [MICROSECONDS = 500] [FOLDER for the plot]
//!
//!   budgets share [ROUNDS = 3] [SECONDS = 60] [FOLDER for the plot]
//!
//! `reports`: a report run 40 times at once, direct and through Sluice with `max_concurrency: 4`, and the web
//! application without it on both ways. A tool takes the rows of a report, and works on each for so many
//! microseconds, not on this machine. What is at the server is what the server says of itself.
//!
//! `share`: two apps of batch work beside a web application, one held to a quarter of a server-second a second,
//! both together to 0.6 and to three statements at once. What they took is what the server's statement timers say.
//!
//! Prints Markdown. The web application, the reports and whoever looks at the server are threads with runtimes of
//! their own; servers, loads and Sluice share the machine.
#![expect(clippy::print_stdout, reason = "the report is what this program is for")]

mod plot;
mod reports;
mod share;
mod watch;

use std::path::PathBuf;
use std::time::Duration;

use benches::Result;

use crate::reports::Times;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let what = args.next().unwrap_or_default();
    let mut number = |default: u64| args.next().map_or(Ok(default), |text| text.parse());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match what.as_str() {
        "reports" => {
            let rounds = number(1)?;
            let alone = Duration::from_secs(number(15)?);
            let works = Duration::from_micros(number(500)?);
            let folder = args.next().map(PathBuf::from);
            runtime.block_on(reports::run(rounds, Times { alone, works }, folder))
        }
        "share" => {
            let (rounds, seconds) = (number(3)?, Duration::from_secs(number(60)?));
            let folder = args.next().map(PathBuf::from);
            runtime.block_on(share::run(rounds, seconds, folder))
        }
        _ => Err("usage: budgets reports|share [ROUNDS] [SECONDS] [FOLDER]".into()),
    }
}

//! Dumps, and reading them in again.
//!
//! Each transaction of the traffic does the same to `t` and to `shadow`, so a dump that is of one
//! moment has the same rows in both.

use std::path::Path;
use std::process::Command;

use integration::replica::Lag;
use integration::scenario::wait_for_signal;
use integration::server::Flavour;
use integration::tools::{ToolProcess, program};

use super::lab::{Lab, Shut, TOOL_LIMIT, Traffic};

#[tokio::test]
async fn dumps_pass_a_shut_gate_and_reading_them_in_waits_at_it() {
    let mut lab = Lab::start(Flavour::MySql).await;
    lab.servers.primary.run_sql(&["CREATE DATABASE one", "CREATE DATABASE two"]).await.unwrap();
    let traffic = Traffic::start(&lab).await;
    // Before the first heartbeat it is shut as well, and opens with it.
    wait_for_signal(&lab.sluice, "lag", 1.0).await.unwrap();
    lab.replica().lag_start(Lag::StoppedApplier).await.unwrap();
    wait_for_signal(&lab.sluice, "lag", 0.0).await.unwrap();
    let mut mysqldump = mysqldump(&lab);
    mysqldump.succeeded(TOOL_LIMIT).await.unwrap();
    let mut mydumper = mydumper(&lab);
    mydumper.succeeded(TOOL_LIMIT).await.unwrap();
    lab.replica().lag_stop().await.unwrap();
    wait_for_signal(&lab.sluice, "lag", 1.0).await.unwrap();

    let mut mysql = mysql(&lab, &mysqldump.dir().join("dump.sql"));
    // It locks a table while it fills it: what waits is the second one's LOCK TABLES.
    lab.run(&mut mysql, "mysql", 1.0, Shut::ByHold).await;
    let mut myloader = myloader(&lab, &mydumper.dir().join("dump"));
    lab.run(&mut myloader, "myloader", 20.0, Shut::ByLag).await;
    let (transactions, slowest) = traffic.stop().await;
    assert!(transactions > 50, "{transactions} transactions, of at most {slowest:?}");
    for of in ["one", "two"] {
        lab.same_rows(&format!("{of}.t"), &format!("{of}.shadow"), "TRUE").await;
    }
    lab.same_rows("one.t", "two.t", "id < 10000").await;
    lab.same_rows("t", "shadow", "TRUE").await;
    lab.replica_agrees(&["t", "one.t", "one.shadow", "two.t", "two.shadow"]).await;
    for (app, class) in [("mysqldump", "read"), ("mydumper", "read")] {
        assert!(lab.admitted(app, class).await > 0.0, "{app} was not told apart");
    }
}

fn mysqldump(lab: &Lab) -> ToolProcess {
    let port = format!("--port={}", lab.port());
    let arguments = [
        "--no-defaults",
        "--host=127.0.0.1",
        &port,
        "--user=admin",
        "--password=admin",
        "--single-transaction",
        "--set-gtid-purged=OFF",
        "--no-tablespaces",
        // Some hundred statements a table, which is a second.
        "--net-buffer-length=20000",
        "--result-file=dump.sql",
        "test",
        "t",
        "shadow",
    ];
    ToolProcess::start(&program("mysqldump").unwrap(), &arguments).unwrap()
}

fn mysql(lab: &Lab, dump: &Path) -> ToolProcess {
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" --no-defaults --host=127.0.0.1 \"$@\" < \"$DUMP\""]);
    command.arg(program("mysql").unwrap()).env("DUMP", dump);
    let port = format!("--port={}", lab.port());
    command.args([&port, "--user=myloader", "--password=myloader", "one"]);
    ToolProcess::spawn(&mut command).unwrap()
}

fn mydumper(lab: &Lab) -> ToolProcess {
    let port = lab.port().to_string();
    let account = ["-h", "127.0.0.1", "-P", &port, "-u", "mydumper", "-p", "mydumper"];
    let what = ["-B", "test", "-T", "t,shadow", "-o", "dump", "-t", "2", "-s", "20000"];
    ToolProcess::start(&program("mydumper").unwrap(), &[&account[..], &what].concat()).unwrap()
}

fn myloader(lab: &Lab, dump: &Path) -> ToolProcess {
    let (port, dump) = (lab.port().to_string(), dump.display().to_string());
    let account = ["-h", "127.0.0.1", "-P", &port, "-u", "myloader", "-p", "myloader"];
    // One session: another one's transaction that is admitted would go on.
    let what = ["-B", "two", "-d", &dump, "-t", "1", "-q", "5", "-e"];
    ToolProcess::start(&program("myloader").unwrap(), &[&account[..], &what].concat()).unwrap()
}

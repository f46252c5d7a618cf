//! What Sluice counts of every digest, beside what the server itself counts of the same statements.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail by panicking, as the tests do"
)]

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use integration::raw::{COM_PING, Login, Param, RawConn, Shape, capability};
use integration::server::{Flavour, PerformanceSchema, Server};
use integration::sluice::{Config, Metrics, SluiceProcess, binary};
use integration::topology::{Topology, TopologyOptions};
use serde_json::Value;
use tokio::sync::OnceCell;

mod ahead;
mod mixed;
mod storm;
mod uploads;

/// One server for all tests of this file, which counts too.
async fn servers() -> &'static Topology {
    static SERVERS: OnceCell<Topology> = OnceCell::const_new();
    let start = || async {
        let mut options = TopologyOptions::new(Flavour::MySql, 0);
        options.performance_schema = PerformanceSchema::On;
        Topology::start(options).await.unwrap()
    };
    SERVERS.get_or_init(start).await
}

/// Executions, errors, warnings, rows sent, rows affected.
type Counted = (u64, u64, u64, u64, u64);

/// The same with the time, by schema and text.
type Counts = BTreeMap<(String, String), (Counted, f64)>;

/// What the server has counted of the schemas' statements, by schema and text.
async fn server_counts(server: &Server) -> Counts {
    let sql = "SELECT schema_name, digest_text, count_star, sum_errors, sum_warnings, sum_rows_sent, \
               sum_rows_affected, sum_timer_wait / 1e12 \
               FROM performance_schema.events_statements_summary_by_digest \
               WHERE schema_name IN ('i_shop', 'i_crm') AND digest_text IS NOT NULL";
    type Row = (String, String, u64, u64, u64, u64, u64, f64);
    let rows: Vec<Row> = server.query(sql).await.unwrap();
    let mut counted: Counts = BTreeMap::new();
    for (schema, text, count, errors, warnings, sent, affected, time) in rows {
        // Preparing is no execution, and the digest of an execution is that of the text here.
        let text = plain(&text);
        let (text, is_preparing) = match text.strip_prefix("PREPARE") {
            Some(text) => (text, true),
            None => (text.strip_prefix("EXECUTE").unwrap_or(&text), false),
        };
        if !is_preparing {
            let sum = counted.entry((schema, text.to_owned())).or_default();
            let ((a, b, c, d, e), seconds) = *sum;
            let counts = (a + count, b + errors, c + warnings, d + sent, e + affected);
            *sum = (counts, seconds + time);
        }
    }
    counted
}

/// The same of Sluice.
async fn sluice_counts(sluice: &SluiceProcess) -> Counts {
    let answer = ask(sluice, "by=digest&sort=count&window=10m&limit=1000").await;
    let rows = answer["rows"].as_array().unwrap().iter();
    let of = |row: &Value, key: &str| row[key].as_u64().unwrap_or_else(|| panic!("{key}: {row}"));
    rows.map(|row| {
        let text = plain(row["digest_text"].as_str().unwrap());
        let counted = (
            of(row, "count"),
            of(row, "errors"),
            of(row, "warnings"),
            of(row, "rows_sent"),
            of(row, "rows_affected"),
        );
        let schema = row["schema"].as_str().unwrap().to_owned();
        ((schema, text), (counted, row["time_total_s"].as_f64().unwrap()))
    })
    .filter(|((schema, _), _)| schema.starts_with("i_"))
    .collect()
}

async fn ask(sluice: &SluiceProcess, query: &str) -> Value {
    let answer = sluice.http_get(&format!("/api/v1/insights?{query}")).await.unwrap();
    assert_eq!(answer.status, 200, "{query}: {}", answer.body);
    serde_json::from_str(&answer.body).unwrap()
}

/// A digest's text without what the two write differently: spaces, quotes around names, one literal
/// in brackets, an operator of two names, and the server's note that there was more than one row.
fn plain(text: &str) -> String {
    let text = text.replace("/* , ... */", "").to_ascii_uppercase();
    let text: String = text.chars().filter(|c| !c.is_whitespace() && *c != '`').collect();
    text.replace("<>", "!=").replace("(?)", "(...)")
}

async fn made(server: &Server) {
    let statements = [
        "CREATE DATABASE i_shop",
        "CREATE DATABASE i_crm",
        "CREATE TABLE i_shop.t (id INT PRIMARY KEY, c VARCHAR(20))",
        "CREATE TABLE i_crm.t (id INT PRIMARY KEY, c VARCHAR(20))",
        "INSERT INTO i_shop.t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, 'e')",
    ];
    server.run_sql(&statements).await.unwrap();
}

/// Both the server and Sluice count a statement when they have sent its answer. Who has answered
/// COM_PING has counted what came before it on that connection.
async fn counted(conn: &mut RawConn) {
    conn.command(&[COM_PING], Shape::Single).await.unwrap();
}

/// What an application does in a second, with values of its own.
async fn load(conn: &mut RawConn, from: i64) {
    for n in from..from + 20 {
        for sql in [
            format!("SELECT c FROM t WHERE id = {n}"),
            format!("select  c from `t` where id={n} /* trace='{n}' */"),
            format!("SELECT * FROM t WHERE id IN ({n}, 2, 3) ORDER BY id"),
            format!("SELECT COUNT(*) FROM t WHERE c = 'it''s {n}' OR c <> \"{n}\""),
            "SELECT * FROM t WHERE id IN (1, 2, 3, 4, 5)".to_owned(),
            format!(
                "INSERT INTO t (id, c) VALUES ({}, 'x'), ({}, '{n}')",
                n * 1_000,
                n * 1_000 + 1
            ),
            format!("UPDATE t SET c = 'y' WHERE id >= {}", n * 1_000),
            format!("INSERT INTO t (id, c) VALUES (1, '{n}')"),
            format!("SELECT 'abc' + {n}"),
            "BEGIN".to_owned(),
            format!("DELETE FROM t WHERE id >= {}", n * 1_000),
            "COMMIT".to_owned(),
            "SELECT no_such_column FROM t".to_owned(),
        ] {
            conn.query(sql).await.unwrap();
        }
    }
    let prepared = conn.prepare("SELECT id, c FROM t WHERE id > ? LIMIT 2").await.unwrap();
    for n in 0..20 {
        conn.execute(&prepared, &[Param::int(n)]).await.unwrap();
    }
    conn.query("SELECT SLEEP(0.2)").await.unwrap();
}

#[tokio::test]
async fn what_is_counted_is_what_the_server_counts() {
    let servers = servers().await;
    let server = &servers.primary;
    made(server).await;
    let sluice = SluiceProcess::start(&Config::new(servers).unwrap()).await.unwrap();
    let login = Login { schema: "i_shop".into(), ..Login::new("admin") };
    let mut conn = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
    server
        .run_sql(&["TRUNCATE TABLE performance_schema.events_statements_summary_by_digest"])
        .await
        .unwrap();
    load(&mut conn, 10).await;
    conn.query("USE i_crm").await.unwrap();
    load(&mut conn, 10).await;
    counted(&mut conn).await;

    let (theirs, ours) = (server_counts(server).await, sluice_counts(&sluice).await);
    let counts = |counted: &Counts| -> BTreeMap<_, Counted> {
        counted.iter().map(|(key, (counted, _))| (key.clone(), *counted)).collect()
    };
    assert_eq!(counts(&ours), counts(&theirs));
    assert!(ours.len() > 25, "{} digests", ours.len());
    for (key, (counted, time)) in &theirs {
        // On a machine with other things to do either is without a core for a while now and then.
        let network = 0.05 + 0.01 * f64::from(u32::try_from(counted.0).unwrap());
        let told = ours[key].1;
        assert!((told - time).abs() <= network, "{key:?}: {told} s, {time} s there");
    }
}

#[tokio::test]
async fn what_the_server_could_not_read_is_counted_and_not_shown() {
    let servers = servers().await;
    let sluice = SluiceProcess::start(&Config::new(servers).unwrap()).await.unwrap();
    let login = Login::new("admin").attribute("sluice_app", "broken");
    let mut conn = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
    let broken = [
        "SELECT 1 FROM t WHERE n = 'O'Brien' AND p = 'hunter2'",
        "SELECT 1 FROM t WHERE n = 'D'Artagnan' AND p = 'l'as'",
        "CREATE USER leaky IDENTIFIED BY Brien",
    ];
    for text in broken.into_iter().chain(broken) {
        let errno = conn.query(text).await.unwrap().err().map(|(errno, _)| errno);
        assert_eq!(errno, Some(1064), "{text}");
    }
    conn.query("SELECT 1 + 1").await.unwrap().accepted().unwrap();
    counted(&mut conn).await;
    let answer = ask(&sluice, "by=digest&sort=count&window=10m&app=broken").await;
    let shown = answer.to_string();
    for value in ["Brien", "hunter2", "Artagnan"] {
        assert!(!shown.contains(value), "{value}: {shown}");
    }
    let rows = answer["rows"].as_array().unwrap();
    assert_eq!(
        (rows[0]["digest"].as_str(), rows[0]["errors"].as_u64()),
        (Some("unknown"), Some(6))
    );
    assert_eq!(rows[1]["digest_text"].as_str(), Some("SELECT ? + ?"));
}

/// Drivers prepare whatever has parameters: what a guard refuses then is over as a statement.
#[tokio::test]
async fn what_a_guard_refuses_when_it_is_prepared_is_counted_as_refused() {
    let mut config = Config::new(servers().await).unwrap();
    config.top = "guards: [{ name: where, where_required: deny }]".to_owned();
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let login = Login::new("admin").attribute("sluice_app", "preparing");
    let mut conn = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
    for _ in 0..3 {
        conn.prepare("UPDATE i_shop.t SET c = ?").await.unwrap_err();
    }
    let prepared = conn.prepare("SELECT 1 + 1").await.unwrap();
    conn.execute(&prepared, &[]).await.unwrap().accepted().unwrap();
    counted(&mut conn).await;

    let answer = ask(&sluice, "by=digest&sort=refused&window=10m&app=preparing").await;
    let rows = answer["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "preparing itself is no statement: {answer}");
    let refused = &rows[0];
    assert_eq!(refused["digest_text"], "UPDATE i_shop.t SET c = ?", "{refused}");
    assert_eq!((&refused["class"], &refused["tables"][0]), (&"write".into(), &"i_shop.t".into()));
    assert_eq!((refused["count"].as_u64(), refused["refused"].as_u64()), (Some(0), Some(3)));
    assert_eq!(refused["refused_by_reason"]["guard"], 3, "{refused}");
    for key in ["mean", "p50", "p95", "p99", "max"].map(|of| format!("time_{of}_s")) {
        assert_eq!(refused.get(&key), Some(&Value::Null), "{key}: {refused}");
    }
    assert_eq!((rows[1]["count"].as_u64(), rows[1]["refused"].as_u64()), (Some(1), Some(0)));
    let labels = [("app", "preparing"), ("rule", "none"), ("decision", "rejected")];
    let labels = [&labels[..], &[("reason", "guard"), ("class", "write")]].concat();
    let metrics = sluice.metrics().await.unwrap();
    assert_eq!(metrics.sum("sluice_statements_total", &labels), 3.0);
}

/// What a file is said to do before it ships is what it does.
#[tokio::test]
async fn a_file_does_what_insights_said_it_would() {
    let servers = servers().await;
    let made = [
        "CREATE DATABASE i_ahead",
        "CREATE TABLE i_ahead.t (id INT PRIMARY KEY, c VARCHAR(20))",
        "INSERT INTO i_ahead.t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    ];
    servers.primary.run_sql(&made).await.unwrap();
    let config = Config::new(servers).unwrap();
    let sluice = SluiceProcess::start(&config).await.unwrap();
    worked(&sluice).await;
    let insights = ask(&sluice, "by=digest&window=10m&limit=1000").await;

    let mut new = config.clone().rules(
        "- { name: frozen, match: { schema: i_ahead, user: admin }, deny: true, permanent: true }\n\
         - { name: everything, gate: none, permanent: true }",
    );
    new.top = "guards: [{ name: where, where_required: deny }]\n\
               budgets: [{ name: one, match: { user: admin }, max_concurrency: 1, mode: warn }]"
        .to_owned();
    let told = against(&new.render(), &insights);
    let main = &told["clusters"][0];
    assert_eq!(main["unknown"], 0, "{told}");
    let budget = &main["budgets"][0];
    let busy = budget["limits"][0]["mean"].as_f64().unwrap();
    assert!(busy > 0.01 && busy <= 1.0, "one connection is never busier: {budget}");

    let reloaded =
        |metrics: &Metrics| metrics.sum("sluice_config_last_reload_timestamp_seconds", &[]);
    let before = reloaded(&sluice.metrics().await.unwrap());
    sluice.write_config(&new.render()).unwrap();
    let in_force = |metrics: &Metrics| reloaded(metrics) > before;
    sluice
        .wait_for_metrics("the file is applied", Duration::from_secs(10), in_force)
        .await
        .unwrap();
    worked(&sluice).await;
    let after = ask(&sluice, "by=user&user=admin&window=10m").await;
    let refused = &after["rows"][0]["refused_by_reason"];
    let by_guard = refused["guard"].as_u64().unwrap();
    assert_eq!(main["guards"][0]["statements"], by_guard, "{refused}");
    // What the guard refuses no rule is asked for.
    let by_rule = refused["deny"].as_u64().unwrap() + by_guard;
    assert_eq!(main["rules"][0]["denied"], by_rule, "{refused}");
}

/// A load, and statements that a guard objects to.
async fn worked(sluice: &SluiceProcess) {
    let login = Login { schema: "i_ahead".into(), ..Login::new("admin") };
    let mut conn = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
    load(&mut conn, 10).await;
    for sql in ["UPDATE t SET c = 'z'", "UPDATE t SET c = 'z' WHERE 1 = 1", "DELETE FROM t LIMIT 0"]
    {
        conn.query(sql).await.unwrap();
    }
    counted(&mut conn).await;
}

/// What `sluice check --against` says.
fn against(yaml: &str, insights: &Value) -> Value {
    let path = |name: &str| {
        std::env::temp_dir().join(format!("sluice-it-ahead-{}-{name}", std::process::id()))
    };
    let (file, past) = (path("new.yaml"), path("insights.json"));
    std::fs::write(&file, yaml).unwrap();
    std::fs::write(&past, insights.to_string()).unwrap();
    let mut sluice = Command::new(binary().unwrap());
    sluice.args(["check", "--format", "json", "--config"]).arg(&file).arg("--against").arg(&past);
    let output = sluice.env("SLUICE_PROBE_PASSWORD", "x").output().unwrap();
    [file, past].iter().for_each(|path| std::fs::remove_file(path).unwrap());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Tags as rules read them, of texts and of what was prepared.
#[tokio::test]
async fn statements_are_counted_by_the_tags_that_the_file_names() {
    let servers = servers().await;
    let mut config = Config::new(servers).unwrap();
    config.top = "insights: { tags: [tenant, route] }".to_owned();
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let mut login = Login::new("admin").with(capability::QUERY_ATTRIBUTES);
    login.attributes.push(("route".into(), "batch".into()));
    let mut conn = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
    let texts = [
        "SELECT 1 /*tenant='acme',app_id='7'*/",
        "SELECT 2 /*tenant='acme'*/",
        "/* tenant='it%27s <img>\u{1F4A5}' */ SELECT 3",
        "SELECT 4",
        "SELECT 5 /*tenant='acme',route='web'*/",
    ];
    for sql in texts {
        conn.query(sql.to_owned()).await.unwrap();
    }
    let prepared = conn.prepare("SELECT ? /*tenant='acme'*/").await.unwrap();
    for n in 0..3 {
        conn.execute(&prepared, &[Param::int(n)]).await.unwrap();
    }
    // An attribute of a driver that binds numbers as such: an integer of eight bytes.
    let attribute = b"\x03\x01\x01\x00\x01\x08\x00\x06tenant";
    let numbered = [&attribute[..], &42_i64.to_le_bytes(), b"SELECT 6"].concat();
    conn.command(&numbered, Shape::Query).await.unwrap().accepted().unwrap();
    counted(&mut conn).await;
    let counts = |answer: &Value| -> BTreeMap<String, u64> {
        let rows = answer["rows"].as_array().unwrap().iter();
        let of = |row: &Value| row["tag"].as_str().unwrap().to_owned();
        rows.map(|row| (of(row), row["count"].as_u64().unwrap())).collect()
    };
    let by_tenant = ask(&sluice, "by=tag:tenant&user=admin").await;
    let tenants = counts(&by_tenant);
    assert_eq!((tenants["acme"], tenants["42"], tenants[""]), (6, 1, 1), "{tenants:?}");
    assert_eq!(tenants.len(), 4, "{tenants:?}");
    assert_eq!(
        (by_tenant["by"].as_str(), &by_tenant["tags"][1]),
        (Some("tag:tenant"), &"route".into())
    );
    // The connection's own is behind what a statement says.
    let routes = counts(&ask(&sluice, "by=tag:route&user=admin").await);
    assert_eq!(routes, BTreeMap::from([("batch".to_owned(), 8), ("web".to_owned(), 1)]));
    let acme = ask(&sluice, "by=digest&tag=tenant:acme&user=admin").await;
    assert_eq!(acme["total"]["count"], 6);
    assert_eq!(acme["rows"][0]["senders"][0]["tags"]["tenant"], "acme");
    let answer = sluice.http_get("/api/v1/insights?by=tag:unnamed").await.unwrap();
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("insights: { tags: [..] }"), "{}", answer.body);
    let mut shown = Command::new(binary().unwrap());
    shown.args(["insights", "--by", "tag:tenant", "--admin"]);
    let shown = shown.arg(format!("http://{}", sluice.admin_addr())).output().unwrap();
    let table = String::from_utf8(shown.stdout).unwrap();
    assert!(table.contains("by tag:tenant") && table.contains("  acme\n"), "{table}");
}

/// An answer without a statement looks like a server without load.
#[tokio::test]
async fn that_nothing_is_counted_is_said() {
    let servers = servers().await;
    let counting = SluiceProcess::start(&Config::new(servers).unwrap()).await.unwrap();
    assert_eq!(ask(&counting, "window=1m").await["enabled"], true);
    let compared = ask(&counting, "window=1m&compare=1h").await;
    assert_eq!(compared["compared_window_s"], 0.0);
    let mut config = Config::new(servers).unwrap();
    config.top = "insights: { enabled: false }".to_owned();
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let mut conn = RawConn::open(sluice.listen_addr(), &Login::new("admin")).await.unwrap();
    conn.query("SELECT 1").await.unwrap();
    let answer = ask(&sluice, "window=1h").await;
    assert_eq!((&answer["enabled"], &answer["total"]["count"]), (&false.into(), &0.into()));
    for (command, said) in [("insights", "! Nothing is counted now"), ("suggest", "nothing is")] {
        let admin = format!("http://{}", sluice.admin_addr());
        let mut asked = Command::new(binary().unwrap());
        let output = asked.args([command, "--admin", &admin]).output().unwrap();
        let told = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(told.contains(said), "{told}");
    }
}

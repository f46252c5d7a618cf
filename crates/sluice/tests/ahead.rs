//! `sluice check --against` and `sluice suggest`, as whoever types them meets them.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

const FILE: &str = "\
version: 1
clusters: { main: { listen: 127.0.0.1:0, primary: 127.0.0.1:3306 } }
budgets:
  - { name: etl, match: { app: etl }, max_concurrency: 2, rate: 100 }
  - { name: users, per: user, share: 0.5, mode: warn }
guards:
  - { name: where, where_required: deny }
rules:
  - { name: no-ddl, match: { statements: [ddl] }, deny: true, permanent: true }
  - { name: acme, match: { app: web, tag: { tenant: acme } }, deny: true, permanent: true }
  - { name: etl, match: { app: etl }, ratio: 0.9, permanent: true }
  - { name: everything-else, gate: none, permanent: true }
";

/// A row of insights.
fn row(app: &str, class: &str, text: &str, count: u64, seconds: f64) -> Value {
    json!({
        "cluster": "main", "app": app, "schema": "shop", "digest": "00000000000000a1",
        "digest_text": text, "tables": ["shop.t"], "tables_complete": true, "class": class,
        "senders": [{ "user": format!("{app}-user"), "count": count, "refused": 0,
            "time_total_s": seconds, "rows_sent": 0, "rows_affected": count }],
        "count": count, "refused": 0, "time_total_s": seconds, "bytes_in": count * 60,
        "time_mean_s": seconds / 1e3, "rows_sent": 0, "rows_affected": count,
        "first_seen": "2026-12-01T10:00:00Z", "last_seen": "2026-12-01T10:59:59Z",
    })
}

fn insights(rows: &[Value]) -> Value {
    let count: u64 = rows.iter().map(|row| row["count"].as_u64().unwrap()).sum();
    json!({
        "from": "2026-12-01T10:00:00Z", "to": "2026-12-01T11:00:00Z", "window_s": 3600.0,
        "by": "digest", "sort": "time", "rows_total": rows.len(), "rows": rows,
        "total": { "count": count + 5, "refused": 0, "time_total_s": 1.0 },
    })
}

fn sluice(arguments: &[&str], input: &str) -> Output {
    let mut sluice = Command::new(env!("CARGO_BIN_EXE_sluice"));
    sluice.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut sluice = sluice.spawn().unwrap();
    // It may have ended before it has read everything.
    drop(sluice.stdin.take().unwrap().write_all(input.as_bytes()));
    sluice.wait_with_output().unwrap()
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("sluice-ahead-{}-{name}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path
}

fn against(name: &str, insights: &Value, format: &str) -> Output {
    against_file((name, FILE), insights, format)
}

fn against_file((name, text): (&str, &str), insights: &Value, format: &str) -> Output {
    let path = file(name, text);
    let config = path.to_str().unwrap();
    let arguments = ["check", "--config", config, "--against", "-", "--format", format];
    let output = sluice(&arguments, &insights.to_string());
    std::fs::remove_file(&path).unwrap();
    output
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn day() -> Value {
    insights(&[
        row("etl", "write", "UPDATE t SET a = ? WHERE id = ?", 1_000, 14_400.0),
        row("web", "read", "SELECT a FROM t WHERE id = ?", 400, 4.0),
        row("shop", "read", "SELECT a FROM t WHERE id = ?", 50, 1.0),
        row("shop", "write", "DELETE FROM t", 3, 1.0),
        row("shop", "ddl", "ALTER TABLE t ADD c INT", 2, 1.0),
        json!({ "cluster": "main", "app": "other", "digest": "other", "count": 40 }),
        json!({ "cluster": "old", "app": "x", "digest": "other", "count": 9 }),
    ])
}

#[test]
fn a_file_is_held_against_what_statements_have_cost() {
    let output = against("json.yaml", &day(), "json");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let told: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(told["statements"], 1_509);
    assert_eq!(told["without_row"], 5, "not in the file that was given");
    let main = &told["clusters"][0];
    let unknown = json!({
        "their digest has no row of its own": 40,
        "perhaps decided by `acme`": 400,
    });
    assert_eq!(main["unknown_by_why"], unknown);
    assert_eq!(told["clusters"][1]["unknown"], 9, "a cluster that the file does not have");
    let rules = main["rules"].as_array().unwrap();
    let of = |name: &str| rules.iter().find(|rule| rule["rule"] == name).unwrap();
    assert_eq!(of("no-ddl")["denied"], 2);
    assert_eq!(of("no-ddl")["apps"], json!({ "shop": 2 }));
    assert_eq!((&of("acme")["statements"], &of("acme")["unknown"]), (&json!(0), &json!(400)));
    let etl = of("etl");
    assert_eq!((&etl["asked"], &etl["lost_to_dice"]), (&json!(1_000), &json!(900)));
    assert_eq!(of("everything-else")["passed"], 53);
    let parts: u64 = rules.iter().map(|rule| rule["statements"].as_u64().unwrap()).sum();
    let unknown = main["unknown"].as_u64().unwrap();
    assert_eq!(parts + unknown, main["statements"].as_u64().unwrap(), "nobody is lost");
}

#[test]
fn budgets_are_as_full_as_the_mean_and_guards_name_the_digests() {
    let told: Value = serde_json::from_str(&stdout(&against("full.yaml", &day(), "json"))).unwrap();
    let main = &told["clusters"][0];
    let budget = &main["budgets"][0];
    assert_eq!(budget["statements"], 1_000);
    let concurrency = &budget["limits"][0];
    assert_eq!(concurrency["limit"], "max_concurrency");
    assert_eq!((&concurrency["mean"], &concurrency["over"]), (&json!(4.0), &json!(1)));
    let users = &main["budgets"][1];
    assert_eq!((&users["mode"], &users["per"]), (&json!("warn"), &json!("user")));
    assert_eq!(users["limits"][0]["bucket"], "etl-user");
    assert_eq!(users["statements"], 1_453, "DDL that is denied does not come to it");
    let guard = &main["guards"][0];
    assert_eq!((&guard["statements"], &guard["check"]), (&json!(3), &json!("where_required")));
    assert_eq!(guard["digests"][0]["digest_text"], "DELETE FROM t");
    let text = stdout(&against("text.yaml", &day(), "text"));
    for line in [
        "Against 1509 statements from 2026-12-01T10:00:00Z to 2026-12-01T11:00:00Z:",
        "  rule etl: 1000 statements (66.9 %): asks 1000: the dice delay about 900 of them (ratio \
         0.9), they wait while lag is over its threshold [etl 1000]",
        "    max_concurrency 2: 4.000 on average, 200 %: holds back all the time",
        "    max_query_cost",
        "  guard where where_required: refuses 3 [shop 3]",
        "    3 of shop: 00000000000000a1 DELETE FROM t",
    ] {
        assert!(text.contains(line) != line.contains("max_query_cost"), "{line}\nin\n{text}");
    }
}

/// `max_query_cost` goes by the text, whosever it is; of one that was only refused nothing is known.
#[test]
fn what_a_digest_costs_is_what_it_costs_whoever_sends_it() {
    let config = FILE.replace(
        "guards:",
        "  - { name: dear, match: { app: [web, shop] }, max_query_cost: 1s }\nguards:",
    );
    let refused = |digest: &str, text: &str, count: u64| {
        let mut row = row("web", "read", text, 0, 0.0);
        row["digest"] = digest.into();
        row["refused"] = count.into();
        row["senders"][0]["refused"] = count.into();
        row
    };
    let rows = [
        row("etl", "read", "SELECT a FROM t", 3, 9.0),
        refused("00000000000000a1", "SELECT a FROM t", 7),
        refused("00000000000000a2", "SELECT b FROM t", 5),
    ];
    let config = config.replace("  - { name: acme, match: { app: web, tag: { tenant: acme } }, deny: true, permanent: true }\n", "");
    let output = against_file(("dear.yaml", &config), &insights(&rows), "text");
    let text = stdout(&output);
    for line in [
        "max_query_cost 1: the costliest digest takes 3.000; refuses 7 statements, whose digest costs more",
        "unknown for 5: nothing of their digest ran, so its cost is not known",
    ] {
        assert!(text.contains(line), "{line}\nin\n{text}");
    }
}

#[test]
fn what_would_have_run_away_is_told_with_its_rule() {
    let last = "gate: none, permanent: true }\n";
    let limits = "gate: none, permanent: true, runaway: { elapsed: 2s, rows_sent: 100 } }\n";
    let text = FILE.replace(last, limits);
    let mut shown = insights(&[
        row("shop", "read", "SELECT a FROM t ORDER BY b", 4, 6.0),
        row("shop", "read", "SELECT a FROM t WHERE id = ?", 50, 1.0),
        row("shop", "transaction", "COMMIT", 7, 9.0),
        row("etl", "write", "UPDATE t SET a = ?", 9, 90.0),
    ]);
    for (place, longest_s) in [2.5, 0.1, 9.0, 90.0].into_iter().enumerate() {
        shown["rows"][place]["time_max_s"] = json!(longest_s);
    }
    let told = stdout(&against_file(("runaway.yaml", &text), &shown, "json"));
    let told: Value = serde_json::from_str(&told).unwrap();
    let rules = told["clusters"][0]["rules"].as_array().unwrap();
    let last = rules.iter().find(|rule| rule["rule"] == "everything-else").unwrap();
    let runaway = &last["runaway"];
    assert_eq!((&runaway["statements"], &runaway["apps"]), (&json!(4), &json!({ "shop": 4 })));
    assert_eq!(runaway["digests"][0]["digest_text"], "SELECT a FROM t ORDER BY b");
    assert_eq!((&runaway["digests_total"], &runaway["unknown"]), (&json!(1), &json!(0)));
    assert!(rules.iter().filter(|rule| !rule["runaway"].is_null()).count() == 1, "{rules:?}");
    let told = stdout(&against_file(("runaway-text.yaml", &text), &shown, "text"));
    let line = "    runaway after 2s or above 100 rows: log: meets some of 4, whose like took more \
                [shop 4]\n    4 of shop: ";
    assert!(told.contains(line), "{line}\nin\n{told}");
}

#[test]
fn what_is_no_insights_by_digest_is_refused_with_the_command_that_writes_it() {
    let by_app = json!({ "by": "app", "from": "2026-12-01T10:00:00Z", "to": "", "rows": [] });
    let swapped = json!({
        "by": "digest", "from": "2026-12-01T11:00:00Z", "to": "2026-12-01T10:00:00Z", "rows": [],
    });
    for (given, says) in [
        (by_app.to_string(), "take it with --by digest"),
        ("[]".to_owned(), "sluice insights --window 1d --format json"),
        (String::new(), "these are no insights"),
        (swapped.to_string(), "before it begins"),
    ] {
        let path = file("refused.yaml", FILE);
        let config = path.to_str().unwrap();
        let output = sluice(&["check", "--config", config, "--against", "-"], &given);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(output.status.code(), Some(1), "{given}");
        assert!(stderr(&output).contains(says), "{given}: {}", stderr(&output));
    }
    let output = sluice(&["check", "--config", "x.yaml", "--format", "json"], "");
    assert_eq!(output.status.code(), Some(2), "a format of nothing");
}

#[test]
fn what_a_newer_sluice_has_counted_is_unknown_and_never_passes() {
    let newer = insights(&[row("etl", "merge", "MERGE INTO t USING u", 7, 1.0)]);
    let told: Value =
        serde_json::from_str(&stdout(&against("newer.yaml", &newer, "json"))).unwrap();
    let why = "their class is not known here: the insights are of a newer Sluice";
    assert_eq!(told["clusters"][0]["unknown_by_why"], json!({ why: 7 }));
}

/// Their sum panicked.
#[test]
fn counts_that_no_counter_can_hold_are_the_most_it_can() {
    let mut most = day();
    for row in 0..3 {
        most["rows"][row]["count"] = json!(u64::MAX);
        most["rows"][row]["refused"] = json!(u64::MAX);
        most["rows"][row]["senders"][0]["count"] = json!(u64::MAX);
    }
    for format in ["text", "json"] {
        let output = against(&format!("most.{format}.yaml"), &most, format);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(stdout(&output).contains(&u64::MAX.to_string()), "{}", stdout(&output));
    }
}

/// Six reports at once for a minute of an hour are a tenth of one on average.
#[test]
fn how_many_were_there_at_once_is_told_beside_the_mean() {
    let mut told =
        insights(&[row("etl", "write", "UPDATE t SET a = ? WHERE id = ?", 1_000, 360.0)]);
    let mut says = |p99: Option<f64>, line: &str| {
        let of = |cluster: &str, p99: f64| json!({ "cluster": cluster, "app": "etl", "concurrency_p99": p99, "concurrency_max": p99 });
        told["apps"] = p99.map_or(json!([]), |p99| json!([of("other", 99.0), of("main", p99)]));
        let text = stdout(&against("at-once.yaml", &told, "text"));
        let line = format!("    max_concurrency 2: 0.100 on average, 5 %: holds back {line}\n");
        assert!(text.contains(&line), "{line}\nin\n{text}");
    };
    says(None, "in peaks only");
    says(
        Some(6.0),
        "in peaks: etl had up to 6 at once, on the mean of a second, in 99 of 100 of its seconds of the last hour",
    );
    says(
        Some(2.0),
        "in short peaks only: etl had up to 2 at once, on the mean of a second, in 99 of 100 of its seconds of the last hour",
    );
}

const LIMITS: &str = "max_concurrency: 2, rate: 100";

/// 1,000 statements in an hour are one in four seconds on average.
#[test]
fn what_a_rate_holds_back_in_peaks_is_told_by_the_second() {
    let text = "UPDATE t SET a = ? WHERE id = ?";
    let rows = [row("etl", "write", text, 1_000, 360.0), row("shop", "write", text, 900, 9.0)];
    let told = |etl: Value| {
        let mut told = insights(&rows);
        let app = |app: &str, seconds: &Value| {
            let (statements, busy) = (&seconds["statements"], &seconds["busy"]);
            json!({ "cluster": "main", "app": app, "concurrency_p99": 3.0, "concurrency_max": 6.0,
                "by_concurrency": busy, "by_statements": statements, "by_rows": statements })
        };
        let shop = json!({ "statements": [[2.0, 450]], "busy": [[1.0, 450]] });
        told["apps"] = json!([app("etl", &etl), app("shop", &shop)]);
        told
    };
    let peaks = json!({ "statements": [[1.0, 300], [10.0, 29], [41.0, 10]], "busy": [[1.0, 330], [6.0, 9]] });
    let says = |terms: &str, told: &Value, lines: &[&str]| {
        let file = FILE.replace(LIMITS, terms);
        let text = stdout(&against_file(("peaks.yaml", &file), told, "text"));
        for line in lines {
            assert!(text.contains(&format!("    {line}\n")), "{line}\nin\n{text}");
        }
        text
    };
    let (etl, whole) = ("match: { app: etl }", told(peaks));
    says(
        "rate: 20, rows_per_s: 5, share: 0.5",
        &whole,
        &[
            "rate 20: 0.278 on average, 1 %: holds back in peaks: etl had up to 41 statements in a second, in 99 of 100 of its seconds of the last hour, and 41 at most; above the limit in up to 10 of 339 seconds, by up to 210 statements in all",
            "rows_per_s 5: 0.278 on average, 6 %: holds back in peaks: etl had up to 41 rows in a second, in 99 of 100 of its seconds of the last hour, and 41 at most; above the limit in up to 39 of 339 seconds, by up to 505 rows in all",
            "share 0.5: 0.100 on average, 20 %: holds back in peaks: etl had up to 3 s of the server in a second, in 99 of 100 of its seconds of the last hour, and 6 at most; above the limit in up to 339 of 339 seconds, by up to 214 s of the server in all",
        ],
    );
    // Within what is allowed in each second, and of insights that do not know of any.
    says(
        "rate: 41",
        &whole,
        &[
            "rate 41: 0.278 on average, 1 %: holds back in short peaks only: etl had up to 41 statements in a second, in 99 of 100 of its seconds of the last hour, and 41 at most",
        ],
    );
    says(
        "rate: 20",
        &told(json!({ "statements": [], "busy": [] })),
        &["rate 20: 0.278 on average, 1 %: holds back in peaks only"],
    );
    // A bucket for each app: the one with most above it, whichever has the highest mean.
    let file =
        FILE.replace(LIMITS, "per: app, rate: 20").replace(etl, "match: { app: [etl, shop] }");
    let text = stdout(&against_file(("peaks-per.yaml", &file), &whole, "text"));
    assert!(text.contains("by up to 210 statements in all\n"), "{text}");
    // One bucket for both: of neither alone.
    let both = file.replace("per: app, ", "");
    let text = stdout(&against_file(("peaks-both.yaml", &both), &whole, "text"));
    assert!(text.contains("rate 20: 0.528 on average, 3 %: holds back in peaks only\n"), "{text}");
}

/// The whole time of a statement is counted where it ends: one of 75 s in the first half minute that
/// is counted was 2.7 on average.
#[test]
fn there_are_never_more_on_average_than_at_once() {
    let text = "UPDATE t SET a = ? WHERE id = ?";
    let mut one = row("etl", "write", text, 1, 75.0);
    one["time_max_s"] = json!(75.0);
    let mut many = row("etl", "write", text, 100, 108.0);
    many["time_max_s"] = json!(40.0);
    let says = |row: &Value, (window_s, max): (f64, f64), line: &str| {
        let mut told = insights(std::slice::from_ref(row));
        told["window_s"] = json!(window_s);
        let etl = json!({ "cluster": "main", "app": "etl", "concurrency_p99": max, "concurrency_max": max });
        told["apps"] = if max > 0.0 { json!([etl]) } else { json!([]) };
        let file = FILE.replace("max_concurrency: 2", "max_concurrency: 1");
        let text = stdout(&against_file(("never-more.yaml", &file), &told, "text"));
        let line = format!("    max_concurrency 1: {line}");
        assert!(text.contains(&line), "{line}\nin\n{text}");
    };
    says(&one, (27.8, 1.0), "1.000 on average, 100 %: holds back in short peaks only: etl had up");
    says(&one, (27.8, 0.0), "1.000 on average, 100 %: holds back in peaks only\n");
    says(&many, (40.0, 1.0), "1.000 on average, 100 %: holds back in short peaks only: etl had up");
    says(&many, (40.0, 2.0), "2.000 on average, 200 %: holds back all the time\n");
    says(&many, (40.0, 0.0), "2.700 on average, 270 %: holds back all the time\n");
    // Of what ran for longer than two minutes it is not known how many of them there were at once.
    many["time_max_s"] = json!(121.0);
    says(&many, (40.0, 1.0), "2.700 on average, 270 %: holds back all the time\n");
}

#[test]
fn hostile_names_stay_in_their_line() {
    let hostile = "a\nrule x: 9 statements\u{1b}[31m";
    let told = insights(&[row(hostile, "write", "UPDATE t SET a = ? WHERE id = ?", 1, 1.0)]);
    let text = stdout(&against("hostile.yaml", &told, "text"));
    assert!(!text.contains('\u{1b}') && !text.contains("\nrule x"), "{text}");
}

#[test]
fn a_first_file_is_made_of_insights_and_is_good() {
    let hostile = "<img src=x> \"quoted\": \u{1F4A5}\nrules: []";
    let mut told = insights(&[
        row("etl", "write", "UPDATE t SET a = ? WHERE id = ?", 1_000, 14_400.0),
        row("web", "read", "SELECT a FROM t WHERE id = ?", 400, 4.0),
        row(hostile, "write", "DELETE FROM t", 3, 1.0),
    ]);
    let etl =
        json!({ "cluster": "main", "app": "etl", "concurrency_p99": 7.0, "concurrency_max": 9.0 });
    told["apps"] = json!([etl]);
    let output = sluice(&["suggest", "--from", "-"], &told.to_string());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    for line in [
        "  # 1000 statements, 14400.0 s at the server; 7 at once in 99 of 100 seconds, 9 at most.\n",
        "  - { name: etl, match: { app: \"etl\" }, max_concurrency: 14, mode: warn }\n",
        "  # 1000 statements that write or may, 1000 rows changed. MySQL users: \"etl-user\".\n",
        "; about 1 at once, from the mean as if they came independently of each other.\n",
    ] {
        assert!(text.contains(line), "{line}\nin\n{text}");
    }
    assert!(!text.contains("name: web, match: { app: \"web\" }, mode: observe"), "it only reads");
    let path = file("suggested.yaml", &text);
    let checked = sluice(&["check", "--strict", "--config", path.to_str().unwrap()], "");
    assert_eq!(checked.status.code(), Some(0), "{}\n{text}", stderr(&checked));
    std::fs::remove_file(&path).unwrap();
    assert!(stderr(&output).is_empty() && !text.contains("seconds only"), "an hour is enough");
}

#[test]
fn a_file_made_of_a_moment_says_that_it_is() {
    let mut told = insights(&[row("etl", "write", "UPDATE t SET a = ?", 1, 0.1)]);
    told["window_s"] = json!(61.0);
    let output = sluice(&["suggest", "--from", "-"], &told.to_string());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let short = "That is from 61 seconds only: ";
    assert!(stderr(&output).starts_with(short), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains(&format!("\n# {short}")), "{text}");
    assert!(text.contains("  # 1 statement that writes or may, 1 row changed."), "{text}");
}

#[test]
fn without_an_app_nothing_is_suggested_and_why_is_said() {
    let mut none = insights(&[]);
    let flood = sluice(&["suggest", "--from", "-"], &none.to_string());
    assert_eq!(flood.status.code(), Some(1));
    let why = "5 statements have come in that window, and all of them are counted as `other`";
    assert!(stderr(&flood).starts_with(why), "{}", stderr(&flood));
    none["total"] = json!({ "count": 0 });
    let empty = sluice(&["suggest", "--from", "-"], &none.to_string());
    assert_eq!(empty.status.code(), Some(1));
    assert!(stderr(&empty).starts_with("no statement has come"), "{}", stderr(&empty));
    none["enabled"] = json!(false);
    let off = sluice(&["suggest", "--from", "-"], &none.to_string());
    assert!(stderr(&off).starts_with("nothing is counted"), "{}", stderr(&off));
}

/// The file called its cluster `main`, whatever it was: then nothing could be told of any statement.
#[test]
fn what_is_suggested_can_be_tried_on_the_insights_it_was_made_of() {
    let mut told = insights(&[row("etl", "write", "UPDATE t SET a = ?", 9, 0.1)]);
    told["rows"][0]["cluster"] = json!("shop");
    let output = sluice(&["suggest", "--from", "-"], &told.to_string());
    let path = file("suggested-shop.yaml", &stdout(&output));
    let options = ["check", "--strict", "--against", "-", "--config", path.to_str().unwrap()];
    let checked = sluice(&options, &told.to_string());
    std::fs::remove_file(&path).unwrap();
    assert_eq!(checked.status.code(), Some(0), "{}", stderr(&checked));
    let said = stdout(&checked);
    assert!(said.contains("cluster shop: 9 statements\n"), "{said}");
    assert!(said.contains("  rule etl (observes only): 9 statements"), "{said}");
    assert!(!said.contains("the file has no cluster of this name"), "{said}");
}

/// A budget of `web` meets `web:checkout` too, and was twice what `web` alone had.
#[test]
fn a_suggested_budget_holds_back_none_of_all_that_it_meets() {
    let text = "SELECT a FROM t WHERE id = ?";
    let rows = [("web", 360.0), ("web:checkout", 28_800.0), ("etl:7", 18_000.0), ("7", 36.0)];
    let mut told = insights(&rows.map(|(app, seconds)| row(app, "read", text, 1_000, seconds)));
    let at_once = [("web", 1.0), ("web:checkout", 8.0), ("7", 1.0), ("cart:web", 2.0)];
    told["apps"] = at_once
        .map(|(app, n)| json!({ "cluster": "main", "app": app, "concurrency_p99": n, "concurrency_max": n + 2.0 }))
        .as_slice()
        .into();
    let text = stdout(&sluice(&["suggest", "--from", "-"], &told.to_string()));
    for line in [
        "  # 2000 statements, 29160.0 s at the server; 11 at once in 99 of 100 seconds, 17 at most. \
         It is a level of \"cart:web\", \"web:checkout\".\n  \
         - { name: web, match: { app: \"web\" }, max_concurrency: 22, mode: warn }\n",
        "  # 1000 statements, 28800.0 s at the server; 8 at once in 99 of 100 seconds, 10 at most.\n",
        // What was not counted is from the mean: 5, and 11 in 99 of 100 seconds.
        "; about 12 at once, from the mean as if they came independently of each other. \
         It is a level of \"etl:7\".\n  \
         - { name: \"7\", match: { app: \"7\" }, max_concurrency: 24, mode: warn }\n",
    ] {
        assert!(text.contains(line), "{line}\nin\n{text}");
    }
    let told: Value =
        serde_json::from_str(&stdout(&against_file(("levels.yaml", &text), &told, "json")))
            .unwrap();
    let budgets = told["clusters"][0]["budgets"].as_array().unwrap();
    assert_eq!(budgets.len(), 4);
    for budget in budgets {
        assert_eq!(budget["limits"][0]["over"], 0, "{budget}");
    }
}

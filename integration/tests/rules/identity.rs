//! Who a statement is counted for: each source of identity, their order, what is forgotten and when, and
//! what an attacker's text cannot do. Seen through the `app` label of `sluice_statements_total`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking, as the tests do"
)]

use std::collections::BTreeMap;

use integration::raw::{COM_RESET_CONNECTION, Execute, Login, Param, RawConn, Shape, capability};
use integration::scenario::{Refused, Shared, is, wait_for_sum};
use integration::server::Flavour;
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;

static MYSQL: Shared = Shared::new(Flavour::MySql);
static MARIADB: Shared = Shared::new(Flavour::MariaDb);

#[tokio::test]
async fn comments_in_every_form_name_the_app() {
    for servers in both().await {
        let mut asked = Asked::start(servers, "").await;
        let mut conn = asked.login(Login::new("web")).await;
        for (sql, app) in COMMENTS {
            let response = conn.query(sql).await.unwrap();
            assert_eq!(response.err(), None, "{sql}");
            asked.counts_for(app, sql).await;
        }
    }
}

#[tokio::test]
async fn a_literal_that_looks_like_a_comment_names_nobody() {
    for servers in both().await {
        let mut asked = Asked::start(servers, "").await;
        let mut conn = asked.login(Login::new("web")).await;
        for sql in FAKES {
            let response = conn.query(sql).await.unwrap();
            assert_eq!(response.err(), None, "{sql}");
            asked.counts_for("web", sql).await;
        }
        // The same bytes mean something else when the server reads backslashes and quotes otherwise.
        let odd = r"SELECT 'a\' /* app=real */ -- '";
        for sql in ["SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES'", odd] {
            assert_eq!(conn.query(sql).await.unwrap().err(), None, "{sql}");
            asked.counts_for(if sql == odd { "real" } else { "web" }, sql).await;
        }
    }
}

#[tokio::test]
async fn query_attributes_name_the_app_before_anything_else_does() {
    let mut asked = Asked::start(MYSQL.get().await.unwrap(), "").await;
    let login = Login::new("web")
        .with(capability::QUERY_ATTRIBUTES)
        .attribute("sluice_app", "from-connection");
    let mut conn = asked.login(login).await;
    let attributes = [("trace", "1"), ("app", "from-attribute")];
    let sql = "SELECT 1 /* app=from-comment */";
    conn.query_with_attributes(sql, &attributes).await.unwrap();
    asked.counts_for("from-attribute", sql).await;
    conn.query_with_attributes(sql, &[("trace", "1")]).await.unwrap();
    asked.counts_for("from-comment", sql).await;
    conn.query("SET @sluice_app = 'from:session'").await.unwrap();
    asked.counts_for("from-connection", "SET").await;
    conn.query("SELECT 1").await.unwrap();
    asked.counts_for("from:session", "SELECT 1").await;
    conn.query(sql).await.unwrap();
    asked.counts_for("from-comment", sql).await;
    // A prepared statement has the identity of its text; attributes of an execution go before it.
    let statement = conn.prepare("SELECT ? /* app=from-text */").await.unwrap();
    let params = [Param::int(1)];
    let execute = Execute { id: statement.id, params: &params, ..Execute::default() };
    conn.execute_as(&execute).await.unwrap();
    asked.counts_for("from-text", "EXECUTE").await;
    conn.execute_as(&Execute { attributes: &attributes, ..execute }).await.unwrap();
    asked.counts_for("from-attribute", "EXECUTE with attributes").await;
}

#[tokio::test]
async fn the_session_and_its_connection_name_the_app_when_the_statement_does_not() {
    for servers in both().await {
        let mut asked = Asked::start(servers, "").await;
        let logins = [
            (Login::new("web"), "web"),
            (Login::new("web").attribute("sluice_app", "job:etl"), "job:etl"),
            (Login::new("web").attribute("program_name", "/usr/bin/mysqldump"), "mysqldump"),
            (
                Login::new("web").attribute("program_name", "mysql").attribute("sluice_app", "etl"),
                "etl",
            ),
        ];
        for (login, app) in logins {
            let mut conn = asked.login(login).await;
            for (sql, expected) in [
                ("SELECT 1", app),
                ("SET @other = 'x', @sluice_app = 'a:b'", app),
                ("SELECT 1", "a:b"),
                ("SET @sluice_app = NULL", "a:b"),
                ("SELECT 1", app),
            ] {
                assert_eq!(conn.query(sql).await.unwrap().err(), None, "{sql}");
                asked.counts_for(expected, sql).await;
            }
        }
    }
}

#[tokio::test]
async fn a_connection_that_has_said_gh_ost_stays_gh_ost() {
    for servers in both().await {
        let mut asked = Asked::start(servers, "").await;
        let mut conn = asked.login(Login::new("web")).await;
        for (sql, app) in [
            ("SELECT 1", "web"),
            ("SELECT /* gh-ost `test`.`t` */ 1", "gh-ost"),
            ("SELECT 2", "gh-ost"),
            ("SELECT 3 /* app=else */", "else"),
            ("SELECT 4", "gh-ost"),
        ] {
            assert_eq!(conn.query(sql).await.unwrap().err(), None, "{sql}");
            asked.counts_for(app, sql).await;
        }
    }
}

#[tokio::test]
async fn reset_connection_and_change_user_forget_what_the_session_said() {
    for servers in both().await {
        let mut asked = Asked::start(servers, "").await;
        let mut conn = asked.login(Login::new("web").attribute("sluice_app", "first")).await;
        let said = ["SET @sluice_app = 'said'", "SELECT /* gh-ost x */ 1"];
        let expected = ["first", "gh-ost"];
        for (sql, app) in said.iter().zip(expected) {
            conn.query(*sql).await.unwrap();
            asked.counts_for(app, sql).await;
        }
        conn.query("SELECT 1").await.unwrap();
        asked.counts_for("said", "SELECT 1").await;
        conn.command(&[COM_RESET_CONNECTION], Shape::Single).await.unwrap();
        conn.query("SELECT 1").await.unwrap();
        asked.counts_for("first", "after COM_RESET_CONNECTION").await;

        conn.query("SET @sluice_app = 'said'").await.unwrap();
        asked.counts_for("first", "SET").await;
        conn.change_user(&Login::new("etl").attribute("sluice_app", "second")).await.unwrap();
        conn.query("SELECT 1").await.unwrap();
        asked.counts_for("second", "after COM_CHANGE_USER").await;
        conn.change_user(&Login::new("ddl")).await.unwrap();
        conn.query("SELECT 1").await.unwrap();
        asked.counts_for("ddl", "after COM_CHANGE_USER without attributes").await;
        // One that the server refuses changes nothing that can be used.
        let wrong = Login { password: "wrong".into(), ..Login::new("web") };
        let refused = conn.change_user(&wrong).await.unwrap();
        assert!(refused.last().unwrap().err().is_some());
    }
}

#[tokio::test]
async fn a_claim_that_is_not_allowed_is_ignored_counted_and_the_next_source_speaks() {
    let servers = MYSQL.get().await.unwrap();
    let claims =
        "claims:\n  - { user: etl, apps: [etl, \"job-*\"] }\n  - { user: ddl, apps: [\"*\"] }";
    let config = Config::new(servers).unwrap().identity(claims);
    let mut asked = Asked::with(&config).await;
    for (user, app, refused) in [
        ("etl", "web", 3.0),
        ("etl", "job-7", 0.0),
        ("etl", "etl", 0.0),
        ("web", "etl", 3.0),
        ("ddl", "whatever", 0.0),
    ] {
        let before = asked.refused_claims(user).await;
        let expected = if refused > 0.0 { user } else { app };
        let mut conn = asked.login(Login::new(user).attribute("sluice_app", app)).await;
        conn.query("SELECT 1").await.unwrap();
        asked.counts_for(expected, app).await;
        conn.query(format!("SELECT 1 /* app={app} */")).await.unwrap();
        asked.counts_for(expected, app).await;
        let labels = [("user", user)];
        let name = "sluice_identity_claims_refused_total";
        wait_for_sum(&asked.sluice, name, &labels, before + refused).await.unwrap();
    }
    // Who has claimed what is in the log.
    let log = asked.sluice.log().unwrap();
    assert!(log.contains("claimed=web user=etl client=127.0.0.1:"), "{log}");
    assert!(log.contains("claimed=etl user=web client=127.0.0.1:"), "{log}");
}

#[tokio::test]
async fn a_rule_matches_one_level_of_an_app_and_a_tag() {
    let servers = MYSQL.get().await.unwrap();
    let rules = "\
- { name: level, match: { app: online-ddl }, deny: true, statements: [read], permanent: true }
- { name: tag, match: { tag: { controller: \"repo*\" } }, deny: true, statements: [read], permanent: true }";
    let asked = Asked::start(servers, rules).await;
    let mut conn = asked.login(Login::new("web")).await;
    let vreplication = "d666bbfc_169e_11ef_b0b3_0a43f95f28a3:vcopier:vreplication:online-ddl";
    for (sql, rule) in [
        ("SELECT 1", None),
        ("SELECT 1 /* app=online-ddl2 */", None),
        ("SELECT 1 /* app=online-ddl */", Some("level")),
        (&format!("SELECT 1 /* app={vreplication} */"), Some("level")),
        ("SELECT 1 /* controller=reports,app=shop */", Some("tag")),
        ("SELECT 1 /* controller=orders */", None),
        ("SELECT '/* controller=reports */'", None),
    ] {
        let response = conn.query(sql).await.unwrap();
        let refused = Refused::of(&response);
        assert_eq!(refused.as_ref().and_then(|refused| refused.part("rule")), rule, "{sql}");
    }
    // The label names what is asked, not its every run.
    let labels = [("app", "vcopier:vreplication:online-ddl")];
    wait_for_sum(&asked.sluice, "sluice_statements_total", &labels, 1.0).await.unwrap();
}

#[tokio::test]
async fn clients_that_name_themselves_at_random_do_not_flood_the_labels() {
    let servers = MYSQL.get().await.unwrap();
    let mut config = Config::new(servers).unwrap();
    config.top = "metrics: { max_apps: 5 }".into();
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let mut conn = RawConn::open(sluice.listen_addr(), &Login::new("web")).await.unwrap();
    for n in 0..50 {
        conn.query(format!("SELECT 1 /* app=random-{n}x */")).await.unwrap();
    }
    wait_for_sum(&sluice, "sluice_statements_total", &[], 50.0).await.unwrap();
    let metrics = sluice.metrics().await.unwrap();
    let apps: Vec<_> = metrics
        .matching("sluice_statements_total", &[])
        .filter_map(|sample| sample.label("app"))
        .collect();
    assert!(apps.len() <= 6, "{apps:?}");
    let other = metrics.sum("sluice_statements_total", &[("app", "other")]);
    assert!(is(other, 45.0), "{other}");
}

/// Sluice, and for whom it has counted.
struct Asked {
    sluice: SluiceProcess,
    known: BTreeMap<String, f64>,
}

impl Asked {
    async fn start(servers: &Topology, rules: &str) -> Self {
        let mut config = Config::new(servers).unwrap();
        if !rules.is_empty() {
            config = config.rules(rules);
        }
        Self::with(&config).await
    }

    async fn with(config: &Config) -> Self {
        Self { sluice: SluiceProcess::start(config).await.unwrap(), known: BTreeMap::new() }
    }

    async fn login(&self, login: Login) -> RawConn {
        RawConn::open(self.sluice.listen_addr(), &login).await.unwrap()
    }

    /// One more statement has been counted since the last call, and for this app.
    async fn counts_for(&mut self, app: &str, what: &str) {
        let total: f64 = self.known.values().sum();
        wait_for_sum(&self.sluice, "sluice_statements_total", &[], total + 1.0)
            .await
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        let now = self.counts().await;
        let counted: Vec<&String> = now
            .iter()
            .filter(|(app, count)| !is(**count, self.known.get(*app).copied().unwrap_or_default()))
            .map(|(app, _)| app)
            .collect();
        assert_eq!(counted, [app], "{what}");
        self.known = now;
    }

    async fn counts(&self) -> BTreeMap<String, f64> {
        let metrics = self.sluice.metrics().await.unwrap();
        let mut counts = BTreeMap::new();
        for sample in metrics.matching("sluice_statements_total", &[]) {
            *counts.entry(sample.label("app").unwrap().to_owned()).or_default() += sample.value;
        }
        counts
    }

    async fn refused_claims(&self, user: &str) -> f64 {
        let metrics = self.sluice.metrics().await.unwrap();
        metrics.sum("sluice_identity_claims_refused_total", &[("user", user)])
    }
}

async fn both() -> [&'static Topology; 2] {
    [MYSQL.get().await.unwrap(), MARIADB.get().await.unwrap()]
}

/// Statements with whom they are counted for; the user is `web`.
const COMMENTS: [(&str, &str); 15] = [
    ("SELECT 1", "web"),
    ("SELECT 1 /*app='a%3Ab',controller='x'*/", "a:b"),
    ("/*application:Shop,controller:orders*/ SELECT 1", "Shop"),
    ("SELECT /* app=in:the:middle */ 1", "in:the:middle"),
    ("/* app=first */ SELECT 1 /* app=second */", "first"),
    ("/*vt+ WORKLOAD_NAME=etl PRIORITY=70 */ SELECT 1", "etl"),
    ("SELECT 1 /* sluice_app=most,app=less,application=least */", "most"),
    ("SELECT 1 /* just a note */", "web"),
    ("SELECT 1 /*! + 1 */ /* app=real */", "real"),
    ("SELECT /*+ app=hint */ 1", "web"),
    ("SELECT '--' /* app=behind-a-literal */", "behind-a-literal"),
    ("SELECT 'it''s', \"a \\\" b\" /* app=behind-quotes */", "behind-quotes"),
    ("SELECT 1 -- '\n /* app=behind-a-line */", "behind-a-line"),
    ("SELECT 1 # '\n /* app=behind-a-hash */", "behind-a-hash"),
    ("SELECT 1 /*pt-online-schema-change 7 copy nibble*/", "pt-online-schema-change"),
];

/// Nothing in them is a comment that names an app.
const FAKES: [&str; 10] = [
    "SELECT '/* app=fake */'",
    "SELECT \"/* app=fake */\"",
    "SELECT 'it''s /* app=fake */'",
    r"SELECT 'a\' /* app=fake */ '",
    r"SELECT 'a\\\' /* app=fake */ '",
    r#"SELECT "a\" /* app=fake */ ""#,
    "SELECT `/* app=fake */` FROM (SELECT 1 AS `/* app=fake */`) d",
    "SELECT '' '/* app=fake */'",
    "SELECT 'x' /*! ' /* app=fake */ ' */",
    "SELECT 1 /* gh-os */",
];

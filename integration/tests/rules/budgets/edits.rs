//! The file is saved while statements wait for a budget: limits up and down, budgets gone, renamed
//! and turned to warning, and files that cannot be read.

use std::time::Duration;

use integration::scenario::{Held, Pending, Refused, wait_for_sum};
use tokio::time::{Instant, sleep};

use super::places::Lab;
use super::session;

/// More than it takes to notice a save, and less than anybody here waits otherwise.
const SOON: Duration = Duration::from_secs(3);

/// Nothing comes of what nobody has saved.
const NOTHING: Duration = Duration::from_millis(700);

const LOADED: &str = "sluice_config_last_reload_successful";

impl Lab {
    /// Who waits is judged by the file that was saved last, and by no half of one.
    pub(super) async fn edits(&self) {
        self.rates_that_change().await;
        self.shares_that_change().await;
        self.limits_that_come().await;
        self.costs_that_change().await;
        self.what_takes_longer_than_was_foreseen().await;
        self.budgets_that_come().await;
        self.while_it_stands_still().await;
        self.save("").await;
        for name in ["sluice_budget_in_use", "sluice_budget_waiting"] {
            wait_for_sum(&self.sluice, name, &[], 0.0).await.unwrap();
        }
    }

    async fn save(&self, budgets: &str) {
        let mut config = self.config.clone();
        config.top = format!("{}{budgets}", config.top);
        let applied = "sluice_config_last_reload_timestamp_seconds";
        let before = self.sluice.metrics().await.unwrap().sum(applied, &[]);
        self.sluice.write_config(&config.render()).unwrap();
        let is_later = |at: f64| at > before;
        let until = Instant::now() + SOON;
        while !is_later(self.sluice.metrics().await.unwrap().sum(applied, &[])) {
            assert!(Instant::now() < until, "it is not applied: {budgets}");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// A statement that waits for the budget of this name.
    async fn waiting(&self, budget: &'static str, waiters: f64) -> Pending {
        let conn = session(self.sluice.listen_addr(), "edited").await;
        let pending = Pending::query(conn, "SELECT 'edited'");
        let labels = [("budget", budget)];
        wait_for_sum(&self.sluice, "sluice_budget_waiting", &labels, waiters).await.unwrap();
        pending
    }

    /// One that passes at once: what it takes the next has to wait for.
    async fn takes(&self, sql: &str) {
        let mut conn = session(self.sluice.listen_addr(), "edited").await;
        conn.query(sql).await.unwrap().accepted().unwrap();
    }

    async fn rates_that_change(&self) {
        let slow = "\n  - { name: slow, match: { app: edited }, rate: 0.02 }";
        self.save(slow).await;
        self.takes("SELECT 'edited'").await;
        let first = self.waiting("slow", 1.0).await;
        self.save(&slow.replace("0.02", "1000")).await;
        first.answered(SOON).await.unwrap().response.accepted().unwrap();

        // Lower, broken, cut in half and saved in place: nobody is let through by it.
        self.save(&slow.replace("0.02", "0.05")).await;
        self.takes("SELECT 'edited'").await;
        let second = self.waiting("slow", 1.0).await;
        self.save(slow).await;
        let half = format!("{}budgets: [{{ name: slow, match: {{ app: edi", self.config.render());
        self.sluice.write_config_in_place(&half).unwrap();
        wait_for_sum(&self.sluice, LOADED, &[], 0.0).await.unwrap();
        sleep(NOTHING).await;
        assert!(!second.is_answered(), "half a file has let it through");
        self.save(slow).await;
        wait_for_sum(&self.sluice, LOADED, &[], 1.0).await.unwrap();
        assert!(!second.is_answered());
        // One of another name begins empty.
        self.save(&slow.replace("slow", "other")).await;
        second.answered(SOON).await.unwrap().response.accepted().unwrap();

        let third = self.waiting("other", 1.0).await;
        self.save(&slow.replace("slow", "other").replace("02 }", "02, mode: warn }")).await;
        third.answered(SOON).await.unwrap().response.accepted().unwrap();
        let fourth_of = slow.replace("slow", "fourth");
        self.save(&fourth_of).await;
        self.takes("SELECT 'edited'").await;
        let fourth = self.waiting("fourth", 1.0).await;
        let fifth = self.waiting("fourth", 2.0).await;
        self.save("").await;
        for waited in [fourth, fifth] {
            waited.answered(SOON).await.unwrap().response.accepted().unwrap();
        }
        self.save(&slow.replace("slow", "sixth")).await;
        self.takes("SELECT 'edited'").await;
        let sixth = self.waiting("sixth", 1.0).await;
        self.save(&slow.replace("slow", "sixth").replace("02 }", "02, on_exceeded: refuse }"))
            .await;
        let answer = sixth.answered(SOON).await.unwrap();
        let refused = Refused::of(&answer.response).unwrap();
        assert_eq!(refused.part("budget"), Some("sixth"), "{refused:?}");
    }

    async fn shares_that_change(&self) {
        let share = "\n  - { name: part, match: { app: edited }, share: 0.001, burst: 0.01 }";
        self.save(share).await;
        self.takes("SELECT SLEEP(0.2), 'edited'").await;
        let first = self.waiting("part", 1.0).await;
        self.save(&share.replace("0.001", "100")).await;
        first.answered(SOON).await.unwrap().response.accepted().unwrap();
        self.save(share).await;
        self.takes("SELECT SLEEP(0.2), 'edited'").await;
        let second = self.waiting("part", 1.0).await;
        sleep(NOTHING).await;
        assert!(!second.is_answered());
        self.save("").await;
        second.answered(SOON).await.unwrap().response.accepted().unwrap();
    }

    /// What ran before a limit came was not limited by it: it was owed for as long as the budget had had
    /// its name.
    async fn limits_that_come(&self) {
        let rate = "\n  - { name: kind, match: { app: edited }, rate: 100 }";
        let share = rate.replace("rate: 100", "share: 0.001, burst: 0.01");
        self.save(rate).await;
        self.takes("SELECT SLEEP(0.2), 'edited'").await;
        let conn = session(self.sluice.listen_addr(), "edited").await;
        let under_way = Pending::query(conn, "SELECT SLEEP(1), 'edited'");
        let labels = [("budget", "kind")];
        wait_for_sum(&self.sluice, "sluice_budget_in_use", &labels, 1.0).await.unwrap();
        self.save(&share).await;
        under_way.answered(SOON).await.unwrap().response.accepted().unwrap();
        let conn = session(self.sluice.listen_addr(), "edited").await;
        let next = Pending::query(conn, "SELECT SLEEP(0.2), 'edited'");
        next.answered(SOON).await.unwrap().response.accepted().unwrap();
        let waits = self.waiting("kind", 1.0).await;
        self.save("").await;
        waits.answered(SOON).await.unwrap().response.accepted().unwrap();
    }

    /// One that waits for a place is told when it has become too dear meanwhile.
    async fn costs_that_change(&self) {
        // No other statement here has its digest.
        let dear = "SELECT 'edited', 'dear', SLEEP(0.3)";
        let both = "\n  - { name: place, match: { app: edited }, max_concurrency: 1 }\
                    \n  - { name: dear, match: { app: edited }, max_query_cost: 9 }";
        self.save(both).await;
        self.takes(dear).await;
        let busy = session(self.sluice.listen_addr(), "edited").await;
        let held = self.hold().await;
        let busy = Pending::query(busy, Held::statement("edited"));
        let labels = [("budget", "place")];
        wait_for_sum(&self.sluice, "sluice_budget_in_use", &labels, 1.0).await.unwrap();
        let conn = session(self.sluice.listen_addr(), "edited").await;
        let waits = Pending::query(conn, dear);
        wait_for_sum(&self.sluice, "sluice_budget_waiting", &labels, 1.0).await.unwrap();
        self.save(&both.replace('9', "0.1")).await;
        let answer = waits.answered(SOON).await.unwrap();
        let refused = Refused::of(&answer.response).unwrap();
        assert_eq!((refused.errno, refused.reason()), (1226, Some("budget_query")), "{refused:?}");
        assert!(!busy.is_answered(), "what is at the server is left alone");
        held.release().await.unwrap();
        busy.answered(SOON).await.unwrap().response.accepted().unwrap();
        let mut conn = answer.conn;
        let again = conn.query(dear).await.unwrap();
        assert_eq!(Refused::of(&again).unwrap().reason(), Some("budget_query"));
        // It ends in an error of two rows, when the first has taken its time.
        let fails = "SELECT 'edited', (SELECT SLEEP(0.3) UNION SELECT 2)";
        assert_eq!(conn.query(fails).await.unwrap().err().map(|(code, _)| code), Some(1242));
        let again = conn.query(fails).await.unwrap();
        assert_eq!(Refused::of(&again).unwrap().reason(), Some("budget_query"));
        self.save(&both.replace('9', "8")).await;
        conn.query(dear).await.unwrap().accepted().unwrap();
    }

    /// What was quick before and is not this time: as many came beside it as asked, until it had ended.
    async fn what_takes_longer_than_was_foreseen(&self) {
        let text = format!("{} LIMIT 1", Held::statement("slow now"));
        let slow = "\n  - { name: slow, match: { app: slow }, share: 0.001, burst: 0.9 }";
        self.save(slow).await;
        let session = || session(self.sluice.listen_addr(), "slow");
        let mut conn = session().await;
        self.hold().await.release().await.unwrap();
        conn.query(&text).await.unwrap().accepted().unwrap();
        let held = self.hold().await;
        let under_way = Pending::query(conn, &text);
        let mut others = session().await;
        let others = tokio::spawn(async move {
            loop {
                others.query("SELECT 'quick'").await.unwrap().accepted().unwrap();
                sleep(Duration::from_millis(20)).await;
            }
        });
        let labels = [("budget", "slow")];
        wait_for_sum(&self.sluice, "sluice_budget_waiting", &labels, 1.0).await.unwrap();
        self.save(&slow.replace("share: 0.001, burst: 0.9", "max_query_cost: 0.2")).await;
        let mut like_it = session().await;
        let refused = Refused::of(&like_it.query(&text).await.unwrap()).unwrap();
        assert_eq!(refused.reason(), Some("budget_query"), "{refused:?}");
        assert!(!under_way.is_answered() && !others.is_finished());
        others.abort();
        held.release().await.unwrap();
        under_way.answered(SOON).await.unwrap().response.accepted().unwrap();
    }

    /// What a server does while Sluice does not run is no time of its statements: for ten minutes the like
    /// of one that was under way was refused.
    async fn while_it_stands_still(&self) {
        self.save(
            "\n  - { name: place, match: { app: edited }, max_concurrency: 1 }\
             \n  - { name: dear, match: { app: edited }, max_query_cost: 1.5 }",
        )
        .await;
        let text = "SELECT 'edited', 'stands still', SLEEP(0.4)";
        let under_way = Pending::query(session(self.sluice.listen_addr(), "edited").await, text);
        let labels = [("budget", "place")];
        wait_for_sum(&self.sluice, "sluice_budget_in_use", &labels, 1.0).await.unwrap();
        self.sluice.signal("STOP").unwrap();
        sleep(Duration::from_millis(2_500)).await;
        self.sluice.signal("CONT").unwrap();
        let mut answer = under_way.answered(SOON).await.unwrap();
        answer.response.accepted().unwrap();
        answer.conn.query(text).await.unwrap().accepted().unwrap();
        assert!(self.sluice.log().unwrap().contains("this process did not run"));
        self.stands_still_in_an_upload().await;
    }

    /// What the server takes of a file was counted by the clock: what it had of it already when Sluice
    /// stopped kept it busy for no longer.
    async fn stands_still_in_an_upload(&self) {
        self.save("\n  - { name: place, match: { app: edited }, max_concurrency: 1 }").await;
        let mut conn = session(self.sluice.listen_addr(), "edited").await;
        // Some times what lies between client and server.
        conn.queue_infile([&b"x".repeat(1_000_000)[..], b"\n"].concat().repeat(30));
        let began = Instant::now();
        let load = "LOAD DATA LOCAL INFILE 'f' INTO TABLE test.places (@a) SET n = SLEEP(0.04)";
        let under_way = Pending::query(conn, load);
        let labels = [("budget", "place")];
        wait_for_sum(&self.sluice, "sluice_budget_in_use", &labels, 1.0).await.unwrap();
        sleep(Duration::from_millis(200)).await;
        self.sluice.signal("STOP").unwrap();
        sleep(Duration::from_millis(2_500)).await;
        self.sluice.signal("CONT").unwrap();
        let limit = Duration::from_secs(60);
        under_way.answered(limit).await.unwrap().response.accepted().unwrap();
        let took = began.elapsed().as_secs_f64();
        let counted = loop {
            let path = "/api/v1/insights?by=digest&limit=1000";
            let body = self.sluice.http_get(path).await.unwrap().body;
            let insights: serde_json::Value = serde_json::from_str(&body).unwrap();
            let mut digests = insights.get("rows").unwrap().as_array().unwrap().iter();
            if let Some(row) = digests.find(|row| row["app"] == "edited" && row["class"] == "load")
            {
                break row["time_max_s"].as_f64().unwrap();
            }
            assert!(began.elapsed() < limit, "it is not counted");
            sleep(Duration::from_millis(100)).await;
        };
        assert!(counted < took - 2.0, "{counted} s of {took}");
    }

    /// What is at the server when a budget comes has its places, as far as anybody can say that it is
    /// met; and one place of each, however often the file is saved.
    async fn budgets_that_come(&self) {
        let first = "\n  - { name: first, match: { app: edited }, max_concurrency: 9 }";
        self.save(first).await;
        let held = self.hold().await;
        let mut at_the_server = Vec::new();
        for _ in 0..3 {
            let conn = session(self.sluice.listen_addr(), "edited").await;
            at_the_server.push(Pending::query(conn, Held::statement("edited")));
        }
        let in_use = async |budget: &'static str, places: f64| {
            let labels = [("budget", budget)];
            wait_for_sum(&self.sluice, "sluice_budget_in_use", &labels, places).await.unwrap();
        };
        in_use("first", 3.0).await;
        let come = "\n  - { name: late, match: { app: edited }, max_concurrency: 2, share: 9 }\
                    \n  - { name: by_user, match: { app: edited }, per: user, max_concurrency: 9 }\
                    \n  - { name: others, match: { app: edited, user: nobody }, rate: 9 }\
                    \n  - { name: tagged, match: { tag: { a: b } }, rate: 9 }";
        self.save(&format!("{first}{come}")).await;
        for budget in ["late", "by_user"] {
            in_use(budget, 3.0).await;
        }
        let waits = self.waiting("late", 1.0).await;
        self.save(&format!("{first}{come}").replace("max_concurrency: 9", "max_concurrency: 8"))
            .await;
        sleep(NOTHING).await;
        for (budget, places) in
            [("first", 3.0), ("late", 3.0), ("by_user", 3.0), ("others", 0.0), ("tagged", 0.0)]
        {
            in_use(budget, places).await;
        }
        assert!(!waits.is_answered(), "three are beside two places");
        held.release().await.unwrap();
        at_the_server.push(waits);
        for each in at_the_server {
            each.answered(SOON).await.unwrap().response.accepted().unwrap();
        }
        for budget in ["first", "late", "by_user"] {
            in_use(budget, 0.0).await;
        }
    }
}

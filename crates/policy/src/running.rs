//! Which rule of a newer file watches a statement that runs already.
//!
//! Theory. What a statement was judged by it keeps; only what it may still take (`runaway`) goes by
//! what is in force now. Its text is gone by then, so the rules cannot be asked as they are for a new
//! one. Known are the session, the app, the class, and which of the file's rules it met. Of the newer
//! file's rules, in their order:
//!
//! - one that says of whom it is about what the rule says that it met, meets it;
//! - one that stood ahead of that and says the same still does not;
//! - any other meets it if that can be told by what is known. Where it looks at tags, digests or
//!   tables, nobody can say.

use admission::RuleKey;
use sql::Class;

use crate::cluster::ClusterPolicy;
use crate::condition::Condition;
use crate::identity::SessionIdentity;
use crate::rule::{Action, Rule, Standing};
use crate::rules::Rules;
use crate::time::UnixTime;

/// A statement that the server runs, as far as anything is known of it.
#[derive(Debug, Clone, Copy)]
pub struct Running<'r> {
    /// On which connection.
    pub session: &'r SessionIdentity,
    /// Who asks.
    pub app: &'r [u8],
    /// Its class.
    pub class: Class,
    /// The rules that it was judged by.
    pub rules: &'r Rules,
    /// Which of the file's it met.
    pub met: Met,
}

/// Which rule of the file a statement met when it was judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// The one with this index.
    Rule(u32),
    /// None.
    Nothing,
    /// Nobody has looked: a rule made at runtime decided.
    Unknown,
}

/// The rule that watches a statement by what is in force now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WatchedNow<'p> {
    /// This one, or none: it is gone, it is about others, or who asks has been exempted.
    Certain(Option<&'p Rule>),
    /// Nobody can say.
    Uncertain,
}

/// Whether a rule is about a statement.
enum Meets {
    Yes,
    No,
    Unknown,
}

impl Running<'_> {
    /// The rule that watches it by what is in force now.
    #[must_use]
    pub fn watched_by<'p>(&self, policy: &'p ClusterPolicy, now: UnixTime) -> WatchedNow<'p> {
        if self.is_exempt(policy, now) {
            return WatchedNow::Certain(None);
        }
        for rule in policy.rules.of_file() {
            match self.meets(rule, now) {
                Meets::No => {}
                Meets::Yes => return WatchedNow::Certain(Some(rule)),
                Meets::Unknown => return WatchedNow::Uncertain,
            }
        }
        WatchedNow::Certain(None)
    }

    /// Whether it is exempted at runtime: such rules look at nothing but app, user and class.
    fn is_exempt(&self, policy: &ClusterPolicy, now: UnixTime) -> bool {
        let user = self.session.user();
        let first = policy.rules.iter().find(|rule| {
            rule.author.is_none()
                || rule.condition.names(self.app, user)
                    && rule.condition.allows_class(self.class)
                    && rule.standing(now) == Standing::InForce
        });
        first.is_some_and(|rule| rule.author.is_some() && rule.action == Action::Exempt)
    }

    fn met(&self) -> Option<&Rule> {
        match self.met {
            Met::Rule(index) => self.rules.at(index),
            Met::Nothing | Met::Unknown => None,
        }
    }

    fn meets(&self, rule: &Rule, now: UnixTime) -> Meets {
        let was = self.met().filter(|met| met.key == rule.key);
        let was = was.map(|was| &*was.condition);
        // One that has ended meanwhile watches what began under it.
        if was == Some(&*rule.condition) {
            return Meets::Yes;
        }
        if rule.standing(now) != Standing::InForce
            || !rule.condition.may_meet(self)
            || self.has_passed(rule, now)
        {
            return Meets::No;
        }
        if rule.condition.is_known_of(was) { Meets::Yes } else { Meets::Unknown }
    }

    /// Whether it was judged by the same rule, which was asked first and did not meet it.
    fn has_passed(&self, rule: &Rule, now: UnixTime) -> bool {
        let ahead = |index: u32| match self.met {
            Met::Rule(met) => index < met,
            Met::Nothing => true,
            Met::Unknown => false,
        };
        let same = |key: RuleKey| self.rules.of_file().iter().find(|was| was.key == key);
        same(rule.key).is_some_and(|was| {
            ahead(was.index)
                && was.condition == rule.condition
                && was.standing(now) == Standing::InForce
        })
    }
}

/// Whether another file limits what runs otherwise than the one before.
#[must_use]
pub fn limits_otherwise(before: &Rules, now: &Rules) -> bool {
    let says = |rule: &Rule| (rule.key, rule.runaway, rule.mode, rule.expires_at);
    let same = |(a, b): (&Rule, &Rule)| {
        says(a) == says(b) && a.condition == b.condition && a.schedule == b.schedule
    };
    let (before, now) = (before.of_file(), now.of_file());
    before.iter().chain(now).any(|rule| rule.runaway.is_some())
        && (before.len() != now.len() || !before.iter().zip(now).all(same))
}

impl Condition {
    /// Whether it is about what runs for certain.
    pub(crate) fn meets(&self, running: &Running<'_>) -> bool {
        self.is_known_of(None) && self.may_meet(running)
    }

    /// Whether it may be about what runs, by what is known of that.
    fn may_meet(&self, running: &Running<'_>) -> bool {
        self.allows_class(running.class)
            && self.app.as_ref().is_none_or(|app| app.matches_app(running.app))
            && self.may_be_from(running.session)
    }

    /// Whether nothing but what is known of what runs makes it meet that: it looks at nothing of the
    /// text, or says of it what the condition says that was met.
    fn is_known_of(&self, was: Option<&Self>) -> bool {
        let nothing = Self::default();
        let was = was.unwrap_or(&nothing);
        let is = |looks_at: bool, says_the_same: bool| !looks_at || says_the_same;
        is(!self.tags.is_empty(), self.tags == was.tags)
            && is(self.digests.is_some(), self.digests == was.digests)
            && is(self.tables.is_some(), self.tables == was.tables)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::load;

    fn policy(rules: &str) -> Arc<ClusterPolicy> {
        let text = format!(
            "version: 1\nclusters:\n  main: {{listen: 127.0.0.1:1, primary: db:3306}}\nrules:\n{rules}"
        );
        load(&text).unwrap_or_else(|faults| panic!("{faults:#?}\n{text}")).clusters[0].clone()
    }

    /// The rule that a read of `etl`, by `bob`, which ran under this rule of `before` is watched by.
    fn watched(before: &str, met: Met, after: &str) -> String {
        let (before, after) = (policy(before), policy(after));
        let session = SessionIdentity::new(b"bob", None, b"shop", std::iter::empty());
        let running = Running {
            session: &session,
            app: b"etl",
            class: Class::Read,
            rules: &before.rules,
            met,
        };
        let name = |rule: Option<&Rule>| rule.map_or("none", |rule| &*rule.name).to_owned();
        match running.watched_by(&after, UnixTime(0)) {
            WatchedNow::Certain(rule) => name(rule),
            WatchedNow::Uncertain => "?".to_owned(),
        }
    }

    const WEB: &str = "- { name: web, match: { app: web }, gate: none, permanent: true }\n";
    const ETL: &str = "- { name: etl, match: { app: etl }, gate: none, permanent: true }\n";
    const TAGGED: &str =
        "- { name: tagged, match: { tag: { a: b } }, gate: none, permanent: true }\n";
    const REST: &str = "- { name: rest, gate: none, permanent: true }\n";

    #[test]
    fn what_runs_stays_its_rules_wherever_that_stands_now() {
        let before = [WEB, TAGGED, ETL, REST].concat();
        assert_eq!(watched(&before, Met::Rule(2), &before), "etl");
        assert_eq!(watched(&before, Met::Rule(2), &[ETL, WEB].concat()), "etl");
        assert_eq!(watched(&before, Met::Rule(3), &before), "rest", "it was not in force");
        let limited = ETL.replace("gate: none", "gate: none, runaway: { elapsed: 1s }");
        assert_eq!(watched(&before, Met::Rule(2), &[WEB, TAGGED, &limited].concat()), "etl");
        assert_eq!(watched(&before, Met::Rule(2), &[WEB, REST].concat()), "rest");
        assert_eq!(watched(&before, Met::Rule(2), WEB), "none");
    }

    #[test]
    fn a_rule_that_is_about_others_now_watches_it_no_more() {
        let others = ETL.replace("app: etl", "app: etl, user: ann");
        assert_eq!(watched(ETL, Met::Rule(0), &others), "none");
        let its = ETL.replace("app: etl", "app: etl, user: bob");
        assert_eq!(watched(ETL, Met::Rule(0), &its), "etl");
        let writes = ETL.replace("app: etl", "app: etl, statements: [write]");
        assert_eq!(watched(ETL, Met::Rule(0), &[&writes, REST].concat()), "rest");
        let ended = ETL.replace("permanent: true", "expires_at: 1969-01-01T00:00:00Z");
        assert_eq!(watched(REST, Met::Rule(0), &[&ended, REST].concat()), "rest");
        assert_eq!(watched(ETL, Met::Rule(0), &ended), "etl", "what began under it");
    }

    #[test]
    fn of_a_rule_that_looks_at_the_text_nobody_can_say() {
        let narrower = ETL.replace("app: etl", "app: etl, tag: { a: b }");
        assert_eq!(watched(ETL, Met::Rule(0), &narrower), "?");
        assert_eq!(watched(ETL, Met::Rule(0), &[TAGGED, ETL].concat()), "?");
        let before = [TAGGED, ETL].concat();
        assert_eq!(watched(&before, Met::Rule(1), &before), "etl", "it was asked first");
        let wider = narrower.replace("app: etl, ", "");
        assert_eq!(watched(&narrower, Met::Rule(0), &wider), "etl", "its tag is as it was");
    }

    #[test]
    fn an_edit_of_anything_else_limits_nothing_otherwise() {
        let limited = ETL.replace("gate: none", "gate: none, runaway: { elapsed: 1s }");
        let longer = limited.replace("1s", "2s");
        let otherwise =
            |before: &str, now: &str| limits_otherwise(&policy(before).rules, &policy(now).rules);
        assert!(otherwise(ETL, &limited) && otherwise(&limited, ETL));
        assert!(otherwise(&limited, &longer) && otherwise(&limited, &[WEB, &limited].concat()));
        assert!(otherwise(&limited, &limited.replace("app: etl", "app: web")));
        assert!(otherwise(&limited, &limited.replace("permanent", "mode: observe, permanent")));
        assert!(!otherwise(&limited, &limited.replace("permanent", "max_queue: 7, permanent")));
        let nights =
            limited.replace("permanent", "schedule: { hours: ['22:00-06:00'] }, permanent");
        assert!(otherwise(&nights, &limited), "it was not in force");
        assert!(!otherwise(ETL, WEB), "nobody is limited");
    }

    #[test]
    fn what_no_rule_met_is_met_by_a_new_one_for_certain() {
        assert_eq!(watched(TAGGED, Met::Nothing, &[TAGGED, REST].concat()), "rest");
        assert_eq!(watched(TAGGED, Met::Nothing, TAGGED), "none");
        assert_eq!(watched(TAGGED, Met::Unknown, &[TAGGED, REST].concat()), "?");
        assert_eq!(watched(WEB, Met::Unknown, &[WEB, REST].concat()), "rest");
    }
}

//! Rules that are made and lifted from the screen, and what is said of each before it is done.

use serde_json::{Map, Value, json};

use super::course::Identity;
use crate::commands::rules::{RULES_PATH, encoded};

/// How long what is made here stands.
const LASTS: &str = "1h";

/// Why, for whoever finds the rule: who made it is told by the token.
const REASON: &str = "made in sluice top";

/// A change that somebody is asked about, or that is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    cluster: String,
    what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Hold(Whom),
    /// In tenths of all checks.
    Throttle(Whom, u8),
    /// A rule, by its name.
    Lift(String),
}

/// Whom a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Whom {
    /// What the rule may be on: the whole app, then each of its levels. At least one.
    apps: Vec<String>,
    chosen: usize,
    /// How many of its statements wait.
    waiting: u64,
}

impl Change {
    /// # Errors
    /// Why there can be no rule for it.
    pub(super) fn hold(cluster: &str, identity: &Identity) -> Result<Self, String> {
        let what = What::Hold(Whom::of(identity)?);
        Ok(Self { cluster: cluster.to_owned(), what })
    }

    /// # Errors
    /// Why there can be no rule for it.
    pub(super) fn throttle(cluster: &str, identity: &Identity) -> Result<Self, String> {
        let what = What::Throttle(Whom::of(identity)?, 9);
        Ok(Self { cluster: cluster.to_owned(), what })
    }

    /// # Errors
    /// Why it cannot be lifted.
    pub(super) fn lift(cluster: &str, rule: &str) -> Result<Self, String> {
        if !rule.starts_with(policy::RUNTIME_PREFIX) {
            return Err(format!("{rule} is the file's: edit the file to end it"));
        }
        Ok(Self { cluster: cluster.to_owned(), what: What::Lift(rule.to_owned()) })
    }

    /// What it will do, in sentences.
    pub(super) fn words(&self) -> Vec<String> {
        let cluster = &self.cluster;
        match &self.what {
            What::Hold(whom) => vec![
                format!("Hold {} on cluster {cluster}, for an hour.", whom.app()),
                format!(
                    "None of its writes pass until the hold is lifted or over; each waits, and is \
                     refused after 5 s. {} now.",
                    whom.waits()
                ),
                whom.reach(),
            ],
            What::Throttle(whom, tenths) => vec![
                format!("Throttle {} on cluster {cluster}, for an hour.", whom.app()),
                format!(
                    "{tenths} of 10 of its checks are refused, beside what the gate does. {} now. \
                     1 to 9 choose how many, 0 is all of them.",
                    whom.waits()
                ),
                whom.reach(),
            ],
            What::Lift(rule) => vec![
                format!("Lift {rule} on cluster {cluster}."),
                "What it is about comes under the next rule that matches; who waits is judged \
                 again at once."
                    .to_owned(),
            ],
        }
    }

    /// Method, path and body.
    pub(super) fn request(&self) -> (&'static str, String, String) {
        let cluster = &self.cluster;
        let (whom, effect, ratio) = match &self.what {
            What::Hold(whom) => (whom, "hold", None),
            What::Throttle(whom, tenths) => (whom, "throttle", Some(f64::from(*tenths) / 10.0)),
            What::Lift(rule) => {
                let (rule, cluster) = (encoded(rule), encoded(cluster));
                let path = format!("{RULES_PATH}/{rule}?cluster={cluster}");
                return ("DELETE", path, String::new());
            }
        };
        let mut draft = Map::new();
        let texts = [
            ("app", whom.app()),
            ("cluster", cluster),
            ("effect", effect),
            ("for", LASTS),
            ("reason", REASON),
        ];
        for (key, text) in texts {
            draft.insert(key.to_owned(), json!(text));
        }
        if let Some(ratio) = ratio {
            draft.insert("ratio".to_owned(), json!(ratio));
        }
        ("POST", RULES_PATH.to_owned(), Value::Object(draft).to_string())
    }

    /// The next of those that the rule may be on.
    pub(super) fn next_target(&mut self) {
        if let What::Hold(whom) | What::Throttle(whom, _) = &mut self.what {
            whom.chosen = whom.chosen.saturating_add(1) % whom.apps.len().max(1);
        }
    }

    /// A digit was pressed: so many tenths, and 0 for all.
    pub(super) fn choose_tenths(&mut self, digit: u8) {
        if let What::Throttle(_, tenths) = &mut self.what {
            *tenths = if digit == 0 { 10 } else { digit };
        }
    }
}

impl Whom {
    /// A client may call itself what is a pattern in a rule, or is shown otherwise than it is.
    fn of(identity: &Identity) -> Result<Self, String> {
        let Identity { app, waiting, .. } = identity;
        let is_name = |name: &str| {
            let is_whole =
                !name.contains(char::REPLACEMENT_CHARACTER) && name.len() < LABEL_LEN_MAX;
            !name.is_empty() && !name.ends_with('*') && is_whole && name != OTHER
        };
        // A level that is no number and no UUID is as it is; the whole may have lost some.
        let levels = app.rsplit(':').filter(|level| is_name(level));
        let mut apps: Vec<String> = levels.map(str::to_owned).collect();
        if app.contains(':') && is_name(app) {
            apps.push(app.clone());
        }
        if apps.is_empty() || app.ends_with('*') {
            return Err(format!(
                "{app} is not a name that a rule can be made for here: sluice hold and sluice \
                 throttle take a user or a pattern"
            ));
        }
        Ok(Self { apps, chosen: 0, waiting: *waiting })
    }

    fn app(&self) -> &str {
        self.apps.get(self.chosen).map_or("", String::as_str)
    }

    fn waits(&self) -> String {
        match self.waiting {
            0 => "None of its statements waits".to_owned(),
            1 => "One of its statements waits".to_owned(),
            more => format!("{more} of its statements wait"),
        }
    }

    /// Who else comes under it.
    fn reach(&self) -> String {
        let app = self.app();
        let other = if self.apps.len() > 1 { " Tab chooses another level." } else { "" };
        if app.contains(':') {
            format!("It is about the app {app} alone, without further levels.{other}")
        } else {
            format!("It is about every app with the level {app}, also of other users.{other}")
        }
    }
}

/// What metrics call the apps beyond `metrics.max_apps`, and those without a name.
const OTHER: &str = "other";

/// Longer names are cut by then.
const LABEL_LEN_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(app: &str) -> Identity {
        Identity { app: app.to_owned(), waiting: 3, ..Identity::default() }
    }

    #[test]
    fn a_hold_says_what_it_does_and_asks_for_that() {
        let hold = Change::hold("main", &identity("etl")).unwrap();
        let words = hold.words().join(" ");
        for part in ["Hold etl on cluster main, for an hour.", "refused after 5 s", "3 of its"] {
            assert!(words.contains(part), "{words}");
        }
        let (method, path, body) = hold.request();
        assert_eq!((method, &*path), ("POST", "/api/v1/rules"));
        let expected = json!({
            "app": "etl", "cluster": "main", "effect": "hold", "for": "1h", "reason": REASON,
        });
        assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), expected);
    }

    #[test]
    fn a_throttle_has_as_many_tenths_as_were_chosen() {
        let mut throttle = Change::throttle("main", &identity("etl")).unwrap();
        let ratio = |change: &Change| {
            let body: Value = serde_json::from_str(&change.request().2).unwrap();
            body["ratio"].as_f64().unwrap()
        };
        assert!((ratio(&throttle) - 0.9).abs() < 1e-9);
        throttle.choose_tenths(5);
        assert!((ratio(&throttle) - 0.5).abs() < 1e-9);
        throttle.choose_tenths(0);
        assert!((ratio(&throttle) - 1.0).abs() < 1e-9);
        assert!(throttle.words()[1].starts_with("10 of 10 of its checks"));
    }

    #[test]
    fn an_app_of_levels_is_met_by_one_of_them_or_whole() {
        let mut hold = Change::hold("main", &identity("vcopier:online-ddl")).unwrap();
        let mut targets = Vec::new();
        for _ in 0..4 {
            let body: Value = serde_json::from_str(&hold.request().2).unwrap();
            targets.push(body["app"].as_str().unwrap().to_owned());
            assert!(hold.words()[0].contains(&*targets[targets.len() - 1]));
            hold.next_target();
        }
        assert_eq!(targets, ["online-ddl", "vcopier", "vcopier:online-ddl", "online-ddl"]);
    }

    #[test]
    fn a_name_that_would_hold_others_is_none_to_hold() {
        for app in ["*", "et*", "other", "", "a\u{fffd}b", "job:x*", &"x".repeat(128)] {
            assert!(Change::hold("main", &identity(app)).is_err(), "{app:?}");
        }
    }

    #[test]
    fn a_rule_of_the_file_is_not_lifted_here() {
        assert!(Change::lift("main", "nightly").is_err());
        let lift = Change::lift("main", "runtime:a/b").unwrap();
        let path = "/api/v1/rules/runtime%3Aa%2Fb?cluster=main".to_owned();
        assert_eq!(lift.request(), ("DELETE", path, String::new()));
    }
}

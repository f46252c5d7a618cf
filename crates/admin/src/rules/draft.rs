//! The body of `POST /api/v1/rules`, read so that everything wrong with it is found at once.

use std::fmt;

use fleet::{LASTS_DEFAULT, LASTS_MAX, LASTS_MIN, RuleDraft, RuntimeEffect};
use policy::parse_duration;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

/// What is wrong with a key of a body.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct KeyFault {
    /// The key; empty for the body as a whole.
    pub(crate) key: String,
    /// What is wrong and what would be right.
    pub(crate) message: String,
}

/// Longest app, user or cluster, in bytes.
const NAME_LEN_MAX: usize = 255;

/// Longest reason, in bytes: it stands wherever the rule does.
const REASON_LEN_MAX: usize = 500;

const KEYS: [&str; 9] =
    ["app", "user", "cluster", "class", "classes", "effect", "ratio", "for", "reason"];

/// Reads a draft.
///
/// # Errors
/// Everything that is wrong with it; what only the policy knows is found later.
pub(super) fn read(body: &[u8], clusters: &[&str]) -> Result<RuleDraft, Vec<KeyFault>> {
    let Entries(entries) = serde_json::from_slice(body).map_err(|error| {
        vec![KeyFault { key: String::new(), message: format!("is not one JSON object: {error}") }]
    })?;
    let mut fields = Fields { entries, faults: Vec::new() };
    let draft = fields.draft(clusters);
    if fields.faults.is_empty() { Ok(draft) } else { Err(fields.faults) }
}

/// The entries of an object as they stand, keys that are there twice among them.
struct Entries(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Entries(entries))
    }
}

struct Fields {
    entries: Vec<(String, Value)>,
    faults: Vec<KeyFault>,
}

impl Fields {
    fn draft(&mut self, clusters: &[&str]) -> RuleDraft {
        self.check_keys();
        let app = self.text("app", NAME_LEN_MAX);
        let user = self.text("user", NAME_LEN_MAX);
        if app.is_none() && user.is_none() && !self.has("app") && !self.has("user") {
            self.fault("", "names neither `app` nor `user`: one of them is needed");
        }
        let effect = self.effect();
        let lasts = match self.text("for", NAME_LEN_MAX) {
            Some(text) => parse_duration(&text).unwrap_or_else(|| {
                self.fault("for", "is not a duration with its unit, like 90s, 10m or 1h");
                LASTS_DEFAULT
            }),
            None => LASTS_DEFAULT,
        };
        if !(LASTS_MIN..=LASTS_MAX).contains(&lasts) {
            self.fault("for", "is not from 1s to 7d");
        }
        let cluster = self.text("cluster", NAME_LEN_MAX);
        if cluster.as_deref().is_some_and(|name| !clusters.contains(&name)) {
            let known = clusters.join(", ");
            self.fault("cluster", &format!("is not one of the clusters, which are {known}"));
        }
        RuleDraft {
            app,
            user,
            cluster,
            classes: self.classes(),
            effect,
            lasts,
            reason: self.text("reason", REASON_LEN_MAX).unwrap_or_default(),
        }
    }

    fn check_keys(&mut self) {
        let mut seen: Vec<&str> = Vec::new();
        let mut faults = Vec::new();
        for (key, _) in &self.entries {
            if !KEYS.contains(&key.as_str()) {
                let shown: String = key.chars().take(NAME_LEN_MAX).collect();
                let message = format!("is not known; known are {}", KEYS.join(", "));
                faults.push(KeyFault { key: shown, message });
            } else if seen.contains(&key.as_str()) {
                faults.push(KeyFault { key: key.clone(), message: "is there twice".to_owned() });
            } else {
                seen.push(key);
            }
        }
        self.faults.extend(faults);
    }

    fn effect(&mut self) -> RuntimeEffect {
        let ratio = self.ratio();
        let effect = match self.text("effect", NAME_LEN_MAX).as_deref() {
            // As Vitess: whoever throttles and says no more means all of it.
            Some("throttle") => return RuntimeEffect::Throttle { ratio: ratio.unwrap_or(1.0) },
            Some("hold") => RuntimeEffect::Hold,
            Some("exempt") => RuntimeEffect::Exempt,
            Some("deny") => RuntimeEffect::Deny,
            Some(_) => {
                self.fault("effect", EFFECTS);
                return RuntimeEffect::Hold;
            }
            None => {
                if !self.has("effect") {
                    self.fault("effect", &format!("is missing; it {EFFECTS}"));
                }
                return RuntimeEffect::Hold;
            }
        };
        if ratio.is_some() {
            self.fault("ratio", "is without effect beside another effect than `throttle`");
        }
        effect
    }

    fn ratio(&mut self) -> Option<f64> {
        let value = self.value("ratio")?;
        match value.as_f64() {
            Some(ratio) if (0.0..=1.0).contains(&ratio) => Some(ratio),
            Some(_) | None => {
                self.fault("ratio", "must be a number from 0 to 1");
                None
            }
        }
    }

    /// `class` or `classes`: a word, or a list of them.
    fn classes(&mut self) -> Vec<String> {
        if self.has("class") && self.has("classes") {
            self.fault("classes", "is there beside `class`: one of them is enough");
        }
        let mut classes = Vec::new();
        for key in ["class", "classes"] {
            let given = match self.value(key) {
                None => continue,
                Some(Value::Array(given)) if given.is_empty() => {
                    self.fault(key, "is empty; leave it out for the usual ones");
                    continue;
                }
                Some(Value::Array(given)) => given,
                Some(one) => vec![one],
            };
            for class in given {
                match class {
                    Value::String(class) => classes.push(class),
                    Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::Array(_)
                    | Value::Object(_) => self.fault(key, "must be a class, or a list of classes"),
                }
            }
        }
        classes
    }

    fn text(&mut self, key: &'static str, len_max: usize) -> Option<String> {
        match self.value(key)? {
            Value::String(text) if text.len() <= len_max => {
                if text.is_empty() && key != "reason" {
                    self.fault(key, "must not be empty");
                }
                Some(text)
            }
            Value::String(_) => {
                self.fault(key, &format!("is longer than {len_max} bytes"));
                None
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => {
                self.fault(key, "must be a text, in quotes");
                None
            }
        }
    }

    fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|(name, _)| name == key)
    }

    fn value(&self, key: &str) -> Option<Value> {
        self.entries.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone())
    }

    fn fault(&mut self, key: &str, message: &str) {
        self.faults.push(KeyFault { key: key.to_owned(), message: message.to_owned() });
    }
}

const EFFECTS: &str = "must be `throttle`, `hold`, `exempt` or `deny`";

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn faults(body: &str) -> Vec<String> {
        let faults = read(body.as_bytes(), &["main"]).expect_err(body);
        faults.into_iter().map(|fault| format!("{}: {}", fault.key, fault.message)).collect()
    }

    #[test]
    fn a_rule_for_an_hour_needs_an_app_and_an_effect() {
        let draft = read(br#"{"app": "etl", "effect": "hold"}"#, &[]).unwrap();
        assert_eq!(draft, RuleDraft::of_app("etl", RuntimeEffect::Hold));
        let all = br#"{"app": "etl", "user": "batch", "cluster": "main", "classes": ["ddl"],
            "effect": "throttle", "ratio": 0.9, "for": "25m", "reason": "mornings"}"#;
        let draft = read(all, &["main"]).unwrap();
        assert_eq!(draft.effect, RuntimeEffect::Throttle { ratio: 0.9 });
        assert_eq!(draft.lasts, Duration::from_secs(1_500));
        assert_eq!(
            (draft.classes.as_slice(), &*draft.reason),
            (&["ddl".to_owned()][..], "mornings")
        );
        let throttled =
            read(br#"{"user": "b", "effect": "throttle", "class": "read"}"#, &[]).unwrap();
        assert_eq!(throttled.effect, RuntimeEffect::Throttle { ratio: 1.0 });
        assert_eq!(throttled.classes, ["read"]);
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once() {
        let body =
            r#"{"app": 5, "effect": "stop", "ratio": 2, "for": "1", "until": "x", "for": "2h"}"#;
        assert_eq!(
            faults(body),
            [
                format!("until: is not known; known are {}", KEYS.join(", ")),
                "for: is there twice".to_owned(),
                "app: must be a text, in quotes".to_owned(),
                "ratio: must be a number from 0 to 1".to_owned(),
                format!("effect: {EFFECTS}"),
                "for: is not a duration with its unit, like 90s, 10m or 1h".to_owned(),
            ]
        );
    }

    #[test]
    fn what_makes_no_rule_is_refused() {
        let cases = [
            ("", "is not one JSON object"),
            ("[]", "is not one JSON object"),
            ("{} {}", "is not one JSON object"),
            ("{\"app\": \"\u{fffd}\"", "is not one JSON object"),
            ("{\"effect\": \"hold\"}", "names neither"),
            ("{\"app\": \"etl\"}", "effect: is missing"),
            ("{\"app\": \"\", \"effect\": \"hold\"}", "app: must not be empty"),
            ("{\"app\": null, \"effect\": \"hold\"}", "app: must be a text"),
            ("{\"app\": \"a\", \"effect\": \"hold\", \"ratio\": 1}", "ratio: is without effect"),
            ("{\"app\": \"a\", \"effect\": \"throttle\", \"ratio\": \"1\"}", "ratio: must be"),
            ("{\"app\": \"a\", \"effect\": \"hold\", \"classes\": []}", "classes: is empty"),
            ("{\"app\": \"a\", \"effect\": \"hold\", \"classes\": [1]}", "classes: must be"),
            ("{\"app\": \"a\", \"effect\": \"hold\", \"for\": 60}", "for: must be a text"),
        ];
        for (body, part) in cases {
            let faults = faults(body);
            assert!(faults.iter().any(|fault| fault.contains(part)), "{body}: {faults:?}");
        }
        assert!(read(b"{\"app\": \"\xff\", \"effect\": \"hold\"}", &[]).is_err());
        let long = format!("{{\"app\": \"{}\", \"effect\": \"hold\"}}", "x".repeat(256));
        assert!(faults(&long)[0].contains("longer than 255 bytes"));
        let deep = format!("{{\"app\": {}{}}}", "[".repeat(5_000), "]".repeat(5_000));
        assert_eq!(faults(&deep).len(), 1);
    }
}

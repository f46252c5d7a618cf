//! `--app` of `sluice simulate`: who asks, how, and how often.
//!
//! `NAME`, or `NAME:KEY=VALUE,KEY=VALUE`. Names may have colons themselves, so the keys begin behind
//! the first colon that a known key follows. `sql` is the last key: its value goes to the end.

use std::net::IpAddr;
use std::time::Duration;

use ::simulate::{Rows, duration};
use sql::Class;

/// One app of the load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AppLoad {
    /// What it is called.
    pub(crate) name: String,
    /// Clients, each with one connection.
    pub(crate) sessions: u32,
    /// Rows that a statement writes. `None`: 1, or none if its class does not write.
    pub(crate) rows: Option<Rows>,
    /// Statements of a transaction.
    pub(crate) statements: u32,
    /// Mean time from a result to the next statement.
    pub(crate) think: Duration,
    /// The least a statement takes at the server.
    pub(crate) server: Duration,
    /// The MySQL user. `None`: called as the app, which is then no claim.
    pub(crate) user: Option<String>,
    /// The client's address.
    pub(crate) client: Option<IpAddr>,
    /// The default schema.
    pub(crate) schema: String,
    /// What its statements say.
    pub(crate) text: Text,
    /// Connection attributes.
    pub(crate) attributes: Vec<(String, String)>,
}

/// What statements say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Text {
    /// This.
    Sql(String),
    /// Anything of this class, with these tags in a comment.
    Any { class: Class, tags: Vec<(String, String)>, priority: Option<u8> },
}

/// A statement takes so long where nothing is said: as in scenarios.
const SERVER_DEFAULT: Duration = Duration::from_millis(5);

/// As in scenarios: a load of nothing but statements would never end.
const SERVER_MIN: Duration = Duration::from_micros(100);

const KEYS: &str = "sessions, rows, statements, think, server, class, user, client, schema, \
                    priority, tag.KEY, attribute.KEY, sql";

impl AppLoad {
    /// Reads one `--app`.
    ///
    /// # Errors
    /// What is wrong with it, and what would be right.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (name, settings) = split_name(text);
        if let Some((key, _)) = name.rsplit(':').next().and_then(|last| last.split_once('=')) {
            return Err(no_such_key(key));
        }
        if name.is_empty() {
            return Err("the app's name is missing: NAME:KEY=VALUE,…".to_owned());
        }
        let mut load = Self::new(name);
        let mut asked = Asked::default();
        let mut rest = settings;
        let mut said: Vec<&str> = Vec::new();
        while !rest.is_empty() {
            let (setting, further) = next_setting(rest);
            let (key, value) =
                setting.split_once('=').ok_or_else(|| format!("{setting}: KEY=VALUE is wanted"))?;
            if said.contains(&key) {
                return Err(format!("{key} is there twice"));
            }
            said.push(key);
            load.set(key, value, &mut asked)?;
            rest = further;
        }
        load.text = asked.text()?;
        Ok(load)
    }

    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            sessions: 1,
            rows: None,
            statements: 1,
            think: Duration::ZERO,
            server: SERVER_DEFAULT,
            user: None,
            client: None,
            schema: String::new(),
            text: Text::Any { class: Class::Write, tags: Vec::new(), priority: None },
            attributes: Vec::new(),
        }
    }

    fn set(&mut self, key: &str, value: &str, asked: &mut Asked) -> Result<(), String> {
        let wants = |what: &str| format!("{key}={value}: {what} is wanted");
        let number = || value.parse::<u32>().map_err(|_| wants("a number"));
        let time = || {
            let wanted = "a duration with its unit, as in 5ms, of 24h at most";
            duration(value).ok_or_else(|| wants(wanted))
        };
        match key {
            "sessions" => self.sessions = number()?,
            "rows" => {
                self.rows = Some(rows(value).ok_or_else(|| wants("a number, or 1-9"))?);
            }
            "statements" => {
                self.statements = number()?;
                if self.statements == 0 {
                    return Err(wants("at least 1"));
                }
            }
            "think" => self.think = time()?,
            "server" => {
                self.server = time()?;
                if self.server < SERVER_MIN {
                    return Err(wants("100us or more"));
                }
            }
            "user" => self.user = Some(value.to_owned()),
            "client" => self.client = Some(value.parse().map_err(|_| wants("an address"))?),
            "schema" => value.clone_into(&mut self.schema),
            "class" => {
                asked.class = Some(Class::parse(value).ok_or_else(|| wants("a class"))?);
            }
            "priority" => {
                let priority = value.parse().ok().filter(|priority| *priority <= 100);
                asked.priority = Some(priority.ok_or_else(|| wants("a number from 0 to 100"))?);
            }
            "sql" => asked.sql = Some(value.to_owned()),
            _ => match (key.strip_prefix("tag."), key.strip_prefix("attribute.")) {
                (Some(tag), _) if is_plain(tag) && is_plain(value) => {
                    asked.tags.push((tag.to_owned(), value.to_owned()));
                }
                (Some(_), _) => return Err(wants("letters, digits, `-`, `_` or `.`, else sql=")),
                (None, Some(attribute)) => {
                    self.attributes.push((attribute.to_owned(), value.to_owned()));
                }
                (None, None) => return Err(no_such_key(key)),
            },
        }
        Ok(())
    }
}

/// What makes the text, until it is known which of it there is.
#[derive(Default)]
struct Asked {
    sql: Option<String>,
    class: Option<Class>,
    tags: Vec<(String, String)>,
    priority: Option<u8>,
}

impl Asked {
    fn text(self) -> Result<Text, String> {
        let Self { sql, class, tags, priority } = self;
        match sql {
            Some(_) if class.is_some() || priority.is_some() || !tags.is_empty() => {
                Err("sql says its own class, tags and priority: leave them out".to_owned())
            }
            Some(sql) => Ok(Text::Sql(sql)),
            None => Ok(Text::Any { class: class.unwrap_or(Class::Write), tags, priority }),
        }
    }
}

fn no_such_key(key: &str) -> String {
    format!("there is no key {key}; there are {KEYS}")
}

fn is_key(key: &str) -> bool {
    let named = KEYS.split(", ").any(|known| known == key);
    named || key.starts_with("tag.") || key.starts_with("attribute.")
}

/// The name, and what is said of the app.
fn split_name(text: &str) -> (&str, &str) {
    let begins = |(at, _): &(usize, &str)| {
        let rest = text.get(at.saturating_add(1)..).unwrap_or_default();
        rest.split_once('=').is_some_and(|(key, _)| is_key(key))
    };
    let found = text.match_indices(':').find(begins);
    found
        .and_then(|(at, _)| text.split_at_checked(at))
        .map_or((text, ""), |(name, rest)| (name, rest.strip_prefix(':').unwrap_or(rest)))
}

/// The first setting, and what comes behind it.
fn next_setting(text: &str) -> (&str, &str) {
    if text.starts_with("sql=") {
        return (text, "");
    }
    text.split_once(',').unwrap_or((text, ""))
}

fn rows(text: &str) -> Option<Rows> {
    let (min, max) = text.split_once('-').unwrap_or((text, text));
    Some(Rows { min: min.parse().ok()?, max: max.parse().ok()? })
        .filter(|rows| rows.min <= rows.max)
}

/// Whether a comment's tag needs no escaping for it.
fn is_plain(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !text.is_empty() && text.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn load(text: &str) -> AppLoad {
        AppLoad::parse(text).unwrap()
    }

    #[test]
    fn a_name_alone_is_one_session_that_writes_single_rows() {
        assert_eq!(load("etl"), AppLoad::new("etl"));
    }

    #[test]
    fn keys_say_how_an_app_asks() {
        let etl = load("etl:sessions=8,rows=5-9,statements=3,think=5ms,server=1.5s,user=batch");
        assert_eq!((etl.sessions, etl.statements), (8, 3));
        assert_eq!(etl.rows, Some(Rows { min: 5, max: 9 }));
        assert_eq!([etl.think, etl.server].map(|time| time.as_millis()), [5, 1_500]);
        assert_eq!(etl.user.as_deref(), Some("batch"));
        let web =
            load("web:class=read,tag.controller=reports,priority=20,attribute.a=b=c,client=::1");
        let tags = vec![("controller".to_owned(), "reports".to_owned())];
        assert_eq!(web.text, Text::Any { class: Class::Read, tags, priority: Some(20) });
        assert_eq!(web.attributes, [("a".to_owned(), "b=c".to_owned())]);
        assert_eq!(web.client, Some("::1".parse().unwrap()));
    }

    #[test]
    fn a_name_may_have_levels_and_sql_may_have_anything() {
        assert_eq!(load("7:etl:rows=2").name, "7:etl");
        assert_eq!(load("7:etl").name, "7:etl");
        let sql = load("etl:rows=2,sql=UPDATE t SET a = 1, b = 'x:rows=3'");
        assert_eq!(sql.text, Text::Sql("UPDATE t SET a = 1, b = 'x:rows=3'".to_owned()));
    }

    #[test]
    fn what_cannot_be_read_is_named_with_what_could() {
        for (text, named) in [
            ("", "name is missing"),
            (":rows=1", "name is missing"),
            ("etl:session=8", "no key session; there are sessions, rows"),
            ("etl:rows=1,session=8", "no key session; there are sessions, rows"),
            ("etl:sessions=1,rows", "rows: KEY=VALUE is wanted"),
            ("etl:rows=9-1", "rows=9-1: a number, or 1-9 is wanted"),
            ("etl:think=5", "think=5: a duration with its unit"),
            ("etl:server=0s", "100us or more"),
            ("etl:statements=0", "at least 1"),
            ("etl:sessions=1,sessions=2", "sessions is there twice"),
            ("etl:think=99h", "of 24h at most"),
            ("etl:class=wrong", "class=wrong: a class"),
            ("etl:priority=101", "0 to 100"),
            ("etl:tag.a=*/", "else sql="),
            ("etl:class=read,sql=SELECT 1", "leave them out"),
        ] {
            let error = AppLoad::parse(text).map(|load| load.name).unwrap_err();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}

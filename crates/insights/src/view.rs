//! What a window shows, by what was asked for.

use std::collections::HashMap;
use std::sync::Arc;

use crate::catalogue::{Catalogue, DigestText, Kind};
use crate::levels::BySecond;
use crate::sketch::{Digest, Key};
use crate::stats::Stats;
use crate::windows::{Sealed, Time, Windows};

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// What makes a row.
    pub by: By,
    /// The tag whose values make rows, for [`By::Tag`].
    pub tag: String,
    /// How far back, in seconds.
    pub window_s: u64,
    /// How long ago that window ends, in seconds; 0 for now.
    pub ago_s: u64,
    /// Whose statements.
    pub filter: Filter,
}

/// What makes a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Digest, app and schema.
    Digest,
    /// App.
    App,
    /// MySQL user.
    User,
    /// Table. A statement counts for each of its tables.
    Table,
    /// The value of the tag that [`Look::tag`] names.
    Tag,
}

/// Whose statements are shown; `None` for everybody's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of this app.
    pub app: Option<String>,
    /// With this default schema.
    pub schema: Option<String>,
    /// Of this MySQL user.
    pub user: Option<String>,
    /// Of this digest.
    pub digest: Option<u64>,
    /// With this value of this tag.
    pub tag: Option<(String, String)>,
}

/// What a row is about. `None` for what does not make a row, and for what is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group {
    /// Statements that have no row of their own; of an app or user, if that is said.
    pub other: bool,
    /// The digest.
    pub digest: Option<u64>,
    /// The app.
    pub app: Option<String>,
    /// The default schema.
    pub schema: Option<String>,
    /// The MySQL user.
    pub user: Option<String>,
    /// The table, as `schema.table`. `None` where a statement's tables cannot be told.
    pub table: Option<String>,
    /// The tag's value; empty for none.
    pub tag: Option<String>,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewRow {
    /// What it is about.
    pub group: Group,
    /// What it has cost.
    pub stats: Stats,
    /// The digest's text.
    pub text: Option<String>,
    /// The digest's tables.
    pub tables: Vec<String>,
    /// Whether these are all.
    pub all_tables: bool,
    /// What kind of statement the digest is.
    pub kind: Kind,
    /// Who sent them, of rows that are made by digest.
    pub senders: Vec<Sender>,
    /// A statement of the digest, if samples are kept.
    pub sample: Option<String>,
}

/// Whose statements a row is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sender {
    /// The MySQL user. `None`: the name is not known any more.
    pub user: Option<String>,
    /// The tags that are kept.
    pub tags: Vec<(String, String)>,
    /// Statements that reached the server.
    pub count: u64,
    /// Statements that were refused and never reached it.
    pub refused: u64,
    /// Time at the server, in nanoseconds.
    pub time_ns: u64,
    /// Rows of result sets.
    pub rows_sent: u64,
    /// Rows changed.
    pub rows_affected: u64,
}

/// What a window shows.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// When it begins: at a whole minute, or ten.
    pub from: Time,
    /// When it ends.
    pub to: Time,
    /// From when on statements were counted in it.
    pub counted_from: Time,
    /// The rows, in no order.
    pub rows: Vec<ViewRow>,
    /// Everything that the filter lets through, whether it has a row or not.
    pub total: Stats,
    /// What each app did in the seconds of the last hour of it.
    pub by_second: Vec<(String, BySecond)>,
}

/// The windows that a view is made of. Adding them up takes longer than getting them.
#[derive(Debug)]
pub struct Pieces {
    from: Time,
    to: Time,
    counted_from: Time,
    windows: Vec<Arc<Sealed>>,
}

/// The same, added up.
#[derive(Debug)]
pub struct Sums {
    from: Time,
    to: Time,
    counted_from: Time,
    rows: HashMap<Key, Stats>,
}

impl Pieces {
    pub(crate) fn of(windows: &Windows, look: &Look, now: Time) -> Self {
        let since = windows.since();
        let to = now.before(look.ago_s);
        let from = to.before(look.window_s);
        let (from, to, windows) = if look.ago_s == 0 {
            let (from, windows) = windows.between(from, to);
            (from, to, windows)
        } else {
            windows.over(from, to)
        };
        // A clock that was put back tells of nothing.
        let counted_from = if since <= to { from.max(since) } else { from };
        Self { from, to, counted_from, windows }
    }

    /// Adds them up.
    #[must_use]
    pub fn add_up(&self) -> Sums {
        let mut rows: HashMap<Key, Stats> = HashMap::new();
        for (key, stats) in self.windows.iter().flat_map(|window| &window.rows) {
            rows.entry(*key).or_default().merge(stats);
        }
        Sums { from: self.from, to: self.to, counted_from: self.counted_from, rows }
    }
}

impl View {
    pub(crate) fn of(sums: &Sums, catalogue: &Catalogue, look: &Look) -> Self {
        let mut total = Stats::default();
        let mut groups: HashMap<Group, (Stats, Vec<Sender>)> = HashMap::new();
        for (key, stats) in &sums.rows {
            let names = Names::of(*key, catalogue);
            if !names.pass(&look.filter, *key) {
                continue;
            }
            total.merge(stats);
            for group in names.groups(look, *key) {
                let (sum, senders) = groups.entry(group).or_default();
                sum.merge(stats);
                if look.by == By::Digest && key.digest != Digest::Other {
                    add_sender(senders, &names, stats);
                }
            }
        }
        let row = |(group, (stats, senders))| row(group, (stats, senders), catalogue);
        let rows = groups.into_iter().map(row).collect();
        let Sums { from, to, counted_from, .. } = *sums;
        Self { from, to, counted_from, rows, total, by_second: Vec::new() }
    }
}

/// What the hashes of a key stand for.
struct Names<'c> {
    app: Option<String>,
    schema: Option<String>,
    user: Option<String>,
    /// `None`: they are not known, or not told apart.
    tags: Option<Vec<(String, String)>>,
    digest: Option<&'c DigestText>,
}

impl<'c> Names<'c> {
    fn of(key: Key, catalogue: &'c Catalogue) -> Self {
        let is_other = key.digest == Digest::Other;
        let name = |hash: u64| catalogue.name(hash).map(lossy);
        let digest = match key.digest {
            Digest::Of(digest) => catalogue.digest(digest),
            Digest::Unknown | Digest::Other => None,
        };
        // What is added up under nobody's name has none, also not an empty one.
        let of_rest = |hash: u64| if is_other && hash == 0 { None } else { name(hash) };
        Self {
            app: of_rest(key.app),
            schema: of_rest(key.schema),
            user: of_rest(key.user),
            tags: if is_other { None } else { catalogue.tags(key.tags) },
            digest,
        }
    }

    fn pass(&self, filter: &Filter, key: Key) -> bool {
        let is =
            |wanted: &Option<String>, name: &Option<String>| wanted.is_none() || wanted == name;
        is(&filter.app, &self.app)
            && is(&filter.schema, &self.schema)
            && is(&filter.user, &self.user)
            && filter.tag.as_ref().is_none_or(|(tag, value)| self.tag(tag) == Some(&**value))
            && filter.digest.is_none_or(|digest| key.digest == Digest::Of(digest))
    }

    /// The value of a tag, empty for none. `None`: it is not known.
    fn tag(&self, name: &str) -> Option<&str> {
        let mut tags = self.tags.as_ref()?.iter();
        Some(tags.find(|(key, _)| key == name).map_or("", |(_, value)| value))
    }

    fn groups(&self, look: &Look, key: Key) -> Vec<Group> {
        let other = key.digest == Digest::Other;
        let none = Group { other, ..Group::default() };
        match look.by {
            By::Tag => {
                let tag = self.tag(&look.tag).map(str::to_owned);
                vec![Group { other: tag.is_none(), tag, ..Group::default() }]
            }
            By::Digest => {
                let digest = match key.digest {
                    Digest::Of(digest) => Some(digest),
                    Digest::Unknown | Digest::Other => None,
                };
                let (app, schema) = (self.app.clone(), self.schema.clone());
                if other { vec![none] } else { vec![Group { digest, app, schema, ..none }] }
            }
            // The rest is summed up by app and user, so those are whole.
            By::App => {
                let app = self.app.clone();
                vec![Group { other: other && app.is_none(), app, ..Group::default() }]
            }
            By::User => {
                let user = self.user.clone();
                vec![Group { other: other && user.is_none(), user, ..Group::default() }]
            }
            By::Table => {
                let tables = self.tables();
                if tables.is_empty() {
                    // It names none, or nobody knows which.
                    let all = self.digest.is_some_and(|digest| digest.all_tables);
                    return vec![Group { table: all.then(String::new), ..none }];
                }
                tables
                    .into_iter()
                    .map(|table| Group { table: Some(table), ..none.clone() })
                    .collect()
            }
        }
    }

    /// The digest's tables, each once; names without a schema are of the default one.
    fn tables(&self) -> Vec<String> {
        let schema = self.schema.as_deref().unwrap_or_default();
        let tables = self.digest.into_iter().flat_map(DigestText::tables);
        let mut named: Vec<String> = tables
            .map(|(of, table)| {
                let of = if of.is_empty() { schema.to_owned() } else { lossy(of) };
                let table = if table.is_empty() { "*".to_owned() } else { lossy(table) };
                if of.is_empty() { table } else { format!("{of}.{table}") }
            })
            .collect();
        named.sort_unstable();
        named.dedup();
        named
    }
}

/// Adds what the statements of one key have cost to their sender.
fn add_sender(senders: &mut Vec<Sender>, names: &Names<'_>, stats: &Stats) {
    let sender = Sender {
        user: names.user.clone(),
        tags: names.tags.clone().unwrap_or_default(),
        count: stats.count,
        refused: stats.refused.sum(),
        time_ns: stats.time_ns,
        rows_sent: stats.rows_sent,
        rows_affected: stats.rows_affected,
    };
    match senders.iter_mut().find(|known| known.user == sender.user && known.tags == sender.tags) {
        None => senders.push(sender),
        Some(known) => {
            for (sum, value) in [
                (&mut known.count, sender.count),
                (&mut known.refused, sender.refused),
                (&mut known.time_ns, sender.time_ns),
                (&mut known.rows_sent, sender.rows_sent),
                (&mut known.rows_affected, sender.rows_affected),
            ] {
                *sum = sum.saturating_add(value);
            }
        }
    }
}

fn row(group: Group, (stats, mut senders): (Stats, Vec<Sender>), catalogue: &Catalogue) -> ViewRow {
    senders.sort_unstable_by(|a, b| b.count.cmp(&a.count).then_with(|| a.user.cmp(&b.user)));
    let digest = group.digest.and_then(|digest| catalogue.digest(digest));
    let names = Names { app: None, schema: group.schema.clone(), user: None, tags: None, digest };
    ViewRow {
        text: digest.map(|digest| lossy(&digest.text)),
        tables: names.tables(),
        all_tables: digest.is_some_and(|digest| digest.all_tables),
        kind: digest.map(|digest| digest.kind.clone()).unwrap_or_default(),
        senders,
        sample: digest.and_then(|digest| digest.sample.as_deref().map(lossy)),
        group,
        stats,
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

//! gh-ost's cut-over: whose lock it is, and which statements of other sessions belong to it.
//!
//! Theory. gh-ost locks the table that it changes, `t`, together with `_t_del`, and waits until what
//! was written up to then is in its copy, `_t_gho`: other sessions of its own write that, and its
//! notes to `_t_ghc` and `_t_ghk`. Whoever delays those delays everybody who wants `t`. So while one
//! session holds the lock, the others' statements on these tables pass.
//!
//! What passes is narrow and certain: nothing but reads and writes, in text that can be read in one
//! way, of which every table is known and is the migration's own; by the same MySQL user, and gh-ost
//! by name ([`sql::Tool::GhOst`], as far as `identity.claims` lets it be). The lock counts when the
//! server has answered it with OK, and no longer when anything is sent that may give it back.
//!
//! Names are those that gh-ost makes of `t`, or of the name that `--force-table-names` says
//! (`go/base/context.go`, `getSafeTableName`), compared byte by byte. Which of both the LOCK TABLES
//! tells, for it names `_X_del` beside `t`: that the others are made of the same X is all that is
//! taken from it.

use sql::{Class, ClassSet, Completeness, LexMode, Statement, TableRef, tables};

/// The longest name of a table that gh-ost makes, in bytes.
const NAME_LEN_MAX: usize = 64;

/// The tables of a migration that others than the lock's session write.
const OWN: [&[u8]; 3] = [b"gho", b"ghc", b"ghk"];

/// Most tables of a statement that are looked at: a text of gh-ost's names one, ten times.
const NAMED_MAX: usize = 256;

/// A migration whose cut-over's lock is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutOver {
    /// The MySQL user.
    pub user: Box<[u8]>,
    /// The schema of the table.
    pub schema: Box<[u8]>,
    /// The table that is changed.
    pub table: Box<[u8]>,
    /// What the names of the migration's own tables are made of: the table's, unless gh-ost was told
    /// another.
    pub named_after: Box<[u8]>,
}

/// The tables of a statement that may be part of a migration, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationWork {
    user: Box<[u8]>,
    schema: Box<[u8]>,
    /// Each once.
    tables: Vec<Box<[u8]>>,
}

impl CutOver {
    /// What `LOCK TABLES t WRITE, _t_del WRITE` of gh-ost locks, if the text is that. `schema` is
    /// that of names without one; empty: it is not known.
    pub(crate) fn of(text: &Text<'_>, user: &[u8]) -> Option<Self> {
        let Named { schema, tables } = text.named(Completeness::Definition)?;
        let [table, sentry] = tables.as_slice() else { return None };
        let named_after = if is_sentry_of(sentry, table) { table } else { forced_by(sentry)? };
        Some(Self {
            user: user.into(),
            schema: schema.into(),
            table: (*table).into(),
            named_after: named_after.into(),
        })
    }

    /// The name of the copy that takes the table's place.
    #[must_use]
    pub fn copy_name(&self) -> Vec<u8> {
        name_of(&self.named_after, b"gho")
    }

    /// Whether all that the statement names is this migration's own.
    #[must_use]
    pub fn covers(&self, work: &MigrationWork) -> bool {
        let own = |name: &[u8]| OWN.iter().any(|suffix| name == name_of(&self.named_after, suffix));
        self.user == work.user
            && self.schema == work.schema
            && work.tables.iter().all(|table| own(table))
    }
}

impl MigrationWork {
    /// The tables of a statement that reads and writes nothing but tables of a migration.
    pub(crate) fn of(text: &Text<'_>, user: &[u8]) -> Option<Self> {
        const PLAIN: [Class; 3] = [Class::Read, Class::LockingRead, Class::Write];
        let plain: ClassSet = PLAIN.into_iter().collect();
        let others = |class: &Class| class.is_gateable() && !plain.contains(*class);
        let classes = text.statement.classes;
        if Class::ALL.iter().any(|class| others(class) && classes.contains(*class)) {
            return None;
        }
        let Named { schema, mut tables } = text.named(Completeness::Complete)?;
        let suffixes = |name: &[u8]| {
            name.starts_with(b"_") && OWN.iter().any(|suffix| ends_with(name, suffix))
        };
        if !tables.iter().all(|name| suffixes(name)) {
            return None;
        }
        tables.sort_unstable();
        tables.dedup();
        let tables = tables.into_iter().map(Into::into).collect();
        Some(Self { user: user.into(), schema: schema.into(), tables })
    }
}

/// A text of gh-ost's, and how it is read.
pub(crate) struct Text<'t> {
    pub(crate) text: &'t [u8],
    pub(crate) statement: &'t Statement<'t>,
    pub(crate) mode: LexMode,
    /// Of names without one; empty: it is not known.
    pub(crate) schema: &'t [u8],
}

/// The tables of one schema that a text names, in its order.
struct Named<'t> {
    schema: &'t [u8],
    tables: Vec<&'t [u8]>,
}

impl<'t> Text<'t> {
    /// Every table, if all of them are known for certain, there are some, and they are of one
    /// schema.
    fn named(&self, wanted: Completeness) -> Option<Named<'t>> {
        let Self { text, statement, mode, schema } = self;
        if !statement.is_certain() || statement.effects.use_schema.is_some() {
            return None;
        }
        let mut of: Option<&'t [u8]> = None;
        let mut names: Vec<&'t [u8]> = Vec::new();
        let mut fits = true;
        let completeness = tables(text, *mode, |table: TableRef<'t>| {
            let named = table.schema.unwrap_or(schema);
            let same = *of.get_or_insert(named) == named;
            let known = [named, table.name].iter().all(|name| is_plain(name));
            fits &= same && known && names.len() < NAMED_MAX;
            if fits {
                names.push(table.name);
            }
        });
        let schema = of?;
        (fits && completeness == wanted).then_some(Named { schema, tables: names })
    }
}

/// Whether a name is the same however it is quoted.
fn is_plain(name: &[u8]) -> bool {
    !name.is_empty() && !name.iter().any(|byte| matches!(byte, b'`' | b'"' | 0))
}

/// The name that gh-ost makes of a table's.
fn name_of(table: &[u8], suffix: &[u8]) -> Vec<u8> {
    let around = suffix.len().saturating_add(2);
    let kept = table.len().min(NAME_LEN_MAX.saturating_sub(around));
    let table = table.get(..kept).unwrap_or(table);
    [b"_".as_slice(), table, b"_", suffix].concat()
}

/// Whether `name` is that of the table which gh-ost puts in the old one's place: `_t_del`, or with
/// `--timestamp-old-table` `_t_20260131120000_del`.
fn is_sentry_of(name: &[u8], table: &[u8]) -> bool {
    if name == name_of(table, DEL) {
        return true;
    }
    let stamp = name.strip_suffix(b"_del").and_then(|rest| rest.rsplit(|b| *b == b'_').next());
    stamp.is_some_and(|stamp| {
        is_stamp(stamp) && name == name_of(table, &[stamp, b"_", DEL].concat())
    })
}

/// The X of `_X_del` or `_X_20260131120000_del`: what `--force-table-names` says.
fn forced_by(sentry: &[u8]) -> Option<&[u8]> {
    let name = sentry.strip_prefix(b"_")?.strip_suffix(b"_del")?;
    let stamp = name.len().checked_sub(STAMP_LEN).and_then(|at| name.split_at_checked(at));
    let name = match stamp {
        Some((name, stamp)) if is_stamp(stamp) => name.strip_suffix(b"_").unwrap_or(name),
        Some(_) | None => name,
    };
    (!name.is_empty()).then_some(name)
}

/// What `--timestamp-old-table` puts into a name.
fn is_stamp(stamp: &[u8]) -> bool {
    stamp.len() == STAMP_LEN && stamp.iter().all(u8::is_ascii_digit)
}

const DEL: &[u8] = b"del";
const STAMP_LEN: usize = 14;

fn ends_with(name: &[u8], suffix: &[u8]) -> bool {
    name.strip_suffix(suffix).is_some_and(|rest| rest.ends_with(b"_"))
}

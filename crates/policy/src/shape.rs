//! What a text is about: its digest and the tables it names.
//!
//! Theory. Conditions on `digest` and `table` look at the text itself, which no client can avoid
//! sending, but which it can write in many ways. What cannot be told for certain must not let
//! anything escape a rule that holds back or denies, and must not let anything pass by a rule that
//! lets pass. So a rule whose tables are not all known matches by what the rule does (see
//! `Caution`); a digest that is not certain is none.
//!
//! Reading costs two walks over the text. It is done only when a rule that names a digest or a
//! table could match by all its other conditions, once for each text, and once for a prepared
//! statement; buffers are kept.

use sql::{Completeness, DIGEST_TEXT_MAX, LexMode, Statement, digest, digest_front, tables};

use crate::identity::SessionIdentity;
use crate::patterns::Patterns;

/// What a text is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shape<'s> {
    /// The hash of its digest text, if that is certain.
    pub(crate) digest: Option<u64>,
    pub(crate) tables: Tables<'s>,
}

/// The tables that a text names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tables<'s> {
    /// Schema, NUL, table, NUL; again and again; in lower case.
    names: &'s [u8],
    /// Whether no table is missing.
    known: bool,
    /// Nobody has named any, for there is no statement.
    asked_for: bool,
}

/// The shape of a prepared statement.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnedShape {
    digest: Option<u64>,
    certain: bool,
    names: Box<[u8]>,
    known: bool,
    unqualified: u64,
    text: Box<[u8]>,
}

/// A text to be read.
#[derive(Debug, Clone, Copy)]
pub struct ShapeText<'t> {
    /// The text.
    pub text: &'t [u8],
    /// How the server reads it.
    pub mode: LexMode,
    /// The schema of names without one.
    pub schema: &'t [u8],
    /// Whether the text was read whole and in the only way it can be read, and changes no default
    /// schema on its way: see [`ShapeText::new`].
    certain: bool,
    follows_schema: bool,
    /// Whether it is certain which the default schema is.
    knows_schema: bool,
}

/// What rules look at; nothing is read that none does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShapeNeeds {
    /// Some rule names a digest.
    pub digest: bool,
    /// Some rule names a table.
    pub tables: bool,
}

impl ShapeNeeds {
    /// Everything.
    pub const ALL: Self = Self { digest: true, tables: true };

    /// Whether there is anything to read.
    #[must_use]
    pub fn any(self) -> bool {
        self.digest || self.tables
    }

    /// What either needs.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { digest: self.digest || other.digest, tables: self.tables || other.tables }
    }
}

impl<'t> ShapeText<'t> {
    /// The text that was described as `statement`.
    #[must_use]
    pub fn new(text: &'t [u8], mode: LexMode, schema: &'t [u8], statement: &Statement<'_>) -> Self {
        let moves = statement.statement_count > 1 && statement.effects.use_schema.is_some();
        Self {
            text,
            mode,
            schema,
            certain: statement.is_certain(),
            follows_schema: !moves,
            knows_schema: true,
        }
    }

    /// The same, where names without a schema are in the session's.
    #[must_use]
    pub fn of_session(
        text: &'t [u8],
        mode: LexMode,
        session: &'t SessionIdentity,
        statement: &Statement<'_>,
    ) -> Self {
        let knows_schema = !session.doubts_schema();
        Self { knows_schema, ..Self::new(text, mode, session.schema(), statement) }
    }
}

/// The buffers of one connection.
#[derive(Debug, Default)]
pub struct ShapeScratch {
    digest_text: Vec<u8>,
    names: Vec<u8>,
    /// Of the text under way, once it has been asked for.
    digest: Option<u64>,
    certain: bool,
    known: bool,
    /// A bit for each of the first 64 names: it stands in the text without a schema.
    unqualified: u64,
}

/// The longest digest text that is kept of a prepared statement: the servers' `max_digest_length`.
const DIGEST_TEXT_KEPT: usize = 1024;

/// Bytes of names and digest text that an idle connection keeps.
const SCRATCH_KEPT_LEN: usize = 512;

/// Most bytes of names of one text; a text that names more has tables that are not known.
const NAMES_LEN_MAX: usize = 4_096;

impl ShapeScratch {
    /// Forgets the text before.
    pub fn clear(&mut self) {
        self.digest = None;
        self.certain = false;
        self.known = false;
        self.unqualified = 0;
        self.names.clear();
    }

    /// Reads what is needed of a text. Allocates nothing once warm.
    pub fn read(&mut self, text: &ShapeText<'_>, needs: ShapeNeeds) -> Shape<'_> {
        self.clear();
        if needs.digest {
            self.digest(text.text, text.mode);
            self.certain = text.certain && text.text.len() <= DIGEST_TEXT_MAX;
        }
        if needs.tables {
            self.known = text.certain & self.read_tables(text);
        }
        self.shape()
    }

    /// What has been read.
    #[must_use]
    pub fn shape(&self) -> Shape<'_> {
        let digest = self.digest.filter(|_| self.certain);
        Shape { digest, tables: Tables { names: &self.names, known: self.known, asked_for: false } }
    }

    /// The hash of the digest text of the text under way, certain or not: what it costs is
    /// predicted by it.
    pub fn digest(&mut self, text: &[u8], mode: LexMode) -> u64 {
        *self.digest.get_or_insert_with(|| digest(text, mode, &mut self.digest_text))
    }

    /// The hash of the digest text of the front of a text, without what its cut has left open: for
    /// counting only, no rule means it.
    pub fn digest_front(&mut self, front: &[u8], mode: LexMode) -> u64 {
        let digest = digest_front(front, mode, &mut self.digest_text);
        *self.digest.insert(digest)
    }

    /// What has been read, to be kept.
    #[must_use]
    pub fn to_owned(&self) -> OwnedShape {
        let Self { digest, certain, known, unqualified, .. } = *self;
        let names = self.names.as_slice().into();
        OwnedShape { digest, certain, names, known, unqualified, text: self.digest_text().into() }
    }

    /// The digest text of the text under way, if its digest was read; cut where it is long.
    #[must_use]
    pub fn digest_text(&self) -> &[u8] {
        let text = self.digest.map(|_| self.digest_text.as_slice()).unwrap_or_default();
        text.get(..DIGEST_TEXT_KEPT).unwrap_or(text)
    }

    /// Writes the names of the tables as they stand in the text into `out`: schema, NUL, table, NUL.
    /// A schema that is not in the text is empty.
    pub fn write_tables(&self, out: &mut Vec<u8>) {
        write_as_in_text(self.shape().tables, self.unqualified, out);
    }

    /// Gives back what unusual texts have grown. For connections that are idle.
    pub fn shrink(&mut self) {
        for buffer in [&mut self.digest_text, &mut self.names] {
            if buffer.capacity() > SCRATCH_KEPT_LEN {
                *buffer = Vec::new();
            }
        }
    }

    /// Whether every table is among the names.
    fn read_tables(&mut self, text: &ShapeText<'_>) -> bool {
        let names = &mut self.names;
        let unqualified = &mut self.unqualified;
        let mut bit = 1_u64;
        let mut fits = true;
        let completeness = tables(text.text, text.mode, |table| {
            let schema = table.schema.unwrap_or(text.schema);
            let len = names.len().saturating_add(schema.len()).saturating_add(table.name.len());
            // A name with a NUL is none, and would be read as two.
            if len > NAMES_LEN_MAX || schema.contains(&0) || table.name.contains(&0) {
                fits = false;
                return;
            }
            if table.schema.is_none() {
                *unqualified |= bit;
                fits &= text.knows_schema;
            }
            bit = bit.wrapping_shl(1);
            for part in [schema, table.name] {
                names.extend(part.iter().map(u8::to_ascii_lowercase));
                names.push(0);
            }
        });
        let all_named = match completeness {
            Completeness::Complete | Completeness::Definition => true,
            Completeness::Partial => false,
        };
        fits && all_named && text.follows_schema
    }
}

impl OwnedShape {
    /// The shape.
    #[must_use]
    pub fn shape(&self) -> Shape<'_> {
        let digest = self.digest.filter(|_| self.certain);
        Shape { digest, tables: Tables { names: &self.names, known: self.known, asked_for: false } }
    }

    /// The hash of the digest text, certain or not; `None` if the text is not known.
    #[must_use]
    pub fn digest(&self) -> Option<u64> {
        self.digest
    }

    /// As [`ShapeScratch::digest_text`]; empty if it was not kept.
    #[must_use]
    pub fn digest_text(&self) -> &[u8] {
        &self.text
    }

    /// Forgets the digest text.
    pub fn drop_text(&mut self) {
        self.text = Box::default();
    }

    /// As [`ShapeScratch::write_tables`].
    pub fn write_tables(&self, out: &mut Vec<u8>) {
        write_as_in_text(self.shape().tables, self.unqualified, out);
    }
}

/// The names, of which those with their bit set stand in the text without a schema.
fn write_as_in_text(tables: Tables<'_>, unqualified: u64, out: &mut Vec<u8>) {
    let mut bit = 1_u64;
    for table in tables.iter() {
        if unqualified & bit == 0 {
            out.extend_from_slice(table.schema);
        }
        out.push(0);
        out.extend_from_slice(table.name);
        out.push(0);
        bit = bit.wrapping_shl(1);
    }
}

impl<'s> Shape<'s> {
    /// The tables by schema and name, in lower case; an empty schema is none, an empty name stands
    /// for every table of the schema.
    pub fn tables(&self) -> impl Iterator<Item = (&'s [u8], &'s [u8])> {
        self.tables.iter().map(|table| (table.schema, table.name))
    }

    /// Whether these are all tables of the text.
    #[must_use]
    pub fn knows_tables(&self) -> bool {
        self.tables.known
    }

    /// Of whoever asks whether it may write, whatever that is.
    #[must_use]
    pub fn of_check() -> Self {
        Self { tables: Tables { asked_for: true, ..Tables::default() }, ..Self::default() }
    }

    /// Whether it is that of a check.
    pub(crate) fn is_of_check(&self) -> bool {
        self.tables.asked_for
    }

    /// The bytes that tell this shape's tables from another's.
    #[must_use]
    pub fn table_bytes(&self) -> &'s [u8] {
        self.tables.names
    }

    /// The hash of the digest text, if that is certain.
    #[must_use]
    pub fn digest(&self) -> Option<u64> {
        self.digest
    }
}

/// A shape that was written down: the digest, and tables by schema and name.
pub(crate) fn recorded_shape<'n>(
    digest: Option<u64>,
    tables: &[(String, String)],
    known: bool,
    names: &'n mut Vec<u8>,
) -> Shape<'n> {
    for part in tables.iter().flat_map(|(schema, name)| [schema, name]) {
        names.extend(part.bytes().filter(|byte| *byte != 0).map(|byte| byte.to_ascii_lowercase()));
        names.push(0);
    }
    Shape { digest, tables: Tables { names, known, asked_for: false } }
}

/// One table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table<'s> {
    pub(crate) schema: &'s [u8],
    pub(crate) name: &'s [u8],
    /// Schema, NUL, name.
    pub(crate) qualified: &'s [u8],
}

impl Table<'_> {
    /// Whether every table of the schema is meant.
    pub(crate) fn is_schema(self) -> bool {
        self.name.is_empty()
    }
}

impl<'s> Tables<'s> {
    /// These tables, all of which are known only if this is so.
    pub(crate) fn knowing_all(self, known: bool) -> Self {
        Self { known, ..self }
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Table<'s>> {
        let mut rest = self.names;
        std::iter::from_fn(move || {
            let dot = rest.iter().position(|byte| *byte == 0)?;
            let (schema, after) = rest.split_at_checked(dot)?;
            let name = after.get(1..)?;
            let name_len = name.iter().position(|byte| *byte == 0)?;
            let name = name.get(..name_len)?;
            let len = dot.checked_add(1)?.checked_add(name_len)?;
            let qualified = rest.get(..len)?;
            rest = rest.get(len.checked_add(1)?..)?;
            Some(Table { schema, name, qualified })
        })
    }

    /// Whether the tables are those of a condition, for a rule of this kind.
    pub(crate) fn matches(self, patterns: &TablePatterns, kind: Caution) -> bool {
        let mut tables = self.iter();
        match kind {
            Caution::Loosens => {
                let any = self.iter().next().is_some();
                self.known && any && tables.all(|table| patterns.hold_all_of(table))
            }
            Caution::Holds => !self.known || tables.any(|table| patterns.hold_some_of(table)),
        }
    }
}

/// What a rule does with a statement of which something is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caution {
    /// The rule lets statements pass: it matches only what is certain to be all its own.
    Loosens,
    /// The rule delays or denies: nothing may escape it by being hard to read.
    Holds,
}

/// Values of `match.table`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TablePatterns {
    /// Tables of any schema.
    pub(crate) names: Patterns,
    /// Schema, NUL, name.
    pub(crate) qualified: Patterns,
}

impl TablePatterns {
    /// Adds `*`, `prefix*`, `table`, `schema.table`, `schema.prefix*`.
    pub(crate) fn add(&mut self, pattern: &str) {
        let pattern = pattern.to_ascii_lowercase();
        match pattern.split_once('.') {
            Some((schema, table)) => self.qualified.add(&format!("{schema}\0{table}")),
            None => self.names.add(&pattern),
        }
    }

    /// Whether the table is among the values; a schema as a whole, if every table in it is.
    fn hold_all_of(&self, table: Table<'_>) -> bool {
        if table.is_schema() {
            // `shop.*`, of which nothing but the schema is left.
            return self.names.present || self.qualified.matches(table.qualified);
        }
        self.names.matches(table.name) || self.qualified.matches(table.qualified)
    }

    /// Whether the table is among the values; a schema as a whole, if a table in it may be.
    fn hold_some_of(&self, table: Table<'_>) -> bool {
        let in_schema = |value: &[u8]| value.starts_with(table.qualified);
        self.hold_all_of(table)
            || (table.is_schema()
                && (!self.names.is_empty()
                    || self.qualified.exact.iter().any(|value| in_schema(value))
                    || self.qualified.prefixes.iter().any(|value| in_schema(value))))
    }
}

#[cfg(test)]
mod tests;

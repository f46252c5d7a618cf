//! Prepared statements, as far as admission needs them: class and identity of the text they came
//! from, and the state that a refused execution would lose.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use admission::Written;
use policy::{Likeness, OwnedShape, WatchBy};
use sql::{Called, Class, ClassSet, Exemption, LexMode, PlainEffects, Routines, Tool};
use wire::command::LAST_PREPARED;
use wire::response_tracker::Prepared as PrepareOk;

use crate::answer::Answer;
use crate::consequences::Consequences;
use crate::cut_over::MigrationWork;
use crate::judge::memo::Remembered;

/// Statements remembered per connection. The server allows 16,382 for all connections together by
/// default (`max_prepared_stmt_count`); what goes beyond is class `unknown`, so forgetting never
/// exempts.
const STATEMENTS_MAX: usize = 16_384;

/// Names of SQL `PREPARE` remembered per connection; further ones are class `unknown` when
/// executed.
const NAMES_MAX: usize = 1_024;

/// The longest name of SQL `PREPARE` that either server has.
const NAME_LEN_MAX: usize = 64;

/// What is kept of all of a connection's prepared statements together, in bytes: descriptions of
/// some ten thousand everyday statements, or of a few with everything that an identity may have.
/// What goes beyond is class `unknown`, and parameter types that go beyond are not put back.
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// A tag's key and value.
pub(crate) type OwnedTag = (Box<[u8]>, Box<[u8]>);

/// The longest part of a tag that is kept whole. Identities have none that is longer; of one that
/// is, so much is kept that it still is.
const TAG_PART_LEN_MAX: usize = 255;

/// A tag to keep.
pub(crate) fn owned_tag((key, value): (&[u8], &[u8])) -> OwnedTag {
    let kept =
        |part: &[u8]| part.iter().copied().take(TAG_PART_LEN_MAX.saturating_add(1)).collect();
    (kept(key), kept(value))
}

/// What the text of a prepared statement said.
#[derive(Debug)]
pub(crate) struct Description {
    pub(crate) class: Class,
    pub(crate) classes: ClassSet,
    pub(crate) exemption: Option<Exemption>,
    pub(crate) tool: Option<Tool>,
    pub(crate) tags: Vec<OwnedTag>,
    /// Whether these are all.
    pub(crate) has_all_tags: bool,
    pub(crate) shape: OwnedShape,
    /// What it writes, if that is known.
    pub(crate) written: Option<Written>,
    pub(crate) consequences: Consequences,
    /// The functions for which it is a `call`, if they may write nothing.
    pub(crate) calls: Option<Box<CallsFrom>>,
    pub(crate) changes_routines: bool,
    /// What it is about, if it comes from gh-ost and may be part of a migration.
    pub(crate) work: Option<Box<MigrationWork>>,
    /// The hash of the text as it stands, if it is known.
    pub(crate) text_hash: Option<u64>,
    /// What it runs does not stand in it, so nothing is alike because it is prepared from the same.
    pub(crate) runs_other_text: bool,
    /// If it may say something else in another mode.
    pub(crate) elsewhere: Option<Elsewhere>,
}

/// What a text says where it is executed in another mode than it was prepared in.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    /// The mode in which it was prepared.
    pub(crate) mode: LexMode,
    /// What it may say in any.
    pub(crate) description: Arc<Description>,
}

/// What a prepared text calls.
#[derive(Debug)]
pub(crate) struct CallsFrom {
    pub(crate) functions: Called,
    /// The default schema when it was prepared, in which servers look for them at any execution.
    pub(crate) schema: Box<[u8]>,
}

impl Default for Description {
    /// A text that nobody has read.
    fn default() -> Self {
        Self {
            class: Class::Unknown,
            classes: ClassSet::from_iter([Class::Unknown]),
            exemption: None,
            tool: None,
            tags: Vec::new(),
            has_all_tags: false,
            shape: OwnedShape::default(),
            written: None,
            consequences: Consequences { plain: PlainEffects::unread(), rare: None, any: true },
            calls: None,
            changes_routines: true,
            work: None,
            text_hash: None,
            runs_other_text: true,
            elsewhere: None,
        }
    }
}

/// What a prepared statement is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Likenesses {
    digest: Option<u64>,
    text: Option<u64>,
}

impl Likenesses {
    /// None: nobody has read it.
    pub(crate) fn of(self, by: WatchBy) -> Option<Likeness> {
        let hash = match by {
            WatchBy::Digest => self.digest,
            WatchBy::Text => self.text,
        };
        hash.map(|hash| Likeness { by, hash })
    }
}

impl Description {
    /// What it is like.
    pub(crate) fn likenesses(&self) -> Likenesses {
        let text = self.text_hash.filter(|_| !self.runs_other_text);
        Likenesses { digest: self.own_digest(), text }
    }

    /// The digest of all that it runs.
    pub(crate) fn own_digest(&self) -> Option<u64> {
        self.shape.digest().filter(|_| !self.runs_other_text)
    }

    /// The classes of an execution now, and the strictest of them: those that the text has, without
    /// `call` if all it calls is known to write nothing.
    pub(crate) fn classes_with(&self, routines: &Routines) -> (ClassSet, Class) {
        let harmless = self
            .calls
            .as_ref()
            .is_some_and(|calls| calls.functions.are_harmless(routines, &calls.schema));
        if !harmless {
            return (self.classes, self.class);
        }
        let classes = self.classes.without(Class::Call);
        (classes, classes.strictest().unwrap_or(self.class))
    }

    /// What it takes, about.
    fn len(&self) -> usize {
        let tags = self.tags.iter().map(|(key, value)| {
            key.len().saturating_add(value.len()).saturating_add(size_of::<OwnedTag>())
        });
        let tags = tags.fold(0, usize::saturating_add);
        let calls = self.calls.as_ref().map_or(0, |calls| {
            size_of::<CallsFrom>()
                .saturating_add(calls.functions.size())
                .saturating_add(calls.schema.len())
        });
        size_of::<Self>()
            .saturating_add(tags)
            .saturating_add(calls)
            .saturating_add(self.elsewhere.as_ref().map_or(0, |other| other.description.len()))
            .saturating_add(self.shape.shape().table_bytes().len())
            .saturating_add(self.shape.digest_text().len())
            .saturating_add(self.consequences.len())
    }
}

/// One statement prepared through the binary protocol.
#[derive(Debug)]
pub(crate) struct PreparedStatement {
    pub(crate) description: Arc<Description>,
    pub(crate) num_params: u16,
    /// Columns of its result set, as PREPARE_OK said.
    pub(crate) num_columns: u16,
    /// Bytes of COM_STMT_SEND_LONG_DATA, if any came since the last execution that reached the
    /// server.
    pub(crate) long_data: Option<usize>,
    /// Nothing more is fetched from the cursor of its last execution: who tries is told this.
    pub(crate) ended_cursor: Option<Box<Answer>>,
    /// The parameter types of a refused execution: clients send them once, so they must be put
    /// into the next execution, or the server decodes its values with stale types.
    pub(crate) lost_types: LostTypes,
    /// The same of a refused bulk execution (MariaDB).
    pub(crate) lost_bulk_types: LostTypes,
    /// What the rules said to its last execution.
    pub(crate) remembered: Remembered,
}

/// Parameter types that the server has not seen.
#[derive(Debug, Default)]
pub(crate) enum LostTypes {
    /// It has seen all.
    #[default]
    None,
    Kept(Box<[u8]>),
    /// There was no room for them: an execution without types cannot be repaired.
    Forgotten,
}

/// Which types of a statement.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TypesOf {
    /// COM_STMT_EXECUTE.
    One,
    /// COM_STMT_BULK_EXECUTE.
    Bulk,
}

impl LostTypes {
    fn len(&self) -> usize {
        match self {
            Self::Kept(types) => types.len(),
            Self::None | Self::Forgotten => 0,
        }
    }
}

/// What of a COM_STMT_SEND_LONG_DATA is no data: itself, its statement and its parameter.
const LONG_DATA_HEAD_LEN: usize = 7;

impl PreparedStatement {
    /// A COM_STMT_SEND_LONG_DATA of it, of so many bytes.
    pub(crate) fn note_long_data(&mut self, payload_len: usize) {
        let sum = self.long_data.get_or_insert_default();
        *sum = sum.saturating_add(payload_len.saturating_sub(LONG_DATA_HEAD_LEN));
    }

    fn lost_mut(&mut self, types_of: TypesOf) -> &mut LostTypes {
        match types_of {
            TypesOf::One => &mut self.lost_types,
            TypesOf::Bulk => &mut self.lost_bulk_types,
        }
    }

    fn len(&self) -> usize {
        let lost = self.lost_types.len().saturating_add(self.lost_bulk_types.len());
        self.description.len().saturating_add(lost)
    }
}

/// All prepared statements of one connection.
#[derive(Debug, Default)]
pub(crate) struct PreparedStatements {
    /// Boxed, and without a node when there are none: a node has room for eleven.
    statements: BTreeMap<u32, Box<PreparedStatement>>,
    names: HashMap<Vec<u8>, Arc<Description>>,
    last: Option<u32>,
    /// "The last one" was refused, and the server knows another.
    last_refused: bool,
    /// What is kept, in bytes: at most [`BYTES_MAX`], and what [`STATEMENTS_MAX`] unknown ones
    /// take.
    bytes: usize,
    /// What stands for every statement that there was no room for.
    unknown: Option<Arc<Description>>,
}

impl PreparedStatements {
    /// The server prepared a statement.
    pub(crate) fn insert(&mut self, ok: PrepareOk, description: Arc<Description>) {
        let id = ok.statement_id;
        self.remove(id);
        self.last = Some(id);
        self.last_refused = false;
        if self.statements.len() >= STATEMENTS_MAX {
            return;
        }
        let statement = PreparedStatement {
            description: self.room_for(description),
            num_params: ok.num_params,
            num_columns: ok.num_columns,
            long_data: None,
            ended_cursor: None,
            lost_types: LostTypes::None,
            lost_bulk_types: LostTypes::None,
            remembered: Remembered::default(),
        };
        self.statements.insert(id, Box::new(statement));
    }

    /// The description, if there is room for it, or that of a text that nobody has read.
    fn room_for(&mut self, description: Arc<Description>) -> Arc<Description> {
        let mut description = description;
        if self.bytes > BYTES_MAX / 2
            && let Some(description) = Arc::get_mut(&mut description)
        {
            // It is shown to people only; what is judged by comes first.
            description.shape.drop_text();
        }
        let with_it = self.bytes.saturating_add(description.len());
        let (description, bytes) = if with_it <= BYTES_MAX {
            (description, with_it)
        } else {
            let unknown = Arc::clone(self.unknown.get_or_insert_with(Default::default));
            let len = unknown.len();
            (unknown, self.bytes.saturating_add(len))
        };
        self.bytes = bytes;
        description
    }

    /// Keeps parameter types that the server has not seen.
    pub(crate) fn keep_types(&mut self, id: u32, types_of: TypesOf, types: &[u8]) {
        self.drop_types(id, types_of);
        let room = BYTES_MAX.saturating_sub(self.bytes);
        let Some(statement) = self.get_mut(id) else { return };
        let lost = statement.lost_mut(types_of);
        if types.len() <= room {
            *lost = LostTypes::Kept(types.into());
            self.bytes = self.bytes.saturating_add(types.len());
        } else {
            *lost = LostTypes::Forgotten;
        }
    }

    /// The server has seen the types of an execution.
    pub(crate) fn drop_types(&mut self, id: u32, types_of: TypesOf) {
        let Some(statement) = self.get_mut(id) else { return };
        let len = std::mem::take(statement.lost_mut(types_of)).len();
        self.bytes = self.bytes.saturating_sub(len);
    }

    /// The server refused to prepare a statement: "the last one" is none now.
    pub(crate) fn handle_prepare_failed(&mut self) {
        self.last = None;
        self.last_refused = false;
    }

    /// A statement was refused before the server saw it: to the client "the last one" is none now.
    pub(crate) fn handle_prepare_refused(&mut self) {
        self.last = None;
        self.last_refused = true;
    }

    /// Whether "the last one" is another to the server than to the client.
    pub(crate) fn is_last_refused(&self) -> bool {
        self.last_refused
    }

    /// The statement with this id, or the last one.
    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut PreparedStatement> {
        let id = if id == LAST_PREPARED { self.last? } else { id };
        self.statements.get_mut(&id).map(Box::as_mut)
    }

    /// The same, which is to be executed in `mode`. In another one than it was prepared in the server
    /// may read it again, and has that reading from then on, also back in the first.
    pub(crate) fn executed(&mut self, id: u32, mode: LexMode) -> Option<&mut PreparedStatement> {
        let id = self.resolve(id);
        let statement = self.statements.get_mut(&id)?;
        if let Some(elsewhere) = &statement.description.elsewhere
            && elsewhere.mode != mode
        {
            let description = Arc::clone(&elsewhere.description);
            let before = statement.description.len();
            self.bytes = self.bytes.saturating_sub(before).saturating_add(description.len());
            statement.description = description;
            statement.remembered = Remembered::default();
        }
        Some(statement)
    }

    /// The id to name to the server, whatever alias the client used.
    pub(crate) fn resolve(&self, id: u32) -> u32 {
        if id == LAST_PREPARED { self.last.unwrap_or(id) } else { id }
    }

    /// COM_STMT_CLOSE.
    pub(crate) fn remove(&mut self, id: u32) {
        let id = self.resolve(id);
        if let Some(statement) = self.statements.remove(&id) {
            self.bytes = self.bytes.saturating_sub(statement.len());
        }
        if self.statements.is_empty() {
            self.statements = BTreeMap::new();
        }
        if self.last == Some(id) {
            self.last = None;
        }
    }

    /// SQL `PREPARE name FROM …` succeeded. Names are compared without case; those that are known
    /// are ASCII.
    pub(crate) fn insert_name(&mut self, name: &[u8], description: Arc<Description>) {
        self.remove_name(name);
        if self.names.len() < NAMES_MAX && name.len() <= NAME_LEN_MAX {
            let description = self.room_for(description);
            self.names.insert(name.to_ascii_lowercase(), description);
        }
    }

    /// SQL `DEALLOCATE PREPARE name`, or a `PREPARE` of it that failed (the server drops the old
    /// one).
    pub(crate) fn remove_name(&mut self, name: &[u8]) {
        if let Some(description) = self.names.remove(name.to_ascii_lowercase().as_slice()) {
            self.bytes = self.bytes.saturating_sub(description.len());
        }
    }

    /// Names may stand for anything now: none is known.
    pub(crate) fn forget_names(&mut self) {
        for description in self.names.values() {
            self.bytes = self.bytes.saturating_sub(description.len());
        }
        self.names.clear();
    }

    /// What `EXECUTE name` runs.
    pub(crate) fn name(&self, name: &[u8]) -> Option<Arc<Description>> {
        self.names.get(name.to_ascii_lowercase().as_slice()).cloned()
    }

    /// COM_RESET_CONNECTION, COM_CHANGE_USER.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

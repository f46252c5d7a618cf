//! Prepared statements, as far as admission needs them: class and identity of the text they came from, and
//! the state that a refused execution would lose.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use policy::OwnedShape;
use sql::{Class, ClassSet, Exemption, Tool};
use wire::command::LAST_PREPARED;

use crate::command::Consequences;
use crate::judge::Remembered;

/// Statements remembered per connection. The server allows 16,382 for all connections together by default
/// (`max_prepared_stmt_count`); what goes beyond is class `unknown`, so forgetting never exempts.
const STATEMENTS_MAX: usize = 16_384;

/// Names of SQL `PREPARE` remembered per connection; further ones are class `unknown` when executed.
const NAMES_MAX: usize = 1_024;

/// A tag's key and value.
pub(crate) type OwnedTag = (Box<[u8]>, Box<[u8]>);

/// What the text of a prepared statement said.
#[derive(Debug)]
pub(crate) struct Description {
    pub(crate) class: Class,
    pub(crate) classes: ClassSet,
    pub(crate) exemption: Option<Exemption>,
    pub(crate) tool: Option<Tool>,
    pub(crate) tags: Vec<OwnedTag>,
    pub(crate) shape: OwnedShape,
    pub(crate) consequences: Consequences,
}

impl Description {
    /// A text that nobody has read.
    pub(crate) fn unknown() -> Self {
        Self {
            class: Class::Unknown,
            classes: ClassSet::from_iter([Class::Unknown]),
            exemption: None,
            tool: None,
            tags: Vec::new(),
            shape: OwnedShape::default(),
            consequences: Consequences::default(),
        }
    }
}

/// One statement prepared through the binary protocol.
#[derive(Debug)]
pub(crate) struct PreparedStatement {
    pub(crate) description: Arc<Description>,
    pub(crate) num_params: u16,
    /// COM_STMT_SEND_LONG_DATA came since the last execution that reached the server.
    pub(crate) long_data: bool,
    /// The parameter types of a refused execution: clients send them once, so they must be put into the
    /// next execution, or the server decodes its values with stale types.
    pub(crate) lost_types: Option<Box<[u8]>>,
    /// The same of a refused bulk execution (MariaDB).
    pub(crate) lost_bulk_types: Option<Box<[u8]>>,
    /// What the rules said to its last execution.
    pub(crate) verdict: Remembered,
}

/// All prepared statements of one connection.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    statements: BTreeMap<u32, PreparedStatement>,
    names: HashMap<Vec<u8>, Arc<Description>>,
    last: Option<u32>,
}

impl Prepared {
    /// The server prepared a statement.
    pub(crate) fn insert(&mut self, id: u32, description: Arc<Description>, num_params: u16) {
        self.last = Some(id);
        if self.statements.len() < STATEMENTS_MAX || self.statements.contains_key(&id) {
            let statement = PreparedStatement {
                description,
                num_params,
                long_data: false,
                lost_types: None,
                lost_bulk_types: None,
                verdict: Remembered::default(),
            };
            self.statements.insert(id, statement);
        }
    }

    /// The server refused to prepare a statement: "the last one" is none now.
    pub(crate) fn handle_prepare_failed(&mut self) {
        self.last = None;
    }

    /// The statement with this id, or the last one.
    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut PreparedStatement> {
        let id = if id == LAST_PREPARED { self.last? } else { id };
        self.statements.get_mut(&id)
    }

    /// The id to name to the server, whatever alias the client used.
    pub(crate) fn resolve(&self, id: u32) -> u32 {
        if id == LAST_PREPARED { self.last.unwrap_or(id) } else { id }
    }

    /// COM_STMT_CLOSE.
    pub(crate) fn remove(&mut self, id: u32) {
        let id = self.resolve(id);
        self.statements.remove(&id);
        if self.last == Some(id) {
            self.last = None;
        }
    }

    /// SQL `PREPARE name FROM …` succeeded. Names are compared without case.
    pub(crate) fn insert_name(&mut self, name: &[u8], description: Arc<Description>) {
        let name = name.to_ascii_lowercase();
        if self.names.len() < NAMES_MAX || self.names.contains_key(&name) {
            self.names.insert(name, description);
        }
    }

    /// SQL `DEALLOCATE PREPARE name`, or a `PREPARE` of it that failed (the server drops the old one).
    pub(crate) fn remove_name(&mut self, name: &[u8]) {
        self.names.remove(name.to_ascii_lowercase().as_slice());
    }

    /// Names may stand for anything now: none is known.
    pub(crate) fn forget_names(&mut self) {
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

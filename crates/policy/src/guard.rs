//! Guard rails: what a text may not do, whoever is asked for how much load there is.
//!
//! Theory. A guard looks at the text alone, as far as the lexer can judge it for certain
//! ([`sql::survey`]): what cannot be judged is not denied, and counted. All guards that match are
//! asked, and the first that denies says what the client is told. What no guard has anything to say
//! of costs one walk over the text: who asks is found out only for the others.

mod expected;
mod message;

use std::sync::Arc;

use sql::{Accepts, Class, Exemption, Survey};

use crate::condition::Condition;
use crate::facts::Facts;
use crate::identity::SessionIdentity;
use crate::rule::RefusalProfile;
use crate::runaway::Quarantined;
use crate::schedule::Schedule;
use crate::shape::{Caution, ShapeNeeds};
use crate::time::UnixTime;

pub use self::expected::Estimate;
pub(crate) use self::expected::RowsExpected;
pub use self::message::write_message;

/// One guard.
#[derive(Debug, Clone, PartialEq)]
pub struct Guard {
    /// Its name in metrics, logs and messages.
    pub name: Arc<str>,
    /// What is refused by it is answered like this.
    pub error: RefusalProfile,
    /// Why it exists, for people.
    pub reason: String,
    pub(crate) condition: Arc<Condition>,
    /// What it checks, and how far each check goes.
    pub(crate) checks: Vec<(Check, GuardMode)>,
}

/// How far a check goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GuardMode {
    /// A hit is counted.
    Warn,
    /// A hit is refused.
    Deny,
}

impl GuardMode {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Warn, Self::Deny];

    /// The word of the file, and the label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Warn => "warn",
            Self::Deny => "deny",
        }
    }
}

/// What a guard checks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Check {
    WhereRequired(Accepts),
    NoCrossJoin,
    /// Most elements of a list of IN.
    MaxInList(u32),
    MaxStatementBytes(u64),
    /// Keys of tags, all of which must be there.
    RequireTag(Arc<[Box<[u8]>]>),
    /// No DDL while it is in force.
    NoDdlHours(Arc<Schedule>),
    /// Most rows that the server expects to read.
    MaxRowsExpected(RowsExpected),
}

impl Check {
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::WhereRequired(_) => "where_required",
            Self::NoCrossJoin => "no_cross_join",
            Self::MaxInList(_) => "max_in_list",
            Self::MaxStatementBytes(_) => "max_statement_bytes",
            Self::RequireTag(_) => "require_tag",
            Self::NoDdlHours(_) => "no_ddl_hours",
            Self::MaxRowsExpected(_) => expected::CHECK,
        }
    }

    fn limit(&self) -> String {
        match self {
            Self::WhereRequired(_) | Self::NoCrossJoin | Self::NoDdlHours(_) => String::new(),
            Self::MaxInList(most) => most.to_string(),
            Self::MaxStatementBytes(most) => most.to_string(),
            Self::RequireTag(keys) => {
                let keys = keys.iter().map(|key| String::from_utf8_lossy(key).into_owned());
                keys.collect::<Vec<_>>().join(", ")
            }
            Self::MaxRowsExpected(expected) => expected.most.to_string(),
        }
    }
}

/// What guards look at.
#[derive(Debug, Clone, Copy)]
pub struct Guarded<'s> {
    /// What the text says. `None`: it has been looked at when it was prepared.
    pub survey: Option<&'s Survey>,
    /// Its bytes, as far as they are known.
    pub len: u64,
    /// Whether it has more.
    pub goes_on: bool,
    /// The wall clock.
    pub now: UnixTime,
    /// Whether tags are looked at: those of a prepared statement come with each execution.
    pub tags: bool,
    /// Whether the tags are known to be all: of a text that was not read to its end, or that can be
    /// read in several ways, there may be others.
    pub all_tags: bool,
}

/// The guards of one cluster, in the order of the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Guards {
    list: Arc<[Guard]>,
    want_tags: Arc<[usize]>,
}

/// What guards have to say of a statement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuardReport {
    /// What they object to, in the order of the file.
    pub hits: Vec<GuardHit>,
    /// The guards, and the checks, that could not judge it.
    pub unjudged: Vec<(Arc<str>, &'static str)>,
    /// What is to be asked of the server before anything is said.
    pub estimates: Vec<Estimate>,
    /// What is in quarantine like it.
    pub quarantined: Option<Arc<Quarantined>>,
}

/// What a guard objects to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardHit {
    /// The guard's name.
    pub guard: Arc<str>,
    /// What it checks, as in the file.
    pub check: &'static str,
    /// Whether it refuses the statement.
    pub mode: GuardMode,
    /// Where in the text, in bytes from its beginning.
    pub offset: u64,
    /// Its place among the guards.
    index: usize,
    fault: TextFault,
}

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TextFault {
    NoWhere {
        deletes: bool,
    },
    ConstantWhere {
        deletes: bool,
    },
    CrossJoin,
    InList {
        len: u32,
        most: u32,
    },
    Long {
        most: u64,
    },
    NoTag(Box<[u8]>),
    /// Not now, and where that is within days, until when.
    Ddl {
        now: UnixTime,
        until: Option<UnixTime>,
    },
    RowsExpected {
        rows: u64,
        most: u64,
    },
}

/// What a check says.
enum Finding {
    Fine,
    Unjudged,
    Fault(u64, TextFault),
    /// The server has to be asked.
    Estimate(RowsExpected),
}

impl GuardReport {
    /// Whether there is nothing to say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hits.is_empty()
            && self.unjudged.is_empty()
            && self.estimates.is_empty()
            && self.quarantined.is_none()
    }

    /// The hit that the client is told of, if the statement is refused.
    #[must_use]
    pub fn refusal(&self) -> Option<&GuardHit> {
        self.hits.iter().find(|hit| hit.mode == GuardMode::Deny)
    }
}

impl Guard {
    /// The checks that are in force, as in the file, with how far they go.
    pub fn checks(&self) -> impl Iterator<Item = (&'static str, GuardMode)> {
        self.checks.iter().map(|(check, mode)| (check.as_str(), *mode))
    }

    /// The limits of those checks, as in the file; empty where a check has none.
    pub fn limits(&self) -> impl Iterator<Item = String> {
        self.checks.iter().map(|(check, _)| check.limit())
    }

    /// The same, refusing nothing.
    pub(crate) fn warning(mut self) -> Self {
        for (_, mode) in &mut self.checks {
            *mode = GuardMode::Warn;
        }
        self
    }

    /// Whether it is about this statement. `None`: that cannot be told.
    pub(crate) fn is_about(&self, facts: &Facts<'_>) -> Option<bool> {
        let of = |class: Class| self.condition.matches(facts, class, Caution::Holds);
        let is_about = of(facts.class())
            || Class::ALL.into_iter().any(|class| facts.classes.contains(class) && of(class));
        let is_certain = self.condition.tables.is_none() || facts.knows_tables();
        (is_certain || !is_about).then_some(is_about)
    }
}

impl Guards {
    pub(crate) fn new(list: Vec<Guard>) -> Self {
        let list: Vec<Guard> = list.into_iter().filter(|guard| !guard.checks.is_empty()).collect();
        let wants_tags = |(_, guard): &(usize, &Guard)| {
            guard.checks.iter().any(|(check, _)| matches!(check, Check::RequireTag(_)))
        };
        let want_tags = list.iter().enumerate().filter(wants_tags).map(|(index, _)| index);
        Self { want_tags: want_tags.collect(), list: list.into() }
    }

    /// Whether there is none: then nobody looks at any text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether one of them may want tags of this session, whatever its statements say of who asks.
    #[must_use]
    pub fn may_want_tags_of(&self, session: &SessionIdentity) -> bool {
        let mut guards = self.want_tags.iter().filter_map(|index| self.list.get(*index));
        guards.any(|guard| guard.condition.may_be_from(session))
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Guard> {
        self.list.iter()
    }

    /// Whether one of them may have something to say to this session, whatever the statement says
    /// of who asks.
    #[must_use]
    pub fn may_object(&self, guarded: &Guarded<'_>, session: &SessionIdentity) -> bool {
        let may = |check: &Check| !matches!(check.finding(guarded, None), Finding::Fine);
        // Who it is about is the cheaper question, and the answer is mostly no.
        self.list.iter().any(|guard| {
            guard.condition.may_be_from(session) && guard.checks.iter().any(|(check, _)| may(check))
        })
    }

    /// What has to be read of a text before [`Guards::judge`].
    #[must_use]
    pub fn shape_needs(&self) -> ShapeNeeds {
        self.list
            .iter()
            .fold(ShapeNeeds::default(), |needs, guard| needs.or(guard.condition.needs()))
    }

    /// What they have to say of a statement.
    #[must_use]
    pub fn judge(&self, guarded: &Guarded<'_>, facts: &Facts<'_>) -> GuardReport {
        let mut report = GuardReport::default();
        for (index, guard) in self.list.iter().enumerate() {
            let mut is_about = None;
            for (check, mode) in &guard.checks {
                let finding = check.finding(guarded, Some(facts));
                if matches!(finding, Finding::Fine) {
                    continue;
                }
                let is_about = *is_about.get_or_insert_with(|| guard.is_about(facts));
                match (is_about, finding) {
                    (Some(false), _) | (_, Finding::Fine) => {}
                    (None, _) | (Some(true), Finding::Unjudged) => {
                        report.unjudged.push((guard.name.clone(), check.as_str()));
                    }
                    (Some(true), Finding::Estimate(expected)) => {
                        report.estimates.push(Estimate::of(guard, *mode, index, expected));
                    }
                    (Some(true), Finding::Fault(offset, fault)) => report.hits.push(GuardHit {
                        guard: guard.name.clone(),
                        check: check.as_str(),
                        mode: *mode,
                        offset,
                        index,
                        fault,
                    }),
                }
            }
        }
        report
    }

    /// What a client is told that is refused for this hit.
    #[must_use]
    pub fn error(&self, hit: &GuardHit) -> RefusalProfile {
        self.of(hit).map_or_else(RefusalProfile::quota, |guard| guard.error.clone())
    }

    /// The guard that this is a hit of.
    #[must_use]
    pub fn of(&self, hit: &GuardHit) -> Option<&Guard> {
        self.list.get(hit.index)
    }
}

impl Check {
    /// What is to be said of a statement. Without facts: of any that has this text.
    fn finding(&self, guarded: &Guarded<'_>, facts: Option<&Facts<'_>>) -> Finding {
        match (self, guarded.survey) {
            (Self::RequireTag(keys), _) if guarded.tags => missing_tag(keys, guarded, facts),
            (Self::RequireTag(_), _) | (_, None) => Finding::Fine,
            (Self::MaxStatementBytes(most), Some(_)) => {
                if guarded.len > *most {
                    Finding::Fault(*most, TextFault::Long { most: *most })
                } else if guarded.goes_on {
                    Finding::Unjudged
                } else {
                    Finding::Fine
                }
            }
            (Self::WhereRequired(accepts), Some(survey)) => {
                let found = survey.unfiltered(*accepts).map(|found| {
                    let deletes = found.deletes;
                    let fault = if found.constant {
                        TextFault::ConstantWhere { deletes }
                    } else {
                        TextFault::NoWhere { deletes }
                    };
                    (found.at, fault)
                });
                found_or(found, survey.unjudged.filters)
            }
            (Self::NoCrossJoin, Some(survey)) => {
                let found = survey.cross_join.map(|at| (at, TextFault::CrossJoin));
                found_or(found, survey.unjudged.joins)
            }
            (Self::MaxInList(most), Some(survey)) => {
                let found = survey
                    .in_list
                    .filter(|list| list.len > *most)
                    .map(|list| (list.at, TextFault::InList { len: list.len, most: *most }));
                found_or(found, survey.unjudged.lists)
            }
            (Self::NoDdlHours(hours), Some(survey)) => {
                let now = guarded.now;
                if !hours.is_in_force(now) {
                    return Finding::Fine;
                }
                let not_now = |at| (at, TextFault::Ddl { now, until: hours.end_after(now) });
                found_or(survey.ddl.map(not_now), survey.unjudged.ddl)
            }
            (Self::MaxRowsExpected(expected), Some(survey)) => expected.finding(survey, facts),
        }
    }
}

fn found_or(found: Option<(u32, TextFault)>, unjudged: bool) -> Finding {
    match found {
        Some((at, fault)) => Finding::Fault(u64::from(at), fault),
        None if unjudged => Finding::Unjudged,
        None => Finding::Fine,
    }
}

/// The first tag that is not there, of a statement that works on tables: drivers ask for variables,
/// and describe the schema, in texts that no application writes.
fn missing_tag(keys: &[Box<[u8]>], guarded: &Guarded<'_>, facts: Option<&Facts<'_>>) -> Finding {
    let missing = |key: &[u8]| Finding::Fault(0, TextFault::NoTag(key.into()));
    let Some(facts) = facts else { return missing(b"") };
    let reads_tables = || {
        guarded.survey.map_or_else(
            || facts.shape.tables().next().is_some() || !facts.knows_tables(),
            |survey| survey.has_from,
        )
    };
    let class = facts.class();
    let is_work = class.works()
        || (class == Class::Read
            && facts.exemption != Some(Exemption::SystemSchema)
            && reads_tables());
    let absent = keys.iter().find(|key| facts.identity.tag(key).is_none());
    match absent.filter(|_| is_work) {
        None => Finding::Fine,
        // It may stand where the text was not read: sqlcommenter puts it at the end.
        Some(_) if !guarded.all_tags => Finding::Unjudged,
        Some(key) => missing(key),
    }
}

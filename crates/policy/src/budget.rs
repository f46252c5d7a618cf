//! The budgets of one cluster, and which of them meet a statement.
//!
//! Unlike rules all that match count, in the order of the file. They are found as rules are, by the
//! values of one of their conditions, so that ten thousand of them cost what ten do.

mod lane;

use std::sync::Arc;

use admission::{BudgetBook, BudgetKey, BudgetSet, BudgetTerms, BudgetUse};
use sql::Class;

use crate::condition::Condition;
use crate::decide::is_never_held;
use crate::facts::Facts;
use crate::fnv;
use crate::identity::SessionIdentity;
use crate::rule::ruleless_app_key;
use crate::rules::{Candidates, Indexed, RuleIndex};
use crate::running::Running;
use crate::shape::{Caution, ShapeNeeds};

pub(crate) use self::lane::lane_key;

/// One budget.
#[derive(Debug, Clone, PartialEq)]
pub struct Budget {
    /// Its name: the `budget` label.
    pub name: Arc<str>,
    /// Made from the name: the same over reloads.
    pub key: BudgetKey,
    /// Its place in the cluster's list.
    pub(crate) index: u32,
    /// Whom and what it meets.
    pub(crate) condition: Arc<Condition>,
    /// What it allows.
    pub terms: BudgetTerms,
    /// Who has a bucket of its own. `None`: all share one.
    pub per: Option<Per>,
    /// Why it exists, for people.
    pub reason: Arc<str>,
}

/// What a budget is divided by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Per {
    /// Each app; levels that are numbers or UUIDs do not count.
    App,
    /// Each MySQL user.
    User,
    /// Each value of this tag; those without it share one.
    Tag(Box<[u8]>),
    /// Each client address.
    Client,
    /// Each digest; statements without one share one.
    Digest,
}

/// The budgets of one cluster, in the order of the file.
#[derive(Debug, Clone, Default)]
pub struct Budgets {
    list: Arc<[Budget]>,
    index: Arc<RuleIndex>,
    book: BudgetBook,
    needs: ShapeNeeds,
}

impl Budgets {
    /// Budgets whose `index` is their place in the list.
    pub(crate) fn new(list: Vec<Budget>) -> Self {
        let needs = |budget: &Budget| {
            let digest = matches!(budget.per, Some(Per::Digest));
            budget.condition.needs().or(ShapeNeeds { digest, tables: false })
        };
        Self {
            index: Arc::new(RuleIndex::new(&list)),
            book: BudgetBook::new(list.iter().map(|budget| (budget.key, budget.terms)).collect()),
            needs: list.iter().map(needs).fold(ShapeNeeds::default(), ShapeNeeds::or),
            list: list.into(),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Budget> {
        self.list.iter()
    }

    /// The budget with this key.
    #[must_use]
    pub fn get(&self, key: BudgetKey) -> Option<&Budget> {
        self.list.iter().find(|budget| budget.key == key)
    }

    /// What admission is told of them.
    pub(crate) fn book(&self) -> BudgetBook {
        self.book.clone()
    }

    /// What has to be read of a text before [`Self::meeting`].
    #[must_use]
    pub fn shape_needs(&self) -> ShapeNeeds {
        self.needs
    }

    /// The buckets of those that meet a statement, the first [`BudgetSet::MET_MAX`] of them. What
    /// nothing may hold back, none meets. It stays what it is for the same facts.
    #[must_use]
    pub fn meeting(&self, facts: &Facts<'_>) -> BudgetSet {
        let mut set = BudgetSet::default();
        if self.is_empty() || is_never_held(facts) {
            return set;
        }
        let mut found = Found { budgets: &self.list, facts, class: facts.class(), met: Vec::new() };
        self.index.look_up(facts, found.class, &mut found);
        let strictest = found.class;
        for class in Class::ALL {
            if class != strictest && facts.classes.contains(class) {
                found.class = class;
                self.index.look_up(facts, class, &mut found);
            }
        }
        found.met.sort_unstable_by_key(|budget| budget.index);
        for budget in found.met {
            let budget_use = BudgetUse { budget: budget.key, instance: budget.instance(facts) };
            if !set.add_met(budget_use) {
                break;
            }
        }
        set
    }
}

/// For what runs already.
impl Budgets {
    /// Whether there are budgets that were not there before, or are about others.
    #[must_use]
    pub fn count_otherwise(&self, before: &Self) -> bool {
        let same = |(now, was): (&Budget, &Budget)| now.key == was.key && now.counts_as(was);
        self.list.len() > before.list.len() || !self.list.iter().zip(&*before.list).all(same)
    }

    /// The buckets of those that a statement meets which runs since these were in force before, as far
    /// as that can be told: its text is gone. Not of those that met it then.
    #[must_use]
    pub fn meeting_running(
        &self,
        before: &Self,
        running: &Running<'_>,
        digest: Option<u64>,
    ) -> BudgetSet {
        let mut set = BudgetSet::default();
        if !running.class.is_gateable() {
            return set;
        }
        let is_known =
            |budget: &Budget| before.get(budget.key).is_some_and(|was| budget.counts_as(was));
        for budget in self.list.iter().filter(|budget| budget.condition.meets(running)) {
            let instance = budget.instance_of(running, digest);
            let Some(instance) = instance.filter(|_| !is_known(budget)) else { continue };
            if !set.add_met(BudgetUse { budget: budget.key, instance }) {
                break;
            }
        }
        set
    }
}

impl PartialEq for Budgets {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

impl Budget {
    /// What it allows, in words.
    #[must_use]
    pub fn allows(&self) -> String {
        let BudgetTerms { max_concurrency, rate, rows_per_s, share, burst, max_query_cost, .. } =
            &self.terms;
        let words = [
            max_concurrency.map(|most| format!("{most} at once")),
            rate.map(|rate| format!("{rate} statements/s")),
            rows_per_s.map(|rows| format!("{rows} rows/s")),
            share.map(|share| format!("{share} of the server, {burst} s at once")),
            max_query_cost.map(|most| format!("none above {most} s")),
            self.per.as_ref().map(|per| match per {
                Per::App => "per app".to_owned(),
                Per::User => "per user".to_owned(),
                Per::Tag(key) => format!("per tag {}", String::from_utf8_lossy(key)),
                Per::Client => "per client".to_owned(),
                Per::Digest => "per digest".to_owned(),
            }),
        ];
        words.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Whether it counts the same statements, in the same buckets.
    fn counts_as(&self, was: &Self) -> bool {
        (&self.condition, &self.per) == (&was.condition, &was.per)
    }

    /// Whose bucket a statement uses that runs already. `None`: nobody can say.
    fn instance_of(&self, running: &Running<'_>, digest: Option<u64>) -> Option<u64> {
        match &self.per {
            None => Some(0),
            Some(Per::App) => Some(ruleless_app_key(running.app).0),
            Some(Per::User) => Some(fnv::plain(running.session.user())),
            Some(Per::Tag(_)) => None,
            Some(Per::Client) => Some(of_client(running.session)),
            Some(Per::Digest) => digest,
        }
    }

    /// Whose bucket a statement uses.
    fn instance(&self, facts: &Facts<'_>) -> u64 {
        match &self.per {
            None => 0,
            Some(Per::App) => ruleless_app_key(facts.identity.app).0,
            Some(Per::User) => fnv::plain(facts.session.user()),
            Some(Per::Tag(key)) => facts.identity.tag(key).map_or(0, fnv::plain),
            Some(Per::Client) => of_client(facts.session),
            Some(Per::Digest) => facts.shape.digest().unwrap_or(0),
        }
    }
}

fn of_client(session: &SessionIdentity) -> u64 {
    session.client_bits().map_or(0, |bits| fnv::plain(&bits.to_le_bytes()))
}

impl Indexed for Budget {
    fn condition(&self) -> &Condition {
        &self.condition
    }

    fn index(&self) -> u32 {
        self.index
    }

    fn caution(&self) -> Caution {
        Caution::Holds
    }
}

/// The key that outlives reloads.
pub(crate) fn budget_key(name: &str) -> BudgetKey {
    BudgetKey(fnv::hash(&[name.as_bytes()]))
}

/// All that match so far, each once.
struct Found<'p, 'f> {
    budgets: &'p [Budget],
    facts: &'f Facts<'f>,
    class: Class,
    met: Vec<&'p Budget>,
}

impl Candidates for Found<'_, '_> {
    fn consider(&mut self, candidates: &[u32]) {
        for &index in candidates {
            let budget = usize::try_from(index).ok().and_then(|index| self.budgets.get(index));
            let Some(budget) = budget else { return };
            let is_known = self.met.iter().any(|met| met.index == index);
            if !is_known && budget.condition.matches(self.facts, self.class, Caution::Holds) {
                self.met.push(budget);
            }
        }
    }
}

#[cfg(test)]
mod tests;

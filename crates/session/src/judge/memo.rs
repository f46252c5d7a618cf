//! What the rules said last. The statements of one connection mostly come from one place in one
//! program: then comparing their comments replaces reading them and looking the rule up.

use admission::BudgetSet;
use policy::identity::{Source, TraceId};
use policy::{ClusterPolicy, Cover, PassReason, Priority, Shape, ShapeNeeds, UnixTime, Verdict};
use sql::{Class, ClassSet, Exemption, Statement, Tool};

use super::replace;
use super::who::Who;

/// A verdict that can be kept: rules by their index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    Pass(Option<u32>, PassReason),
    Ask(u32, Priority),
    Deny(u32),
}

impl Ruling {
    /// The rule that decided.
    pub(crate) fn rule(self) -> Option<u32> {
        match self {
            Self::Pass(rule, _) => rule,
            Self::Ask(rule, _) | Self::Deny(rule) => Some(rule),
        }
    }

    /// Whether it holds the statement back in a session with this cover.
    pub(crate) fn holds(self, cover: Cover, policy: &ClusterPolicy) -> bool {
        let verdict = match self {
            Self::Pass(..) => return false,
            Self::Ask(rule, _) => policy.rule(rule).map(Verdict::Ask),
            Self::Deny(rule) => policy.rule(rule).map(Verdict::Deny),
        };
        // A rule that is not there cannot let anything pass: the shell finds out and ends it.
        verdict.is_none_or(|verdict| !matches!(verdict.under(cover), Verdict::Pass { .. }))
    }
}

/// The last ruling, and the app that it was about.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    kept: Option<Kept>,
    app: Vec<u8>,
    /// How often the session's app had changed when it was last this one.
    pub(super) app_changes: u64,
    /// Boxed: most statements meet none.
    budgets: Option<Box<BudgetSet>>,
}

/// A ruling, and as long as it holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    /// The session's generation in which it holds.
    pub(super) generation: u64,
    /// A rule expires then, or a schedule may begin or end.
    pub(super) valid_until: Option<UnixTime>,
    pub(super) tool: Option<Tool>,
    pub(super) source: Option<Source>,
    pub(super) trace: Option<TraceId>,
    /// What stands for the tags that insights keep.
    pub(super) tags: u64,
    pub(super) ruling: Ruling,
    /// The rule whose `runaway` is about it.
    pub(super) watched: Option<u32>,
}

impl Remembered {
    pub(super) fn of(&self, generation: u64, now: UnixTime) -> Option<Kept> {
        self.kept.filter(|kept| {
            kept.generation == generation && kept.valid_until.is_none_or(|until| now < until)
        })
    }

    pub(super) fn note(&mut self, kept: Kept, who: &Who, budgets: &BudgetSet) {
        self.kept = Some(kept);
        replace(&mut self.app, who.app());
        self.app_changes = who.said.app_changes();
        match &mut self.budgets {
            Some(known) => **known = *budgets,
            None if budgets.is_empty() => {}
            None => self.budgets = Some(Box::new(*budgets)),
        }
    }

    /// Makes `budgets` those of the last ruling: mostly there were none, and are none.
    #[inline]
    pub(super) fn give_budgets(&self, budgets: &mut BudgetSet) {
        match &self.budgets {
            Some(known) => budgets.assign(known),
            None if budgets.is_empty() => {}
            None => *budgets = BudgetSet::default(),
        }
    }

    pub(super) fn app(&self) -> &[u8] {
        &self.app
    }
}

/// The last ruling for each class.
#[derive(Debug, Default)]
pub(super) struct Memo {
    /// Boxed: few connections send statements of more than three classes.
    classes: [Option<Box<LastOfClass>>; CLASSES],
}

const CLASSES: usize = Class::ALL.len();

#[derive(Debug, Default)]
pub(super) struct LastOfClass {
    pub(super) remembered: Remembered,
    comments: Vec<u8>,
    classes: ClassSet,
    exemption: Option<Exemption>,
    /// What such a text is looked at for.
    pub(super) needs: ShapeNeeds,
    digest: Option<u64>,
    tables: Vec<u8>,
    knows_tables: bool,
}

/// The longest comments that are remembered, and the longest names of tables: longer ones are read
/// anew each time.
pub(super) const MEMO_LEN_MAX: usize = 512;

impl Memo {
    pub(super) fn of_class(&mut self, class: Class) -> Option<&mut LastOfClass> {
        Some(self.classes.get_mut(class.strictness())?.get_or_insert_default())
    }
}

impl LastOfClass {
    /// Whether the statement comes from where the remembered one came from.
    pub(super) fn is_from(&self, statement: &Statement<'_>) -> bool {
        self.classes == statement.classes
            && self.exemption == statement.exemption
            && self.comments == statement.comment_bytes()
    }

    pub(super) fn is_about(&self, shape: Shape<'_>) -> bool {
        self.digest == shape.digest()
            && self.knows_tables == shape.knows_tables()
            && self.tables == shape.table_bytes()
    }

    pub(super) fn note(&mut self, statement: &Statement<'_>, needs: ShapeNeeds, shape: Shape<'_>) {
        replace(&mut self.comments, statement.comment_bytes());
        replace(&mut self.tables, shape.table_bytes());
        self.classes = statement.classes;
        self.exemption = statement.exemption;
        self.needs = needs;
        self.digest = shape.digest();
        self.knows_tables = shape.knows_tables();
    }
}

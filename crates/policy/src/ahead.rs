//! What a policy would say to statements of which only what insights keep is left.
//!
//! Theory. The decision is [`decide`], the budgets are [`crate::Budgets::meeting`] and the guards
//! [`crate::Guards::judge`], as for a statement that comes; nothing is matched here a second time.
//! But insights do not keep everything that a condition may look at: connection attributes, the
//! client's address, tags that `insights.tags` does not name, the values in the text. For a
//! condition that looks at one of these the rest of it is asked as well: where that holds, the rule
//! *may* decide, and nobody can tell. So every statement is either judged for certain or said to be
//! unknown, and none passes for want of knowledge.

mod guards;

use sql::{Class, ClassSet, Exemption, LexMode, Scratch, Server, Tool, Whole, describe};

use crate::budget::{Budget, Per};
use crate::cluster::ClusterPolicy;
use crate::condition::Condition;
use crate::decide::{decide, is_never_held};
use crate::facts::Facts;
use crate::guard::{Guard, GuardReport};
use crate::identity::{IdentityScratch, SessionIdentity, recorded};
use crate::rule::{Action, Rule};
use crate::shape::{Caution, recorded_shape};
use crate::time::UnixTime;
use crate::verdict::Verdict;

/// Statements of one digest from one sender, as insights keep them.
#[derive(Debug, Clone, Copy)]
pub struct Recorded<'r> {
    /// The app that they were taken for.
    pub app: &'r [u8],
    /// The MySQL user.
    pub user: &'r [u8],
    /// The default schema.
    pub schema: &'r [u8],
    /// Those of the kept tags that they had.
    pub tags: &'r [(&'r [u8], &'r [u8])],
    /// The digest's text.
    pub text: &'r [u8],
    /// Whether that is all of it.
    pub whole: bool,
    /// Whether they were longer than what insights read of a text.
    pub long: bool,
    /// The digest.
    pub digest: Option<u64>,
    /// The classes. `None`: they are read in the text.
    pub classes: Option<ClassSet>,
    /// Why nothing may hold them, where `classes` are known.
    pub exemption: Option<Exemption>,
    /// The tables by schema and name; an empty name stands for every table of the schema.
    pub tables: &'r [(String, String)],
    /// Whether these are all.
    pub all_tables: bool,
    /// How many there were.
    pub count: u64,
    /// No more bytes than these had all of them, and others of the digest, as they came.
    pub bytes: u64,
    /// When the first of them was over, and the last.
    pub seen: (UnixTime, UnixTime),
}

/// What the policy would have said.
#[derive(Debug)]
pub struct Foreseen<'p> {
    /// What the rules say, if none of `perhaps` decides.
    pub verdict: Verdict<'p>,
    /// Rules that may have decided instead: what they look at is not known.
    pub perhaps: Vec<(&'p Rule, Unseen)>,
    /// Budgets that meet the statement, with their bucket.
    pub budgets: Vec<MetBudget<'p>>,
    /// Budgets that may.
    pub budgets_perhaps: Vec<(&'p Budget, Unseen)>,
    /// What the guards say; what they could not judge is in `unjudged`.
    pub guards: GuardReport,
}

/// A budget that meets a statement.
#[derive(Debug)]
pub struct MetBudget<'p> {
    /// The budget.
    pub budget: &'p Budget,
    /// Whose bucket it uses. `None`: that is not known.
    pub bucket: Option<u64>,
}

/// What is not known of a statement of the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unseen {
    /// The value of a tag.
    Tag,
    /// Connection attributes.
    Attribute,
    /// The client's address.
    Client,
    /// The rest of a long text.
    Text,
    /// Whether it came while a schedule was in force.
    Schedule,
}

impl Unseen {
    /// The words for people.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tag => "it looks at a tag that insights.tags does not name",
            Self::Attribute => "it looks at connection attributes",
            Self::Client => "it looks at the client's address",
            Self::Text => "it looks at the text, which is longer than what insights read",
            Self::Schedule => "its schedule begins or ends within the window",
        }
    }
}

/// A policy, held against a window of insights.
#[derive(Debug)]
pub struct Ahead<'p> {
    policy: &'p ClusterPolicy,
    kept_tags: &'p [String],
    until: UnixTime,
    rules: Vec<Blind<'p, Rule>>,
    budgets: Vec<Blind<'p, Budget>>,
    guards: guards::BlindGuards,
}

/// What looks at something that is not known.
#[derive(Debug)]
struct Blind<'p, T> {
    of: &'p T,
    /// What of its condition can be told.
    rest: Condition,
    unseen: Unseen,
    /// It is so of long texts only.
    of_long: bool,
}

impl<'p> Ahead<'p> {
    /// The policy as it would have been from one time to another one. `kept_tags` are those of
    /// which the statements' values are known.
    #[must_use]
    pub fn new(
        policy: &'p ClusterPolicy,
        kept_tags: &'p [String],
        (from, until): (UnixTime, UnixTime),
    ) -> Self {
        let mut rules = Vec::new();
        for rule in policy.rules.iter() {
            let switches =
                rule.schedule.as_ref().is_some_and(|hours| !hours.is_steady(from, until));
            if switches {
                let (rest, _) = told(&rule.condition, kept_tags);
                rules.push(Blind { of: rule, rest, unseen: Unseen::Schedule, of_long: false });
            } else if rule.standing(until) == crate::rule::Standing::InForce {
                rules.extend(blind(rule, &rule.condition, kept_tags));
            }
        }
        let of_budgets = policy.budgets.iter();
        let budgets =
            of_budgets.flat_map(|budget| blind(budget, &budget.condition, kept_tags)).collect();
        let guards = guards::BlindGuards::of(policy.guards.iter(), |guard: &Guard| {
            let (rest, unseen) = told(&guard.condition, kept_tags);
            unseen.map(|_| rest)
        });
        Self { policy, kept_tags, until, rules, budgets, guards }
    }

    /// What it would have said.
    #[must_use]
    pub fn foresee(&self, past: &Recorded<'_>) -> Foreseen<'p> {
        let policy = self.policy;
        let session = SessionIdentity::new(past.user, None, past.schema, std::iter::empty());
        let mut scratch = IdentityScratch::default();
        let tool = Some(Tool::GhOst).filter(|tool| past.app == tool.as_str().as_bytes());
        let who = (past.app, tool);
        let identity = recorded(&policy.identity, &session, who, past.tags, &mut scratch);
        let mut names = Vec::new();
        let digest = past.digest.filter(|_| !past.long);
        let (classes, exemption) = classes_of(past);
        let facts = Facts {
            identity: &identity,
            session: &session,
            classes,
            exemption,
            shape: recorded_shape(digest, past.tables, past.all_tables && !past.long, &mut names),
            now: self.until,
        };
        let verdict = decide(policy, &facts);
        let holdable = !is_never_held(&facts);
        let met = policy.budgets.meeting(&facts);
        let met = met.iter().filter_map(|used| {
            let budget = policy.budgets.get(used.budget)?;
            let bucket = self.knows_bucket(budget, past).then_some(used.instance);
            Some(MetBudget { budget, bucket })
        });
        let budgets: Vec<MetBudget<'p>> = met.collect();
        let is_met = |budget: &Budget| budgets.iter().any(|met| met.budget.key == budget.key);
        let may_meet = |blind: &&Blind<'p, Budget>| {
            holdable && !is_met(blind.of) && blind.may_be_about(&facts, past)
        };
        let budgets_perhaps =
            self.budgets.iter().filter(may_meet).map(|blind| (blind.of, blind.unseen)).collect();
        let guards = self.judge(past, &facts);
        Foreseen {
            verdict,
            perhaps: self.perhaps(verdict, (&facts, holdable), past),
            budgets,
            budgets_perhaps,
            guards,
        }
    }

    /// Rules before the one that decides, or that one, of which it is not known whether they do.
    fn perhaps(
        &self,
        verdict: Verdict<'p>,
        (facts, holdable): (&Facts<'_>, bool),
        past: &Recorded<'_>,
    ) -> Vec<(&'p Rule, Unseen)> {
        if !holdable && !facts.classes.is_denied_as_ddl() {
            return Vec::new();
        }
        let passes = matches!(verdict, Verdict::Pass { .. });
        let decides = verdict.rule().map(|rule| rule.index);
        let mut found: Vec<(&'p Rule, Unseen)> = Vec::new();
        for blind in &self.rules {
            let rule = blind.of;
            let comes_first = decides.is_none_or(|decides| rule.index <= decides);
            let changes_it = !passes || rule.action != Action::Exempt;
            let is_known = found.iter().any(|(known, _)| known.index == rule.index);
            if comes_first && changes_it && !is_known && blind.may_be_about(facts, past) {
                found.push((rule, blind.unseen));
            }
        }
        found
    }

    fn knows_bucket(&self, budget: &Budget, past: &Recorded<'_>) -> bool {
        match &budget.per {
            None | Some(Per::App | Per::User) => true,
            Some(Per::Tag(key)) => self.kept_tags.iter().any(|kept| kept.as_bytes() == &**key),
            Some(Per::Client) => false,
            Some(Per::Digest) => !past.long && past.digest.is_some(),
        }
    }
}

impl<T> Blind<'_, T> {
    fn may_be_about(&self, facts: &Facts<'_>, past: &Recorded<'_>) -> bool {
        let of = |class: Class| self.rest.matches(facts, class, Caution::Holds);
        (past.long || !self.of_long)
            && (of(facts.class())
                || Class::ALL.into_iter().any(|class| facts.classes.contains(class) && of(class)))
    }
}

/// What looks at something that is not known of any text, or of a long one.
fn blind<'p, T>(
    of: &'p T,
    condition: &Condition,
    kept_tags: &[String],
) -> impl Iterator<Item = Blind<'p, T>> {
    let (rest, unseen) = told(condition, kept_tags);
    let always = unseen.map(|unseen| Blind { of, rest: rest.clone(), unseen, of_long: false });
    let looks_at_text = condition.needs().any();
    let of_long = looks_at_text.then_some(Blind {
        of,
        rest: Condition { digests: None, tables: None, ..rest },
        unseen: Unseen::Text,
        of_long: true,
    });
    always.into_iter().chain(of_long)
}

/// What of a condition can be told, and the first thing that cannot.
fn told(condition: &Condition, kept_tags: &[String]) -> (Condition, Option<Unseen>) {
    let mut rest = condition.clone();
    rest.tags.retain(|(key, _)| kept_tags.iter().any(|kept| kept.as_bytes() == &**key));
    rest.attributes.clear();
    rest.client = None;
    let unseen = if rest.tags.len() < condition.tags.len() {
        Some(Unseen::Tag)
    } else if !condition.attributes.is_empty() {
        Some(Unseen::Attribute)
    } else {
        condition.client.as_ref().map(|_| Unseen::Client)
    };
    (rest, unseen)
}

/// How a digest's text is read: the server's quotes around names, and no literal at all.
const MODE: LexMode = LexMode {
    no_backslash_escapes: sql::Setting::Off,
    ansi_quotes: sql::Setting::Off,
    charset: sql::Charset::Plain,
    server: Server::Unknown,
};

/// The classes, as they were when the statement came. What the text itself shows is taken where it
/// is no other: only there RENAME TABLE is told from other statements of its class.
fn classes_of(past: &Recorded<'_>) -> (ClassSet, Option<Exemption>) {
    let mut scratch = Scratch::default();
    let text = guards::readable(past.text);
    let statement = describe(&text, MODE, whole(past), &mut scratch);
    let same = |classes: ClassSet| {
        Class::ALL
            .into_iter()
            .all(|class| classes.contains(class) == statement.classes.contains(class))
    };
    match past.classes {
        None => (statement.classes, statement.exemption),
        Some(classes) if same(classes) => (statement.classes, past.exemption),
        Some(classes) => (classes, past.exemption),
    }
}

fn whole(past: &Recorded<'_>) -> Whole {
    if past.whole { Whole::Yes } else { Whole::Truncated }
}

#[cfg(test)]
mod tests;

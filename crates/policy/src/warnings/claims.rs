//! Apps that rules, budgets and guards name and nobody can be.
//!
//! An app is claimed, or is the MySQL user. Of a claim the file says who may make it; of users it
//! knows only those that it names. So an app that no entry of `identity.claims` allows is taken for
//! a user only if an entry names that user, or if the claims allow nobody anything: then the users
//! are the apps, and that is how it is meant.

use super::Found;
use crate::cidr::Cidr;
use crate::cluster::ClusterPolicy;
use crate::condition::Condition;
use crate::fault::Faults;
use crate::identity::Claim;
use crate::label::is_serial;
use crate::patterns::Patterns;
use crate::raw::{Match, Maybe};
use crate::rule::Rule;

pub(super) fn look(found: &Found<'_>, warnings: &mut Faults) {
    // It is the file's, and so the same in all of its clusters.
    let identity = found.config.clusters.first().map(|cluster| &cluster.identity);
    let Some(claims) = identity.and_then(|identity| identity.claims()) else { return };
    let rules = found.rules().iter().filter_map(|rule| {
        let (_, compiled) = found.compiled(&rule.value).first()?;
        Some(("rule", &rule.value.conditions, &*compiled.condition))
    });
    let budgets = found.budgets().iter().filter_map(|budget| {
        let (_, compiled) = found.compiled_budgets(&budget.value).first()?;
        Some(("budget", &budget.value.conditions, &*compiled.condition))
    });
    let guards = found.guards().iter().filter_map(|guard| {
        let (_, compiled) = found.compiled_guards(&guard.value).first()?;
        Some(("guard", &guard.value.conditions, &*compiled.condition))
    });
    for (what, written, condition) in rules.chain(budgets).chain(guards) {
        in_match(what, (written, condition), claims, warnings);
    }
}

/// The apps of one `match`.
fn in_match(
    what: &str,
    (written, condition): (&Maybe<Match>, &Condition),
    claims: &[Claim],
    warnings: &mut Faults,
) {
    let Some(conditions) = written else { return };
    for value in conditions.value.app.iter().flat_map(|apps| &apps.value.0) {
        if let Some(message) = told(what, &value.value, condition, claims) {
            warnings.add(&value.place, message);
        }
    }
}

/// Of the app that a rule names which was made while Sluice runs.
pub(super) fn of_made(cluster: &ClusterPolicy, rule: &Rule, app: &str) -> Option<String> {
    told("rule", app, &rule.condition, cluster.identity.claims()?)
}

fn told(what: &str, app: &str, condition: &Condition, claims: &[Claim]) -> Option<String> {
    let allows_any = claims.iter().any(|claim| !is_empty(&claim.apps));
    let wanted = Wanted::of(app);
    let (nobody, who) = match &condition.user {
        Some(users) => {
            (nobody_among(users, condition, &wanted, claims), format!("none of the {what}'s users"))
        }
        None => (allows_any && nobody(&wanted, claims), "nobody".to_owned()),
    };
    nobody.then(|| {
        format!(
            "{who} may call itself `{app}`: no entry of `identity.claims` allows it; add it to the \
             `apps` of one, or if `{app}` is a MySQL user, name that user in one"
        )
    })
}

/// An app as a rule names it.
enum Wanted<'v> {
    /// There must be one.
    Any,
    Exact(&'v [u8]),
    Prefix(&'v [u8]),
}

impl<'v> Wanted<'v> {
    fn of(value: &'v str) -> Self {
        match value.strip_suffix('*') {
            Some("") => Self::Any,
            Some(prefix) => Self::Prefix(prefix.as_bytes()),
            None => Self::Exact(value.as_bytes()),
        }
    }

    /// Whether somebody with these rights can be it.
    fn is_in(&self, apps: &Patterns) -> bool {
        // What stands behind such a prefix is the client's to choose, levels included.
        let chooses = apps.prefixes.iter().any(|prefix| prefix.contains(&b':'));
        let whole = |app: &[u8]| match self {
            Self::Any => true,
            Self::Exact(wanted) => has_level(app, |level| level == *wanted),
            Self::Prefix(wanted) => has_level(app, |level| level.starts_with(wanted)),
        };
        if apps.present || chooses || apps.exact.iter().any(|app| whole(app)) {
            return true;
        }
        match self {
            Self::Any => !is_empty(apps),
            // Each of its levels must be allowed, and numbers are.
            Self::Exact(wanted) => {
                let allowed = |level: &[u8]| is_serial(level) || apps.matches(level);
                !is_empty(apps) && wanted.split(|byte| *byte == b':').all(allowed)
            }
            Self::Prefix(wanted) => {
                let meets =
                    |prefix: &[u8]| prefix.starts_with(wanted) || wanted.starts_with(prefix);
                let is_whole = wanted.contains(&b':');
                let begins_number = wanted.iter().all(u8::is_ascii_hexdigit);
                !is_empty(apps)
                    && (is_whole
                        || begins_number
                        || apps.prefixes.iter().any(|prefix| meets(prefix)))
            }
        }
    }

    /// Whether a user of this condition can be it by its name alone.
    fn is_user_of(&self, users: &Patterns) -> bool {
        match self {
            Self::Any => !is_empty(users),
            Self::Exact(wanted) => users.matches(wanted),
            Self::Prefix(wanted) => {
                let meets =
                    |prefix: &[u8]| prefix.starts_with(wanted) || wanted.starts_with(prefix);
                users.present
                    || users.exact.iter().any(|user| user.starts_with(wanted))
                    || users.prefixes.iter().any(|prefix| meets(prefix))
            }
        }
    }
}

fn nobody(wanted: &Wanted<'_>, claims: &[Claim]) -> bool {
    let is_user = claims.iter().any(|claim| {
        let named = Patterns { present: false, ..claim.users.clone() };
        wanted.is_user_of(&named)
    });
    !is_user && !claims.iter().any(|claim| wanted.is_in(&claim.apps))
}

/// Whether none of a rule's users, from where the rule wants them, can be it.
fn nobody_among(
    users: &Patterns,
    condition: &Condition,
    wanted: &Wanted<'_>,
    claims: &[Claim],
) -> bool {
    if wanted.is_user_of(users) {
        return false;
    }
    if users.present || !users.prefixes.is_empty() {
        return !claims.iter().any(|claim| wanted.is_in(&claim.apps));
    }
    let clients = condition.client.as_deref();
    users
        .exact
        .iter()
        .all(|user| !deciding(claims, user, clients).any(|claim| wanted.is_in(&claim.apps)))
}

/// The entries that may decide what a user can claim: up to the first that surely does.
fn deciding<'c>(
    claims: &'c [Claim],
    user: &'c [u8],
    clients: Option<&'c [Cidr]>,
) -> impl Iterator<Item = &'c Claim> {
    let mut decided = false;
    let fits = move |claim: &&Claim| claim.users.present || claim.users.matches(user);
    claims.iter().filter(fits).take_while(move |claim| {
        let is_from = claim.from.is_empty()
            || clients.is_some_and(|clients| {
                let within = |client: &Cidr| claim.from.iter().any(|from| client.is_within(*from));
                clients.iter().all(within)
            });
        let before = decided;
        decided = decided || is_from;
        !before
    })
}

fn is_empty(patterns: &Patterns) -> bool {
    !patterns.present && patterns.exact.is_empty() && patterns.prefixes.is_empty()
}

/// Whether the whole app, or one of its levels, is like that.
fn has_level(app: &[u8], like: impl Fn(&[u8]) -> bool) -> bool {
    like(app) || app.split(|byte| *byte == b':').any(like)
}

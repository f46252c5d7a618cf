//! `match` of a rule.

use sql::{DIGEST_TEXT_MAX, LexMode, digest};

use super::checks::{check_patterns, networks, patterns};
use super::classes::{Delayable, compile_classes};
use super::context::Context;
use super::limits;
use crate::condition::Condition;
use crate::fault::{Faults, Place};
use crate::fnv;
use crate::identity::IdentityPolicy;
use crate::patterns::Patterns;
use crate::raw::{self, Maybe, Named, OneOrMany, Spanned};
use crate::shape::TablePatterns;

pub(super) fn compile_match(
    conditions: Maybe<raw::Match>,
    context: &Context<'_>,
    faults: &mut Faults,
) -> (Condition, Option<Vec<String>>) {
    let Some(Spanned { value: raw, .. }) = conditions else {
        return (Condition::default(), None);
    };
    let mut values = |values: Maybe<OneOrMany<String>>| -> Option<Patterns> {
        values.map(|values| patterns(&values.value, &values.place, faults))
    };
    let (app, user, schema) = (values(raw.app), values(raw.user), values(raw.schema));
    let condition = Condition {
        app,
        user,
        schema: schema.map(Patterns::in_lower_case),
        tags: compile_tags(raw.tag, context.identity, faults),
        attributes: compile_keyed(raw.attribute, faults),
        client: raw.client.map(|client| networks(&client.value, &client.place, faults)),
        statements: raw
            .statements
            .map(|classes| compile_classes(&classes, Delayable::AndOthers, faults)),
        digests: raw.digest.map(|digests| compile_digests(&digests, faults)),
        tables: raw.table.map(|tables| compile_tables(&tables, faults)),
    };
    let clusters = raw.cluster.map(|names| compile_clusters(names, context, faults));
    (condition, clusters)
}

fn compile_tags(
    tags: Maybe<Named<OneOrMany<String>>>,
    identity: &IdentityPolicy,
    faults: &mut Faults,
) -> Vec<(Box<[u8]>, Patterns)> {
    for (key, values) in tags.iter().flat_map(|tags| &tags.value.0) {
        if identity.app_key_rank(key.as_bytes()).is_some() {
            let message = format!("`{key}` names the app (`identity.keys`): use `match.app`");
            faults.add(&values.place, message);
        }
    }
    compile_keyed(tags, faults)
}

fn compile_keyed(
    named: Maybe<Named<OneOrMany<String>>>,
    faults: &mut Faults,
) -> Vec<(Box<[u8]>, Patterns)> {
    let Some(Spanned { value: Named(named), place }) = named else { return Vec::new() };
    if named.is_empty() {
        faults.add(&place, "names no key; leave it out to match everything");
    }
    let mut keyed = Vec::with_capacity(named.len());
    for (key, values) in named {
        if key.is_empty() || key.len() > limits::PATTERN_LEN_MAX {
            faults.add(&values.place, "no such key can be there");
        }
        keyed.push((key.into_bytes().into(), patterns(&values.value, &values.place, faults)));
    }
    keyed
}

fn compile_clusters(
    names: Spanned<OneOrMany<String>>,
    context: &Context<'_>,
    faults: &mut Faults,
) -> Vec<String> {
    if names.value.0.is_empty() {
        faults.add(&names.place, "names no cluster; leave it out for all of them");
    }
    for name in &names.value.0 {
        if !context.clusters.contains(&name.value) {
            let message = format!("there is no cluster `{}`", name.value);
            let clusters = Place { path: "clusters".to_owned(), line: 0 };
            faults.add_unless_of((&clusters, &[name.value.as_str()]), &name.place, message);
        }
    }
    names.value.0.into_iter().map(|name| name.value).collect()
}

/// Hashes as they are printed, or texts. A text is taken as it stands, for it may be a digest text
/// already, and normalised, for it may be a statement with its values.
fn compile_digests(digests: &Spanned<OneOrMany<String>>, faults: &mut Faults) -> Vec<u64> {
    if digests.value.0.is_empty() {
        faults.add(&digests.place, "an empty list matches nothing");
    }
    let mut hashes = Vec::new();
    let mut normalised = Vec::new();
    for Spanned { value, place } in &digests.value.0 {
        let text = value.trim().as_bytes();
        if let Some(hash) = parse_hash(value.trim()) {
            hashes.push(hash);
        } else if text.len() > DIGEST_TEXT_MAX {
            faults.add(place, format!("longer than {DIGEST_TEXT_MAX} bytes: it matches nothing"));
        } else if !value.trim().contains(|c: char| c.is_whitespace()) {
            let message = "must be a digest as `sluice explain` prints it: 16 hexadecimal digits, or \
                           the normalised text";
            faults.add(place, message);
        } else {
            hashes.push(fnv::plain(text));
            hashes.push(digest(text, LexMode::default(), &mut normalised));
        }
    }
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

fn parse_hash(text: &str) -> Option<u64> {
    let is_hash = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

fn compile_tables(tables: &Spanned<OneOrMany<String>>, faults: &mut Faults) -> TablePatterns {
    let mut compiled = TablePatterns::default();
    for Spanned { value, place } in check_patterns(&tables.value, &tables.place, faults) {
        let parts = value.split('.').count();
        if parts > 2 || value.split('.').any(str::is_empty) {
            faults.add(place, "must be a table, or a schema and a table: `orders`, `shop.orders`");
        } else if value.starts_with('*') && parts > 1 {
            faults.add(place, "`*` stands alone or at the end of a prefix");
        } else {
            compiled.add(value);
        }
    }
    compiled
}

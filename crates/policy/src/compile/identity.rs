//! `identity`.

use super::checks::{networks, patterns};
use crate::fault::Faults;
use crate::identity::{Claim, IdentityPolicy};
use crate::raw::{self, Maybe, Spanned};

/// The keys that name the app unless the file says otherwise, first come first.
pub(crate) const DEFAULT_KEYS: [&str; 5] =
    ["sluice_app", "app", "throttler_app", "application", "workload_name"];

/// Most keys: each is compared with each tag of each statement.
const KEYS_MAX: usize = 16;

pub(super) fn compile(identity: Maybe<raw::Identity>, faults: &mut Faults) -> IdentityPolicy {
    let identity = identity.map(|identity| identity.value);
    let (keys, claims) = identity.map_or((None, None), |raw| (raw.keys, raw.claims));
    let keys = match keys {
        Some(keys) => compile_keys(&keys, faults),
        None => DEFAULT_KEYS.map(|key| key.as_bytes().into()).to_vec(),
    };
    let claims = claims
        .map(|claims| claims.value.into_iter().map(|claim| compile_claim(claim, faults)).collect());
    IdentityPolicy::new(keys, claims)
}

fn compile_keys(keys: &Spanned<Vec<Spanned<String>>>, faults: &mut Faults) -> Vec<Box<[u8]>> {
    if keys.value.len() > KEYS_MAX {
        faults.add(&keys.place, format!("more than {KEYS_MAX} keys"));
    }
    let mut compiled: Vec<Box<[u8]>> = Vec::new();
    for Spanned { value, place } in &keys.value {
        let key: Box<[u8]> = value.as_bytes().into();
        let allowed = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        if value.is_empty() || !value.chars().all(allowed) {
            faults.add(place, "a key has letters, digits and the characters _ . -");
        } else if compiled.contains(&key) {
            faults.add(place, "the key is there twice");
        }
        compiled.push(key);
    }
    compiled
}

fn compile_claim(claim: Spanned<raw::Claim>, faults: &mut Faults) -> Claim {
    let raw::Claim { user, from, apps } = claim.value;
    let users = user.map(|user| patterns(&user.value, &user.place, faults)).unwrap_or_default();
    let from = from.map(|from| networks(&from.value, &from.place, faults)).unwrap_or_default();
    // An empty list of apps is an entry that allows nothing.
    let apps = apps
        .filter(|apps| !apps.value.0.is_empty())
        .map(|apps| patterns(&apps.value, &apps.place, faults))
        .unwrap_or_default();
    Claim { users, from, apps }
}

//! `admin`.

use std::net::SocketAddr;
use std::sync::Arc;

use super::checks::{address, name, secret};
use super::{limits, tls};
use crate::admin::{ADMIN_TOKEN_LEN_MIN, ADMIN_TOKEN_NAME, Admin, AdminAccess, AdminToken};
use crate::config::NamedSecret;
use crate::fault::{Fault, Faults, Place};
use crate::raw::{self, Maybe, Spanned};

pub(super) fn compile(admin: Maybe<raw::Admin>, faults: &mut Faults) -> Admin {
    let Some(Spanned { value: raw, place }) = admin else {
        return Admin { listen: limits::ADMIN_LISTEN, tls: None, access: AdminAccess::default() };
    };
    let listen = match &raw.listen {
        Some(listen) => address(listen, faults),
        None => Some(limits::ADMIN_LISTEN),
    };
    // A fault has been noted; the others are still worth finding.
    let listen = listen.unwrap_or(limits::ADMIN_LISTEN);
    let tokens = tokens(&raw, &place, faults);
    check_effect(&raw, listen, &tokens, faults);
    let is = |key: &Maybe<bool>| key.as_ref().is_some_and(|key| key.value);
    let access = AdminAccess {
        tokens,
        loopback_changes: is(&raw.loopback_changes),
        legacy_get: is(&raw.legacy_get),
        hosts: hosts(raw.hosts, faults),
    };
    let tls = raw.tls.and_then(|Spanned { value: raw::AdminTls { cert, key }, .. }| {
        // One that is missing is a fault already.
        Some(tls::pair(cert?, key?, faults))
    });
    Admin { listen, tls, access }
}

/// The tokens of `admin`, where they are named.
pub(super) fn secrets(admin: &raw::Admin) -> impl Iterator<Item = NamedSecret> {
    let own = (&admin.token_env, &admin.token_file);
    let named = admin.tokens.iter().flat_map(|tokens| &tokens.value);
    let named = named.map(|token| (&token.value.token_env, &token.value.token_file));
    std::iter::once(own)
        .chain(named)
        .filter_map(|(env, file)| NamedSecret::of(env, file, ADMIN_TOKEN_LEN_MIN))
}

fn tokens(raw: &raw::Admin, place: &Place, faults: &mut Faults) -> Vec<AdminToken> {
    let own = secret(raw.token_env.clone(), raw.token_file.clone(), place, faults);
    let own = own.map(|secret| AdminToken { name: ADMIN_TOKEN_NAME.into(), secret });
    let mut tokens: Vec<AdminToken> = own.into_iter().collect();
    for Spanned { value: token, place } in raw.tokens.iter().flat_map(|tokens| &tokens.value) {
        let secret = secret(token.token_env.clone(), token.token_file.clone(), place, faults);
        // One that is missing is a fault already.
        let Some(named) = &token.name else { continue };
        name(&named.value, &named.place, faults);
        let whose: Arc<str> = named.value.as_str().into();
        if tokens.iter().any(|other| other.name == whose) {
            faults.add(&named.place, "another token has this name: rules tell who made them by it");
        } else if &*whose == LOOPBACK {
            faults.add(&named.place, "rules that are made without a token have this name");
        }
        match secret {
            Some(secret) => tokens.push(AdminToken { name: whose, secret }),
            None if token.token_env.is_none() && token.token_file.is_none() => {
                faults.add(place, "`token_env` or `token_file` is missing");
            }
            None => {}
        }
    }
    tokens
}

/// Whoever writes a permission expects that it gives one.
fn check_effect(raw: &raw::Admin, listen: SocketAddr, tokens: &[AdminToken], faults: &mut Faults) {
    let is_loopback = listen.ip().is_loopback();
    if let Some(Spanned { value: true, place }) = &raw.loopback_changes
        && !is_loopback
    {
        faults.add(place, "without effect: `listen` is not a loopback address");
    }
    if let Some(Spanned { value: true, place }) = &raw.legacy_get
        && !is_loopback
        && tokens.is_empty()
    {
        let message = "without effect: where `listen` is not a loopback address, changes by GET need a \
                       token as well; name it in `token_env` or `token_file`";
        faults.add(place, message);
    }
}

fn hosts(hosts: Maybe<Vec<Spanned<String>>>, faults: &mut Faults) -> Vec<String> {
    let hosts = hosts.map(|hosts| hosts.value).unwrap_or_default();
    let names = hosts.into_iter().map(|Spanned { value, place }| {
        if !tls::is_host(&value) {
            faults.add(&place, "must be a host name, without a port");
        }
        value.to_ascii_lowercase()
    });
    names.collect()
}

/// Whose rules are that were made without a token.
const LOOPBACK: &str = "loopback";

/// What `admin` of a configuration file says, whatever else is wrong with the file.
///
/// # Errors
/// Text that is not YAML, or what is wrong with `admin`.
pub fn admin_of(text: &str) -> Result<Admin, Fault> {
    let mut faults = Faults::default();
    let file = raw::parse(text, &mut faults)?;
    let admin = compile(file.and_then(|file| file.admin), &mut faults);
    let ours = |fault: &Fault| fault.path == "admin" || fault.path.starts_with("admin.");
    match faults.into_sorted().into_iter().find(ours) {
        Some(fault) => Err(fault),
        None => Ok(admin),
    }
}

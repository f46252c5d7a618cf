//! Who may change something.
//!
//! Whoever reaches the door may read. A change needs POST or DELETE and a token, whose name is its
//! author; from this machine it needs none where the file allows it. What a client says of itself
//! beside its token counts for nothing.
//!
//! Browsers carry requests of pages that their user did not write. Of such a request the page
//! chooses neither `Origin` nor `Host` nor a content type of JSON, nor has it the token; so each of
//! these stops it.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::http::header::{AUTHORIZATION, FORWARDED, HOST, ORIGIN, REFERER, USER_AGENT};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use parking_lot::Mutex;
use policy::{Admin, AdminAccess};
use proxy::reload::NotApplied;
use proxy::tls::{DoorRenewal, DoorTls};

use crate::host::{CalledBy, Names};
use crate::refusal::{Error, Refusal};
use crate::serving::Caller;
use crate::tokens::Tokens;

/// How often files of tokens are compared.
const COMPARE_INTERVAL: Duration = Duration::from_secs(1);

/// Who may change something, as the file says now.
#[derive(Debug)]
pub struct Access {
    in_force: ArcSwap<InForce>,
    pub(crate) tls: Arc<DoorTls>,
    /// Who puts something in force does so alone.
    changing: Mutex<()>,
    /// Refused changes that are not in the log yet.
    refused: AtomicU64,
}

#[derive(Debug, Default)]
struct InForce {
    settings: AdminAccess,
    tokens: Tokens,
    names: Names,
}

/// What another file says of the HTTP side, with what it names read. Nothing of it is in force yet.
#[must_use]
#[derive(Debug)]
pub struct ReadAccess {
    tls: Option<DoorRenewal>,
    tokens: Option<(AdminAccess, Tokens)>,
}

/// Who makes a change: the name of the token, or [`LOOPBACK`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Author(pub(crate) Arc<str>);

/// The author of changes that need no token.
const LOOPBACK: &str = "loopback";

impl Access {
    /// Reads the tokens and the certificate that `admin` names.
    #[must_use]
    pub fn new(admin: &Admin) -> Self {
        let tls = Arc::new(DoorTls::new(admin.tls.as_ref()));
        let access = Self {
            in_force: ArcSwap::default(),
            tls,
            changing: Mutex::new(()),
            refused: AtomicU64::new(0),
        };
        access.put(&admin.access, Tokens::read(&admin.access.tokens));
        access
    }

    /// Reads what the file names that may have changed. It may take long, and changes nothing. Files of
    /// tokens that stay are not read here, and nobody is waited for who reads them: one that hangs would
    /// hold up every edit.
    ///
    /// # Errors
    /// When there is another certificate and it cannot be used.
    pub fn read(&self, admin: &Admin) -> Result<ReadAccess, NotApplied> {
        let tls = self.tls.read(admin.tls.as_ref())?;
        let stays = self.in_force.load().settings == admin.access;
        let tokens = (!stays).then(|| (admin.access.clone(), Tokens::read(&admin.access.tokens)));
        Ok(ReadAccess { tls, tokens })
    }

    /// Puts in force what was read.
    pub fn apply(&self, read: ReadAccess) {
        let ReadAccess { tls, tokens } = read;
        if let Some(renewal) = tls {
            self.tls.apply(renewal);
        }
        if let Some((settings, tokens)) = tokens {
            let _alone = self.changing.lock();
            self.put(&settings, tokens);
        }
    }

    /// Files of tokens may have changed.
    fn read_again(&self) {
        let settings = self.in_force.load().settings.clone();
        let tokens = Tokens::read(&settings.tokens);
        let _alone = self.changing.lock();
        if self.in_force.load().settings == settings {
            self.put(&settings, tokens);
        }
    }

    fn put(&self, settings: &AdminAccess, tokens: Tokens) {
        let before = self.in_force.load();
        if before.settings == *settings && before.tokens.same_as(&tokens) {
            return;
        }
        for fault in &tokens.faults {
            tracing::error!(%fault, "a token of the admin port cannot be used: nobody has it now");
        }
        if before.settings == *settings {
            tracing::info!("tokens of the admin port have changed");
        }
        let names = Names::new(&settings.hosts);
        self.in_force.store(Arc::new(InForce { settings: settings.clone(), tokens, names }));
    }

    /// The certificate's families in the text format of Prometheus; nothing without TLS.
    pub(crate) fn certificate_metrics(&self) -> String {
        let Some(view) = self.tls.view() else { return String::new() };
        let usable = u8::from(view.is_current);
        let mut text = format!(
            "# HELP sluice_admin_certificate_usable 1 while what the files of the admin port's \
             certificate say is in force.\n# TYPE sluice_admin_certificate_usable gauge\n\
             sluice_admin_certificate_usable {usable}\n"
        );
        if let Some(not_after) = view.not_after {
            text.push_str(&format!(
                "# HELP sluice_admin_certificate_not_after_seconds Until when the admin port's \
                 certificate is valid, in Unix time.\n\
                 # TYPE sluice_admin_certificate_not_after_seconds gauge\n\
                 sluice_admin_certificate_not_after_seconds {}\n",
                not_after.as_secs()
            ));
        }
        text
    }

    /// Reads files of tokens and certificates again when they change. Runs until the task is
    /// dropped.
    pub(crate) async fn watch(self: Arc<Self>) {
        let tls = Arc::clone(&self.tls).watch();
        tokio::join!(tls, self.watch_tokens());
    }

    async fn watch_tokens(self: Arc<Self>) {
        loop {
            tokio::time::sleep(COMPARE_INTERVAL).await;
            let access = Arc::clone(&self);
            if tokio::task::spawn_blocking(move || access.read_again()).await.is_err() {
                return;
            }
            let refused = self.refused.swap(0, Ordering::Relaxed);
            if refused > 0 {
                tracing::warn!(refused, "changes over HTTP were refused");
            }
        }
    }

    /// Whose change `request` is.
    ///
    /// # Errors
    /// When nobody's who may.
    pub(crate) fn author(&self, request: &Parts) -> Result<Author, Refusal> {
        self.decide(request, Way::Ours).inspect_err(|_| self.count())
    }

    /// Whose a change would be that came like `request`, which changes nothing and so may be a GET.
    ///
    /// # Errors
    /// When nobody's who may.
    pub(crate) fn whose(&self, request: &Parts) -> Result<Author, Refusal> {
        // Whoever shows no token has only asked.
        let has_shown = request.headers.contains_key(AUTHORIZATION);
        self.allowed(request, Way::Ours).inspect_err(|_| {
            if has_shown {
                self.count()
            }
        })
    }

    /// The same for a change in the dialect of another throttler, whose clients may have but GET.
    ///
    /// # Errors
    /// When nobody's who may, or GET changes nothing here.
    pub(crate) fn legacy_author(&self, request: &Parts) -> Result<Author, Refusal> {
        self.decide(request, Way::Legacy).inspect_err(|_| self.count())
    }

    /// Whether the door has the name that `request` calls it by.
    ///
    /// # Errors
    /// When it has another.
    pub(crate) fn check_name(&self, request: &Parts) -> Result<(), Refusal> {
        let caller = caller(request)?;
        match self.in_force.load().names.called_by(request)? {
            CalledBy::Foreign(_) if caller.is_encrypted => Ok(()),
            CalledBy::Foreign(name) => Err(misdirected(&name)),
            CalledBy::Nothing | CalledBy::Ours | CalledBy::Neighbour => Ok(()),
        }
    }

    fn decide(&self, request: &Parts, way: Way) -> Result<Author, Refusal> {
        let in_force = self.in_force.load();
        let by_get = request.method.is_safe();
        // A program that looks at an address sends HEAD and means no change.
        let may_by_get =
            way == Way::Legacy && in_force.settings.legacy_get && request.method == Method::GET;
        if by_get && !may_by_get {
            return Err(by_get_refused(way));
        }
        self.allowed(request, way)
    }

    fn allowed(&self, request: &Parts, way: Way) -> Result<Author, Refusal> {
        let in_force = self.in_force.load();
        self.check_name(request)?;
        check_site(&request.headers)?;
        if let Some(shown) = request.headers.get(AUTHORIZATION) {
            return in_force.owner(shown).map(Author);
        }
        let caller = caller(request)?;
        in_force.check_loopback(request, caller, way)?;
        Ok(Author(LOOPBACK.into()))
    }

    fn count(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whose way of making changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Ours,
    Legacy,
}

impl InForce {
    /// Whose token it is.
    fn owner(&self, shown: &HeaderValue) -> Result<Arc<str>, Refusal> {
        let shown = shown.as_bytes();
        let bearer = shown.split_at_checked(BEARER.len());
        let bearer = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(BEARER.as_bytes()));
        let Some((_, token)) = bearer else {
            let message = "the header Authorization is not `Bearer TOKEN`";
            return Err(Refusal::new(Error::WrongToken, message));
        };
        if self.tokens.is_empty() {
            return Err(self.no_tokens());
        }
        self.tokens.owner(token.trim_ascii()).ok_or_else(|| {
            Refusal::new(Error::WrongToken, "the token is not one of those that the file names")
        })
    }

    /// Whether a request that shows no token may change something all the same.
    fn check_loopback(&self, request: &Parts, caller: Caller, way: Way) -> Result<(), Refusal> {
        let is_allowed =
            self.settings.loopback_changes || (way == Way::Legacy && self.settings.legacy_get);
        let is_here = is_loopback(caller.local.ip()) && is_loopback(caller.peer.ip());
        if !is_allowed || !is_here {
            return Err(self.needs_token());
        }
        if FORWARDING.iter().any(|name| request.headers.contains_key(name)) {
            let message = "the request was forwarded by a proxy, so it is not from this machine";
            return Err(self.not_from_here(message));
        }
        let called_by = self.names.called_by(request)?;
        if !matches!(called_by, CalledBy::Ours | CalledBy::Nothing) {
            let message = "without a token, the door has to be called by an address, `localhost` or a \
                           name in `admin.hosts`";
            return Err(self.not_from_here(message));
        }
        match way {
            // What it says stands in the address alone, and no page of Sluice's asks for it.
            Way::Legacy => check_no_browser(&request.headers)?,
            Way::Ours => {}
        }
        Ok(())
    }

    fn not_from_here(&self, message: &str) -> Refusal {
        if self.tokens.is_empty() {
            return Refusal::new(Error::Forbidden, message);
        }
        Refusal::new(Error::NoToken, message).remedy(TOKEN_REMEDY)
    }

    fn needs_token(&self) -> Refusal {
        if self.tokens.is_empty() {
            return self.no_tokens();
        }
        Refusal::new(Error::NoToken, "a change needs a token").remedy(TOKEN_REMEDY)
    }

    fn no_tokens(&self) -> Refusal {
        if self.settings.tokens.is_empty() {
            let message = "nothing can be changed here: the file names no token";
            Refusal::new(Error::Forbidden, message).remedy(
                "set `admin.token_env` or `admin.token_file` in the file (or, where `admin.listen` is a \
                 loopback address, `admin.loopback_changes: true`)",
            )
        } else {
            let message = "nothing can be changed here: no token that the file names can be read";
            Refusal::new(Error::Forbidden, message).remedy("the log of Sluice says why")
        }
    }
}

/// Whether no page of another site has sent it. Whoever sends neither header is no browser, or has
/// been asked to by its user.
fn check_site(headers: &HeaderMap) -> Result<(), Refusal> {
    let refused = || {
        let message = "the request comes from a page of another site";
        Err(Refusal::new(Error::Forbidden, message))
    };
    if let Some(site) = headers.get(SEC_FETCH_SITE)
        && site != "same-origin"
        && site != "none"
    {
        return refused();
    }
    let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
    let origin = origin.as_bytes();
    let after_scheme = origin.strip_prefix(b"http://").or(origin.strip_prefix(b"https://"));
    let host = headers.get(HOST).map(HeaderValue::as_bytes);
    match (after_scheme, host) {
        (Some(origin), Some(host)) if origin.eq_ignore_ascii_case(host) => Ok(()),
        (Some(_) | None, _) => refused(),
    }
}

/// A link or a picture is enough for a browser to send a GET, and a form for a POST, and not all
/// say from where.
fn check_no_browser(headers: &HeaderMap) -> Result<(), Refusal> {
    let agent = headers.get(USER_AGENT).map(HeaderValue::as_bytes).unwrap_or_default();
    let is_browser = agent.starts_with(b"Mozilla/")
        || headers.contains_key(SEC_FETCH_SITE)
        || headers.contains_key(REFERER);
    if is_browser {
        let message = "a browser may change nothing in this way without a token";
        return Err(Refusal::new(Error::Forbidden, message));
    }
    Ok(())
}

fn by_get_refused(way: Way) -> Refusal {
    let refusal = Refusal::new(Error::MethodNotAllowed, "a change needs POST or DELETE");
    match way {
        Way::Ours => refusal,
        Way::Legacy => refusal.allow("POST").remedy(
            "use POST; for clients that only know GET, set `admin.legacy_get: true` in the file",
        ),
    }
}

fn misdirected(name: &str) -> Refusal {
    let name: String = name.chars().take(SHOWN_NAME_LEN_MAX).collect();
    Refusal::new(Error::Misdirected, format!("`{name}` is not a name of this Sluice"))
        .remedy("use its address, or name it in `admin.hosts` of the file")
}

fn caller(request: &Parts) -> Result<Caller, Refusal> {
    let caller = request.extensions.get::<Caller>().copied();
    caller.ok_or_else(|| Refusal::new(Error::Internal, "it is not known who asks"))
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

const BEARER: &str = "Bearer ";
const TOKEN_REMEDY: &str = "send it as `Authorization: Bearer TOKEN`";
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Names have at most so many characters (RFC 1035).
const SHOWN_NAME_LEN_MAX: usize = 253;

/// What proxies say of whom they forward.
const FORWARDING: [HeaderName; 4] = [
    FORWARDED,
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-real-ip"),
    HeaderName::from_static("via"),
];

#[cfg(test)]
mod tests;

//! What one connection says about who it is.

use std::collections::HashSet;
use std::net::IpAddr;

use sql::Tool;

use super::app::is_app;
use crate::cidr::address_bits;

/// Most connection attributes that are kept besides those that name the app: drivers send up to ten,
/// and rules may look at all of them with each statement.
const ATTRIBUTES_MAX: usize = 256;

/// Most bytes of them, with their lengths.
const ATTRIBUTES_LEN_MAX: usize = 16 * 1024;

/// What one connection says about who it is.
#[derive(Debug, Clone, Default)]
pub struct SessionIdentity {
    user: Box<[u8]>,
    client: Option<IpAddr>,
    schema: Vec<u8>,
    schema_in_doubt: bool,
    /// Each its two lengths, a byte for either, its key and its value: in one piece, for connections
    /// are many and mostly idle.
    attributes: Box<[u8]>,
    attribute_app: Option<Box<[u8]>>,
    set_app: Option<Vec<u8>>,
    sticky: Option<Tool>,
}

impl SessionIdentity {
    /// A connection that has just logged in. `client` is `None` for a Unix socket. Of attributes
    /// with the same name the first counts; those beyond the bounds are left out.
    pub fn new<'a>(
        user: &[u8],
        client: Option<IpAddr>,
        schema: &[u8],
        attributes: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Self {
        let mut session = Self {
            user: user.into(),
            // An IPv4 client on an IPv6 socket is an IPv4 client.
            client: client.map(|address| address.to_canonical()),
            schema: schema.to_vec(),
            ..Self::default()
        };
        session.attributes = packed(attributes);
        session.attribute_app = app_of_attributes(&session);
        session
    }

    /// `SET @sluice_app`: a value, or `None` for NULL. What cannot be an app counts as NULL.
    pub fn handle_set_app(&mut self, app: Option<&[u8]>) {
        match app.filter(|app| is_app(app)) {
            Some(app) => {
                let set = self.set_app.get_or_insert_with(Vec::new);
                set.clear();
                set.extend_from_slice(app);
            }
            None => self.set_app = None,
        }
    }

    /// The default schema has changed.
    pub fn handle_schema(&mut self, schema: &[u8]) {
        self.schema.clear();
        self.schema.extend_from_slice(schema);
        self.schema_in_doubt = false;
    }

    /// The default schema may be another one than [`SessionIdentity::schema`] says, until it changes.
    pub fn doubt_schema(&mut self) {
        self.schema_in_doubt = true;
    }

    /// A statement named a tool whose other statements do not: the connection is that tool's from
    /// now on. Whether that is news.
    pub fn handle_tool_seen(&mut self, tool: Tool) -> bool {
        let news = self.sticky != Some(tool);
        self.sticky = Some(tool);
        news
    }

    /// COM_RESET_CONNECTION: what was learned after the login is forgotten. The schema stays, as on
    /// the server.
    pub fn forget(&mut self) {
        self.set_app = None;
        self.sticky = None;
    }

    /// The MySQL user.
    #[must_use]
    pub fn user(&self) -> &[u8] {
        &self.user
    }

    /// The client's address; IPv4 also when it came mapped into IPv6.
    #[must_use]
    pub fn client(&self) -> Option<IpAddr> {
        self.client
    }

    /// The default schema; empty if there is none.
    #[must_use]
    pub fn schema(&self) -> &[u8] {
        &self.schema
    }

    /// Whether the default schema may be another one.
    #[must_use]
    pub fn doubts_schema(&self) -> bool {
        self.schema_in_doubt
    }

    /// The value of a connection attribute.
    #[must_use]
    pub fn attribute(&self, key: &[u8]) -> Option<&[u8]> {
        self.attributes().find(|(known, _)| *known == key).map(|(_, value)| value)
    }

    /// All connection attributes that are kept.
    pub fn attributes(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        unpacked(&self.attributes)
    }

    /// Whether this tool was the last one seen on the connection.
    #[must_use]
    pub fn is_sticky(&self, tool: Tool) -> bool {
        self.sticky == Some(tool)
    }

    pub(crate) fn client_bits(&self) -> Option<u128> {
        self.client.map(address_bits)
    }

    pub(super) fn set_app(&self) -> Option<&[u8]> {
        self.set_app.as_deref()
    }

    pub(super) fn sticky(&self) -> Option<Tool> {
        self.sticky
    }

    pub(super) fn attribute_app(&self) -> Option<&[u8]> {
        self.attribute_app.as_deref()
    }
}

/// Those of the attributes that are kept, one behind the other. What may name the app is, wherever it
/// stands.
fn packed<'a>(attributes: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Box<[u8]> {
    let mut packed = Vec::new();
    let mut known = HashSet::new();
    for (key, value) in attributes {
        let (Some(key_len), Some(value_len)) = (part_len(key), part_len(value)) else { continue };
        let len =
            [packed.len(), 2, key.len(), value.len()].into_iter().fold(0, usize::saturating_add);
        let has_room = known.len() < ATTRIBUTES_MAX && len <= ATTRIBUTES_LEN_MAX;
        if (has_room || NAMES.contains(&key)) && known.insert(key) {
            packed.extend_from_slice(&[key_len, value_len]);
            packed.extend_from_slice(key);
            packed.extend_from_slice(value);
        }
    }
    packed.into()
}

fn unpacked(packed: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut left = packed;
    std::iter::from_fn(move || {
        let ([key_len, value_len], rest) = left.split_first_chunk()?;
        let (key, rest) = rest.split_at_checked(usize::from(*key_len))?;
        let (value, rest) = rest.split_at_checked(usize::from(*value_len))?;
        left = rest;
        Some((key, value))
    })
}

/// The length of a key or a value. `None`: it is not kept, for it is empty or longer than a byte can
/// count.
fn part_len(part: &[u8]) -> Option<u8> {
    u8::try_from(part.len()).ok().filter(|len| *len > 0)
}

/// The app that connection attributes name: `sluice_app`, else the basename of `program_name` (the
/// Percona tools, mysqldump and others are known by it), else what go-mysql calls a reader of the
/// binary log.
fn app_of_attributes(session: &SessionIdentity) -> Option<Box<[u8]>> {
    let [app, program, role] = NAMES.map(|name| session.attribute(name));
    let role = role.filter(|role| *role == BINARY_LOG_LISTENER);
    let sources = [app, program.map(basename), role];
    sources.into_iter().flatten().find(|app| is_app(app)).map(Into::into)
}

/// The attributes that may name the app, in their order.
const NAMES: [&[u8]; 3] = [b"sluice_app", b"program_name", b"_client_role"];

/// The value of `_client_role` on connections of go-mysql that read the binary log.
const BINARY_LOG_LISTENER: &[u8] = b"binary_log_listener";

fn basename(path: &[u8]) -> &[u8] {
    let name = path.rsplit(|byte| matches!(byte, b'/' | b'\\')).next().unwrap_or(path);
    name.strip_suffix(b".exe").unwrap_or(name)
}

//! Values that look like patterns of another language. A value is taken as it stands, `*` is any
//! value, and `prefix*` a prefix: there is no other pattern.

use crate::fault::Faults;
use crate::raw::{self, Named, OneOrMany, Spanned};

/// What a value names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    App,
    User,
    /// A schema or a table, whose parts a dot joins.
    Table,
    /// The value of a tag or of an attribute: whatever an application writes.
    Anything,
}

pub(super) fn look(file: &raw::File, warnings: &mut Faults) {
    for rule in file.rules.iter().flat_map(|rules| &rules.value) {
        let Some(conditions) = &rule.value.conditions else { continue };
        let raw::Match { app, user, schema, table, tag, attribute, .. } = &conditions.value;
        for (values, names) in
            [(app, Names::App), (user, Names::User), (schema, Names::Table), (table, Names::Table)]
        {
            look_at(values.iter().map(|values| &values.value), names, warnings);
        }
        for Spanned { value: Named(named), .. } in [tag, attribute].into_iter().flatten() {
            look_at(named.iter().map(|(_, values)| &values.value), Names::Anything, warnings);
        }
    }
    let identity = file.identity.as_ref().map(|identity| &identity.value);
    for claim in
        identity.and_then(|identity| identity.claims.as_ref()).iter().flat_map(|c| &c.value)
    {
        let raw::Claim { user, from: _, apps } = &claim.value;
        look_at(user.iter().map(|values| &values.value), Names::User, warnings);
        look_at(apps.iter().map(|values| &values.value), Names::App, warnings);
    }
    for (_, cluster) in file.clusters.iter().flat_map(|clusters| &clusters.value.0) {
        let probe = cluster.value.probe.as_ref();
        if let Some(user) = probe.and_then(|probe| probe.value.user.as_ref()) {
            add(user, Names::User, warnings);
        }
    }
}

fn look_at<'v>(
    values: impl Iterator<Item = &'v OneOrMany<String>>,
    names: Names,
    warnings: &mut Faults,
) {
    for value in values.flat_map(|values| &values.0) {
        add(value, names, warnings);
    }
}

/// Of an app or a user that a rule names which was made while Sluice runs.
pub(super) fn of_made(app: Option<&str>, user: Option<&str>) -> Vec<String> {
    let app = app.and_then(|app| told(app, Names::App));
    app.into_iter().chain(user.and_then(|user| told(user, Names::User))).collect()
}

fn add(value: &Spanned<String>, names: Names, warnings: &mut Faults) {
    if let Some(message) = told(&value.value, names) {
        warnings.add(&value.place, message);
    }
}

fn told(value: &str, names: Names) -> Option<String> {
    let remedy = foreign(value, names)?;
    Some(format!("`{value}` is taken as it stands: {remedy}"))
}

/// What to write instead of a value that means something in another language.
fn foreign(value: &str, names: Names) -> Option<&'static str> {
    if value.contains('`') || is_quoted(value) {
        return Some("names stand without quotes of SQL");
    }
    if names == Names::User && value.contains('@') {
        return Some(
            "a user has no `@host` here; the client's address is `client`, in claims `from`",
        );
    }
    if is_regular_expression(value, names) {
        return Some(
            "it is no regular expression; a prefix is `etl-*`, and several values are a list",
        );
    }
    if is_like_pattern(value) {
        return Some("`%` is no wildcard; a prefix is `etl-*`");
    }
    let is_glob = value.contains('?') || (value.contains('{') && value.contains(','));
    if is_glob && names != Names::Anything {
        return Some("the only wildcard is `*`, alone or at the end; several values are a list");
    }
    if value.starts_with('!') {
        return Some("nothing is negated here; a rule above this one can take what is not meant");
    }
    if value.contains(',') && names != Names::Anything {
        return Some("several values are a list: [a, b]");
    }
    None
}

fn is_quoted(value: &str) -> bool {
    ['\'', '"'].into_iter().any(|quote| {
        value.strip_prefix(quote).is_some_and(|rest| rest.len() > 1 && rest.ends_with(quote))
    })
}

fn is_regular_expression(value: &str, names: Names) -> bool {
    // Versions and Java packages end in `.*` and are prefixes: `8.0.*`, `com.example.*`.
    let any = value.strip_suffix(".*").is_some_and(|stem| {
        names != Names::Table && !stem.contains('.') && !stem.bytes().all(|b| b.is_ascii_digit())
    });
    let range = ["0-9]", "a-z]", "A-Z]"].iter().any(|range| value.contains(range));
    let has_class = match names {
        Names::Anything => value.contains('[') && range,
        Names::App | Names::User | Names::Table => value.contains('[') && value.contains(']'),
    };
    let has_group = value.split_once('(').is_some_and(|(_, rest)| rest.contains('|'));
    let escapes = ["\\d+", "\\d*", "\\w+", "\\w*", "\\."];
    let has_escape = escapes.iter().any(|escape| value.contains(escape));
    let has_choice = value.contains('|') && names != Names::Anything;
    let ends = value.ends_with('$') && value.contains(['*', '+', '?']);
    any || value.starts_with('^') || ends || has_class || has_group || has_escape || has_choice
}

/// `%` of LIKE; what is percent-encoded has two digits behind it.
fn is_like_pattern(value: &str) -> bool {
    value.split('%').skip(1).any(|behind| {
        let mut digits = behind.bytes().take(2);
        let is_hex = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_hexdigit());
        !(is_hex(digits.next()) && is_hex(digits.next()))
    })
}

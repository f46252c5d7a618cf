use std::net::IpAddr;
use std::sync::Arc;

use sql::Tool;

use super::*;
use crate::cluster::ClusterPolicy;
use crate::load;

type Pairs<'p> = &'p [(&'p str, &'p str)];

/// One statement on one connection.
#[derive(Default, Clone, Copy)]
struct Said<'s> {
    query_attributes: Pairs<'s>,
    tags: Pairs<'s>,
    tool: Option<Tool>,
}

/// What came out, without what it borrows.
#[derive(Debug, PartialEq)]
struct Resolved {
    app: String,
    source: Source,
    refused_claims: u32,
    tool_seen: Option<Tool>,
    tags: Vec<(String, String)>,
}

fn cluster(identity: &str) -> Arc<ClusterPolicy> {
    let text = format!(
        "version: 1\nclusters: {{main: {{listen: 127.0.0.1:1, primary: db:3306}}}}\n{identity}"
    );
    let config = load(&text).unwrap_or_else(|faults| panic!("{faults:#?}"));
    config.clusters[0].clone()
}

fn bytes<'p>(pairs: Pairs<'p>) -> impl Iterator<Item = (&'p [u8], &'p [u8])> {
    pairs.iter().map(|(key, value)| (key.as_bytes(), value.as_bytes()))
}

fn session(user: &str, attributes: Pairs<'_>) -> SessionIdentity {
    let client: IpAddr = "10.1.2.3".parse().unwrap();
    SessionIdentity::new(user.as_bytes(), Some(client), b"shop", bytes(attributes))
}

fn resolved(cluster: &ClusterPolicy, session: &SessionIdentity, said: Said<'_>) -> Resolved {
    let mut scratch = IdentityScratch::default();
    // Whatever was there before must not shine through.
    let before = [(&b"app"[..], &b"stale"[..]), (b"old", b"stale")];
    resolve(&cluster.identity, session, before.into_iter(), std::iter::empty(), None, &mut scratch);
    let Said { query_attributes, tags, tool } = said;
    let identity = resolve(
        &cluster.identity,
        session,
        bytes(query_attributes),
        bytes(tags),
        tool,
        &mut scratch,
    );
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    for (key, value) in identity.tags() {
        assert_eq!(identity.tag(key), Some(value));
    }
    Resolved {
        app: text(identity.app),
        source: identity.source,
        refused_claims: identity.refused_claims,
        tool_seen: identity.tool_seen,
        tags: identity.tags().map(|(key, value)| (text(key), text(value))).collect(),
    }
}

#[track_caller]
fn assert_app(
    cluster: &ClusterPolicy,
    session: &SessionIdentity,
    said: Said<'_>,
    expected: (&str, Source),
) {
    let resolved = resolved(cluster, session, said);
    assert_eq!((resolved.app.as_str(), resolved.source), expected);
}

#[test]
fn the_first_source_that_names_an_app_wins() {
    let cluster = cluster("");
    let plain = session("bob", &[]);
    assert_app(&cluster, &plain, Said::default(), ("bob", Source::User));
    let attributes = [("program_name", "/usr/bin/pt-archiver"), ("_os", "Linux")];
    let mut session = session("bob", &attributes);
    let by_attribute = ("pt-archiver", Source::ConnectionAttribute);
    assert_app(&cluster, &session, Said::default(), by_attribute);
    assert!(session.handle_tool_seen(Tool::GhOst) && !session.handle_tool_seen(Tool::GhOst));
    assert!(session.is_sticky(Tool::GhOst));
    assert_app(&cluster, &session, Said::default(), ("gh-ost", Source::StickyTool));
    session.handle_set_app(Some(b"set"));
    assert_app(&cluster, &session, Said::default(), ("set", Source::SessionVariable));
    let said = Said { tool: Some(Tool::PtOnlineSchemaChange), ..Said::default() };
    assert_app(&cluster, &session, said, ("pt-online-schema-change", Source::Tool));
    let said = Said { tags: &[("app", "comment")], ..said };
    assert_app(&cluster, &session, said, ("comment", Source::Comment));
    let said = Said { query_attributes: &[("app", "attribute")], ..said };
    assert_app(&cluster, &session, said, ("attribute", Source::QueryAttribute));
    session.handle_set_app(None);
    assert_app(&cluster, &session, Said::default(), ("gh-ost", Source::StickyTool));
    session.handle_set_app(Some(b"set"));
    session.forget();
    assert_app(&cluster, &session, Said::default(), by_attribute);
    assert_eq!(session.schema(), b"shop");
}

#[test]
fn the_strongest_key_of_a_source_names_the_app() {
    let cluster = cluster("");
    let session = session("bob", &[]);
    let tags = [("workload_name", "w"), ("application", "shop"), ("app", "a"), ("app", "b")];
    let said = Said { tags: &tags, ..Said::default() };
    assert_app(&cluster, &session, said, ("a", Source::Comment));
    let said = Said { tags: &tags[..2], ..said };
    assert_app(&cluster, &session, said, ("shop", Source::Comment));
    let said = Said { tags: &[("APP", "a")], ..said };
    assert_app(&cluster, &session, said, ("bob", Source::User));
}

#[test]
fn the_keys_that_name_the_app_are_configurable() {
    let cluster = cluster("identity: {keys: [job]}");
    let session = session("bob", &[]);
    let said = Said { tags: &[("app", "a"), ("job", "j")], ..Said::default() };
    let resolved = resolved(&cluster, &session, said);
    assert_eq!((resolved.app.as_str(), resolved.source), ("j", Source::Comment));
    assert_eq!(resolved.tags, [("app".into(), "a".into())]);
}

#[test]
fn connection_attributes_name_the_app_by_sluice_app_then_by_program() {
    let cluster = cluster("");
    let cases: [(Pairs<'_>, &str); 9] = [
        (&[("program_name", "mysqldump"), ("sluice_app", "a:b")], "a:b"),
        (&[("sluice_app", ""), ("program_name", "/x/y/mydumper")], "mydumper"),
        (&[("program_name", r"C:\tools\mysql.exe")], "mysql"),
        (&[("_client_role", "binary_log_listener")], "binary_log_listener"),
        (&[("_client_role", "else")], "bob"),
        (&[("program_name", "/usr/bin/")], "bob"),
        (&[("program_name", "a"), ("program_name", "b")], "a"),
        (&[("app", "a")], "bob"),
        (&[("program_name", "two\nlines")], "bob"),
    ];
    for (attributes, app) in cases {
        let resolved = resolved(&cluster, &session("bob", attributes), Said::default());
        assert_eq!(resolved.app, app, "{attributes:?}");
    }
}

#[test]
fn tags_of_all_sources_merge_and_the_first_of_a_key_wins() {
    let cluster = cluster("");
    let session = session("bob", &[("_os", "Linux"), ("a", "4"), ("sluice_app", "x")]);
    let said = Said {
        query_attributes: &[("a", "1"), ("b", "1"), ("app", "q")],
        tags: &[("b", "2"), ("c", "2"), ("c", "3"), ("", "x"), ("d", ""), ("app", "t")],
        tool: None,
    };
    let tag = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let resolved = resolved(&cluster, &session, said);
    assert_eq!(resolved.tags, [tag("a", "1"), tag("b", "1"), tag("c", "2"), tag("_os", "Linux")]);
}

#[test]
fn what_cannot_name_an_app_is_as_good_as_absent() {
    let cluster = cluster("");
    let session = session("bob", &[]);
    let longest = "x".repeat(APP_LEN_MAX);
    let long = longest.clone() + "x";
    let deepest = "a:".repeat(APP_LEVELS_MAX - 1) + "a";
    let deep = deepest.clone() + ":a";
    for bad in ["", "a\nb", "a\0", "\x7f", long.as_str(), deep.as_str()] {
        let tags = [("sluice_app", bad), ("app", "next")];
        let said = Said { tags: &tags, ..Said::default() };
        assert_app(&cluster, &session, said, ("next", Source::Comment));
    }
    for good in [longest.as_str(), deepest.as_str(), "ä", "a b", "::"] {
        let said = Said { tags: &[("app", good)], ..Said::default() };
        assert_app(&cluster, &session, said, (good, Source::Comment));
    }
}

#[test]
fn tags_are_bounded_in_number_and_length() {
    let cluster = cluster("");
    let many: Vec<(String, &str)> = (0..1_000).map(|i| (format!("k{i}"), "v")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(key, value)| (key.as_str(), *value)).collect();
    let plain = session("bob", &[]);
    let said = Said { tags: &many, ..Said::default() };
    assert_eq!(resolved(&cluster, &plain, said).tags.len(), TAGS_MAX);
    let long = "x".repeat(TAG_PART_LEN_MAX + 1);
    let pairs = [("k", long.as_str()), (long.as_str(), "v")];
    let said = Said { tags: &pairs, ..Said::default() };
    assert_eq!(resolved(&cluster, &session("bob", &pairs), said).tags, []);
}

#[test]
fn attributes_are_bounded_in_number_and_bytes_and_an_app_counts_wherever_it_stands() {
    let cluster = cluster("");
    let long = "v".repeat(TAG_PART_LEN_MAX);
    for (value, least) in [("v", 256), (long.as_str(), 60)] {
        let keys: Vec<String> = (0..10_000).map(|number| format!("k{number}")).collect();
        let mut said: Vec<(&str, &str)> = keys.iter().map(|key| (key.as_str(), value)).collect();
        said.extend([("_client_role", "binary_log_listener"), ("program_name", "/bin/slow")]);
        let named = session("bob", &said);
        assert_app(&cluster, &named, Said::default(), ("slow", Source::ConnectionAttribute));
        said.extend([("sluice_app", "first"), ("sluice_app", "second")]);
        let named = session("bob", &said);
        assert_app(&cluster, &named, Said::default(), ("first", Source::ConnectionAttribute));
        let kept: Vec<_> = named.attributes().collect();
        assert!((least..=259).contains(&kept.len()), "{}", kept.len());
        let len: usize = kept.iter().map(|(key, value)| 2 + key.len() + value.len()).sum();
        assert!(len <= 16 * 1024 + 100, "{len}");
    }
}

#[test]
fn attributes_are_kept_as_they_came_up_to_their_bounds() {
    let (longest, longer) = ("x".repeat(TAG_PART_LEN_MAX), "x".repeat(TAG_PART_LEN_MAX + 1));
    let said = [
        ("a", "1"),
        ("", "no key"),
        ("no value", ""),
        ("a", "again"),
        (longer.as_str(), "v"),
        (longest.as_str(), longest.as_str()),
        ("too long", longer.as_str()),
        ("b", "2"),
    ];
    let session = session("bob", &said);
    let kept: Vec<_> = session.attributes().collect();
    let longest = longest.as_bytes();
    assert_eq!(kept, [(&b"a"[..], &b"1"[..]), (longest, longest), (b"b", b"2")]);
    assert_eq!(session.attribute(b"b"), Some(&b"2"[..]));
    assert_eq!(session.attribute(b"too long"), None);
}

const CLAIMS: &str = "
identity:
  claims:
    - { user: etl, from: 192.168.0.0/16, apps: [\"*\"] }
    - { user: etl, apps: [etl, \"nightly-*\", \"team:a\", \"jobs:*\"] }
    - { user: [\"web-*\", shop], apps: [web] }
    - { user: root, apps: [] }
    - { user: \"m*\", from: 10.0.0.0/8, apps: [gh-ost, online-ddl] }
    - { user: \"\\u00e4*\", apps: [\"*\"] }
";

#[track_caller]
fn assert_claim(user: &str, app: &str, allowed: bool) {
    let cluster = cluster(CLAIMS);
    let said = Said { tags: &[("app", app)], ..Said::default() };
    let resolved = resolved(&cluster, &session(user, &[]), said);
    let expected = if allowed { (app, 0) } else { (user, 1) };
    assert_eq!((resolved.app.as_str(), resolved.refused_claims), expected, "{user} claims {app}");
}

#[test]
fn a_claim_is_allowed_as_a_whole_or_level_by_level() {
    let uuid = "d666bbfc_169e_11ef_b0b3_0a43f95f28a3";
    for app in ["etl", "nightly-x", "team:a", "jobs:online-ddl", "etl:nightly-x", "7:etl"] {
        assert_claim("etl", app, true);
    }
    assert_claim("etl", &format!("{uuid}:etl"), true);
    for app in ["team", "a", "team:b", "nightly-x:online-ddl", "etl:online-ddl", "ETL", "jobs", "7"]
    {
        assert_claim("etl", app, false);
    }
    assert_claim("etl", uuid, false);
    assert_claim("etl", ":", false);
}

#[test]
fn the_first_entry_that_fits_user_and_address_decides() {
    assert_claim("web-1", "web", true);
    assert_claim("web-1", "etl", false);
    assert_claim("shop", "web", true);
    assert_claim("shopper", "web", false);
    assert_claim("root", "web", false);
    assert_claim("migrator", "gh-ost", true);
    let cluster = cluster(CLAIMS);
    let said = Said { tags: &[("app", "gh-ost")], ..Said::default() };
    for (client, expected) in [("11.0.0.1", "migrator"), ("::ffff:10.9.9.9", "gh-ost")] {
        let client: IpAddr = client.parse().unwrap();
        let session = SessionIdentity::new(b"migrator", Some(client), b"", std::iter::empty());
        assert_eq!(resolved(&cluster, &session, said).app, expected, "{client}");
    }
    let client: IpAddr = "192.168.1.1".parse().unwrap();
    let session = SessionIdentity::new(b"etl", Some(client), b"", std::iter::empty());
    assert_eq!(resolved(&cluster, &session, said).app, "gh-ost");
    let socket = SessionIdentity::new(b"migrator", None, b"", std::iter::empty());
    assert_eq!(resolved(&cluster, &socket, said).app, "migrator");
}

#[test]
fn after_a_refused_claim_the_next_source_speaks() {
    let cluster = cluster(CLAIMS);
    let session = session("etl", &[("program_name", "nightly-job")]);
    let said = Said {
        query_attributes: &[("app", "online-ddl")],
        tags: &[("app", "gh-ost")],
        tool: Some(Tool::GhOst),
    };
    let resolved = resolved(&cluster, &session, said);
    assert_eq!((resolved.app.as_str(), resolved.refused_claims), ("nightly-job", 3));
    assert_eq!((resolved.source, resolved.tool_seen), (Source::ConnectionAttribute, None));
    assert!(!resolved.tags.iter().any(|(key, _)| key == "app"));
}

#[test]
fn a_tool_is_seen_only_if_it_may_be_claimed() {
    let cluster = cluster(CLAIMS);
    let said = Said { tags: &[("app", "online-ddl")], tool: Some(Tool::GhOst), ..Said::default() };
    let seen = resolved(&cluster, &session("migrator", &[]), said);
    assert_eq!((seen.app.as_str(), seen.tool_seen), ("online-ddl", Some(Tool::GhOst)));
    let said = Said { tags: &[("app", "web")], ..said };
    let forged = resolved(&cluster, &session("web-1", &[]), said);
    assert_eq!((forged.app.as_str(), forged.tool_seen), ("web", None));
    assert_eq!(forged.refused_claims, 0);
}

#[test]
fn an_empty_list_of_claims_allows_nothing_and_no_list_everything() {
    let said = Said { tags: &[("app", "any")], ..Said::default() };
    let nothing = cluster("identity: {claims: []}");
    assert_app(&nothing, &session("bob", &[]), said, ("bob", Source::User));
    assert_app(&cluster(""), &session("bob", &[]), said, ("any", Source::Comment));
    let everybody = cluster("identity: {claims: [{user: \"*\", apps: any}]}");
    assert_app(&everybody, &session("", &[]), said, ("any", Source::Comment));
}

#[test]
fn an_idle_connection_gives_back_what_a_long_comment_has_grown() {
    let cluster = cluster("");
    let session = session("bob", &[]);
    let mut scratch = IdentityScratch::default();
    let long = "x".repeat(TAG_PART_LEN_MAX);
    let short = [("a", "b")];
    resolve(&cluster.identity, &session, bytes(&short), std::iter::empty(), None, &mut scratch);
    let kept = scratch.bytes.capacity();
    scratch.shrink();
    assert_eq!(scratch.bytes.capacity(), kept);
    let tags = [("a", long.as_str()), ("b", long.as_str()), ("c", long.as_str())];
    resolve(&cluster.identity, &session, bytes(&tags), std::iter::empty(), None, &mut scratch);
    scratch.shrink();
    assert_eq!(scratch.bytes.capacity(), 0);
}

use super::*;

fn tags(comment: &str) -> Vec<(String, String)> {
    let (mut decoded, mut spans) = (Vec::new(), Vec::new());
    read_tags(comment.as_bytes(), &mut decoded, &mut spans);
    let part = |range: std::ops::Range<usize>| {
        String::from_utf8_lossy(decoded.get(range).unwrap_or_default()).into_owned()
    };
    spans.iter().map(|span| (part(span.start..span.middle), part(span.middle..span.end))).collect()
}

fn assert_tags(comment: &str, expected: &[(&str, &str)]) {
    let expected: Vec<_> =
        expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    assert_eq!(tags(comment), expected, "{comment}");
}

#[test]
fn sqlcommenter_is_decoded() {
    assert_tags("/*app='a%3Ab',controller='x'*/", &[("app", "a:b"), ("controller", "x")]);
    assert_tags(r"/*route='%2Fit\'s',app='y'*/", &[("route", "/it's"), ("app", "y")]);
    assert_tags("/*k%65y='v'*/", &[("key", "v")]);
    assert_tags(
        "/* traceparent='00-5bd66ef5095369c7b0d1f8f4bd33716a-c532cb4098ac3dd2-01' , app='x' */",
        &[("traceparent", "00-5bd66ef5095369c7b0d1f8f4bd33716a-c532cb4098ac3dd2-01"), ("app", "x")],
    );
}

#[test]
fn rails_and_marginalia_are_read() {
    assert_tags(
        "/*application:Shop,controller:orders,action:show*/",
        &[("application", "Shop"), ("controller", "orders"), ("action", "show")],
    );
    assert_tags(
        "/*application:My Shop,line:/a/b.rb:12:in `x'*/",
        &[("application", "My Shop"), ("line", "/a/b.rb:12:in `x'")],
    );
    assert_tags("/* app=a:b:c */", &[("app", "a:b:c")]);
    assert_tags("-- app=x, team=y", &[("app", "x"), ("team", "y")]);
    assert_tags("# app=x team=y", &[("app", "x"), ("team", "y")]);
}

#[test]
fn vitess_directives_are_read_in_lower_case() {
    assert_tags(
        "/*vt+ WORKLOAD_NAME=etl PRIORITY=70 */",
        &[("workload_name", "etl"), ("priority", "70")],
    );
    assert_tags("/*vt+ ALLOW_SCATTER WORKLOAD_NAME='etl' */", &[("workload_name", "etl")]);
}

#[test]
fn whatever_is_malformed_ends_the_tags_of_its_comment() {
    assert_tags("/*app='x',b='unfinished*/", &[("app", "x")]);
    assert_tags("/*app='x',b='%zz',c='y'*/", &[("app", "x")]);
    assert_tags("/*app='x'y,c='z'*/", &[]);
    assert_tags("/*app='a%00b'*/", &[]);
    assert_tags("/*app='a\nb'*/", &[]);
    assert_tags("/* just some prose, app=x */", &[]);
    assert_tags("/* key with space=x */", &[]);
    assert_tags("/*=x*/", &[]);
    assert_tags("/*app*/", &[]);
    assert_tags("/*app=*/", &[]);
    assert_tags("/*app=,b=c*/", &[("b", "c")]);
    assert_tags("/**/", &[]);
    assert_tags("/*/", &[]);
    assert_tags(r"/*app='x\*/", &[]);
}

#[test]
fn keys_values_and_their_number_are_bounded() {
    let longest = "x".repeat(PART_MAX);
    assert_eq!(tags(&format!("/*app='{longest}'*/")).len(), 1);
    assert_eq!(tags(&format!("/*app='{longest}x'*/")).len(), 0);
    assert_eq!(tags(&format!("/*app={longest}x*/")).len(), 0);
    assert_eq!(tags(&format!("/*{longest}=y*/")).len(), 1);
    assert_eq!(tags(&format!("/*{longest}x=y*/")).len(), 0);
    assert_eq!(tags(&format!("/*app='{}'*/", "%41".repeat(PART_MAX))).len(), 1);
    let many: String = (0..1000).map(|n| format!("k{n}=v,")).collect();
    assert_eq!(tags(&format!("/*{many}*/")).len(), TAGS_MAX);
}

#[test]
fn tools_are_known_by_the_first_word_of_their_comment() {
    let tool = |comment: &str| Tool::of_comment(comment.as_bytes());
    assert_eq!(tool("/* gh-ost */"), Some(Tool::GhOst));
    assert_eq!(tool("/* gh-ost `db`.`_tbl_gho` */"), Some(Tool::GhOst));
    assert_eq!(
        tool("/*pt-online-schema-change 4711 copy nibble*/"),
        Some(Tool::PtOnlineSchemaChange)
    );
    assert_eq!(
        tool("/* pt-online-schema-change */"),
        Some(Tool::PtOnlineSchemaChange),
        "as ANALYZE TABLE has it"
    );
    assert_eq!(tool("/* pt-table-checksum */"), Some(Tool::PtTableChecksum));
    assert_eq!(tool("/* gh-ostrich */"), None);
    assert_eq!(tool("/* not gh-ost */"), None);
}

#[test]
fn tools_are_known_by_the_comments_that_they_always_say() {
    let tool = |comment: &str| Tool::of_comment(comment.as_bytes());
    for said in ["/*checksum chunk*/", "/*checksum table*/"] {
        assert_eq!(tool(said), Some(Tool::PtTableChecksum), "{said}");
    }
    for said in ["/*maintenance:lhm*/", "/* large hadron migration */"] {
        assert_eq!(tool(said), Some(Tool::Lhm), "{said}");
    }
    let others = [
        "/*checksum chunks of the archive*/",
        "/* a large hadron migration */",
        "/*maintenance:lhm,controller:x*/",
        "/*maintenance:lhmx*/",
    ];
    for said in others {
        assert_eq!(tool(said), None, "{said}");
    }
    assert_tags("/*maintenance:lhm*/", &[("maintenance", "lhm")]);
    assert_tags("/*application:ghostferry*/", &[("application", "ghostferry")]);
}

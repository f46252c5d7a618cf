use super::node::{MappingEntry, Node, Value, parse};
use super::*;

fn text(line: u32, text: &str) -> Node {
    Node { line, value: Value::Text(text.into()) }
}

fn entry(line: u32, key: &str, node: Node) -> MappingEntry {
    MappingEntry { key: key.into(), line, node }
}

#[test]
fn lines_are_those_of_the_text() {
    let yaml = "\
a: one
# a comment

b:
  - two
  - c: three
    d: [four,
        5]
  -
    - six
\"e f\": >
  folded
  text
g: {h: true, i: ~,
    j: 1.5}
";
    let list = |line, list| Node { line, value: Value::List(list) };
    let number = |line, number| Node { line, value: Value::Integer(number) };
    let expected = vec![
        entry(1, "a", text(1, "one")),
        entry(
            4,
            "b",
            list(
                4,
                vec![
                    text(5, "two"),
                    Node {
                        line: 6,
                        value: Value::Mapping(vec![
                            entry(6, "c", text(6, "three")),
                            entry(7, "d", list(7, vec![text(7, "four"), number(8, 5)])),
                        ]),
                    },
                    list(10, vec![text(10, "six")]),
                ],
            ),
        ),
        entry(11, "e f", text(11, "folded text\n")),
        entry(
            14,
            "g",
            Node {
                line: 14,
                value: Value::Mapping(vec![
                    entry(14, "h", Node { line: 14, value: Value::Flag(true) }),
                    entry(14, "i", Node { line: 14, value: Value::Nothing }),
                    entry(15, "j", Node { line: 15, value: Value::Float(1.5) }),
                ]),
            },
        ),
    ];
    assert_eq!(parse(yaml).unwrap().value, Value::Mapping(expected));
}

#[test]
fn aliases_repeat_what_they_name() {
    let node = parse("a: &x [1, {b: 2}]\nc: *x\n").unwrap();
    let Value::Mapping(entries) = node.value else { panic!("{node:?}") };
    assert_eq!(entries[0].node.value, entries[1].node.value);
    assert_eq!(entries[1].line, 2);
}

#[test]
fn text_that_is_not_yaml_has_one_fault_with_its_line() {
    let cases = [
        ("a: [1,\nb: 2\n", 2),
        ("a: 1\n\tb: 2\n", 2),
        ("a: *nowhere\n", 1),
        ("a: 1\nb: @x\n", 2),
        ("a: 1\n--- \nb: 2\n", 1),
        ("? [a, b]\n: c\n", 1),
        ("a: !tagged b\n", 1),
        ("a: \"unfinished\n", 2),
    ];
    for (yaml, line) in cases {
        let fault = parse(yaml).expect_err(yaml);
        assert!(fault.message.starts_with("not valid YAML: "), "{yaml}: {fault}");
        assert!((line..=line + 1).contains(&fault.line), "{yaml}: {fault}");
    }
    let tabs = parse("a:\n\tb: 2\n").expect_err("a tab");
    assert!(tabs.message.contains("tabs"), "{tabs}");
}

#[test]
fn aliases_that_unfold_to_a_huge_file_are_refused() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let before = format!("*a{}", level - 1);
        let list = vec![before; 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{list}]\n"));
    }
    let fault = parse(&bomb).expect_err("a bomb");
    assert!(
        fault.message.contains("limit exceeded") || fault.message.contains("aliases"),
        "{fault}"
    );
    let wide = format!("a: &a [{}]\nb: [{}]\n", "x,".repeat(5_000), "*a,".repeat(5_000));
    let fault = parse(&wide).expect_err("a wide bomb");
    assert!(fault.message.contains("what aliases repeat"), "{fault}");
}

#[test]
fn nesting_without_end_is_refused() {
    let deep = format!("a: {}", "[".repeat(10_000));
    assert!(parse(&deep).is_err());
    let deep = format!("a: {}{}", "[".repeat(500), "]".repeat(500));
    assert!(parse(&deep).unwrap_err().message.contains("recursion limit"));
}

#[test]
fn durations_have_a_unit() {
    let ms = |ms| Some(Duration::from_millis(ms));
    let cases = [
        ("250ms", ms(250)),
        ("5s", ms(5_000)),
        ("1.5s", ms(1_500)),
        ("0.3s", ms(300)),
        ("10m", ms(600_000)),
        ("1h", ms(3_600_000)),
        ("2d", ms(172_800_000)),
        ("0s", ms(0)),
        ("5 s", ms(5_000)),
        ("1h30m", ms(5_400_000)),
        ("1m30.5s", ms(90_500)),
        ("1m 30s", None),
        ("1d2h3m4s5ms", ms(93_784_005)),
        ("30m1h", None),
        ("1h1h", None),
        ("1.5h30m", None),
        ("1h30", None),
        ("1hm", None),
        ("1h ", None),
        ("5", None),
        ("s", None),
        ("-5s", None),
        ("5 parsecs", None),
        ("1.2.3s", None),
        (".s", None),
        ("", None),
        ("99999999999d", None),
        ("1e3s", None),
        ("NaNs", None),
    ];
    for (text, expected) in cases {
        assert_eq!(parse_duration(text), expected, "{text}");
    }
}

#[test]
fn what_must_be_quoted_is_said_to_be() {
    for (value, remedy) in [
        ("*etl", r#"`*etl` without quotes is an alias: write "*etl""#),
        ("*", r#"`*` without quotes is an alias: write "*""#),
        ("!etl", r#"`!etl` without quotes is a tag: write "!etl""#),
        ("@etl", r#"`@etl` without quotes is reserved: write "@etl""#),
        ("`etl`", r#"``etl`` without quotes is reserved: write "`etl`""#),
        ("%etl", r#"`%etl` without quotes is reserved: write "%etl""#),
    ] {
        for text in [
            format!("a: 1\nb:\n  app: {value}\nc: 2\n"),
            format!("a: 1\nb: x\nm: {{ user: \"*\", app: {value} }}\nc: 2\n"),
            format!("a: 1\nb:\n  - {value}\n"),
            format!("a: 1\nb: x\nc: [e, {value}]\n"),
        ] {
            let fault = parse(&text).unwrap_err();
            assert!(fault.message.contains(remedy), "{text}{fault}");
            assert_eq!(fault.line, 3, "{text}{fault}");
        }
    }
    let fault = parse("a: [1\nb: 2\n").unwrap_err();
    assert!(!fault.message.contains("quotes"), "{fault}");
}

use super::*;

fn of(text: &str) -> Vec<String> {
    let all = statements(text.as_bytes()).into_iter();
    all.map(|sql| String::from_utf8(sql).unwrap()).collect()
}

#[test]
fn statements_end_at_the_delimiter_outside_quotes() {
    let text = "# a comment; with a sign\n--disable_warnings\nselect 'a;b', \"c\\\";\";\nlet $x= 1;\n\
        if ($x)\n{\n  --skip no\n}\ncreate table t1 (a int);\neval select $x;\neval select 2;";
    let expected = ["select 'a;b', \"c\\\";\"", "create table t1 (a int)", "select 2"];
    assert_eq!(of(text), expected);
}

#[test]
fn another_delimiter_holds_until_the_next() {
    let text = "delimiter //;\ncreate procedure p() begin select 1; end//\nselect 2//\ndelimiter ;//\nselect 3;";
    assert_eq!(of(text), ["create procedure p() begin select 1; end", "select 2", "select 3"]);
}

use super::*;

fn only_step(line: &str) -> Step {
    let mut corpus = parse("t", line).unwrap();
    assert_eq!(corpus.steps.len(), 1);
    corpus.steps.remove(0)
}

#[test]
fn a_line_without_a_verb_is_a_statement() {
    let step = only_step("\n# for people\n  SELECT 1 # '@both'  \n");
    assert_eq!(step.line, 3);
    assert_eq!(step.expected, Expected::Success);
    assert_eq!(step.verb, Verb::Text(b"SELECT 1 # '@both'".to_vec()));
}

#[test]
fn expectations_stand_in_front() {
    assert_eq!(only_step("[!] SELECT").expected, Expected::Error);
    assert_eq!(only_step("[?] @both SELECT").expected, Expected::Either);
    let step = only_step("[mariadb] SELECT 1");
    assert_eq!(step.expected, Expected::SuccessOn(Flavour::MariaDb));
    assert!(parse("t", "[oracle] SELECT 1").is_err());
}

#[test]
fn bytes_and_repetitions_are_written_out() {
    let step = only_step("SELECT '{{repeat ab 3}}{{hex 00 fF}}'");
    assert_eq!(step.verb, Verb::Text(b"SELECT 'ababab\x00\xff'".to_vec()));
    assert!(parse("t", "SELECT {{hex zz}}").is_err());
    assert!(parse("t", "SELECT {{hex 00").is_err());
}

#[test]
fn parameters_have_the_width_of_their_kind() {
    let step = only_step("@execute s cursor tiny=-1 null text={{hex 61 20}}b ushort=65535 long");
    let Verb::Execute { name, cursor, types, params } = step.verb else { panic!("not execute") };
    assert_eq!((name.as_str(), cursor, types), ("s", Cursor::ReadOnly, Types::Sent));
    assert_eq!(
        params,
        [
            Param::encoded(0x01, b"\xff"),
            Param::null(),
            Param::encoded(0xfd, b"a b"),
            Param::encoded(0x8002, b"\xff\xff"),
            Param::long_data(),
        ]
    );
}

#[test]
fn the_corpus_is_read_and_large_enough() {
    let corpora = read_all().unwrap();
    let statements: usize =
        corpora.iter().flat_map(|c| &c.steps).map(|step| step.verb.statements()).sum();
    assert!(statements >= 300, "only {statements}");
}

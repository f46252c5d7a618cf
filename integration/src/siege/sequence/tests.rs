use super::*;

#[test]
fn what_is_written_is_read_again() {
    let entry = Entry {
        user: "'besieged'".into(),
        leg: Leg::Front,
        tls: true,
        compress: Some('z'),
        without: 0x100_0000,
        with: 8,
        collation: 28,
        ahead: b"\x01\0 \x03".to_vec(),
    };
    let acts = [
        Act::Query(b"SELECT '\xe5\\'; -- '".to_vec()),
        Act::Padded(17_000_000, b"SELECT 1".to_vec()),
        Act::Prepare(b"SELECT ?".to_vec()),
        Act::Execute { nth: 0, flags: 1, params: vec![b"a b".to_vec(), Vec::new()] },
        Act::LongData { nth: 2, data: b"\n".to_vec() },
        Act::Command(vec![0x1f]),
        Act::Frames(2, b"\x01\0\0\0\x0e".to_vec()),
        Act::ChangeUser("sealed".into(), 33),
        Act::Infile(b"1\t2".to_vec()),
    ];
    let steps = acts.into_iter().zip(0..).map(|(act, n)| Step {
        conn: n % 2,
        joined: n % 3 == 0,
        cut: (n % 4 == 0).then_some(u16::from(n)),
        act,
    });
    let sequence = Sequence { name: "two words".into(), entry, steps: steps.collect() };
    let plain = Sequence::new("another", [Act::Query(b"SELECT 1".to_vec())]);
    let text = format!("# for people\n{sequence}\n{plain}");
    assert_eq!(Sequence::parse_all(&text).unwrap(), [sequence, plain]);
}

#[test]
fn a_line_that_is_no_step_is_named() {
    let error = Sequence::parse_all("sequence a\nqueery SELECT 1").unwrap_err();
    assert_eq!(error.to_string(), "malformed: line 2: not a step: queery SELECT 1");
}

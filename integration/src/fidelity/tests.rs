use super::*;

fn record(source: &str, packets: &[(u8, &[u8])]) -> Record {
    let packets =
        packets.iter().map(|(seq, payload)| Packet { seq: *seq, payload: payload.to_vec() });
    Record { place: "t:1".into(), source: source.into(), packets: packets.collect() }
}

const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
const ERR: &[u8] = b"\xff\x28\x04#42000no";

#[test]
fn a_changed_byte_a_changed_sequence_id_and_a_missing_packet_are_differences() {
    let direct = [record("SELECT 1", &[(1, b"a"), (2, OK)])];
    assert!(differences(&direct, &direct).is_empty());
    let others: [&[(u8, &[u8])]; 4] = [
        &[(1, b"b"), (2, OK)],
        &[(1, b"a"), (3, OK)],
        &[(1, b"a")],
        &[(1, b"a"), (2, OK), (3, OK)],
    ];
    for other in others {
        assert_eq!(differences(&direct, &[record("SELECT 1", other)]).len(), 1, "{other:?}");
    }
    assert_eq!(differences(&direct, &[]).len(), 1);
}

#[test]
fn an_outcome_other_than_the_expected_is_a_surprise() {
    let corpus =
        corpus::parse("t", "SELECT 1\n[!] SELECT 2\n[mysql] SELECT 3\n[?] SELECT 4").unwrap();
    let outcomes = |packets: [&[u8]; 4]| {
        let login = record("the login", &[(2, OK)]);
        let steps = packets.into_iter().map(|payload| record("SELECT", &[(1, payload)]));
        std::iter::once(login).chain(steps).collect::<Vec<_>>()
    };
    let surprises_on = |flavour, packets| surprises(flavour, &corpus, &outcomes(packets)).len();
    assert_eq!(surprises_on(Flavour::MySql, [OK, ERR, OK, ERR]), 0);
    assert_eq!(surprises_on(Flavour::MariaDb, [OK, ERR, ERR, OK]), 0);
    assert_eq!(surprises_on(Flavour::MySql, [ERR, OK, ERR, OK]), 3);
}

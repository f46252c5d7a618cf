//! Streams of events that a replica acknowledges, as servers number them.

use super::*;

const EVENT: &[u8] = b"\0\xef\0an event of a transaction";
const LAST: &[u8] = b"\0\xef\x01the last event of a transaction";
const ACKNOWLEDGEMENT: &[u8] = b"\xef\x04\x01\0\0\0\0\0\0binlog.000001";

/// A replica and the end that it speaks to, within a stream.
fn streaming(algorithm: Algorithm, restart: u8) -> (End, End) {
    let (mut replica, mut server) = both(algorithm);
    server.read_whole(&replica.pack(&frame(0, b"\x1e a stream, please")));
    server.leg.begin_stream(restart);
    (replica, server)
}

#[test]
fn numbers_begin_anew_behind_an_event_that_is_acknowledged_and_nowhere_else() {
    for (algorithm, restart) in ALGORITHMS.into_iter().flat_map(|a| [(a, 0), (a, 1)]) {
        let (mut replica, mut server) = streaming(algorithm, restart);
        let events = [frame(1, EVENT), frame(2, LAST), frame(1, EVENT), frame(2, EVENT)].concat();
        let wire = server.pack(&events);
        assert_eq!(numbers(&wire), [1, restart]);
        assert_eq!(ids(&replica.read_whole(&wire)).len(), 4);
        // Sent ahead of the acknowledgement, and behind it.
        assert_eq!(numbers(&server.pack(&frame(3, EVENT))), [restart + 1]);
        let acknowledgement = frame(0, ACKNOWLEDGEMENT);
        let read = server.read_whole(&replica.pack(&acknowledgement));
        assert_eq!(read, acknowledgement);
        assert_eq!(numbers(&server.pack(&frame(4, LAST))), [restart + 2]);
        assert_eq!(numbers(&server.pack(&frame(1, EVENT))), [restart]);
        // A command waits for the end of the stream, and its answer counts from it.
        server.read_whole(&replica.pack(&frame(0, b"\x03SELECT 1")));
        assert_eq!(numbers(&server.pack(&frame(2, &[0xfe, 0, 0, 2, 0]))), [restart + 1]);
        server.leg.end_stream();
        assert_eq!(numbers(&server.pack(&frame(1, b"\0\0\0\x02\0\0\0"))), [1]);
    }
}

#[test]
fn what_carries_on_an_event_is_none_that_is_acknowledged() {
    let (_, mut server) = streaming(Algorithm::Zstd, 0);
    let mut event = frame(1, &vec![0; MAX_PAYLOAD_LEN]);
    event.extend(frame(2, LAST));
    let sent = numbers(&server.pack(&event));
    let next = sent.last().unwrap() + 1;
    assert_eq!(numbers(&server.pack(&frame(3, LAST))), [next]);
    assert_eq!(numbers(&server.pack(&frame(1, EVENT))), [0]);
}

#[test]
fn a_result_that_looks_like_an_event_is_numbered_as_a_result() {
    let (mut client, mut server) = both(Algorithm::Zlib);
    server.read_whole(&client.pack(&frame(0, b"\x03SELECT 1")));
    assert_eq!(numbers(&server.pack(&[frame(1, LAST), frame(2, LAST)].concat())), [1]);
    assert_eq!(numbers(&server.pack(&frame(3, LAST))), [2]);
}

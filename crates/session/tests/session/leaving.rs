//! Whoever must leave during its login is told so under the sequence id that it reads next.

use session::{CloseReason, Reads, Side};

use crate::driver::*;

const SSL: u32 = 0x800;
const CAPS: u32 = 0x0108_8200;
const NO: &[u8] = b"\xff\xb5\x04#HY000no";

/// The last answer, if there is one.
fn told(mut driver: Driver) -> Option<Vec<u8>> {
    let client = std::mem::take(&mut driver.client);
    let is_told = driver.session.handle_told_to_leave(&client, &refusal());
    let answer = is_told.then(|| driver.session.outbox().to_vec());
    let stop = driver.run();
    assert!(matches!(stop, Stop::Close(CloseReason::Told)), "{stop:?}");
    answer
}

fn greeted() -> Driver {
    let mut driver = Driver::with_cluster("backend_tls: { mode: disabled }");
    driver.backend.extend(greeting(CAPS));
    driver.run();
    driver
}

/// The client has asked for TLS.
fn in_handshake() -> Driver {
    let mut driver = greeted();
    let payload = payload(CAPS | SSL);
    driver.client.extend(frame(1, payload.get(..32).unwrap_or_default()));
    assert!(matches!(driver.run(), Stop::StartTls(Side::Client)));
    driver
}

/// Within TLS, and the response is to come.
fn encrypted() -> Driver {
    let mut driver = in_handshake();
    driver.session.handle_encrypted(Side::Client);
    driver
}

/// Of a response.
fn payload(capabilities: u32) -> Vec<u8> {
    response(capabilities).get(4..).unwrap_or_default().to_vec()
}

/// Packets of either side, one after the other.
fn then(mut driver: Driver, packets: &[(Side, Vec<u8>)]) -> Driver {
    for (side, packet) in packets {
        match side {
            Side::Client => driver.client.extend(packet),
            Side::Backend => driver.backend.extend(packet),
        }
        let stop = driver.run();
        assert!(matches!(stop, Stop::Reads(_)), "{stop:?}");
    }
    driver
}

#[test]
fn before_the_greeting_an_error_stands_in_its_place() {
    assert_eq!(told(Driver::new(UNGATED)), Some(frame(0, b"\xff\xb5\x04no")));
}

#[test]
fn a_client_that_has_not_responded_is_answered_as_if_it_had() {
    assert_eq!(told(greeted()), Some(frame(2, NO)));
    assert_eq!(told(encrypted()), Some(frame(3, NO)));
    let mut begun = greeted();
    begun.client.extend(&response(CAPS)[..10]);
    assert_eq!(told(begun), Some(frame(2, NO)));
}

#[test]
fn nothing_is_said_into_a_handshake_of_tls() {
    assert_eq!(told(in_handshake()), None);
}

#[test]
fn within_the_exchange_the_answer_follows_what_the_client_says_next() {
    let switch = |sequence| frame(sequence, b"\xfecaching_sha2_password\0saltsaltsaltsaltsalt\0");
    let responded = || then(greeted(), &[(Side::Client, response(CAPS))]);
    assert_eq!(told(responded()), Some(frame(2, NO)), "the server is slow");
    let asked = || then(responded(), &[(Side::Backend, switch(2))]);
    assert_eq!(told(asked()), Some(frame(4, NO)), "the client is");
    let answered = || then(asked(), &[(Side::Client, frame(3, b"hash"))]);
    assert_eq!(told(answered()), Some(frame(4, NO)));
    let known = then(answered(), &[(Side::Backend, frame(4, b"\x01\x03"))]);
    assert_eq!(told(known), Some(frame(5, NO)), "nothing is said to that");
    let unknown = then(answered(), &[(Side::Backend, frame(4, b"\x01\x04"))]);
    assert_eq!(told(unknown), Some(frame(6, NO)));
    let sealed = [
        (Side::Client, frame(2, &payload(CAPS | SSL))),
        (Side::Backend, switch(2)),
        (Side::Client, frame(4, b"hash")),
        (Side::Backend, frame(4, b"\x01\x04")),
        (Side::Client, frame(6, b"secret\0")),
    ];
    let waiting = then(encrypted(), &sealed);
    assert!(waiting.session.awaits_key(), "Sluice has asked, and nobody else");
    assert_eq!(told(waiting), Some(frame(7, NO)), "ids of the client's leg");
    assert!(!then(encrypted(), &sealed[..4]).session.awaits_key());
}

#[test]
fn a_change_of_user_is_answered_as_the_command_that_it_is() {
    let mut driver = Driver::logged_in(UNGATED, 0);
    driver.command(b"\x11etl\0\0\0\x2d\0mysql_native_password\0");
    assert_eq!(told(driver), Some(frame(1, NO)));
}

/// It was closed without a word: a command that has no answer was taken for one that has been answered.
#[test]
fn who_is_in_the_middle_of_long_data_is_told_as_mysql_would_tell_it() {
    let half_sent = |commands: &[Vec<u8>]| {
        let mut driver = Driver::logged_in(UNGATED, 0);
        for command in commands {
            driver.client.extend(command);
        }
        assert!(matches!(driver.run(), Stop::Reads(Reads::Either)));
        assert!(driver.session.awaits_rest());
        driver
    };
    let long_data = b"\x18\x01\0\0\0\0\0";
    let begun = |sequence, len: usize, sent: usize| {
        let mut frame = frame(sequence, &vec![b'x'; len]);
        frame.truncate(4 + sent);
        frame
    };
    let mut large = begun(0, 2_000_000, 1_500_000);
    large.splice(4..11, *long_data);
    assert_eq!(told(half_sent(&[large.clone()])), Some(frame(1, NO)));
    let mut first = begun(0, 0xff_ffff, 0xff_ffff);
    first.splice(4..11, *long_data);
    assert_eq!(told(half_sent(&[first, begun(1, 9, 5)])), Some(frame(2, NO)));
    let mut server_spoke = half_sent(&[large]);
    server_spoke.backend.extend(frame(1, NO));
    server_spoke.run();
    assert_eq!(server_spoke.to_client, frame(1, NO));
    assert!(!server_spoke.session.handle_told_to_leave(&[], &refusal()), "it has been told");
}

//! Any bytes, from either side, cut anywhere.

use proptest::collection::vec;
use proptest::prelude::*;
use testkit::{Cut, cuts};

use crate::driver::*;

/// Runs until more bytes are needed or the session has closed; whatever is asked for is admitted.
fn settle(driver: &mut Driver) -> bool {
    loop {
        match driver.run() {
            Stop::Reads(_) => return true,
            // Nobody answers these here: no TLS, no keys.
            Stop::Close(_) | Stop::StartTls(_) | Stop::Crypt(_) => return false,
            Stop::Ask(_) | Stop::Deny => driver.admit(),
            Stop::LoggedIn | Stop::Finished(_) => {}
        }
    }
}

/// Gives both streams to a session, one piece of each in turn.
fn relay(mut driver: Driver, client: &[&[u8]], backend: &[&[u8]]) -> (Vec<u8>, Vec<u8>) {
    for index in 0..client.len().max(backend.len()) {
        driver.client.extend_from_slice(client.get(index).copied().unwrap_or_default());
        if !settle(&mut driver) {
            break;
        }
        driver.backend.extend_from_slice(backend.get(index).copied().unwrap_or_default());
        if !settle(&mut driver) {
            break;
        }
    }
    (driver.to_backend, driver.to_client)
}

fn command() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(b"\x03SELECT 1 /*app=a*/".to_vec()),
        Just(b"\x03INSERT INTO t VALUES ('; DROP TABLE t')".to_vec()),
        Just(b"\x03BEGIN".to_vec()),
        Just(b"\x0e".to_vec()),
        Just(b"\x16SELECT ?".to_vec()),
        Just(b"\x17\x01\0\0\0\0\x01\0\0\0".to_vec()),
        Just(b"\x1f".to_vec()),
        Just(b"\x02test".to_vec()),
        // Commands that one OK answers, with anything behind their first byte.
        (prop::sample::select(&b"\x03\x17\x18\x19\x1a\x02\x11"[..]), vec(any::<u8>(), 0..40))
            .prop_map(|(command, rest)| [&[command], rest.as_slice()].concat()),
    ]
}

proptest! {
    #[test]
    fn any_bytes_of_a_client_leave_the_session_standing(
        bytes in vec(any::<u8>(), 0..400), seed in any::<u64>(), before_login in any::<bool>(),
    ) {
        let driver = if before_login {
            let mut driver = Driver::new(GATED);
            driver.backend.extend(greeting(0x0108_8200));
            driver
        } else {
            Driver::logged_in(GATED, 0)
        };
        relay(driver, &cuts(&bytes, Cut::Random(seed)), &[]);
    }

    #[test]
    fn any_bytes_of_a_server_leave_the_session_standing(
        bytes in vec(any::<u8>(), 0..400), seed in any::<u64>(), before_login in any::<bool>(),
    ) {
        let driver =
            if before_login { Driver::new(GATED) } else { Driver::logged_in(GATED, 0) };
        let commands = [frame(0, b"\x03SELECT 1"), frame(0, b"\x16SELECT 1")].concat();
        relay(driver, &[&commands], &cuts(&bytes, Cut::Random(seed)));
    }

    #[test]
    fn where_a_clients_bytes_are_cut_changes_nothing(
        commands in vec(command(), 1..8), seed in any::<u64>(),
    ) {
        let client: Vec<u8> = commands.iter().flat_map(|command| frame(0, command)).collect();
        // Each command is answered by one OK, whatever it was: the answers are there beforehand.
        let run = |cut| {
            let mut driver = Driver::logged_in(UNGATED, 0);
            for piece in cuts(&client, cut) {
                driver.client.extend_from_slice(piece);
                while let Stop::Reads(session::Reads::Backend) = until_read(&mut driver) {
                    driver.backend.extend(ok(1, STATUS_AUTOCOMMIT));
                }
            }
            (driver.to_backend, driver.to_client)
        };
        let whole = run(Cut::Whole);
        prop_assert_eq!(&run(Cut::EveryByte), &whole);
        prop_assert_eq!(&run(Cut::Random(seed)), &whole);
    }
}

fn until_read(driver: &mut Driver) -> Stop {
    loop {
        match driver.run() {
            Stop::LoggedIn | Stop::Finished(_) => {}
            Stop::Ask(_) | Stop::Deny => driver.admit(),
            stop @ (Stop::Reads(_) | Stop::Close(_) | Stop::StartTls(_) | Stop::Crypt(_)) => {
                return stop;
            }
        }
    }
}

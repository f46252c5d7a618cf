//! What a KILL QUERY may have left at the server meets a COM_PING of Sluice's own, and nothing of the
//! client's.

use session::Reads;

use crate::driver::*;

const PING: &[u8] = b"\x0e";
const INTERRUPTED: u16 = 1317;

/// A statement has ended by itself while a KILL was on its way to it, and the next one comes.
fn crossed() -> Driver {
    let mut driver = Driver::logged_in(UNGATED, 0);
    driver.passes("SELECT 1", STATUS_AUTOCOMMIT);
    driver.session.handle_stale_kill();
    driver.to_client.clear();
    driver.to_backend.clear();
    driver
}

#[test]
fn the_next_command_waits_until_what_is_left_of_a_kill_has_been_met() {
    for answer in [ok(1, STATUS_AUTOCOMMIT), err(1, INTERRUPTED)] {
        let mut driver = crossed();
        assert!(matches!(driver.query("COMMIT"), Stop::Reads(Reads::Backend)));
        assert_eq!(driver.to_backend, frame(0, PING), "the client's command waits");
        driver.to_backend.clear();
        driver.backend.extend(answer);
        assert!(matches!(driver.run(), Stop::Reads(Reads::Backend)));
        assert_eq!(driver.to_backend, frame(0, b"\x03COMMIT"));
        assert!(driver.to_client.is_empty(), "nobody is told");
        let finished = driver.answer(&ok(1, STATUS_AUTOCOMMIT));
        assert_eq!(finished.response.and_then(|response| response.error), None);
        assert_eq!(driver.to_client, ok(1, STATUS_AUTOCOMMIT), "one answer");
    }
}

#[test]
fn it_is_met_before_anything_comes_and_only_once() {
    let mut driver = crossed();
    assert!(matches!(driver.run(), Stop::Reads(Reads::Backend)));
    assert_eq!(driver.to_backend, frame(0, PING));
    driver.backend.extend(err(1, INTERRUPTED));
    assert!(matches!(driver.run(), Stop::Reads(Reads::Either)));
    driver.to_backend.clear();
    driver.passes("SELECT 2", STATUS_AUTOCOMMIT);
    assert_eq!(driver.to_backend, frame(0, b"\x03SELECT 2"));
}

//! Both sides' bytes, cuts and decisions out of one input. What is held:
//!
//! * nothing panics, and nothing goes round in circles (the driver counts);
//! * of a refused statement nothing reaches the server, and the client gets one error for it, with the
//!   sequence id that follows its own;
//! * what is not refused reaches the server as it was sent, in order, wherever it was cut;
//! * a write reaches the server only if it was asked for and admitted.

use std::cell::OnceCell;
use std::sync::Arc;

use policy::ClusterPolicy;
use session::{ClientInfo, Crypt, Leg, Password, Reads, ServerFacts, Session, Side};
use testkit::{Cut, Input, cuts};

use crate::driver::*;

/// Runs an input.
pub(crate) fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let kind = input.u8();
    match kind & 1 {
        0 => anything(&mut input, kind),
        _ => answered(&mut input, kind),
    }
}

/// Any bytes of either side, before a login or behind it.
fn anything(input: &mut Input<'_>, kind: u8) {
    let capabilities = input.u32();
    let driver = if kind & 2 == 0 { fresh() } else { logged_in(capabilities & WITHOUT_ZSTD) };
    let mut run = Run { driver, refused: None, admitted: 0 };
    while !input.is_empty() {
        match input.u8() % 8 {
            0 => run.client(input.chunk()),
            1 => run.driver.backend.extend_from_slice(input.chunk()),
            2 | 3 => run.client(&frame(0, input.chunk())),
            4 | 5 => {
                let sequence = input.u8();
                run.driver.backend.extend(frame(sequence, input.chunk()));
            }
            6 => {
                if run.driver.session.is_idle() {
                    run.driver.session.handle_new_policy();
                }
            }
            _ => {
                let client = std::mem::take(&mut run.driver.client);
                run.driver.session.handle_told_to_leave(&client, &refusal());
                run.driver.client = client;
                run.refused = None;
            }
        }
        if !run.settle(|| input.u8()) {
            return;
        }
    }
}

/// A server that answers every command as it should, and a client that sends any commands.
fn answered(input: &mut Input<'_>, kind: u8) {
    let (seed, decisions) = (u64::from(input.u8()), input.u16());
    let mut commands = Vec::new();
    while !input.is_empty() && commands.len() < COMMANDS_MAX {
        // A quit with a body is not waited for, so what of it the server sees depends on the cuts.
        let command = input.chunk();
        commands.push(frame(0, if command.starts_with(&[1]) { &[1] } else { command }));
    }
    let client = commands.concat();
    let run = |cut| {
        let driver = logged_in(if kind & 2 == 0 { 0 } else { CLIENT_QUERY_ATTRIBUTES });
        let mut run = Run { driver, refused: None, admitted: 0 };
        let (mut answers, mut asked) = (0, 0_u32);
        for piece in cuts(&client, cut) {
            run.client(piece);
            let decide = || {
                asked += 1;
                // One in two is refused, or none, or all.
                u8::from(decisions.rotate_right(asked) & 1 != 0)
            };
            if !run.converse(decide, &mut answers) {
                break;
            }
        }
        run
    };
    let whole = run(Cut::Whole);
    for cut in [Cut::EveryByte, Cut::Random(seed)] {
        let other = run(cut);
        assert_eq!(other.driver.to_backend, whole.driver.to_backend, "{cut:?}");
        assert_eq!(other.driver.to_client, whole.driver.to_client, "{cut:?}");
    }
    if kind & 2 == 0 {
        admitted_only(&whole, &client);
        in_order(&whole, &commands);
    }
}

/// A write that no lock of its session exempts is in the server's bytes only as often as one was admitted.
fn admitted_only(run: &Run, client: &[u8]) {
    let lower = client.to_ascii_lowercase();
    let says = |word: &[u8]| lower.windows(word.len()).any(|window| window == word);
    if says(b"lock") {
        return;
    }
    let inserts = packets(&run.driver.to_backend)
        .filter(|packet| packet.get(4..).is_some_and(|payload| payload.starts_with(INSERT)))
        .count();
    assert!(inserts <= run.admitted, "{inserts} writes, {} admitted", run.admitted);
}

/// The server has seen the client's commands in their order, less those that an error answers.
fn in_order(run: &Run, commands: &[Vec<u8>]) {
    // Executions are repaired, and a login is a conversation.
    let others = [0x11, 0x17, 0x18, 0xfa];
    if commands.iter().any(|command| command.get(4).is_some_and(|byte| others.contains(byte))) {
        return;
    }
    let mut sent = commands.iter();
    for packet in packets(&run.driver.to_backend) {
        assert!(
            sent.any(|command| command == packet),
            "the server saw {:?}",
            packet.escape_ascii()
        );
    }
}

/// A driver with what is known of the statement that it has refused.
struct Run {
    driver: Driver,
    refused: Option<Refused>,
    admitted: usize,
}

/// A refusal under way.
struct Refused {
    /// The client's bytes from the statement's first.
    client: Vec<u8>,
    /// What had been written to either side before.
    to_backend: usize,
    to_client: usize,
}

impl Run {
    fn client(&mut self, bytes: &[u8]) {
        self.driver.client.extend_from_slice(bytes);
        if let Some(refused) = &mut self.refused {
            refused.client.extend_from_slice(bytes);
        }
    }

    /// Runs until bytes are missing; false when the connection is over.
    fn settle(&mut self, mut decide: impl FnMut() -> u8) -> bool {
        self.until_read(&mut decide).is_some()
    }

    /// The same, with a server that answers whatever waits for an answer.
    fn converse(&mut self, mut decide: impl FnMut() -> u8, answers: &mut usize) -> bool {
        loop {
            let before = self.driver.to_backend.len();
            let Some(reads) = self.until_read(&mut decide) else { return false };
            if self.driver.to_backend.len() != before {
                *answers = 0;
            }
            if reads != Reads::Backend {
                return true;
            }
            let answer = answer(&self.driver.to_backend, *answers);
            self.driver.backend.extend(answer);
            *answers += 1;
        }
    }

    fn until_read(&mut self, decide: &mut impl FnMut() -> u8) -> Option<Reads> {
        loop {
            match self.driver.run() {
                Stop::Reads(reads) => return Some(reads),
                Stop::Close(_) => return None,
                Stop::StartTls(Side::Backend) if decide() == 1 => {
                    self.driver.session.handle_not_encrypted("no".to_owned());
                }
                // The bytes that follow stand for those inside of TLS.
                Stop::StartTls(side) => self.driver.session.handle_encrypted(side),
                Stop::Crypt(crypt) => self.crypt(crypt, decide()),
                Stop::Ask(_) | Stop::Deny => self.decide(decide()),
                Stop::LoggedIn => {}
                Stop::Finished(_) => self.finished(),
            }
        }
    }

    /// Cryptography that goes as it should, or fails.
    fn crypt(&mut self, crypt: Crypt, decision: u8) {
        let session = &mut self.driver.session;
        match crypt {
            Crypt::ShowKey => session.handle_own_key(b"key\n"),
            Crypt::Seal(_) => session.handle_sealed((decision != 1).then(|| b"sealed".to_vec())),
            Crypt::Open(sealed) => {
                session.handle_opened((decision != 1).then(|| Password::new(sealed)));
            }
        }
    }

    fn decide(&mut self, decision: u8) {
        match decision {
            1 => {
                self.refused = Some(Refused {
                    client: self.driver.client.clone(),
                    to_backend: self.driver.to_backend.len(),
                    to_client: self.driver.to_client.len(),
                });
                self.driver.refuse();
            }
            2 => self.driver.judge_again(),
            _ => {
                self.admitted += 1;
                self.driver.admit();
            }
        }
    }

    fn finished(&mut self) {
        let Some(Refused { client, to_backend, to_client }) = self.refused.take() else { return };
        let command = packets(&client).next().unwrap_or_default();
        let used = client.len() - self.driver.client.len();
        assert_eq!(used, command.len(), "the whole command was dropped, and no more");
        match self.driver.to_backend.get(to_backend..).unwrap_or_default() {
            [] => {}
            reset => assert!(
                matches!(reset, [5, 0, 0, 0, 0x1a, _, _, _, _]),
                "instead of a refused command the server saw {:?}",
                reset.escape_ascii()
            ),
        }
        let sequence = last_sequence(command).wrapping_add(1);
        let error = frame(sequence, b"\xff\xb5\x04#HY000no");
        assert_eq!(self.driver.to_client.get(to_client..), Some(&error[..]));
    }
}

/// What a server says to the last command that it has seen, for the first time, and when that was not all.
fn answer(seen: &[u8], answers: usize) -> Vec<u8> {
    let command = packets(seen).last().and_then(|packet| packet.get(4)).copied();
    match (command, answers) {
        (Some(0x16), 0) => frame(1, &[0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]),
        (_, 0) => ok(1, STATUS_AUTOCOMMIT),
        (_, 1) => frame(1, &[0xfe, 0, 0, 2, 0, 0, 0]),
        _ => err(1, 1064),
    }
}

/// The whole packets of a stream, headers included.
fn packets(stream: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = stream;
    std::iter::from_fn(move || {
        let mut len = 0;
        loop {
            let [a, b, c, _] = *rest.get(len..)?.first_chunk()?;
            let frame = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
            len += 4 + frame;
            if frame < 0xff_ffff {
                break;
            }
        }
        let (packet, after) = rest.split_at_checked(len)?;
        rest = after;
        Some(packet)
    })
}

/// The sequence id of a packet's last frame.
fn last_sequence(packet: &[u8]) -> u8 {
    let whole = packet.len().saturating_sub(4) / (4 + 0xff_ffff);
    packet.get(whole * (4 + 0xff_ffff) + 3).copied().unwrap_or_default()
}

thread_local! {
    /// Reading a file takes longer than most inputs.
    static GATED_POLICY: OnceCell<Arc<ClusterPolicy>> = const { OnceCell::new() };
}

fn fresh() -> Driver {
    let client = ClientInfo { address: Some([127, 0, 0, 1].into()), leg: Leg::Network };
    Driver {
        session: Session::new(client, Leg::Network),
        policy: GATED_POLICY.with(|cell| cell.get_or_init(|| policy(GATED)).clone()),
        facts: ServerFacts::unasked(),
        now: crate::driver::CLOCKS,
        routine_changes: 0,
        guarded: 0,
        client: Vec::new(),
        backend: Vec::new(),
        to_client: Vec::new(),
        to_backend: Vec::new(),
        asked: None,
    }
}

fn logged_in(more: u32) -> Driver {
    let mut driver = fresh();
    let capabilities = 0x0108_8200 | more;
    driver.backend.extend(greeting(capabilities));
    driver.run();
    driver.client.extend(response(capabilities));
    driver.run();
    driver.backend.extend(ok(2, STATUS_AUTOCOMMIT));
    let stop = driver.run();
    assert!(matches!(stop, Stop::LoggedIn), "{stop:?}");
    driver.to_client.clear();
    driver.to_backend.clear();
    driver
}

/// What changes how commands and answers look. Whoever asks for zstd would have to name a level.
const WITHOUT_ZSTD: u32 = 0x0b20_0000;
const CLIENT_QUERY_ATTRIBUTES: u32 = 1 << 27;
/// COM_QUERY with a write.
const INSERT: &[u8] = b"\x03INSERT INTO t V";
/// Enough for anything that a command can do to a later one.
const COMMANDS_MAX: usize = 24;

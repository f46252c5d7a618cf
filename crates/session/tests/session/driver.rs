//! Drives a session as the shell does, between a scripted client and a scripted server.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's own helper")]

use std::rc::Rc;
use std::sync::Arc;

use admission::{DigestKey, MonoTime};
use policy::{ClusterPolicy, GuardReport, Priority, UnixTime};
use session::{
    Action, Answer, Ask, ClientInfo, CloseReason, Crypt, Finished, Input, KnownTexts, Leg, Move,
    Question, Reads, ServerFacts, Session, Side,
};
use sql::{Class, DigestMemo};

/// What stopped the driver.
#[derive(Debug)]
pub(crate) enum Stop {
    Reads(Reads),
    Ask(Asked),
    Deny,
    StartTls(Side),
    Crypt(Crypt),
    LoggedIn,
    Finished(Finished),
    Close(CloseReason),
}

/// What a statement is asked for with. The right to answer stays with the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) rule: u32,
    pub(crate) question: Question,
    pub(crate) class: Class,
    pub(crate) digest: Option<DigestKey>,
    pub(crate) priority: Priority,
}

/// A session with both buffers and what was written to either side.
pub(crate) struct Driver {
    pub(crate) session: Session,
    pub(crate) policy: Arc<ClusterPolicy>,
    pub(crate) facts: ServerFacts,
    /// What its thread knows of texts: sessions may share it.
    pub(crate) texts: Rc<KnownTexts>,
    /// The digests of its cluster, if statements are counted.
    pub(crate) digests: Option<Rc<DigestMemo>>,
    /// The clocks: the wall's second, and the monotonic one.
    pub(crate) now: (i64, MonoTime),
    /// How often routines were announced to change.
    pub(crate) routine_changes: u32,
    /// How often guards had something to say.
    pub(crate) guarded: u32,
    /// What they had to say the last time.
    pub(crate) report: Option<Box<GuardReport>>,
    pub(crate) client: Vec<u8>,
    pub(crate) backend: Vec<u8>,
    pub(crate) to_client: Vec<u8>,
    pub(crate) to_backend: Vec<u8>,
    pub(crate) asked: Option<Ask>,
}

/// What both clocks say at first.
pub(crate) const CLOCKS: (i64, MonoTime) = (1_800_000_000, MonoTime::ZERO);

pub(crate) const STATUS_AUTOCOMMIT: u16 = 2;
pub(crate) const STATUS_MORE_RESULTS: u16 = 8;
pub(crate) const STATUS_IN_TRANS: u16 = 1;

/// A file with these rules.
pub(crate) fn policy(rules: &str) -> Arc<ClusterPolicy> {
    policy_with("", rules)
}

/// A file with these rules and one more line of the cluster.
fn policy_with(cluster: &str, rules: &str) -> Arc<ClusterPolicy> {
    let text = format!(
        "version: 1\nadmin: {{ listen: 127.0.0.1:9307 }}\nclusters:\n  main:\n    listen: 127.0.0.1:3307\n    \
         primary: 127.0.0.1:3306\n    replicas: [127.0.0.1:3316]\n    \
         probe: {{ user: sluice, password_env: P }}\n    signals: {{ lag: {{ threshold: 1s }} }}\n    \
         {cluster}\nrules:\n{rules}"
    );
    let config = policy::load(&text).expect("the test's file is valid");
    config.clusters.first().unwrap().clone()
}

pub(crate) const GATED: &str = "  - { name: all, permanent: true }\n";
pub(crate) const UNGATED: &str = "  - { name: all, gate: none, permanent: true }\n";

impl Driver {
    /// A session before its login.
    pub(crate) fn new(rules: &str) -> Self {
        let client = ClientInfo { address: Some([127, 0, 0, 1].into()), leg: Leg::Network };
        Self::of(Session::new(client, Leg::Network), policy(rules))
    }

    /// A new session under these rules.
    pub(crate) fn of(session: Session, policy: Arc<ClusterPolicy>) -> Self {
        Self {
            session,
            policy,
            facts: ServerFacts::unasked(),
            texts: Rc::default(),
            digests: None,
            now: CLOCKS,
            routine_changes: 0,
            guarded: 0,
            report: None,
            client: Vec::new(),
            backend: Vec::new(),
            to_client: Vec::new(),
            to_backend: Vec::new(),
            asked: None,
        }
    }

    /// A session before its login whose cluster has one more line.
    pub(crate) fn with_cluster(cluster: &str) -> Self {
        Self { policy: policy_with(cluster, UNGATED), ..Self::new(UNGATED) }
    }

    /// A session after its login, with these capabilities of the client on top of the usual.
    pub(crate) fn logged_in(rules: &str, capabilities: u32) -> Self {
        Self::new(rules).log_in(capabilities)
    }

    /// A session after its login to a server of which this is known.
    pub(crate) fn logged_in_with(rules: &str, facts: ServerFacts) -> Self {
        Self { facts, ..Self::new(rules) }.log_in(0)
    }

    /// A session after its login to a server that says it has this version.
    pub(crate) fn logged_in_to(rules: &str, version: &str) -> Self {
        Self::new(rules).log_in_to(version, 0)
    }

    fn log_in(self, capabilities: u32) -> Self {
        self.log_in_to(MYSQL, capabilities)
    }

    fn log_in_to(self, version: &str, capabilities: u32) -> Self {
        let mut driver = self;
        driver.backend.extend(greeting_of(version, CAPABILITIES | capabilities));
        driver.run();
        driver.client.extend(response(CAPABILITIES | capabilities));
        driver.run();
        driver.backend.extend(ok(2, STATUS_AUTOCOMMIT));
        let stop = driver.run();
        assert!(matches!(stop, Stop::LoggedIn), "{stop:?}");
        driver.to_client.clear();
        driver.to_backend.clear();
        driver
    }

    /// Does what the session says until it needs something.
    pub(crate) fn run(&mut self) -> Stop {
        for _ in 0..100_000 {
            let input = Input {
                digests: self.digests.as_deref(),
                texts: &self.texts,
                client: &self.client,
                backend: &self.backend,
                policy: &self.policy,
                facts: &self.facts,
                now: UnixTime(self.now.0),
                mono: self.now.1,
            };
            match self.session.next(&input) {
                Action::Read(reads) => return Stop::Reads(reads),
                Action::Move(Move::Forward { from: Side::Client, len }) => {
                    self.to_backend.extend(self.client.drain(..len));
                }
                Action::Move(Move::Forward { from: Side::Backend, len }) => {
                    self.to_client.extend(self.backend.drain(..len));
                }
                Action::Move(Move::Replace { from: Side::Client, drop }) => {
                    self.client.drain(..drop);
                    self.to_backend.extend_from_slice(self.session.outbox());
                }
                Action::Move(Move::Replace { from: Side::Backend, drop }) => {
                    self.backend.drain(..drop);
                    self.to_client.extend_from_slice(self.session.outbox());
                }
                Action::Move(Move::Drop { from: Side::Client, len }) => {
                    drop(self.client.drain(..len))
                }
                Action::Move(Move::Drop { from: Side::Backend, len }) => {
                    drop(self.backend.drain(..len))
                }
                // What guards say is counted, and passes.
                Action::Guard(by_guards) => {
                    self.guarded += 1;
                    self.report = Some(by_guards.report.clone());
                    self.session.handle_guarded(by_guards, None);
                }
                Action::Ask(ask) => {
                    let Ask { rule, question, class, digest, priority, .. } = ask;
                    let rule = rule.expect("asked by a rule");
                    self.asked = Some(ask);
                    return Stop::Ask(Asked { rule, question, class, digest, priority });
                }
                Action::Deny(ask) => {
                    self.asked = Some(ask);
                    return Stop::Deny;
                }
                Action::StartTls { side, drop } => {
                    let bytes = match side {
                        Side::Client => &mut self.client,
                        Side::Backend => &mut self.backend,
                    };
                    bytes.drain(..drop);
                    return Stop::StartTls(side);
                }
                Action::Crypt(crypt) => return Stop::Crypt(crypt),
                Action::ChangeRoutines => self.routine_changes += 1,
                Action::LoggedIn => return Stop::LoggedIn,
                Action::Finished(finished) => return Stop::Finished(finished),
                Action::Close(reason) => return Stop::Close(reason),
            }
        }
        panic!("the session goes round in circles");
    }

    /// The statement that was asked for may run.
    pub(crate) fn admit(&mut self) {
        let ask = self.asked.take().expect("a statement that was asked for");
        self.session.handle_admitted(ask);
    }

    /// It may not.
    pub(crate) fn refuse(&mut self) {
        let ask = self.asked.take().expect("a statement that was asked for");
        self.session.handle_refused(ask, refusal());
    }

    /// The rules have changed.
    pub(crate) fn judge_again(&mut self) {
        let ask = self.asked.take().expect("a statement that was asked for");
        self.session.handle_judge_again(ask);
    }

    /// Sends a command and runs.
    pub(crate) fn command(&mut self, payload: &[u8]) -> Stop {
        self.client.extend(frame(0, payload));
        self.run()
    }

    /// Sends a text statement and runs.
    pub(crate) fn query(&mut self, text: &str) -> Stop {
        self.command(&[b"\x03", text.as_bytes()].concat())
    }

    /// Sends the first bytes of a text statement and runs.
    pub(crate) fn front_of_query(&mut self, text: &str, len: usize) -> Stop {
        let bytes = frame(0, &[b"\x03", text.as_bytes()].concat());
        self.client.extend(bytes.iter().take(len));
        self.run()
    }

    /// Sends the rest of it.
    pub(crate) fn rest_of_query(&mut self, text: &str, len: usize) -> Stop {
        let bytes = frame(0, &[b"\x03", text.as_bytes()].concat());
        self.client.extend(bytes.iter().skip(len));
        self.run()
    }

    /// The server answers; runs until the command is finished.
    pub(crate) fn answer(&mut self, bytes: &[u8]) -> Finished {
        self.backend.extend_from_slice(bytes);
        match self.run() {
            Stop::Finished(finished) => finished,
            other => panic!("expected the end of the command, not {other:?}"),
        }
    }

    /// A whole statement that passes without being asked for.
    pub(crate) fn passes(&mut self, text: &str, status: u16) -> Finished {
        let stop = self.query(text);
        assert!(matches!(stop, Stop::Reads(Reads::Backend)), "{text}: {stop:?}");
        self.answer(&ok(1, status))
    }

    /// A whole statement that is asked for, and admitted.
    pub(crate) fn asks(&mut self, text: &str, status: u16) -> Finished {
        let stop = self.query(text);
        assert!(matches!(stop, Stop::Ask(_)), "{text}: {stop:?}");
        self.admit();
        let stop = self.run();
        assert!(matches!(stop, Stop::Reads(Reads::Backend)), "{text}: {stop:?}");
        self.answer(&ok(1, status))
    }

    /// Prepares a statement with this id.
    pub(crate) fn prepare(&mut self, text: &str, id: u32, num_params: u16) {
        let stop = self.command(&[b"\x16", text.as_bytes()].concat());
        assert!(matches!(stop, Stop::Reads(Reads::Backend)), "{stop:?}");
        let mut bytes = frame(
            1,
            &[&[0][..], &id.to_le_bytes(), &[0, 0], &num_params.to_le_bytes(), &[0, 0, 0]].concat(),
        );
        for param in 0..num_params {
            bytes.extend(frame(u8::try_from(param).unwrap() + 2, b"\x03def definition"));
        }
        self.answer(&bytes);
        self.to_client.clear();
        self.to_backend.clear();
    }
}

/// LOCAL_FILES, PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH, DEPRECATE_EOF.
const CAPABILITIES: u32 = 0x0000_0080 | 0x0000_0200 | 0x0000_8000 | 0x0008_0000 | 0x0100_0000;

pub(crate) fn frame(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).unwrap().to_le_bytes();
    [&len[..3], &[sequence], payload].concat()
}

/// The version of the server that scripts are about.
const MYSQL: &str = "9.7.4";

pub(crate) fn greeting(capabilities: u32) -> Vec<u8> {
    greeting_of(MYSQL, capabilities)
}

/// The greeting of a server of this version.
fn greeting_of(version: &str, capabilities: u32) -> Vec<u8> {
    let [low0, low1, high0, high1] = (capabilities | 1).to_le_bytes();
    let mut payload = [b"\x0a", version.as_bytes(), b"\0\x2a\0\0\0saltsalt\0"].concat();
    payload.extend([low0, low1, 255, 2, 0, high0, high1, 21]);
    payload.extend([0; 10]);
    payload.extend(b"saltsaltsalt\0mysql_native_password\0");
    frame(0, &payload)
}

pub(crate) fn response(capabilities: u32) -> Vec<u8> {
    response_of(capabilities, b"app")
}

/// The response of this user.
pub(crate) fn response_of(capabilities: u32, user: &[u8]) -> Vec<u8> {
    let mut payload = (capabilities | 1).to_le_bytes().to_vec();
    payload.extend([0, 0, 0, 1, 255]);
    payload.extend([0; 23]);
    payload.extend(user);
    payload.extend(b"\0\0mysql_native_password\0");
    frame(1, &payload)
}

pub(crate) fn ok(sequence: u8, status: u16) -> Vec<u8> {
    let [low, high] = status.to_le_bytes();
    frame(sequence, &[0, 1, 0, low, high, 0, 0])
}

/// A result set of one column and one row of text, DEPRECATE_EOF.
pub(crate) fn one_value(value: &str, status: u16) -> Vec<u8> {
    let [low, high] = status.to_le_bytes();
    let row = [&[u8::try_from(value.len()).unwrap()][..], value.as_bytes()].concat();
    let end = [0xfe, 0, 0, low, high, 0, 0];
    [frame(1, &[1]), frame(2, b"\x03def definition"), frame(3, &row), frame(4, &end)].concat()
}

pub(crate) fn err(sequence: u8, code: u16) -> Vec<u8> {
    let [low, high] = code.to_le_bytes();
    frame(sequence, &[&[0xff, low, high][..], b"#HY000no"].concat())
}

pub(crate) fn refusal() -> Answer {
    Answer { errno: 1205, sqlstate: *b"HY000", message: b"no".to_vec() }
}

//! A session driven as the shell drives it, between a scripted client and a scripted server, without
//! sockets, and without allocating anything itself.

use std::sync::Arc;
use std::time::Duration;

use admission::MonoTime;
use insights::{Insights, Learned, Record, Time};
use policy::ClusterPolicy;
use session::{
    Action, ClientInfo, Finished, Input, KnownTexts, Leg, Move, ServerFacts, Session, Side,
};

use sql::DigestMemo;

use crate::Result;
use crate::rules::NOW;

/// A statement and the server's answer, in bytes.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// What the client sends.
    pub request: Vec<u8>,
    /// What the server answers.
    pub response: Vec<u8>,
}

/// A session after its login.
#[derive(Debug)]
pub struct Relay {
    session: Session,
    policy: Arc<ClusterPolicy>,
    facts: ServerFacts,
    texts: KnownTexts,
    counted: Option<Counted>,
}

/// Who counts what statements cost: all of it but the queue between two threads.
#[derive(Debug)]
struct Counted {
    memo: DigestMemo,
    insights: Insights,
    /// The names of the session, and the generation of it that they belong to.
    named: (Option<u64>, Record),
}

impl Counted {
    /// The statement that the session has just finished.
    fn count(&mut self, session: &Session, finished: &Finished) {
        let about = session.about();
        if let (Some(hash), Some(news)) = (about.digest, about.news) {
            let (text, tables) = (news.text.as_slice().into(), news.tables.as_slice().into());
            let all_tables = news.all_tables;
            let kind = Default::default();
            let sample = None;
            self.insights.learn(Learned::Digest { hash, text, tables, all_tables, kind, sample });
            self.memo.note_told(hash);
        }
        let response = finished.response.unwrap_or_default();
        if self.named.0 != Some(about.whose) {
            let named = Record::default().of(session.app(), about.schema, session.user());
            self.named = (Some(about.whose), named);
        }
        let record = Record {
            digest: about.digest,
            server_ns: Record::nanos(SERVER_TIME),
            rows_sent: response.rows,
            rows_affected: response.affected_rows,
            ..self.named.1
        };
        self.insights.observe(&Record::from_words(&record.to_words()));
    }
}

impl Relay {
    /// Logs in as `app`, under these rules.
    ///
    /// # Errors
    /// When the session does not take the scripted login.
    pub fn logged_in(policy: Arc<ClusterPolicy>) -> Result<Self> {
        let address = Some([127, 0, 0, 1].into());
        let client = ClientInfo { address, leg: Leg::Network };
        let (facts, texts) = (ServerFacts::unasked(), KnownTexts::default());
        let mut relay = Self {
            session: Session::new(client, Leg::Network),
            policy,
            facts,
            texts,
            counted: None,
        };
        let login = frame(2, OK);
        relay.exchange(&[], &greeting(), Until::Reads)?;
        relay.exchange(&response(), &login, Until::LoggedIn)?;
        Ok(relay)
    }

    /// The same, and what statements cost is counted.
    #[must_use]
    pub fn counted(self) -> Self {
        let insights = Insights::new(1_000, 7, Time(1));
        let named = (None, Record::default());
        Self { counted: Some(Counted { memo: DigestMemo::default(), insights, named }), ..self }
    }

    /// One statement from its first byte to the end of its answer. Whatever is asked for is admitted.
    ///
    /// # Errors
    /// When the session closes, or wants more than there is.
    pub fn statement(&mut self, exchange: &Exchange) -> Result<()> {
        self.exchange(&exchange.request, &exchange.response, Until::Finished)
    }

    fn exchange(&mut self, client: &[u8], backend: &[u8], until: Until) -> Result<()> {
        let (mut client, mut backend) = (client, backend);
        loop {
            // A server answers what it has been sent.
            let answered = if client.is_empty() { backend } else { &[] };
            let Self { session, policy, facts, counted, texts } = self;
            let digests = counted.as_ref().map(|counted| &counted.memo);
            let input = Input {
                client,
                backend: answered,
                policy,
                facts,
                digests,
                texts,
                now: NOW,
                mono: MonoTime::ZERO,
            };
            match session.next(&input) {
                Action::Move(
                    Move::Forward { from, len }
                    | Move::Replace { from, drop: len }
                    | Move::Drop { from, len },
                ) => {
                    let side = match from {
                        Side::Client => &mut client,
                        Side::Backend => &mut backend,
                    };
                    *side = side.get(len..).unwrap_or_default();
                }
                Action::Ask(ask) | Action::Deny(ask) => session.handle_admitted(ask),
                Action::ChangeRoutines => {}
                Action::Read(_) if until == Until::Reads => return Ok(()),
                Action::LoggedIn if until == Until::LoggedIn => return Ok(()),
                Action::Finished(finished) if until == Until::Finished => {
                    if let Some(counted) = counted {
                        counted.count(session, &finished);
                    }
                    return Ok(());
                }
                other => return Err(format!("the session says {other:?}").into()),
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    Reads,
    LoggedIn,
    Finished,
}

/// A text statement that is answered with one row of one column, as sysbench's point select is.
#[must_use]
pub fn point_select(text: &str) -> Exchange {
    select(text, 1)
}

/// A text statement that is answered with so many rows of one column.
#[must_use]
pub fn select(text: &str, rows: usize) -> Exchange {
    let row = [&[119][..], &[b'x'; 119]].concat();
    Exchange { request: query(text), response: result(&vec![row; rows]) }
}

/// An INSERT of so many rows of four columns, some 40 bytes each.
#[must_use]
pub fn insert(rows: usize) -> Exchange {
    let rows: Vec<String> =
        (0..rows).map(|n| format!("({n}, 'somebody-{n}', NULL, '2026-11-22', -{n}.25)")).collect();
    let text = format!("INSERT INTO people (id, name, note, day, due) VALUES {}", rows.join(", "));
    let affected = u8::try_from(rows.len()).unwrap_or(u8::MAX).min(250);
    Exchange { request: query(&text), response: frame(1, &[0, affected, 0, 2, 0, 0, 0]) }
}

fn query(text: &str) -> Vec<u8> {
    frame(0, &[b"\x03", text.as_bytes()].concat())
}

/// Prepares a statement with one parameter under the id 1.
#[must_use]
pub fn prepare(text: &str) -> Exchange {
    let prepared = [0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0];
    let response = [frame(1, &prepared), frame(2, DEFINITION), frame(3, DEFINITION)].concat();
    Exchange { request: frame(0, &[b"\x16", text.as_bytes()].concat()), response }
}

/// Executes it.
#[must_use]
pub fn execute() -> Exchange {
    let head = [0x17, 1, 0, 0, 0, 0, 1, 0, 0, 0];
    // No NULL, types follow: one LONGLONG, 42.
    let parameters = [0, 1, 8, 0, 42, 0, 0, 0, 0, 0, 0, 0];
    let row = [&[0, 0, 119][..], &[b'x'; 119]].concat();
    Exchange { request: frame(0, &[&head[..], &parameters].concat()), response: result(&[row]) }
}

/// A result set of one column and these rows.
#[must_use]
pub fn result(rows: &[Vec<u8>]) -> Vec<u8> {
    let head = [frame(1, &[1]), frame(2, DEFINITION)].concat();
    let mut sequence = 2_u8;
    let mut next = || {
        sequence = sequence.wrapping_add(1);
        sequence
    };
    let rows: Vec<u8> = rows.iter().flat_map(|row| frame(next(), row)).collect();
    [head, rows, frame(next(), &[0xfe, 0, 0, 2, 0, 0, 0])].concat()
}

/// What the server takes for one.
const SERVER_TIME: Duration = Duration::from_micros(150);

fn frame(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let [a, b, c, _] = u32::try_from(payload.len()).unwrap_or_default().to_le_bytes();
    [&[a, b, c, sequence], payload].concat()
}

fn greeting() -> Vec<u8> {
    let [low0, low1, high0, high1] = CAPABILITIES.to_le_bytes();
    let mut payload = b"\x0a9.7.4\0\x2a\0\0\0saltsalt\0".to_vec();
    payload.extend([low0, low1, 255, 2, 0, high0, high1, 21]);
    payload.extend([0; 10]);
    payload.extend(b"saltsaltsalt\0mysql_native_password\0");
    frame(0, &payload)
}

fn response() -> Vec<u8> {
    let mut payload = CAPABILITIES.to_le_bytes().to_vec();
    payload.extend([0, 0, 0, 1, 255]);
    payload.extend([0; 23]);
    payload.extend(b"app\0\0mysql_native_password\0");
    frame(1, &payload)
}

/// LONG_PASSWORD, PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH, DEPRECATE_EOF.
const CAPABILITIES: u32 = 1 | 0x0000_0200 | 0x0000_8000 | 0x0008_0000 | 0x0100_0000;
/// Status: autocommit.
const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
const DEFINITION: &[u8] =
    b"\x03def\x04test\x07sbtest1\x07sbtest1\x01c\x01c\x0c\xff\x00\xe0\x01\x00\x00\xfe\x01\x00\x00\x00\x00";

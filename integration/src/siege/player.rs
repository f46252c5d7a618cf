//! Sends a sequence, and reads what comes back no further than to know when to send the next step.
//!
//! A client that was fooled about where an answer ends would hide what the attack is about: this one
//! knows which of its own commands can open a cursor, and believes nothing else about cursors.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::AsyncWriteExt;

use crate::error::Result;
use crate::raw::{
    COM_FIELD_LIST, COM_QUERY, COM_QUIT, COM_STMT_CLOSE, COM_STMT_EXECUTE, COM_STMT_FETCH,
    COM_STMT_PREPARE, COM_STMT_SEND_LONG_DATA, Login, Packet, RawConn, capability, framed,
};
use crate::siege::login;
use crate::siege::sequence::{Act, Sequence, Step};

/// How a sequence went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Played {
    /// Whether each connection was let in.
    pub logged_in: bool,
    /// Answers that came.
    pub answers: u32,
    /// Answers that were errors.
    pub errors: u32,
    /// Whether an answer was waited for in vain, or a connection ended.
    pub broken: bool,
}

/// Plays a sequence from its logins to the end of its connections.
pub async fn play(addr: SocketAddr, sequence: &Sequence, patience: Duration) -> Played {
    let mut played = Played { logged_in: true, ..Played::default() };
    let conns = sequence.steps.iter().map(|step| step.conn).max().unwrap_or(0);
    let mut clients = Vec::new();
    for _ in 0..=conns {
        match login::open(addr, &sequence.entry).await {
            Ok(conn) => clients.push(Client::new(conn, patience)),
            Err(_) => played.logged_in = false,
        }
    }
    let mut rest = sequence.steps.as_slice();
    while !rest.is_empty() && played.logged_in {
        let together =
            rest.iter().position(|step| !step.joined).map_or(rest.len(), |at| at.saturating_add(1));
        let (now, later) = rest.split_at(together);
        rest = later;
        let conn = now.first().map_or(0, |step| usize::from(step.conn));
        if let Some(client) = clients.get_mut(conn) {
            client.send(now, &mut played).await;
        }
    }
    for client in clients {
        client.end(&mut played).await;
    }
    played
}

struct Client {
    conn: RawConn,
    /// Ids of prepared statements, in the order of their answers.
    prepared: Vec<u32>,
    infile: Vec<u8>,
    alive: bool,
}

/// What answers a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaited {
    Nothing,
    One,
    Results { cursor: bool },
    Prepared,
    Rows,
    Login,
}

impl Client {
    fn new(mut conn: RawConn, patience: Duration) -> Self {
        conn.set_read_limit(patience);
        Self { conn, prepared: Vec::new(), infile: Vec::new(), alive: true }
    }

    async fn send(&mut self, steps: &[Step], played: &mut Played) {
        let mut bytes = Vec::new();
        let mut awaited = Vec::new();
        let mut cut = None;
        let mut user = None;
        for step in steps {
            if let Some(at) = step.cut {
                cut = Some(bytes.len().saturating_add(usize::from(at)));
            }
            match &step.act {
                Act::Infile(content) => self.infile.clone_from(content),
                Act::Frames(answers, frames) => {
                    bytes.extend_from_slice(frames);
                    let one = Awaited::Results { cursor: false };
                    awaited.extend(std::iter::repeat_n(one, usize::from(*answers)));
                }
                act => {
                    let payload = self.payload(act);
                    bytes.extend_from_slice(&framed(0, &payload));
                    awaited.push(awaited_after(&payload));
                    if let Act::ChangeUser(name, _) = act {
                        user = Some(name.clone());
                    }
                }
            }
        }
        if self.write(&bytes, cut).await.is_err() {
            self.alive = false;
        }
        for one in awaited {
            if !self.alive {
                return;
            }
            match self.read(one, user.as_deref()).await {
                Ok(is_error) => {
                    played.answers = played.answers.saturating_add(1);
                    played.errors = played.errors.saturating_add(u32::from(is_error));
                }
                Err(_) => {
                    self.alive = false;
                    played.broken = true;
                }
            }
        }
    }

    async fn write(&mut self, bytes: &[u8], cut: Option<usize>) -> Result<()> {
        let Some((first, second)) = cut.and_then(|at| bytes.split_at_checked(at)) else {
            return self.conn.send_bytes(bytes).await;
        };
        self.conn.send_bytes(first).await?;
        tokio::time::sleep(BETWEEN_PIECES).await;
        self.conn.send_bytes(second).await
    }

    fn id(&self, nth: u32) -> u32 {
        let index = usize::try_from(nth).unwrap_or_default().checked_sub(1);
        match index {
            None => u32::MAX,
            Some(index) => self.prepared.get(index).copied().unwrap_or(nth),
        }
    }

    fn payload(&self, act: &Act) -> Vec<u8> {
        match act {
            Act::Query(text) => self.conn.query_payload(text, &[]),
            Act::Padded(n, text) => {
                let blanks = vec![b' '; usize::try_from(*n).unwrap_or_default()];
                self.conn.query_payload(&[blanks.as_slice(), text].concat(), &[])
            }
            Act::Prepare(text) => [&[COM_STMT_PREPARE], text.as_slice()].concat(),
            Act::Execute { nth, flags, params } => self.execute(*nth, *flags, params),
            Act::LongData { nth, data } => {
                let id = self.id(*nth).to_le_bytes();
                [&[COM_STMT_SEND_LONG_DATA], &id[..], &[0, 0], data].concat()
            }
            Act::Command(payload) => payload.clone(),
            Act::Frames(..) | Act::Infile(_) => Vec::new(),
            Act::ChangeUser(user, collation) => self.change_user(user, *collation),
        }
    }

    fn execute(&self, nth: u32, flags: u8, params: &[Vec<u8>]) -> Vec<u8> {
        let mut out = vec![COM_STMT_EXECUTE];
        out.extend_from_slice(&self.id(nth).to_le_bytes());
        out.push(flags);
        out.extend_from_slice(&1_u32.to_le_bytes());
        if params.is_empty() {
            return out;
        }
        out.extend(std::iter::repeat_n(0, params.len().div_ceil(8)));
        out.push(1);
        params.iter().for_each(|_| out.extend_from_slice(&[0xfd, 0]));
        for param in params {
            out.push(u8::try_from(param.len()).unwrap_or(250));
            out.extend_from_slice(param.get(..250).unwrap_or(param));
        }
        out
    }

    fn change_user(&self, user: &str, collation: u8) -> Vec<u8> {
        let mut out = vec![COM_CHANGE_USER];
        out.extend_from_slice(user.as_bytes());
        out.extend_from_slice(b"\0\0w\0");
        out.extend_from_slice(&[collation, 0]);
        let plugin = if self.conn.server_version().contains("MariaDB") {
            &b"mysql_native_password\0"[..]
        } else {
            b"caching_sha2_password\0"
        };
        out.extend_from_slice(plugin);
        if self.conn.capabilities() & capability::CONNECT_ATTRS != 0 {
            out.push(0);
        }
        out
    }

    /// Reads one answer; whether it was an error.
    async fn read(&mut self, awaited: Awaited, user: Option<&str>) -> Result<bool> {
        match awaited {
            Awaited::Nothing => Ok(false),
            Awaited::One => Ok(self.packet().await?.first() == Some(0xff)),
            Awaited::Results { cursor } => self.results(cursor).await,
            Awaited::Prepared => self.read_prepared().await,
            Awaited::Rows => self.rows().await.map(|status| status.is_none()),
            Awaited::Login => {
                let login = Login::new(user.unwrap_or_default());
                let password = login::account(&login.user).to_owned();
                self.switch(&login.password(&password)).await
            }
        }
    }

    async fn packet(&mut self) -> Result<Packet> {
        let mut packet = self.conn.read_packet().await?;
        let mut continues = packet.continues();
        while continues {
            let more = self.conn.read_packet().await?;
            continues = more.continues();
            packet.payload.extend_from_slice(&more.payload);
        }
        Ok(packet)
    }

    async fn results(&mut self, cursor: bool) -> Result<bool> {
        loop {
            let packet = self.packet().await?;
            let status = match packet.payload.as_slice() {
                [0xff, 0xff, 0xff, ..] => continue,
                [0xff, ..] => return Ok(true),
                [0x00, rest @ ..] => ok_status(rest),
                [0xfb, ..] => {
                    self.upload(packet.seq.wrapping_add(1)).await?;
                    continue;
                }
                [0xfe, _, _, low, high] => u16::from_le_bytes([*low, *high]),
                count => match self.result_set(count, cursor).await? {
                    Some(status) => status,
                    None => return Ok(true),
                },
            };
            if status & MORE_RESULTS == 0 {
                return Ok(false);
            }
        }
    }

    /// The status at its end; none when an error ended it.
    async fn result_set(&mut self, count: &[u8], cursor: bool) -> Result<Option<u16>> {
        let columns = match count {
            [0xfc, low, high, ..] => u16::from_le_bytes([*low, *high]),
            [small, ..] => u16::from(*small),
            [] => 0,
        };
        for _ in 0..columns {
            self.packet().await?;
        }
        if cursor {
            let end = self.packet().await?;
            return Ok(Some(end_status(&end.payload)));
        }
        if self.conn.capabilities() & capability::DEPRECATE_EOF == 0 {
            self.packet().await?;
        }
        self.rows().await
    }

    async fn rows(&mut self) -> Result<Option<u16>> {
        let limit = match self.conn.capabilities() & capability::DEPRECATE_EOF {
            0 => 9,
            _ => crate::raw::MAX_PAYLOAD,
        };
        loop {
            let packet = self.packet().await?;
            match packet.first() {
                Some(0xff) => return Ok(None),
                Some(0xfe) if packet.payload.len() < limit => {
                    return Ok(Some(end_status(&packet.payload)));
                }
                _ => {}
            }
        }
    }

    async fn read_prepared(&mut self) -> Result<bool> {
        let packet = self.packet().await?;
        let [0x00, a, b, c, d, columns_low, columns_high, params_low, params_high, ..] =
            packet.payload.as_slice()
        else {
            return Ok(true);
        };
        self.prepared.push(u32::from_le_bytes([*a, *b, *c, *d]));
        let eofs = self.conn.capabilities() & capability::DEPRECATE_EOF == 0;
        for count in [[*params_low, *params_high], [*columns_low, *columns_high]] {
            let count = u16::from_le_bytes(count);
            for _ in 0..count {
                self.packet().await?;
            }
            if eofs && count > 0 {
                self.packet().await?;
            }
        }
        Ok(false)
    }

    async fn upload(&mut self, seq: u8) -> Result<()> {
        let content = std::mem::take(&mut self.infile);
        let mut next = seq;
        if !content.is_empty() {
            self.conn.send_payload(next, &content).await?;
            next = next.wrapping_add(1);
        }
        self.conn.send_payload(next, &[]).await
    }

    async fn switch(&mut self, login: &Login) -> Result<bool> {
        loop {
            let packet = self.packet().await?;
            match packet.payload.as_slice() {
                [0x00, ..] => return Ok(false),
                [0xfe, rest @ ..] => {
                    let reply = login::switched(rest, &login.password);
                    self.conn.send_payload(packet.seq.wrapping_add(1), &reply).await?;
                }
                [0x01, 0x03] => {}
                // Full authentication, asked for when the account is not known: nothing that fits.
                [0x01, 0x04] => self.conn.send_payload(packet.seq.wrapping_add(1), &[0]).await?,
                _ => return Ok(true),
            }
        }
    }

    /// Everything that was sent has been run, or never will be, when this returns.
    async fn end(mut self, played: &mut Played) {
        if self.alive && self.conn.send_command(&[COM_QUIT]).await.is_ok() {
            self.conn.read_to_end().await.ok();
            return;
        }
        played.broken = true;
        self.conn.stream().shutdown().await.ok();
        self.conn.read_to_end().await.ok();
    }
}

fn awaited_after(payload: &[u8]) -> Awaited {
    match payload {
        [COM_QUERY | 0xfa | 0x0a, ..] => Awaited::Results { cursor: false },
        [COM_STMT_EXECUTE, _, _, _, _, flags, ..] => Awaited::Results { cursor: flags & 1 != 0 },
        [COM_STMT_PREPARE, ..] => Awaited::Prepared,
        [COM_STMT_FETCH | COM_FIELD_LIST, ..] => Awaited::Rows,
        [COM_STMT_CLOSE | COM_STMT_SEND_LONG_DATA | COM_QUIT, ..] => Awaited::Nothing,
        [COM_CHANGE_USER, ..] => Awaited::Login,
        _ => Awaited::One,
    }
}

/// The flags of an OK whose first byte has been taken.
fn ok_status(rest: &[u8]) -> u16 {
    let rest = after_lenenc(after_lenenc(rest));
    match rest {
        [low, high, ..] => u16::from_le_bytes([*low, *high]),
        _ => 0,
    }
}

fn end_status(payload: &[u8]) -> u16 {
    match payload {
        [0xfe, _, _, low, high] => u16::from_le_bytes([*low, *high]),
        [_, rest @ ..] => ok_status(rest),
        [] => 0,
    }
}

fn after_lenenc(bytes: &[u8]) -> &[u8] {
    let skipped = match bytes.first() {
        Some(0xfc) => 3,
        Some(0xfd) => 4,
        Some(0xfe) => 9,
        _ => 1,
    };
    bytes.get(skipped..).unwrap_or_default()
}

const COM_CHANGE_USER: u8 = 0x11;
const MORE_RESULTS: u16 = 0x0008;
const BETWEEN_PIECES: Duration = Duration::from_micros(300);

//! Logins and packets that no client library would send.

use crate::raw::{capability, framed};
use crate::siege::grammar::Maker;
use crate::siege::sequence::{Act, Entry, Leg};

impl Maker {
    /// Mostly a plain login, for TLS costs.
    pub(super) fn random_entry(&mut self) -> Entry {
        let mut entry = Entry::default();
        if self.one_in(6) {
            entry.user = "sealed".into();
        }
        if self.one_in(3) {
            entry.leg = self.pick(&Leg::ALL);
        }
        if self.one_in(8) {
            entry.tls = true;
        }
        if self.one_in(10) {
            entry.compress = Some(self.pick(&['z', 's']));
        }
        if self.one_in(3) {
            entry.without = self.pick(&[
                capability::DEPRECATE_EOF,
                capability::MULTI_STATEMENTS,
                capability::SESSION_TRACK,
                capability::CONNECT_WITH_DB,
                capability::CONNECT_ATTRS,
                capability::DEPRECATE_EOF | capability::SESSION_TRACK,
            ]);
        }
        if self.one_in(8) {
            entry.with = capability::QUERY_ATTRIBUTES;
        }
        if self.one_in(6) {
            entry.collation = self.collation();
        }
        entry
    }

    /// A login that says its user in another way, or commands before it is over; then a plain write.
    pub(super) fn plain_write(&mut self) {
        self.named("login");
        if self.one_in(2) {
            let quotes = ["'", "\"", "`", " ", "' "];
            let (before, behind) = (self.pick(&quotes), self.pick(&quotes));
            self.entry.user = format!("{before}{}{behind}", self.entry.user);
        } else {
            self.entry.ahead = self.ahead();
            self.entry.compress = None;
            self.entry.tls = self.one_in(2);
            self.entry.leg = self.pick(&Leg::ALL);
            self.entry.without &= capability::DEPRECATE_EOF;
            // What answers such bytes, if anything does, would be taken for the answer to a later step.
            self.as_it_is = true;
            self.steps.clear();
        }
        let write = self.write();
        self.query(write);
    }

    /// Commands behind the login response.
    fn ahead(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        for _ in 0..self.pick(&[1, 1, 2]) {
            let payload = self.raw_query();
            all.extend(framed(self.pick(&[0, 1, 2, 3, 4, 5, 255]), &payload));
        }
        all
    }

    fn raw_query(&mut self) -> Vec<u8> {
        let attributes: &[u8] = if self.entry.with == 0 { b"" } else { b"\0\x01" };
        [b"\x03", attributes, self.write().as_bytes()].concat()
    }

    /// Frames and commands.
    pub(super) fn packet(&mut self) {
        self.named("packets");
        if self.one_in(2) {
            self.frames();
        } else {
            self.commands();
        }
    }

    /// Bytes that are cut, joined and numbered as no library does.
    fn frames(&mut self) {
        let query = self.raw_query();
        match self.chance.below(6) {
            0 => {
                let seq = self.pick(&[1, 2, 3, 255]);
                self.push(Act::Frames(1, framed(seq, &query)));
            }
            1 => {
                // Two commands in one write, the second behind one that is refused.
                let both = [framed(0, &query), framed(0, &query)].concat();
                self.push(Act::Frames(2, both));
            }
            2 => {
                let first = framed(0, &[b"\x03", self.read().as_bytes()].concat());
                let second = framed(self.pick(&[0, 1]), &query);
                self.push(Act::Frames(2, [first, second].concat()));
            }
            3 => {
                // An empty packet, and what follows it.
                self.push(Act::Frames(2, [framed(0, b""), framed(0, &query)].concat()));
            }
            4 if self.one_in(12) => {
                let blanks = self.pick(&[0xff_ffff - 1, 0xff_ffff, 0xff_ffff - 31, 0x100_0000]);
                let write = self.write();
                self.push(Act::Padded(blanks, write.into_bytes()));
            }
            _ => {
                // A command whose first packet holds nothing but its byte, cut in the header.
                let mut frames = framed(0, &query);
                frames.extend(framed(0, b"\x0e"));
                let at = u16::try_from(self.chance.below(8)).unwrap_or(0);
                self.push(Act::Frames(2, frames));
                if let Some(last) = self.steps.last_mut() {
                    last.cut = Some(at);
                }
            }
        }
    }

    /// Commands other than COM_QUERY, and COM_QUERY with the wrong front; then a plain write.
    fn commands(&mut self) {
        let write = self.write();
        let query = self.raw_query();
        let payload = match self.chance.below(7) {
            0 => {
                self.push(Act::Infile(b"1\n2\n".to_vec()));
                b"\x03LOAD DATA LOCAL INFILE 'x' INTO TABLE w.t (n)".to_vec()
            }
            1 => {
                let table = self.pick(&["t", "none", "v", ""]);
                [b"\x04", table.as_bytes(), b"\0%"].concat()
            }
            2 => {
                let code = self.pick(&[
                    0x00, 0x05, 0x06, 0x07, 0x09, 0x0a, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x1d, 0x20,
                    0xfb, 0xfe, 0x22,
                ]);
                let body = self.pick(&["", "w", "x_3", "\0\0", "INSERT INTO w.t (n) VALUES (1)"]);
                [&[code], body.as_bytes()].concat()
            }
            3 => {
                // COM_MULTI of old MariaDB: commands with lengths inside one.
                let len = u32::try_from(query.len()).unwrap_or(0).to_le_bytes();
                [&[0xfe], len.get(..3).unwrap_or_default(), &query].concat()
            }
            4 => {
                // Query attributes where none were agreed on, and none where they were.
                let front: &[u8] = if self.one_in(2) { b"\x03\0\x01" } else { b"\x03" };
                [front, write.as_bytes()].concat()
            }
            5 => {
                let many = self.pick(&[1_u8, 2, 8]);
                let names: &[u8] = b"\x08\0\x03app\x01x";
                [&[0x03, many, 1, 0, 1], names, write.as_bytes()].concat()
            }
            _ => {
                let name =
                    self.pick(&["w", "performance_schema", "w\0", "`w`", "information_schema"]);
                [b"\x02", name.as_bytes()].concat()
            }
        };
        self.push(Act::Command(payload));
        let write = self.pick(&["INSERT INTO t (n) VALUES (1)", "DELETE FROM w.t"]);
        self.query(write);
    }
}

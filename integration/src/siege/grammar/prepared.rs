//! Statements prepared, by text and by packet, under names and ids that are easily confused.

use crate::siege::grammar::Maker;
use crate::siege::sequence::{Act, Step};

impl Maker {
    /// PREPARE, EXECUTE and DEALLOCATE.
    pub(super) fn sql_prepare(&mut self) {
        self.named("prepare");
        if self.one_in(2) {
            let (name, read) = (self.statement_name(), self.read().replace('\'', "''"));
            self.query(format!("PREPARE {name} FROM '{read}'"));
        }
        let (name, from) = (self.statement_name(), self.prepared_text());
        let other = self.statement_name();
        let read = self.read().replace('\'', "''");
        let verb = self.pick(&[
            "DEALLOCATE PREPARE ",
            "DROP PREPARE ",
            "-- ",
            "SELECT nonsense; DEALLOCATE PREPARE ",
        ]);
        let texts = [
            format!("PREPARE {name} FROM {from}"),
            format!("PREPARE {name} FROM {from}"),
            format!("PREPARE {name} FROM '{read}'; PREPARE {name} FROM {from}"),
            format!("PREPARE {name} FROM {from}; PREPARE {other} FROM '{read}'"),
            format!("PREPARE {name} FROM {from}; PREPARE {name} FROM 'nonsense'"),
            format!("SELECT nonsense; PREPARE {name} FROM '{read}'"),
            format!("PREPARE {name} FROM {from}; EXECUTE {other}"),
            format!("/*!40101 PREPARE {name} FROM {from} */"),
            format!("PREPARE {name} FROM 'EXECUTE {other}'"),
            format!("{verb}{name}"),
        ];
        let text = texts.get(self.chance.index(texts.len())).cloned().unwrap_or_default();
        self.send(text);
        if self.one_in(5) {
            self.reset();
        }
        let name = if self.one_in(2) { name } else { self.statement_name() };
        let write = self.write().replace('\'', "''");
        let texts = [
            format!("EXECUTE {name}"),
            format!("EXECUTE {name}"),
            format!("EXECUTE {name} USING @a"),
            format!("/* app=x */ EXECUTE {name}"),
            format!("SELECT 1; EXECUTE {name}"),
            format!("EXECUTE IMMEDIATE '{write}'"),
            "EXECUTE IMMEDIATE @v".into(),
            "EXECUTE IMMEDIATE CONCAT(@v, '')".into(),
            format!("EXECUTE /* x */ {name} /* y */"),
        ];
        let text = texts.get(self.chance.index(texts.len())).cloned().unwrap_or_default();
        self.send(text);
    }

    fn statement_name(&mut self) -> &'static str {
        self.pick(&[
            "s", "S", "`s`", "`s `", "ś", "ſ", "`S`", "s1", "é", "e", "E", "É", "\"s\"", "`s``s`",
            "ß", "ss", "s$", "ｓ",
        ])
    }

    fn prepared_text(&mut self) -> String {
        let write = self.write().replace('\'', "''");
        match self.chance.below(8) {
            0..=2 => format!("'{write}'"),
            3 => {
                self.query(format!("SET @v = '{write}'"));
                "@v".into()
            }
            4 => {
                self.query(format!("SELECT '{write}' INTO @v"));
                "@v".into()
            }
            5 => {
                let half = self.pick(&["SELECT 1; ", "/* x */ ", "/*!", "BEGIN; ", "-- \n"]);
                format!("'{half}{write}'")
            }
            6 => format!("CONCAT('{write}', '')"),
            _ => format!("\"{}\"", write.replace('"', "\"\"")),
        }
    }

    /// COM_STMT_PREPARE and what belongs to it.
    pub(super) fn binary_prepare(&mut self) {
        self.named("binary");
        let acts = if self.one_in(2) { self.confused_ids() } else { self.parameters() };
        let joined = self.one_in(4);
        for act in acts {
            self.steps.push(Step { joined, ..Step::new(act) });
        }
        if let Some(last) = self.steps.last_mut() {
            last.joined = false;
        }
    }

    /// Statements of which one reads and one writes, run by ids old, new and last.
    fn confused_ids(&mut self) -> Vec<Act> {
        let write = Act::Prepare(self.write().into_bytes());
        let read = Act::Prepare(self.read().as_bytes().to_vec());
        let nonsense = Act::Prepare(b"nonsense".to_vec());
        let execute = |nth| Act::Execute { nth, flags: 0, params: Vec::new() };
        let first = self.prepares().saturating_add(1);
        let second = first.saturating_add(1);
        let close = Act::Command([&[0x19], &first.to_le_bytes()[..]].concat());
        let reset = Act::Command(vec![0x1f]);
        match self.chance.below(6) {
            0 => vec![write, execute(first)],
            1 => vec![read, write, execute(second), execute(0)],
            2 => vec![write, read, execute(first), execute(0)],
            3 => vec![write, nonsense, execute(0)],
            4 => vec![read, close, write, execute(first), execute(second)],
            _ => vec![write, reset, execute(first), execute(0), execute(1)],
        }
    }

    /// Values, cursors, many rows at once, and statements that prepare.
    fn parameters(&mut self) -> Vec<Act> {
        let first = self.prepares().saturating_add(1);
        let id = first.to_le_bytes();
        let insert = Act::Prepare(b"INSERT INTO w.t (s) VALUES (?)".to_vec());
        match self.chance.below(4) {
            0 => {
                let long = Act::LongData { nth: first, data: b"abc".to_vec() };
                let run = Act::Execute { nth: first, flags: 0, params: vec![b"x".to_vec()] };
                vec![insert, long, run.clone(), run]
            }
            1 => {
                let text = if self.one_in(2) { self.write() } else { self.read().to_owned() };
                let flags = self.pick(&[1, 2, 4, 8, 9, 255]);
                let fetch = Act::Command([&[0x1c], &id[..], &[9, 0, 0, 0]].concat());
                let run = Act::Execute { nth: first, flags, params: Vec::new() };
                vec![Act::Prepare(text.into_bytes()), run, fetch]
            }
            2 => {
                // MariaDB's COM_STMT_BULK_EXECUTE: one row of one string.
                let row = [128, 0, 0xfd, 0, 0, 1, b'x'];
                let bulk = |id: &[u8]| Act::Command([&[0xfa], id, &row].concat());
                vec![insert, bulk(&id), bulk(&[0xff; 4])]
            }
            _ => {
                let texts: [&[u8]; 4] =
                    [b"PREPARE s FROM 'DELETE FROM w.t'", b"EXECUTE s", b"BEGIN", b"SET NAMES gbk"];
                let text = self.pick(&texts).to_vec();
                let run = Act::Execute { nth: first, flags: 0, params: Vec::new() };
                vec![Act::Prepare(text), run, Act::Query(b"EXECUTE s".to_vec())]
            }
        }
    }
}

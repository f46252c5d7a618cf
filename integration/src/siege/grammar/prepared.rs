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
        let write = self.write().into_bytes();
        let read = self.read().as_bytes().to_vec();
        let execute = |nth| Act::Execute { nth, flags: 0, params: Vec::new() };
        let from = self.prepares();
        let (first, second) = (from.saturating_add(1), from.saturating_add(2));
        let acts = match self.chance.below(10) {
            0 => vec![Act::Prepare(write), execute(first)],
            1 => vec![Act::Prepare(read), Act::Prepare(write), execute(second), execute(0)],
            2 => vec![Act::Prepare(write), Act::Prepare(read), execute(first), execute(0)],
            3 => vec![Act::Prepare(write), Act::Prepare(b"nonsense".to_vec()), execute(0)],
            4 => {
                let id = first.to_le_bytes();
                let close = Act::Command([&[0x19], &id[..]].concat());
                vec![
                    Act::Prepare(read),
                    close,
                    Act::Prepare(write),
                    execute(first),
                    execute(second),
                ]
            }
            5 => {
                let text = b"INSERT INTO w.t (s) VALUES (?)".to_vec();
                let long = Act::LongData { nth: first, data: b"abc".to_vec() };
                let run = Act::Execute { nth: first, flags: 0, params: vec![b"x".to_vec()] };
                vec![Act::Prepare(text), long, run.clone(), run]
            }
            6 => {
                let cursor = Act::Execute {
                    nth: first,
                    flags: self.pick(&[1, 2, 4, 8, 9, 255]),
                    params: Vec::new(),
                };
                let fetch = [&[0x1c], &first.to_le_bytes()[..], &[9, 0, 0, 0]].concat();
                vec![
                    Act::Prepare(if self.one_in(2) { write } else { read }),
                    cursor,
                    Act::Command(fetch),
                ]
            }
            7 => {
                // MariaDB's COM_STMT_BULK_EXECUTE: one row of one string.
                let text = b"INSERT INTO w.t (s) VALUES (?)".to_vec();
                let bulk =
                    [&[0xfa], &first.to_le_bytes()[..], &[128, 0, 0xfd, 0, 0, 1, b'x']].concat();
                let last =
                    [&[0xfa], &u32::MAX.to_le_bytes()[..], &[128, 0, 0xfd, 0, 0, 1, b'x']].concat();
                vec![Act::Prepare(text), Act::Command(bulk), Act::Command(last)]
            }
            8 => {
                let text = self.pick(&[
                    "PREPARE s FROM 'DELETE FROM w.t'",
                    "EXECUTE s",
                    "BEGIN",
                    "SET NAMES gbk",
                ]);
                vec![
                    Act::Prepare(text.as_bytes().to_vec()),
                    execute(first),
                    Act::Query(b"EXECUTE s".to_vec()),
                ]
            }
            _ => vec![
                Act::Prepare(write),
                Act::Command(vec![0x1f]),
                execute(first),
                execute(0),
                execute(1),
            ],
        };
        let joined = self.one_in(4);
        for act in acts {
            self.steps.push(Step { joined, ..Step::new(act) });
        }
        if let Some(last) = self.steps.last_mut() {
            last.joined = false;
        }
    }
}

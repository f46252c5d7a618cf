//! Texts in which a statement that writes is somewhere else than it seems.

use crate::server::Flavour;
use crate::siege::grammar::Maker;
use crate::siege::sequence::Act;

impl Maker {
    /// Quotes that one reading closes where another does not.
    pub(super) fn hidden_text(&mut self) {
        if self.one_in(2) {
            self.mode_and_text();
            return;
        }
        self.named("quotes");
        let text = if self.one_in(4) { self.hidden_otherwise() } else { self.hidden_in_quotes() };
        self.send(text);
    }

    /// A mode set in a way that is hard to follow, and a text that writes in this mode only.
    fn mode_and_text(&mut self) {
        self.named("mode");
        let back = self.one_in(3);
        let mode = self.pick(&[Mode::NoEscapes, Mode::AnsiQuotes, Mode::Charset]);
        if back {
            let known = match mode {
                Mode::NoEscapes => "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
                Mode::AnsiQuotes => "SET sql_mode = 'ANSI_QUOTES'",
                Mode::Charset => "SET NAMES gbk",
            };
            self.send(known);
            let prefix = if mode == Mode::Charset { "utf8mb4" } else { "" };
            self.hard_to_follow(mode, prefix, "0", "45");
        } else {
            let (name, number) = match mode {
                Mode::NoEscapes => ("NO_BACKSLASH_ESCAPES", "1048576"),
                Mode::AnsiQuotes => ("ANSI_QUOTES", "4"),
                Mode::Charset => ("gbk", "28"),
            };
            self.hard_to_follow(mode, name, number, number);
        }
        let write = self.write();
        let (front, behind): (&[u8], &[u8]) = match (mode, back) {
            (Mode::NoEscapes, false) => (b"SELECT '\\'", b"'"),
            (Mode::NoEscapes, true) => (b"SELECT '\\''", b"'"),
            (Mode::AnsiQuotes, false) => (b"SELECT 1 \"\\\"", b"\""),
            (Mode::AnsiQuotes, true) => (b"SELECT 1 AS \"\\\"\"", b"\""),
            (Mode::Charset, false) => (b"SELECT '\xe5\\'", b"'"),
            (Mode::Charset, true) => (b"SELECT '\xe5\\\\'", b"'"),
        };
        let text = [front, b"; ", write.as_bytes(), b" -- ", behind].concat();
        self.send(text);
    }

    fn hard_to_follow(&mut self, mode: Mode, name: &str, number: &str, charset: &str) {
        let variable = if mode == Mode::Charset { "character_set_client" } else { "sql_mode" };
        let number = if mode == Mode::Charset { charset } else { number };
        let scope = self.pick(&[
            "",
            "SESSION ",
            "@@",
            "@@SESSION.",
            "LOCAL ",
            "@@LOCAL.",
            "`",
            "/**/",
            "@a = 1, ",
        ]);
        let end = if scope == "`" { "`" } else { "" };
        let texts = [
            format!("SET {scope}{variable}{end} = {number}"),
            format!("SET {scope}{variable}{end} = '{name}'"),
            format!("SET {scope}{variable}{end} = {number} + 0"),
            format!("SET {scope}{variable}{end} = CONCAT('', '{name}')"),
            format!("SET @x = '{name}'; SET {scope}{variable}{end} = @x"),
            format!("SET @x = {number}; SET {scope}{variable}{end} := @x"),
            format!("SET {scope}{variable}{end} = (SELECT '{name}')"),
            format!("SET {scope}{variable}{end} = {name}"),
            format!("PREPARE m FROM 'SET {variable} = {number}'; EXECUTE m"),
            format!("PREPARE m FROM 'SET {variable} = ?'; SET @x = '{name}'; EXECUTE m USING @x"),
            format!("SET @t = 'SET {variable} = {number}'; PREPARE m FROM @t; EXECUTE m"),
            format!("SELECT nonsense; SET {variable} = '{name}'"),
            format!("SET {variable} = '{name}'; SELECT nonsense"),
            format!("SET {variable} = '{name}', @a = (SELECT nonsense)"),
            format!("/*!40101 SET {variable} = '{name}' */"),
            format!("/*!999999 SET {variable} = 'x' */; SET {variable} = {number}"),
            format!("SET {variable} = DEFAULT"),
            format!("SET {variable} = @@GLOBAL.{variable}"),
            "SET NAMES DEFAULT".into(),
            "SET CHARACTER SET DEFAULT".into(),
            format!("SET CHARACTER SET {name}"),
            format!("SET NAMES {name}"),
            format!("SET NAMES {name} COLLATE {name}_bin"),
            format!("SET STATEMENT {variable} = '{name}' FOR SELECT 1"),
            "SELECT w.mode()".into(),
            "SELECT w.charset()".into(),
            "CALL w.pr()".into(),
        ];
        match self.chance.below(10) {
            0 => self.push(Act::Command(vec![0x1f])),
            1 => {
                let collation = if charset == "28" { 28 } else { 45 };
                self.push(Act::ChangeUser("besieged".into(), collation));
            }
            2 if charset == "28" => self.entry.collation = self.collation(),
            _ => {
                let text = texts.get(self.chance.index(texts.len())).cloned().unwrap_or_default();
                self.send(text);
            }
        }
        if self.one_in(6) {
            self.push(Act::Command(vec![0x1f]));
        }
    }

    fn hidden_in_quotes(&mut self) -> Vec<u8> {
        let quote = self.pick(b"''\"\"`");
        let lead: &[u8] = self.pick(&[
            b"",
            b"",
            b"\xe5",
            b"\x95",
            b"\x81",
            b"\xfe",
            b"\xbf",
            b"\xa1\x5c",
            b"\xe5\x81",
            b"x",
        ]);
        let slashes = self.pick(&[0, 1, 1, 1, 2, 2, 3]);
        let mut text = self
            .pick(&[
                "SELECT ",
                "SELECT 1 ",
                "SELECT 1, ",
                "SELECT N",
                "SELECT _gbk",
                "SELECT _binary",
                "SELECT x",
                "SELECT 'a' ",
                "SET @a = ",
                "DO ",
                "SHOW TABLES LIKE ",
                "SELECT 1 AS ",
                "SELECT _utf8mb4 ",
                "SELECT CONCAT(1,1) ",
            ])
            .as_bytes()
            .to_vec();
        text.push(quote);
        text.extend_from_slice(lead);
        text.extend(std::iter::repeat_n(b'\\', slashes));
        text.extend(std::iter::repeat_n(quote, self.pick(&[1, 1, 1, 2, 3])));
        text.extend_from_slice(self.blank());
        text.push(b';');
        text.extend_from_slice(self.blank());
        text.extend_from_slice(self.write().as_bytes());
        text.extend_from_slice(self.pick(&[&b" "[..], b"; ", b" ;"]));
        text.extend_from_slice(self.pick(&[
            &b"-- "[..],
            b"#",
            b"/* ",
            b"-- x",
            b"; SELECT ",
            b"; -- ",
        ]));
        text.push(quote);
        if self.one_in(3) {
            text.extend_from_slice(b" */");
        }
        text
    }

    fn hidden_otherwise(&mut self) -> Vec<u8> {
        let write = self.write();
        let q = self.pick(&["'", "\"", "`"]);
        let texts = [
            format!("SELECT 1 /* {q} */; {write} /* {q} */"),
            format!("SELECT 1 -- {q}\n; {write} -- {q}"),
            format!("SELECT 1 #{q}\n; {write} #{q}"),
            format!("SELECT 1 --{q}1\n; {write} -- {q}"),
            format!("SELECT /*+ {q} */ 1; {write} -- {q}"),
            format!("SELECT /*+ {q}*/{q} */ 1; {write} -- {q}"),
            format!("SELECT /*+ QB_NAME({q}a*/ 1; {write} -- {q}"),
            format!("SELECT 1 /*!99999 {q} */; {write} -- {q}"),
            format!("SELECT 1 /*!999999 {q} */; {write} /* {q} */"),
            format!("SELECT 1 /*M! AS {q}a{q} */; {write} -- {q}"),
            format!("SELECT $$ {q} $$; {write} -- {q}"),
            format!("SELECT 1 AS $a$; {write}; SELECT 1 AS $a$"),
            format!("SELECT $a$ ; {write} ; -- $a$"),
            format!("SELECT 1 AS a$$; {write} -- $$"),
            format!("SELECT 1 {q};{write}{q}"),
            format!("SELECT 1;\x00{write}"),
            format!("SELECT 1\x00;{write}"),
            format!("SELECT 1 AS {q}a{q}{q}; {write} -- {q}"),
            format!("SELECT {{d '2020-01-01'}}; {write}"),
            format!("SELECT 1 {q}a\n{q}; {write}"),
            format!("; {write}"),
            format!(";; {write}"),
            format!("\u{feff}{write}"),
            format!("({write})"),
            format!("(SELECT 1); {write}"),
            format!("delimiter //\n{write}//"),
            format!("SELECT 1\\G {write}"),
            format!("SELECT \\N; {write}"),
            format!("{write};;{write}"),
            format!("SELECT 1 -- \r; {write}"),
            format!("SELECT 1 --\x01; {write}"),
            format!("SELECT @`a`; {write}"),
            format!("SELECT @'a\\'; {write} -- '"),
            format!("SELECT x'41'; {write}"),
            format!("SELECT 1e; {write}"),
            format!("SELECT 0x; {write}"),
        ];
        texts.get(self.chance.index(texts.len())).cloned().unwrap_or_default().into_bytes()
    }

    /// Comments of every sort and version around, ahead of and inside statements.
    pub(super) fn comment(&mut self) {
        self.named("comments");
        let write = self.write();
        let read = self.read();
        let v = self.version();
        let texts = [
            format!("/*!{v} {write} */"),
            format!("/*!{v}{write} */"),
            format!("/*M!{v} {write} */"),
            format!("{read} /*!{v} ; {write} */"),
            format!("/*!{v} {read}; */ {write}"),
            format!("{read} /*!{v} */ ; {write}"),
            format!("/*!{v} SELECT 1 /* */ ; {write} */"),
            format!("/*!{v} /* */ {write} */"),
            format!("/*!{v} /* */ */ {write}"),
            format!("/* /*!{v} */ {write} /* */"),
            format!("/* a /* b */ {write} /* */"),
            format!("/*!99999 SELECT 1 */ {write}"),
            format!("/*!999999 /* x */ */ {write}"),
            format!("/*!{v} -- */\n {write} */"),
            format!("/*!{v} # */\n {write} */"),
            format!("-- /*!{v}\n{write} -- */"),
            format!("SELECT 1 /*!{v} + */ + 1; {write}"),
            format!("SELECT /*!{v} 1 */ /*!99999 , */ ; {write}"),
            format!("EXPLAIN /*!{v} ANALYZE */ {write}"),
            format!("EXPLAIN /*!99999 FORMAT=TREE */ {write}"),
            format!("EXPLAIN ANALYZE {write}"),
            format!("EXPLAIN ANALYZE FORMAT=TREE {write}"),
            format!("EXPLAIN FORMAT=JSON INTO @v {write}"),
            format!("EXPLAIN {write}"),
            format!("DESC ANALYZE {write}"),
            format!("SELECT /*+ x */ 1; {write}"),
            format!("SET STATEMENT sort_buffer_size=100000 FOR {write}"),
            format!("SET /*!{v} STATEMENT max_statement_time=1 FOR */ {write}"),
            format!("SELECT 1 /*!{v} INTO @a */; {write}"),
            format!("ROLLBACK /*!{v} ; {write} */"),
            format!("/*!{v}*/{write}"),
            format!("SHOW /*!{v} WARNINGS; {write}; SHOW */ WARNINGS"),
            format!("/*!{v} SELECT */ /*!99999 1; */ 2; {write}"),
            format!("/*!\n{v} {write} */"),
            format!("/*! {v} {write} */"),
            format!("/**/ /*+ x */ {write}"),
        ];
        let text = texts.get(self.chance.index(texts.len())).cloned().unwrap_or_default();
        self.send(text);
    }

    fn version(&mut self) -> &'static str {
        self.pick(&[
            "", "40101", "50000", "50699", "50700", "50701", "80000", "90000", "90700", "99999",
            "100000", "100100", "101100", "101119", "110000", "120000", "080000", "090700", "0100",
            "1", "32302", "500000", "999999",
        ])
    }

    /// Bodies with statements in them, and what follows a body.
    pub(super) fn compound(&mut self) {
        self.named("compound");
        let write = self.write();
        let (table, if_not) =
            (self.pick(&["w.t", "w.row", "w.`row`", "t"]), self.pick(&["", " IF NOT EXISTS"]));
        let texts = [
            format!(
                "CREATE TRIGGER{if_not} w.tr BEFORE INSERT ON {table} FOR EACH ROW SET @a = 1; {write}; END FOR"
            ),
            format!(
                "CREATE TRIGGER{if_not} w.tr BEFORE INSERT ON w.u FOR EACH ROW BEGIN SET @a = 1; END; {write}"
            ),
            format!("CREATE PROCEDURE{if_not} w.p() SELECT 1; {write}"),
            format!(
                "CREATE PROCEDURE{if_not} w.p() BEGIN IF 1 THEN SELECT 1; END IF; END; {write}"
            ),
            format!("CREATE PROCEDURE{if_not} w.p() l: LOOP LEAVE l; END LOOP; {write}; END LOOP"),
            format!("CREATE PROCEDURE{if_not} w.p() SELECT CASE WHEN 1 THEN 1 END; {write}"),
            format!("CREATE EVENT{if_not} w.e ON SCHEDULE EVERY 1 DAY DO SELECT 1; {write}"),
            format!(
                "CREATE FUNCTION{if_not} w.rf(a INT) RETURNS INT RETURN IF(1,1,1); {write}; END IF"
            ),
            format!("CREATE VIEW{if_not} w.v AS SELECT 1; {write}"),
            format!("CREATE TEMPORARY TABLE{if_not} w.`begin` (a INT); {write}; END"),
            format!("CREATE TEMPORARY TABLE{if_not} w.loop1 (a INT); {write}; END LOOP"),
            format!("BEGIN NOT ATOMIC {write}; END"),
            format!("BEGIN; {write}; END"),
            format!("IF 1 THEN {write}; END IF"),
            format!("CASE WHEN 1 THEN {write}; END CASE"),
            format!("l: LOOP {write}; LEAVE l; END LOOP"),
            format!("WHILE 0 DO SELECT 1; END WHILE; {write}"),
            format!("FOR i IN 1..2 DO {write}; END FOR"),
            format!("REPEAT {write}; UNTIL 1 END REPEAT"),
            format!("BEGIN NOT ATOMIC SET @a = 1; END; {write}"),
            format!(
                "BEGIN NOT ATOMIC DECLARE EXIT HANDLER FOR SQLEXCEPTION SELECT 1; {write}; END"
            ),
            format!("SELECT 1; BEGIN {write}; END"),
            format!("<<l>> BEGIN {write}; END l"),
            format!("DECLARE x INT; BEGIN {write}; END"),
        ];
        if self.one_in(2) {
            self.entry.user = "ddlfree".into();
        }
        if self.flavour == Flavour::MariaDb && self.one_in(5) {
            self.query("SET sql_mode = 'ORACLE'");
        }
        let text = texts.get(self.chance.index(texts.len())).cloned().unwrap_or_default();
        self.send(text);
    }
}

/// What makes a text read in another way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    NoEscapes,
    AnsiQuotes,
    Charset,
}

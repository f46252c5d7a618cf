//! How a session reads its texts, set in every way there is.

use crate::server::Flavour;
use crate::siege::grammar::Maker;
use crate::siege::sequence::Act;

impl Maker {
    /// Sets the character set, the SQL mode or both.
    pub(super) fn mode(&mut self) {
        match self.chance.below(9) {
            0..=2 => self.charset(),
            3..=5 => self.sql_mode(),
            6 => self.kept(),
            7 => self.reset(),
            _ => {
                let on = self.pick(&["0", "1", "OFF", "ON", "DEFAULT"]);
                let form = self.pick(&[
                    "SET autocommit = ",
                    "SET @@autocommit = ",
                    "SET SESSION autocommit = ",
                ]);
                self.query(format!("{form}{on}"));
            }
        }
    }

    pub(super) fn charset(&mut self) {
        self.named("charset");
        let (name, number) = self.pick(&CHARSETS);
        let texts = [
            format!("SET NAMES {name}"),
            format!("SET NAMES '{name}'"),
            format!("SET NAMES {name} COLLATE {name}_bin"),
            "SET NAMES DEFAULT".into(),
            format!("SET CHARACTER SET {name}"),
            format!("SET CHARSET '{name}'"),
            "SET CHARACTER SET DEFAULT".into(),
            format!("SET character_set_client = {name}"),
            format!("SET character_set_client = '{name}'"),
            format!("SET character_set_client = {number}"),
            format!("SET @@SESSION.character_set_client := {number}"),
            format!("SET SESSION character_set_client = CONCAT('', '{name}')"),
            format!("SET @c = '{name}'; SET character_set_client = @c"),
            format!("SET @c = {number}; SET @@character_set_client = @c"),
            "SET character_set_client = DEFAULT".into(),
            "SET character_set_client = @@GLOBAL.character_set_client".into(),
            format!("SET @a = 1, character_set_client = {name}"),
            format!("SET character_set_client = {name}, @a = nonsense"),
            format!("/*!40101 SET NAMES {name} */"),
            format!("/*!40101 SET character_set_client = {name} */"),
            format!("/*!999999 SET NAMES {name} */"),
            format!("SET NAMES {name}; SELECT 1"),
            format!("SELECT 1; SET NAMES {name}"),
            format!("SELECT nonsense; SET NAMES {name}"),
            format!("SET /* x */ NAMES /* y */ {name}"),
            format!("SET NAMES `{name}`"),
            format!("SET `character_set_client` = {name}"),
            format!("SET @@`character_set_client` = {name}"),
            format!("SET character_set_client = (SELECT '{name}')"),
            format!("PREPARE m FROM 'SET NAMES {name}'"),
            format!("PREPARE m FROM 'SET NAMES {name}'; EXECUTE m"),
            "EXECUTE m".into(),
            format!("SET STATEMENT character_set_client = {name} FOR SELECT 1"),
            format!("SET NAMES utf8mb4, character_set_client = {name}"),
            "SELECT w.charset()".into(),
            format!("SET character_set_client = {name} , NAMES utf8mb4"),
        ];
        let text = texts.get(self.chance.index(texts.len())).cloned().unwrap_or_default();
        self.send(text);
    }

    pub(super) fn sql_mode(&mut self) {
        self.named("sql_mode");
        let (name, number) = self.pick(&MODES);
        let texts = [
            format!("SET sql_mode = '{name}'"),
            format!("SET sql_mode = \"{name}\""),
            format!("SET sql_mode = {number}"),
            format!("SET @@sql_mode = {number}"),
            format!("SET SESSION sql_mode = {number}"),
            format!("SET @@SESSION.sql_mode := '{name}'"),
            format!("SET @@LOCAL.sql_mode = '{name}'"),
            format!("SET LOCAL sql_mode = CONCAT('{name}', '')"),
            format!("SET sql_mode = CONCAT(@@sql_mode, ',{name}')"),
            format!("SET @m = '{name}'; SET sql_mode = @m"),
            format!("SET @m = {number}; SET sql_mode = @m"),
            format!("SET sql_mode = {number} + 0"),
            format!("SET sql_mode = {number:#x}"),
            "SET sql_mode = DEFAULT".into(),
            "SET sql_mode = @@GLOBAL.sql_mode".into(),
            "SET sql_mode = ''".into(),
            "SET sql_mode = 0".into(),
            format!("SET @old = @@sql_mode, sql_mode = '{name}'"),
            "SET sql_mode = @old".into(),
            format!("SET sql_mode = '{name}', nonsense = 1"),
            format!("SET @a = 1, SESSION sql_mode = '{name}'"),
            format!("/*!40101 SET @OLD=@@sql_mode, sql_mode='{name}' */"),
            "/*!40101 SET sql_mode=IFNULL(@OLD, '') */".into(),
            format!("SET `sql_mode` = '{name}'"),
            format!("SET sql_mode = `{name}`"),
            format!("SET sql_mode = {name}"),
            format!("SELECT /*+ SET_VAR(sql_mode = '{name}') */ 1"),
            format!("SET STATEMENT sql_mode = '{name}' FOR SELECT 1"),
            format!("SET sql_mode = '{name}'; SELECT 1"),
            format!("SELECT 1; SET sql_mode = {number}; SELECT nonsense"),
            format!("SET sql_mode = (SELECT '{name}')"),
            "SELECT w.mode()".into(),
            format!("SET sql_mode = '{}'", name.to_ascii_lowercase()),
        ];
        let text = texts.get(self.chance.index(texts.len())).cloned().unwrap_or_default();
        self.send(text);
    }

    /// A value kept in a variable, or a prepared text that sets one, for later.
    fn kept(&mut self) {
        let text = self.pick(&[
            "SET @m = 'NO_BACKSLASH_ESCAPES'",
            "SET @c = 'gbk', @m = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",
            "SET @old = 'ANSI_QUOTES'",
            "PREPARE m FROM 'SET sql_mode = ?'",
            "EXECUTE m USING @m",
            "PREPARE m FROM 'SET sql_mode = 1048580'",
            "EXECUTE m",
            "SET @x = 'SET NAMES gbk'; PREPARE m FROM @x; EXECUTE m",
        ]);
        self.query(text);
    }

    /// What forgets the session's state, all of it or some.
    pub(super) fn reset(&mut self) {
        self.named("reset");
        match self.chance.below(5) {
            0 | 1 => self.push(Act::Command(vec![0x1f])),
            2 => {
                // MariaDB takes a second to refuse one.
                let users: &[&str] = if self.one_in(30) {
                    &["nobody", "'besieged'", "\"sealed\""]
                } else {
                    &["besieged", "sealed", "besieged"]
                };
                let user = self.pick(users);
                let collation = self.collation();
                self.push(Act::ChangeUser(user.into(), collation));
            }
            3 => {
                let off = self.pick(&[0, 1]);
                self.push(Act::Command(vec![0x1b, off, 0]));
            }
            _ => {
                let schema = self.pick(&[
                    "w",
                    "information_schema",
                    "performance_schema",
                    "sys",
                    "none",
                    "mysql",
                ]);
                self.push(Act::Command([&[0x02], schema.as_bytes()].concat()));
            }
        }
    }

    pub(super) fn collation(&mut self) -> u8 {
        let known: &[u8] = match self.flavour {
            Flavour::MySql => &[45, 28, 1, 13, 95, 248, 8, 33, 63, 87, 84, 35, 255],
            Flavour::MariaDb => &[45, 28, 1, 13, 95, 8, 33, 63, 87, 84, 35, 96, 192],
        };
        self.pick(known)
    }
}

const CHARSETS: [(&str, u16); 12] = [
    ("gbk", 28),
    ("gbk", 87),
    ("big5", 1),
    ("sjis", 13),
    ("cp932", 95),
    ("gb18030", 248),
    ("latin1", 8),
    ("utf8mb4", 45),
    ("utf8mb3", 33),
    ("binary", 63),
    ("armscii8", 32),
    ("gb2312", 24),
];

const MODES: [(&str, u64); 10] = [
    ("NO_BACKSLASH_ESCAPES", 1_048_576),
    ("ANSI_QUOTES", 4),
    ("ANSI_QUOTES,NO_BACKSLASH_ESCAPES", 1_048_580),
    ("ANSI", 262_159),
    ("NO_BACKSLASH_ESCAPES", 1_048_576),
    ("ORACLE", 559_695),
    ("IGNORE_SPACE", 8),
    ("PIPES_AS_CONCAT", 2),
    ("STRICT_TRANS_TABLES", 2_097_152),
    ("MSSQL", 8_207),
];

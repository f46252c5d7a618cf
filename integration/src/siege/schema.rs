//! What stands on the server: the tables that must not change, and stored programs that change them.

use crate::server::Flavour;

/// The accounts. Each one's password is its name.
pub const ACCOUNTS: [&str; 7] =
    ["besieged", "sealed", "ddlfree", "tagged", "reader", "unheld", "scratch"];

/// Statements that make the schema `w` as it is before every attack.
#[must_use]
pub fn statements(flavour: Flavour) -> Vec<&'static str> {
    let mut all = COMMON.to_vec();
    if flavour == Flavour::MariaDb {
        all.extend_from_slice(&MARIADB);
    }
    all
}

/// Statements that make the accounts.
#[must_use]
pub fn accounts(flavour: Flavour) -> Vec<String> {
    let mut all = Vec::new();
    for user in ACCOUNTS {
        all.push(format!("DROP USER IF EXISTS '{user}'@'%'"));
        all.push(format!("CREATE USER '{user}'@'%' IDENTIFIED BY '{user}'"));
        all.push(format!("GRANT FILE, PROCESS ON *.* TO '{user}'@'%'"));
    }
    for user in ["besieged", "sealed", "tagged"] {
        for schema in ["w", "x\\_%", "sys"] {
            all.push(format!("GRANT {EVERYTHING} ON `{schema}`.* TO '{user}'@'%'"));
        }
        if flavour == Flavour::MySql {
            all.push(format!(
                "GRANT UPDATE, INSERT, DELETE, SELECT, DROP ON performance_schema.* TO '{user}'@'%'"
            ));
        }
    }
    for schema in ["test", "mysqltest%", "db%"] {
        all.push(format!("GRANT {EVERYTHING} ON `{schema}`.* TO 'besieged'@'%'"));
        all.push(format!("GRANT ALL ON `{schema}`.* TO 'scratch'@'%'"));
    }
    all.push("GRANT SELECT ON w.* TO 'scratch'@'%'".into());
    all.push(match flavour {
        Flavour::MySql => "GRANT SESSION_VARIABLES_ADMIN ON *.* TO 'scratch'@'%'".into(),
        Flavour::MariaDb => "GRANT BINLOG ADMIN ON *.* TO 'scratch'@'%'".into(),
    });
    all.push("GRANT ALL ON w.* TO 'unheld'@'%'".into());
    all.push("GRANT ALL ON w.* TO 'reader'@'%'".into());
    // Enough for definitions that exist already and for tables that nobody else sees.
    all.push(
        "GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE, TRIGGER, CREATE TEMPORARY TABLES, CREATE VIEW ON w.* TO 'ddlfree'@'%'"
            .into(),
    );
    all
}

const EVERYTHING: &str = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, \
    CREATE TEMPORARY TABLES, EXECUTE, CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, EVENT, TRIGGER";

const COMMON: [&str; 23] = [
    "CREATE DATABASE w CHARACTER SET utf8mb4",
    "CREATE TABLE w.t (id INT AUTO_INCREMENT PRIMARY KEY, n INT, s VARCHAR(200))",
    "CREATE TABLE w.`row` (id INT AUTO_INCREMENT PRIMARY KEY, n INT, s VARCHAR(200))",
    "CREATE TABLE w.u (id INT AUTO_INCREMENT PRIMARY KEY, n INT, s VARCHAR(200))",
    "CREATE TABLE w.m (id INT AUTO_INCREMENT PRIMARY KEY, n INT, s VARCHAR(200)) ENGINE=MyISAM",
    "INSERT INTO w.t VALUES (1, 1, 'one'), (2, 2, 'two'), (3, NULL, NULL)",
    "INSERT INTO w.`row` VALUES (1, 1, 'one'), (2, 2, 'two')",
    "INSERT INTO w.u VALUES (1, 1, 'one'), (2, 2, 'two')",
    "INSERT INTO w.m VALUES (1, 1, 'one'), (2, 2, 'two')",
    "CREATE PROCEDURE w.p() MODIFIES SQL DATA INSERT INTO w.t (n) VALUES (7)",
    "CREATE PROCEDURE w.pr() READS SQL DATA SELECT 1 AS one",
    "CREATE PROCEDURE w.pc() MODIFIES SQL DATA BEGIN DECLARE c CURSOR FOR SELECT n FROM w.t; OPEN c; SELECT 1; COMMIT; INSERT INTO w.t (n) VALUES (8); END",
    "CREATE FUNCTION w.f() RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO w.t (n) VALUES (9); RETURN 1; END",
    "CREATE FUNCTION w.fs() RETURNS VARCHAR(40) MODIFIES SQL DATA BEGIN UPDATE w.u SET n = n + 1; RETURN 'SELECT 1'; END",
    "CREATE FUNCTION w.rf(a INT) RETURNS INT DETERMINISTIC RETURN a + 1",
    "CREATE FUNCTION w.cf() RETURNS INT READS SQL DATA BEGIN DECLARE v INT; DECLARE c CURSOR FOR SELECT n FROM w.t WHERE id = 3; OPEN c; FETCH c INTO v; RETURN v; END",
    "CREATE FUNCTION w.mode() RETURNS INT READS SQL DATA BEGIN SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'; RETURN 1; END",
    "CREATE FUNCTION w.charset() RETURNS INT READS SQL DATA BEGIN SET SESSION character_set_client = gbk; RETURN 1; END",
    "CREATE TRIGGER w.tr BEFORE INSERT ON w.u FOR EACH ROW INSERT INTO w.t (n) VALUES (10)",
    "CREATE EVENT w.e ON SCHEDULE EVERY 1 YEAR DISABLE DO INSERT INTO w.t (n) VALUES (11)",
    "CREATE VIEW w.v AS SELECT id, n FROM w.t",
    "CREATE TABLE w.`a;b` (id INT AUTO_INCREMENT PRIMARY KEY, n INT, s VARCHAR(200))",
    "CREATE TABLE w.performance_schema (id INT AUTO_INCREMENT PRIMARY KEY, n INT, s VARCHAR(200))",
];

const MARIADB: [&str; 2] = [
    "CREATE SEQUENCE w.sq",
    "CREATE TABLE w.hist (id INT PRIMARY KEY, n INT) WITH SYSTEM VERSIONING",
];

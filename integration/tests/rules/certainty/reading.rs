//! How a text is read: in the character set and the mode that the server is in, or in every one that
//! could be. Each text hides a write from who reads it in the wrong one.

use integration::server::Flavour;

use super::{RESET, World, both, is_refused, mariadb};

/// The server does not escape, or its double quotes are names: neither has escapes.
const PLAIN_BACKSLASH: &[u8] = br"SELECT '\'; UPDATE test.hidden SET n = 4; -- '";
/// The server escapes.
const ESCAPE: &[u8] = br"SELECT '\''; UPDATE test.hidden SET n = 4; -- '";
/// The server takes double quotes for names, which have no escapes.
const NAME: &[u8] = br#"SELECT 1 AS "\"; UPDATE test.hidden SET n = 4; -- ""#;
/// The server takes double quotes for strings, which have.
const STRING: &[u8] = br#"SELECT "\""; UPDATE test.hidden SET n = 4; -- ""#;
/// The server is in gbk, where these two bytes are one character.
const GBK: &[u8] = b"SELECT '\xe5\\'; UPDATE test.hidden SET n = 4; -- '";
/// The server is in a charset where they are not.
const NOT_GBK: &[u8] = b"SELECT '\xe5\\''; UPDATE test.hidden SET n = 4; -- '";

/// Texts, parted by `|`, that put the server into gbk.
const TO_GBK: [&[u8]; 9] = [
    b"SET NAMES gbk",
    b"SET CHARACTER SET gbk",
    b"SET CHARSET gbk",
    b"SET character_set_client = 28",
    b"SET @@SESSION.character_set_client = CONCAT('gbk')",
    b"SET @x = 'gbk'|SET @@character_set_client = @x",
    b"SET character_set_client = CONCAT('' 'gbk')",
    b"SET character_set_client = (SELECT 'gbk')",
    b"PREPARE p FROM 'SET character_set_client = gbk'|EXECUTE p",
];

const FROM_GBK: [&[u8]; 4] = [
    b"SET NAMES gbk|SET NAMES DEFAULT",
    b"SET NAMES gbk|\x1f",
    b"SET NAMES gbk|SET @x = 'latin1'|SET character_set_client = @x",
    b"SET NAMES gbk|SET character_set_client = 8",
];

const TO_NO_BACKSLASH: [&[u8]; 12] = [
    b"SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
    b"SET sql_mode = 1048576",
    b"SET sql_mode = 1048576 + 0",
    b"SET @x = 1048576|SET sql_mode = @x",
    b"SET SESSION sql_mode = CONCAT('NO_BACKSLASH', '_ESCAPES')",
    b"SET @@sql_mode = (SELECT 1048576)",
    b"SET @@LOCAL.sql_mode = 1048575 + 1",
    b"SET @x = 'NO_BACKSLASH_ESCAPES'|SET sql_mode = @x",
    b"SET sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES')",
    b"SET sql_mode = CONCAT('NO_BACKSLASH_ESCAPES,', @@SESSION.sql_mode)",
    b"SET sql_mode = 'NO_BACKSLASH_ESCAPES'|SET sql_mode = CONCAT(@@sql_mode, ',TRADITIONAL')",
    b"PREPARE p FROM 'SET sql_mode = 1048576'|EXECUTE p",
];

/// Behind a routine the flags say what it has set, and what was there before is in force.
const FROM_NO_BACKSLASH: [&[u8]; 8] = [
    b"SELECT test.mode()",
    b"SET sql_mode = 'NO_BACKSLASH_ESCAPES'|\x1f",
    b"SET sql_mode = 'NO_BACKSLASH_ESCAPES'|SET sql_mode = DEFAULT",
    b"SET sql_mode = 'NO_BACKSLASH_ESCAPES'|SET sql_mode = 0",
    b"SET sql_mode = 'NO_BACKSLASH_ESCAPES'|SET @x = ''|SET sql_mode = @x",
    b"SET sql_mode = 'NO_BACKSLASH_ESCAPES'|PREPARE p FROM 'SET sql_mode = 0'|EXECUTE p",
    b"SET sql_mode = 'NO_BACKSLASH_ESCAPES', sql_mode = CONCAT(@@sql_mode, ',TRADITIONAL')",
    b"SET @x = @@sql_mode, sql_mode = 'NO_BACKSLASH_ESCAPES'|SET sql_mode = REPLACE(@x, 'A', 'A')",
];

const TO_ANSI: [&[u8]; 9] = [
    b"SET sql_mode = 'ANSI_QUOTES'",
    b"SET sql_mode = 'ANSI'",
    b"SET sql_mode = 4",
    b"SET @@sql_mode = 4 + 0",
    b"SET @x = 4|SET sql_mode = @x",
    b"SET @v = 'ansi'|SET sql_mode = @v",
    b"SET sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')",
    b"SET sql_mode = 'ANSI'|SET sql_mode = CONCAT(@@sql_mode, ',NO_ZERO_DATE')",
    b"SET @@SESSION.sql_mode = (SELECT CONCAT(@@sql_mode, ',ANSI'))",
];

const FROM_ANSI: [&[u8]; 6] = [
    b"SELECT test.mode()",
    b"SET sql_mode = 'ANSI_QUOTES'|SET @x = ''|SET sql_mode = @x",
    b"SET sql_mode = 'ANSI_QUOTES'|\x1f",
    b"SET sql_mode = 'ANSI_QUOTES'|SET sql_mode = 0",
    b"SET sql_mode = 'ANSI_QUOTES'|SET sql_mode = DEFAULT",
    b"SET sql_mode = 'ANSI_QUOTES', sql_mode = CONCAT(@@sql_mode, ',NO_ZERO_DATE')",
];

#[tokio::test]
async fn a_charset_or_a_mode_that_was_set_in_any_way_hides_nothing() {
    for world in both().await {
        world.table("hidden").await;
        let groups: [(&[&[u8]], &[u8]); 6] = [
            (&TO_GBK, GBK),
            (&FROM_GBK, NOT_GBK),
            (&TO_NO_BACKSLASH, PLAIN_BACKSLASH),
            (&FROM_NO_BACKSLASH, ESCAPE),
            (&TO_ANSI, NAME),
            (&FROM_ANSI, STRING),
        ];
        for (ways, hidden) in groups {
            for way in ways {
                hides_nothing(world, "hidden", way, hidden).await;
            }
        }
    }
}

/// Who is not held does it, so the attack is one; who is held does not.
async fn hides_nothing(world: &World, table: &str, way: &[u8], hidden: &[u8]) {
    let mut attack: Vec<&[u8]> = way.split(|byte| *byte == b'|').collect();
    attack.push(hidden);
    let shown = way.escape_ascii();
    assert!(world.changes("free", table, &attack).await, "{shown} does nothing");
    world.none_gets_past("ddlfree", table, &[&attack]).await;
}

/// Flags say what a function has set, if it runs behind the assignment, and are not believed.
#[tokio::test]
async fn a_function_within_a_set_hides_nothing_behind_it() {
    for world in both().await {
        world.table("lied").await;
        let view = "CREATE VIEW test.lies AS SELECT test.mode() AS m";
        world.servers.primary.run_sql(&[view]).await.unwrap();
        for set in [
            &b"SET sql_mode = @x, @y = test.mode()"[..],
            b"SET sql_mode = @x, @y = (SELECT m FROM test.lies)",
            b"SET sql_mode = CONCAT(@@sql_mode, ''), @y = test.mode()",
            b"SET @y = test.mode(), sql_mode = @x",
        ] {
            let hidden = br"SELECT '\''; TRUNCATE test.lied; -- '";
            let attack: &[&[u8]] = &[b"SET @x = ''", set, hidden];
            assert!(world.changes("free", "lied", attack).await);
            world.none_gets_past("ddlgated", "lied", &[attack]).await;
        }
    }
}

/// MySQL reads a prepared text again when its table has changed, in the mode of then, and goes on
/// with that reading in any mode.
#[tokio::test]
async fn a_prepared_text_that_is_read_again_in_another_mode_hides_nothing() {
    // Where a backslash escapes, the function is part of a literal.
    const TEXT: &str =
        r"SELECT '\', test.rewrites(), ' FROM test.reread /* ' FROM test.reread -- */";
    for world in both().await {
        for table in ["reread", "rewritten"] {
            world.table(table).await;
        }
        let function = "CREATE FUNCTION test.rewrites() RETURNS INT MODIFIES SQL DATA \
             BEGIN INSERT INTO test.rewritten (n) VALUES (9); RETURN 1; END";
        world.servers.primary.run_sql(&[function]).await.unwrap();
        for (user, runs) in [("free", true), ("held", false)] {
            let mut conn = world.login(user).await;
            let prepared = conn.prepare(TEXT).await.unwrap();
            let answer = conn.execute(&prepared, &[]).await.unwrap();
            assert!(answer.err().is_none(), "{:?}", answer.err());
            conn.query("SET sql_mode = 'NO_BACKSLASH_ESCAPES'").await.unwrap();
            for altered in ["ADD COLUMN x INT", "DROP COLUMN x"] {
                let alter = format!("ALTER TABLE test.reread {altered}");
                world.servers.primary.run_sql(&[&alter]).await.unwrap();
                let answer = conn.execute(&prepared, &[]).await.unwrap();
                assert_eq!(is_refused(&answer), !runs, "{:?}", answer.err());
            }
            conn.query("SET sql_mode = ''").await.unwrap();
            let answer = conn.execute(&prepared, &[]).await.unwrap();
            assert_eq!(is_refused(&answer), !runs, "{:?}", answer.err());
            // MariaDB reads it again in the mode of its PREPARE.
            let reads_otherwise = world.servers.primary.flavour() == Flavour::MySql;
            assert_eq!(world.has_changed("rewritten").await, runs && reads_otherwise);
        }
    }
}

#[tokio::test]
async fn a_prepared_name_is_that_of_the_text_which_the_server_has_under_it() {
    for world in both().await {
        world.table("prepared").await;
        let write = "UPDATE test.prepared SET n = 2";
        let ways = [
            format!(
                "PREPARE ss FROM 'SELECT 1'|PREPARE ss FROM '{write}'; PREPARE e FROM ''|EXECUTE ss"
            ),
            format!(
                "PREPARE ss FROM 'SELECT 1'|PREPARE ss FROM '{write}'; PREPARE e FROM 'SELECT 1'|EXECUTE ss"
            ),
            format!("PREPARE ss FROM 'SELECT 1'|PREPARE SS FROM '{write}'|EXECUTE ss"),
            format!("PREPARE ss FROM 'SELECT 1'|PREPARE `ss` FROM '{write}'|EXECUTE ss"),
            format!("PREPARE ss FROM 'SELECT 1'|PREPARE šš FROM '{write}'|EXECUTE ss"),
            format!("PREPARE é FROM 'SELECT 1'|PREPARE e FROM '{write}'|EXECUTE é"),
            format!("PREPARE É FROM 'SELECT 1'|PREPARE é FROM '{write}'|EXECUTE É"),
            format!("PREPARE ß FROM 'SELECT 1'|PREPARE s FROM '{write}'|EXECUTE ß"),
            format!("PREPARE ss FROM 'SELECT 1'|PREPARE `ss ` FROM '{write}'|EXECUTE ss"),
            format!("PREPARE `a``b` FROM 'SELECT 1'|PREPARE `A``B` FROM '{write}'|EXECUTE `a``b`"),
            format!("PREPARE ss FROM 'SELECT 1'|SET @w = '{write}'|PREPARE ss FROM @w|EXECUTE ss"),
            format!(
                "PREPARE ss FROM 'SELECT 1'|SET @w = '{write}'; PREPARE ss FROM @w; SELECT nonsense|EXECUTE ss"
            ),
        ];
        for way in ways {
            let attack: Vec<&[u8]> = way.as_bytes().split(|byte| *byte == b'|').collect();
            // In some, the two names are two on this server, and nothing is hidden there.
            if world.changes("free", "prepared", &attack).await {
                world.none_gets_past("ddlfree", "prepared", &[&attack]).await;
            }
        }
        // Nobody knows what an unknown name is; the server might.
        let mut conn = world.login("ddlfree").await;
        assert!(is_refused(&conn.query("EXECUTE nobody_prepared_this").await.unwrap()));
    }
}

#[tokio::test]
async fn a_trigger_on_a_table_named_as_a_word_hides_nothing_behind_it() {
    for world in both().await {
        world.table("behind_trigger").await;
        world.servers.primary.run_sql(&["CREATE TABLE test.`row` (id INT)"]).await.unwrap();
        let insert = "INSERT INTO test.behind_trigger (n) VALUES (1)";
        for (nth, definition) in TRIGGERS.into_iter().enumerate() {
            let name = format!("test.t{nth}_NAME");
            let user_name = |user: &str| name.replace("NAME", user);
            let text = |user: &str| {
                definition.replace("{name}", &user_name(user)).replace("{insert}", insert)
            };
            let [free, held] = ["free", "held"].map(text);
            assert!(world.changes("free", "behind_trigger", &[free.as_bytes()]).await, "{free}");
            world.none_gets_past("ddlfree", "behind_trigger", &[&[held.as_bytes()]]).await;
        }
    }
}

const TRIGGERS: [&str; 4] = [
    "CREATE TRIGGER {name} BEFORE INSERT ON test.row FOR EACH ROW SET @x = 1; {insert}; END FOR",
    "CREATE TRIGGER {name} BEFORE UPDATE ON test.`row` FOR EACH ROW SET @x = 1; {insert}; END FOR",
    "CREATE TRIGGER {name} BEFORE DELETE ON test.row FOR EACH ROW BEGIN SET @x = 1; END; {insert}; END FOR; END",
    "CREATE TRIGGER {name} AFTER DELETE ON test.row FOR EACH ROW SET @`for` = 1; {insert}; END LOOP",
];

#[tokio::test]
async fn what_a_branch_that_is_not_taken_sets_hides_nothing_behind_it() {
    let world = mariadb().await;
    let no_backslash: &[u8] = b"SET sql_mode = 'NO_BACKSLASH_ESCAPES'";
    let hidden = br"SELECT '\'; TRUNCATE test.not_taken; -- '";
    world.table("not_taken").await;
    for block in [
        &b"BEGIN NOT ATOMIC IF 0 THEN SELECT 1; SET sql_mode = ''; END IF; END"[..],
        b"IF 0 THEN SELECT 1; SET sql_mode = ''; END IF",
        b"BEGIN NOT ATOMIC IF 0 THEN SET sql_mode = ''; END IF; END",
    ] {
        let attack: &[&[u8]] = &[no_backslash, block, hidden];
        assert!(world.changes("free", "not_taken", attack).await);
        world.none_gets_past("ddlgated", "not_taken", &[attack]).await;
    }
}

#[tokio::test]
async fn the_reset_is_one_command() {
    for world in both().await {
        let mut conn = world.login("free").await;
        conn.query("SET @a = 1").await.unwrap();
        super::send(&mut conn, RESET).await;
        let value = conn.query("SELECT @a IS NULL").await.unwrap();
        assert_eq!(value.first_text().as_deref(), Some("1"));
    }
}

//! A WHERE that is there for the server, or only seems to be: what a guard refuses takes all rows, and
//! what it lets pass does not. The judge is the server, which is asked directly what a text does.

use integration::raw::{Login, RawConn};
use integration::scenario::{Refused, connect_as};
use integration::server::Server;
use integration::sluice::SluiceProcess;
use integration::topology::Topology;

use super::{GUARDS, MARIADB, MYSQL, started};

/// Texts to a server.
const TEXTS: u64 = 1_500;

/// What begins a comment, or something that is none on one of the servers or on both.
const OPENINGS: [&str; 33] = [
    "/*",
    "/* ",
    "/*+ ",
    "/*!",
    "/*! ",
    "/*!50000",
    "/*!50000 ",
    "/*!5000",
    "/*!50701 ",
    "/*!59999 ",
    "/*!80000 ",
    "/*!80000",
    "/*!090000 ",
    "/*!090705 ",
    "/*!90704 ",
    "/*!90000",
    "/*!99999 ",
    "/*!99999",
    "/*!100000 ",
    "/*!100000",
    "/*!101100 ",
    "/*!999999 ",
    "/*!9999990",
    "/*M!",
    "/*M! ",
    "/*M!50000 ",
    "/*M!100000 ",
    "/*M!100000",
    "/*M!999999 ",
    "/*m! ",
    "-- ",
    "#",
    "--",
];

/// What stands in it, or is all of it.
const BODIES: [&str; 8] = [
    " WHERE n = 1 ",
    " WHERE n = 1 ",
    "WHERE n = 1",
    " WHERE 1 ",
    " AND n = 1 ",
    " ORDER BY n ",
    " /* */ WHERE n = 1 ",
    "",
];

/// What ends it.
const ENDS: [&str; 6] = ["*/", "*/", " */ ", "\n", "**/", "*/*/"];

#[tokio::test]
async fn what_a_guard_says_of_a_hidden_where_is_what_the_server_makes_of_it() {
    for servers in [MYSQL.get().await.unwrap(), MARIADB.get().await.unwrap()] {
        let sluice = started(servers, "g_hidden", GUARDS).await;
        servers.primary.run_sql(&["INSERT INTO test.g_hidden VALUES (3)"]).await.unwrap();
        let mut chance = Chance(0x5eed);
        let mut lab = Lab::new(servers, &sluice).await;
        for _ in 0..TEXTS {
            lab.judge(&chance.text()).await;
        }
        let Lab { wrong, refused, passed, .. } = lab;
        assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
        assert!(refused > 100 && passed > 100, "{refused} refused, {passed} passed");
        let kept: Vec<i64> =
            servers.primary.query("SELECT COUNT(*) FROM test.g_hidden").await.unwrap();
        assert_eq!(kept, [3], "all of it was rolled back");
    }
}

/// The same texts every time.
struct Chance(u64);

impl Chance {
    fn text(&mut self) -> String {
        let mut text = "DELETE FROM g_hidden ".to_owned();
        for _ in 0..=self.below(3) {
            let body = self.one_of(&BODIES);
            text += &match self.below(4) {
                0 => body.to_owned(),
                _ => [self.one_of(&OPENINGS), body, self.one_of(&ENDS)].concat(),
            };
        }
        text
    }

    fn one_of(&mut self, parts: &[&'static str]) -> &'static str {
        let at = self.below(u64::try_from(parts.len()).unwrap());
        parts.get(usize::try_from(at).unwrap()).copied().unwrap()
    }

    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

struct Lab {
    through: RawConn,
    direct: RawConn,
    wrong: Vec<String>,
    refused: u32,
    passed: u32,
}

impl Lab {
    async fn new(servers: &Topology, sluice: &SluiceProcess) -> Self {
        let through = connect_as(sluice, "shop").await.unwrap();
        let direct = direct(&servers.primary).await;
        Self { through, direct, wrong: Vec::new(), refused: 0, passed: 0 }
    }

    async fn judge(&mut self, text: &str) {
        // A text that the server does not take is nobody's.
        let Some(rows) = rows(&mut self.direct, text).await else { return };
        self.through.query("BEGIN").await.unwrap().accepted().unwrap();
        let answer = self.through.query(text).await.unwrap();
        self.through.query("ROLLBACK").await.unwrap().accepted().unwrap();
        let is_refused = Refused::of(&answer).is_some();
        if is_refused {
            self.refused += 1;
        } else {
            self.passed += 1;
        }
        if is_refused != (rows == 3) {
            self.wrong.push(format!("{text:?} takes {rows} rows, refused: {is_refused}"));
        }
    }
}

async fn direct(server: &Server) -> RawConn {
    let login = Login { schema: "test".into(), ..Login::new("admin") };
    RawConn::open(server.addr(), &login).await.unwrap()
}

/// How many rows a text takes, all of which stay. `None`: the server does not take the text.
async fn rows(conn: &mut RawConn, text: &str) -> Option<u64> {
    conn.query("BEGIN").await.unwrap().accepted().unwrap();
    let answer = conn.query(text).await.unwrap();
    let rows = answer.err().is_none().then(|| answer.affected_rows().unwrap());
    conn.query("ROLLBACK").await.unwrap().accepted().unwrap();
    rows
}

//! Compression on either leg: what a client sees is what it sees without, and the rules hold inside.

#![expect(clippy::unwrap_used, reason = "a test's own helpers fail by panicking, as it does")]

use std::path::Path;
use std::process::{Command, Output};

use integration::error::HarnessError;
use integration::footprint::Footprint;
use integration::raw::{Compress, Login, RawConn, Response, Shape, Tls, framed};
use integration::server::{Flavour, Server, ServerOptions, binaries};
use integration::sluice::{Config, SluiceProcess};

async fn server(flavour: Flavour) -> Server {
    Server::start(ServerOptions::new(flavour)).await.unwrap()
}

async fn sluice(server: &Server, keys: &str) -> SluiceProcess {
    let config = Config::in_front_of(server.addr(), Vec::new()).unwrap().cluster(keys);
    SluiceProcess::start(&config).await.unwrap()
}

async fn open(sluice: &SluiceProcess, compress: Compress) -> RawConn {
    RawConn::open(sluice.listen_addr(), &Login::new("app").compress(compress)).await.unwrap()
}

/// What the server says of the leg behind Sluice. MariaDB has no name for the algorithm.
async fn backend_algorithm(conn: &mut RawConn, flavour: Flavour) -> String {
    let name = match flavour {
        Flavour::MySql => "Compression_algorithm",
        Flavour::MariaDb => "Compression",
    };
    let answer = conn.query(format!("SHOW SESSION STATUS LIKE '{name}'")).await.unwrap();
    second_text(&answer)
}

/// The second column of the first row.
fn second_text(response: &Response) -> String {
    let mut rows = response.text_rows().unwrap().into_iter();
    let value = rows.next().and_then(|row| row.into_iter().nth(1)).flatten();
    String::from_utf8(value.unwrap_or_default()).unwrap()
}

#[tokio::test]
async fn either_leg_of_mysql_is_compressed_as_it_is_agreed_on() {
    let server = server(Flavour::MySql).await;
    for (keys, expected) in [
        ("", ["", "", ""]),
        ("backend_compression: as_client", ["", "zlib", "zstd"]),
        ("backend_compression: zlib", ["zlib"; 3]),
        ("backend_compression: zstd", ["zstd"; 3]),
    ] {
        let sluice = sluice(&server, keys).await;
        let clients = [Compress::Never, Compress::Zlib, Compress::Zstd(7)];
        for (compress, expected) in clients.into_iter().zip(expected) {
            let mut conn = open(&sluice, compress).await;
            let algorithm = backend_algorithm(&mut conn, Flavour::MySql).await;
            assert_eq!(algorithm, expected, "{keys} {compress:?}");
            let long = conn.query("SELECT REPEAT('abcd', 50000)").await.unwrap();
            assert_eq!(long.packets.len(), 4);
            let compressed = conn.compressed_packets().map(|(_, compressed)| compressed > 0);
            assert_eq!(compressed, (compress != Compress::Never).then_some(true));
            conn.quit().await.unwrap();
        }
    }
}

#[tokio::test]
async fn either_leg_of_mariadb_is_compressed_as_it_is_agreed_on() {
    let server = server(Flavour::MariaDb).await;
    for (keys, expected) in [
        ("", ["OFF"; 3]),
        ("backend_compression: as_client", ["OFF", "ON", "OFF"]),
        ("backend_compression: zlib", ["ON"; 3]),
        // It has no zstd.
        ("backend_compression: zstd", ["OFF"; 3]),
    ] {
        let sluice = sluice(&server, keys).await;
        let clients = [Compress::Never, Compress::Zlib, Compress::Zstd(3)];
        for (compress, expected) in clients.into_iter().zip(expected) {
            let mut conn = open(&sluice, compress).await;
            let algorithm = backend_algorithm(&mut conn, Flavour::MariaDb).await;
            assert_eq!(algorithm, expected, "{keys} {compress:?}");
            conn.quit().await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_client_is_refused_with_the_servers_error_where_it_must_compress() {
    let server = server(Flavour::MySql).await;
    let keys = "client_compression: { algorithms: [zstd] }";
    let sluice = sluice(&server, keys).await;
    let refused = async |login: Login| match RawConn::open(sluice.listen_addr(), &login).await {
        Err(HarnessError::Refused { errno, message }) => (errno, message),
        other => panic!("{other:?}"),
    };
    let (errno, message) = refused(Login::new("app")).await;
    assert_eq!(errno, 3922);
    assert!(message.contains("[sluice client_compression]"), "{message}");
    let (errno, _) = refused(Login::new("app").compress(Compress::Zstd(0))).await;
    assert_eq!(errno, 3923);
    let zlib = Login::new("app").compress(Compress::Zlib);
    let zlib = RawConn::open(sluice.listen_addr(), &zlib).await;
    assert!(matches!(zlib, Err(HarnessError::Protocol(_))), "it is not offered");
    open(&sluice, Compress::Zstd(3)).await.quit().await.unwrap();
}

/// Every combination of what the legs can be.
async fn all_combinations(server: &Server, check: impl AsyncFn(RawConn, &str)) {
    for backend in ["off", "zlib", "zstd"] {
        let sluice = sluice(server, &format!("backend_compression: {backend}")).await;
        for compress in [Compress::Never, Compress::Zlib, Compress::Zstd(3)] {
            let conn = open(&sluice, compress).await;
            check(conn, &format!("{compress:?} to {backend}")).await;
        }
    }
}

#[tokio::test]
async fn files_and_packets_of_sixteen_megabytes_pass_on_every_pair_of_legs() {
    let server = server(Flavour::MySql).await;
    all_combinations(&server, async |mut conn, case| {
        let done = |response: Response| {
            assert_eq!(response.err(), None, "{case}");
            response
        };
        done(conn.query("DROP TABLE IF EXISTS loaded").await.unwrap());
        done(conn.query("CREATE TABLE loaded (a LONGTEXT)").await.unwrap());

        // More packets than there are sequence ids, on the way in.
        let line = "0123456789\n".repeat(100);
        conn.queue_infile(line.repeat(6000).into_bytes());
        done(conn.query("LOAD DATA LOCAL INFILE 'f' INTO TABLE loaded").await.unwrap());
        let count = done(conn.query("SELECT COUNT(*), SUM(LENGTH(a)) FROM loaded").await.unwrap());
        let row = count.text_rows().unwrap().remove(0);
        assert_eq!(row, [Some(b"600000".to_vec()), Some(b"6000000".to_vec())], "{case}");

        // One packet of two frames in, and out.
        let text = vec![b'x'; 16 << 20];
        let insert = [&b"SELECT LENGTH('"[..], &text, b"')"].concat();
        let length = done(conn.query(insert).await.unwrap());
        assert_eq!(length.first_text().as_deref(), Some("16777216"), "{case}");
        let long = done(conn.query("SELECT REPEAT('y', 17000000)").await.unwrap());
        assert_eq!(long.first_text().map(|text| text.len()), Some(17_000_000), "{case}");

        // And the session is as good as new.
        let one = done(conn.query("SELECT 1").await.unwrap());
        assert_eq!(one.packets.iter().map(|packet| packet.seq).collect::<Vec<_>>(), [1, 2, 3, 4]);
        conn.quit().await.unwrap();
    })
    .await;
}

/// What a client library of the servers' own does: it sends the header of a long command by itself, has its own
/// size of packets, and gives up when a number is not the one it awaits.
#[tokio::test]
async fn command_line_clients_compress_as_their_servers_do() {
    let server = server(Flavour::MySql).await;
    let dir = server.dir().join("compression");
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("lines");
    std::fs::write(&file, "0123456789\n".repeat(300_000)).unwrap();
    let script = dir.join("script.sql");
    let long = "y".repeat(300_000);
    let sql = format!(
        "DROP TABLE IF EXISTS file;\nCREATE TABLE file (a LONGTEXT);\n\
         LOAD DATA LOCAL INFILE '{}' INTO TABLE file;\n\
         SELECT COUNT(*), SUM(LENGTH(a)) FROM file;\nSELECT LENGTH('{long}');\n\
         SELECT LENGTH(a), a = '0123456789' FROM file LIMIT 1;\n\
         DELIMITER ;;\nSELECT 1; SELECT 2;;\nDELIMITER ;\nSELECT REPEAT('z', 3000000);\n",
        file.display()
    );
    std::fs::write(&script, sql).unwrap();
    let (mysql, mariadb) = (binaries::mysql().unwrap(), binaries::mariadb().unwrap());
    let clients = [
        (&mysql, "--compression-algorithms=zlib"),
        (&mysql, "--compression-algorithms=zstd"),
        (&mysql, "--compression-algorithms=uncompressed"),
        (&mariadb, "--compress"),
    ];
    for backend in ["off", "zlib", "zstd"] {
        let sluice = sluice(&server, &format!("backend_compression: {backend}")).await;
        for (program, option) in clients {
            let case = format!("{} {option} to {backend}", program.display());
            let output = run_script(program, option, &sluice, &script).await;
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{case}: {}", String::from_utf8_lossy(&output.stderr));
            let lines: Vec<&str> = said.lines().collect();
            let expected = ["300000\t3000000", "300000"];
            assert_eq!(lines.get(..2), Some(&expected[..]), "{case}");
            let tail: Vec<usize> = lines.iter().skip(3).map(|line| line.len()).collect();
            assert_eq!(tail, [1, 1, 3_000_000], "{case}");
        }
    }
}

async fn run_script(program: &Path, option: &str, sluice: &SluiceProcess, script: &Path) -> Output {
    let addr = sluice.listen_addr();
    let mut command = Command::new("timeout");
    command
        .arg(CLIENT_LIMIT_S)
        .arg(program)
        .args(["--no-defaults", "--host=127.0.0.1", "--user=app", "--password=app"])
        .args(["--batch", "--skip-column-names", "--local-infile=1", "--database=test", option])
        .arg(format!("--port={}", addr.port()))
        .stdin(std::fs::File::open(script).unwrap());
    tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap()
}

const CLIENT_LIMIT_S: &str = "60";

#[tokio::test]
async fn a_change_of_user_passes_and_compression_goes_on() {
    let server = server(Flavour::MySql).await;
    all_combinations(&server, async |mut conn, case| {
        for user in ["etl", "app", "etl"] {
            conn.change_user(&Login::new(user)).await.unwrap();
            let who = conn.query("SELECT CURRENT_USER()").await.unwrap();
            assert_eq!(who.first_text(), Some(format!("{user}@%")), "{case}");
        }
        conn.quit().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn commands_sent_ahead_are_answered_in_order_in_one_packet_or_in_several() {
    let server = server(Flavour::MySql).await;
    let sluice = sluice(&server, "backend_compression: zlib").await;
    for compress in [Compress::Never, Compress::Zlib, Compress::Zstd(3)] {
        let mut conn = open(&sluice, compress).await;
        let payloads: Vec<_> =
            (1..=3).map(|n| conn.query_payload(format!("SELECT {n}").as_bytes(), &[])).collect();
        for payload in &payloads {
            conn.send_command(payload).await.unwrap();
        }
        for n in 1..=3 {
            // Each in a compressed packet of its own: each answer counts from its own command.
            conn.await_answer_of_one();
            let answer = conn.read_response(Shape::Query).await.unwrap();
            assert_eq!(answer.first_text(), Some(n.to_string()));
        }
        let together: Vec<u8> = payloads.iter().flat_map(|payload| framed(0, payload)).collect();
        conn.send_bytes(&together).await.unwrap();
        for n in 1..=3 {
            let answer = conn.read_response(Shape::Query).await.unwrap();
            assert_eq!(answer.first_text(), Some(n.to_string()));
        }
        conn.quit().await.unwrap();
    }
}

#[tokio::test]
async fn statements_are_told_apart_and_refused_inside_compression() {
    let server = server(Flavour::MySql).await;
    let rules = "- { name: no-batch, match: { app: batch }, deny: true, permanent: true }";
    for compress in [Compress::Zlib, Compress::Zstd(3)] {
        for backend in ["off", "zlib", "zstd"] {
            let config = Config::in_front_of(server.addr(), Vec::new())
                .unwrap()
                .cluster(&format!("backend_compression: {backend}"))
                .rules(rules);
            let sluice = SluiceProcess::start(&config).await.unwrap();
            let mut conn = open(&sluice, compress).await;
            conn.query("CREATE TABLE IF NOT EXISTS t (a LONGTEXT)").await.unwrap();
            let long = format!("INSERT INTO t VALUES ('{}') /* app=batch */", "x".repeat(100_000));
            for denied in ["INSERT INTO t VALUES (1) /* app=batch */", &long] {
                let refused = conn.query(denied).await.unwrap().err().unwrap();
                assert!(refused.1.contains("sluice"), "{refused:?}");
                let passed = conn.query("INSERT INTO t VALUES (1) /* app=web */").await.unwrap();
                assert_eq!(passed.err(), None);
            }
            conn.quit().await.unwrap();
        }
    }
}

#[tokio::test]
async fn what_is_not_what_it_says_ends_the_connection_and_nothing_else() {
    let server = server(Flavour::MySql).await;
    let sluice = sluice(&server, "").await;
    let mut bystander = open(&sluice, Compress::Zlib).await;
    let data = [0xff; 60];
    for (announced, data) in [(100_u8, &data[..]), (1, b"x\x9c\x03\0\0\0\0\x01")] {
        for compress in [Compress::Zlib, Compress::Zstd(3)] {
            let mut conn = open(&sluice, compress).await;
            let len = u8::try_from(data.len()).unwrap();
            let packet = [&[len, 0, 0, 0, announced, 0, 0][..], data].concat();
            conn.send_wire(&packet).await.unwrap();
            assert_eq!(conn.read_to_end().await.unwrap(), b"", "{compress:?}");
        }
    }
    assert_eq!(bystander.query("SELECT 1").await.unwrap().err(), None);
}

#[tokio::test]
async fn a_bomb_takes_no_memory() {
    let server = server(Flavour::MySql).await;
    let sluice = sluice(&server, "").await;
    // COM_SLEEP, which servers refuse, and 16 MiB of zeroes behind it.
    let bomb = framed(0, &vec![0; 0xff_ffff - 4]);
    let before = Footprint::of(&sluice).unwrap().rss_kib;
    for compress in [Compress::Zlib, Compress::Zstd(3)] {
        for _ in 0..4 {
            let mut conn = open(&sluice, compress).await;
            conn.send_in_one(&bomb).await.unwrap();
            assert!(conn.read_packet().await.unwrap().err().is_some());
        }
    }
    let after = Footprint::of(&sluice).unwrap().rss_kib;
    assert!(after < before + 24 * 1024, "{before} KiB, and then {after} KiB");
}

#[tokio::test]
async fn compression_and_tls_stand_on_one_leg() {
    let server = server(Flavour::MySql).await;
    let sluice = sluice(&server, "backend_compression: as_client").await;
    for compress in [Compress::Zlib, Compress::Zstd(3)] {
        for tls in [Tls::Newest, Tls::V12] {
            let login = Login::new("app").tls(tls).compress(compress);
            let mut conn = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
            let long = conn.query("SELECT REPEAT('abcd', 500000)").await.unwrap();
            assert_eq!(long.first_text().map(|text| text.len()), Some(2_000_000));
            let cipher = conn.query("SHOW SESSION STATUS LIKE 'Ssl_cipher'").await.unwrap();
            assert_ne!(second_text(&cipher), "");
            conn.quit().await.unwrap();
        }
    }
}

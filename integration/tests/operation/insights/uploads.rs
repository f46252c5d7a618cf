//! What a server does with a file while that comes is its work.

use std::time::Instant;

use integration::raw::{Login, Param, RawConn};
use integration::scenario::Shared;
use integration::server::Flavour;
use integration::sluice::{Config, SluiceProcess};

use serde_json::Value;

use super::{ask, servers};

static MARIADB: Shared = Shared::new(Flavour::MariaDb);

/// All of it, and not only what is left when the last byte has gone: of a large file nothing was.
#[tokio::test]
async fn an_upload_costs_what_the_server_takes_for_it() {
    for servers in [servers().await, MARIADB.get().await.unwrap()] {
        let table = "CREATE TABLE test.uploaded (n INT, h CHAR(128), KEY (h))";
        servers.primary.run_sql(&[table]).await.unwrap();
        let sluice = SluiceProcess::start(&Config::new(servers).unwrap()).await.unwrap();
        let mut conn = RawConn::open(sluice.listen_addr(), &Login::new("etl")).await.unwrap();
        // Some times what fits between client and server.
        let line = [&b"x".repeat(1_000)[..], b"\n"].concat();
        conn.queue_infile(line.repeat(16_000));
        let load = "LOAD DATA LOCAL INFILE 'f' INTO TABLE test.uploaded (@a) \
                    SET n = SLEEP(0.00002), h = SHA2(REPEAT(@a, 10), 512)";
        let began = Instant::now();
        conn.query(load).await.unwrap().accepted().unwrap();
        let took = began.elapsed().as_secs_f64();
        let long = conn.prepare("SELECT LENGTH(?)").await.unwrap();
        for _ in 0..2 {
            conn.send_long_data(long.id, 0, &[b'x'; 50_000]).await.unwrap();
            // Another statement's bytes are its own.
            conn.query("SELECT 1").await.unwrap().accepted().unwrap();
        }
        conn.execute(&long, &[Param::long_data()]).await.unwrap().accepted().unwrap();
        super::counted(&mut conn).await;
        let rows = ask(&sluice, "by=digest").await["rows"].clone();
        let of = |front: &str| {
            let is_it = |row: &&Value| {
                row["digest_text"].as_str().is_some_and(|text| text.starts_with(front))
            };
            rows.as_array().unwrap().iter().find(is_it).unwrap()
        };
        let row = of("LOAD DATA");
        let told = row["time_total_s"].as_f64().unwrap();
        assert!(took > 1.0 && told > took * 0.5 && told <= took, "{told} of {took}");
        let bytes_in =
            ["SELECT LENGTH", "SELECT ?"].map(|front| of(front)["bytes_in"].as_u64().unwrap());
        assert!((100_000..100_100).contains(&bytes_in[0]) && bytes_in[1] < 100, "{bytes_in:?}");
    }
}

//! Who has logged in, and what stands behind a login response.

use integration::error::HarnessError;
use integration::raw::{COM_QUERY, Login, RawConn, Tls, capability, framed};
use mysql_common::scramble::{scramble_native, scramble_sha256};

use super::{World, both, is_refused};

#[tokio::test]
async fn a_user_in_quotes_is_held_as_the_account_is() {
    for world in both().await {
        world.table("quoted").await;
        let insert = "INSERT INTO test.quoted (n) VALUES (1)";
        for user in ["'held'", "\"held\"", "`held`", "'sealed'", "held ", "HELD"] {
            let login = Login::new(user).password(user.trim_matches(QUOTES));
            match RawConn::open(world.sluice.listen_addr(), &login).await {
                Ok(mut conn) => assert!(is_refused(&conn.query(insert).await.unwrap()), "{user}"),
                Err(HarnessError::Refused { .. }) => {}
                Err(other) => panic!("{user}: {other:?}"),
            }
            let mut conn = world.login("free").await;
            let changed = conn.change_user(&login).await;
            if changed.is_ok_and(|packets| packets.iter().all(|packet| packet.err().is_none())) {
                assert!(is_refused(&conn.query(insert).await.unwrap()), "{user}");
            }
            assert!(!world.has_changed("quoted").await, "{user}");
        }
    }
}

#[tokio::test]
async fn a_command_behind_the_login_response_reaches_no_server_as_its_first() {
    for world in both().await {
        // A table for each: a command that is run late is not taken for another's.
        let table = |user, sequence| format!("behind_{user}_{sequence}");
        // The leg behind is in the clear, so its sequence ids are one lower.
        let tried = ["held", "free"].into_iter().flat_map(|user| (0..=3).map(move |n| (user, n)));
        for (user, sequence) in tried.clone() {
            let table = table(user, sequence);
            world.table(&table).await;
            let mut command = vec![COM_QUERY];
            command.extend_from_slice(format!("UPDATE test.{table} SET n = 5").as_bytes());
            log_in_ahead(world, user, &framed(sequence, &command)).await;
        }
        // A command that has number 0 may be run, by whom no rule holds.
        for (user, sequence) in tried.filter(|(user, n)| (*user, *n) != ("free", 0)) {
            let changed = world.has_changed(&table(user, sequence)).await;
            assert!(!changed, "{user}, sequence id {sequence}");
        }
    }
}

/// Logs in with TLS, the bytes in the same write as the login response, and waits for the end.
async fn log_in_ahead(world: &World, user: &str, behind: &[u8]) {
    let mut conn = RawConn::connect(world.sluice.listen_addr()).await.unwrap();
    let greeting = conn.read_packet().await.unwrap();
    let (plugin, nonce) = plugin_and_nonce(&greeting.payload);
    let capabilities = (capability::USUAL | capability::SSL) & !capability::CONNECT_ATTRS;
    let mut response = capabilities.to_le_bytes().to_vec();
    response.extend_from_slice(&[0, 0, 0, 1, 45]);
    response.extend_from_slice(&[0; 23]);
    conn.send_payload(1, &response).await.unwrap();
    conn.start_tls(&Tls::Newest).await.unwrap();
    let scrambled = match plugin.as_str() {
        "mysql_native_password" => {
            scramble_native(&nonce, user.as_bytes()).map(|proof| proof.to_vec())
        }
        _ => scramble_sha256(&nonce, user.as_bytes()).map(|proof| proof.to_vec()),
    };
    let proof = scrambled.unwrap();
    response.extend_from_slice(format!("{user}\0").as_bytes());
    response.push(u8::try_from(proof.len()).unwrap());
    response.extend_from_slice(&proof);
    response.extend_from_slice(format!("test\0{plugin}\0").as_bytes());
    let bytes = [&framed(2, &response), behind].concat();
    conn.send_bytes(&bytes).await.unwrap();
    // The commands have been answered, or the connection was ended: what was run has been.
    conn.set_read_limit(std::time::Duration::from_millis(100));
    while conn.read_packet().await.is_ok() {}
}

fn plugin_and_nonce(greeting: &[u8]) -> (String, Vec<u8>) {
    let until_nul =
        |bytes: &[u8]| -> Vec<u8> { bytes.iter().copied().take_while(|byte| *byte != 0).collect() };
    let version = until_nul(greeting.get(1..).unwrap()).len();
    let rest = greeting.get(version + 2..).unwrap();
    let second = until_nul(rest.get(31..).unwrap());
    let plugin = until_nul(rest.get(31 + second.len() + 1..).unwrap());
    let nonce = [rest.get(4..12).unwrap(), &second].concat();
    (String::from_utf8(plugin).unwrap(), nonce)
}

const QUOTES: [char; 4] = ['\'', '"', '`', ' '];

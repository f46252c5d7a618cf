//! TLS on both legs: when it is there, when it must be, and what is refused.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as the tests do"
)]

use std::time::Duration;

use integration::certificates::Certificates;
use integration::error::HarnessError;
use integration::raw::{Login, RawConn, Tls, capability, framed};
use integration::scenario::wait_until;
use integration::server::{Flavour, Server, ServerOptions};
use integration::sluice::{Config, SluiceProcess};

/// MySQL, which makes certificates for itself.
async fn mysql() -> Server {
    Server::start(ServerOptions::new(Flavour::MySql)).await.unwrap()
}

/// MariaDB 10.11 with a certificate for 127.0.0.1, or without TLS.
async fn mariadb(certificates: Option<&Certificates>) -> Server {
    let mut options = ServerOptions::new(Flavour::MariaDb);
    options.extra_args = certificates.map(|made| made.server_args().unwrap()).unwrap_or_default();
    Server::start(options).await.unwrap()
}

async fn sluice(server: &Server, keys: &str) -> SluiceProcess {
    SluiceProcess::start(&config(server, keys)).await.unwrap()
}

fn config(server: &Server, keys: &str) -> Config {
    Config::in_front_of(server.addr(), Vec::new()).unwrap().cluster(keys)
}

async fn open(sluice: &SluiceProcess, tls: Tls) -> Result<RawConn, HarnessError> {
    RawConn::open(sluice.listen_addr(), &Login::new("app").tls(tls)).await
}

/// The error that Sluice or the server gives.
async fn refused(sluice: &SluiceProcess, tls: Tls) -> (u16, String) {
    match open(sluice, tls).await {
        Err(HarnessError::Refused { errno, message }) => (errno, message),
        other => panic!("{other:?}"),
    }
}

/// Whether the leg behind Sluice is encrypted.
async fn backend_in_tls(conn: &mut RawConn) -> bool {
    let cipher = conn.query("SHOW SESSION STATUS LIKE 'Ssl_cipher'").await.unwrap();
    !cipher.text_rows().unwrap()[0][1].clone().unwrap_or_default().is_empty()
}

#[tokio::test]
async fn both_legs_are_as_safe_as_the_client_wants_unless_told() {
    let server = mysql().await;
    let sluice = sluice(&server, "").await;
    for (tls, expected) in [(Tls::Never, false), (Tls::Newest, true), (Tls::V12, true)] {
        let mut conn = open(&sluice, tls).await.unwrap();
        assert_eq!(conn.certificate().is_some(), expected);
        assert_eq!(backend_in_tls(&mut conn).await, expected);
        conn.quit().await.unwrap();
    }
}

#[tokio::test]
async fn a_client_without_tls_is_refused_where_it_is_required() {
    let server = mysql().await;
    let keys = "client_tls: { mode: required, min_version: TLSv1.3 }";
    let sluice = sluice(&server, keys).await;
    let (errno, message) = refused(&sluice, Tls::Never).await;
    assert_eq!(errno, 3159);
    assert!(message.contains("[sluice client_tls=required]"), "{message}");
    assert!(backend_in_tls(&mut open(&sluice, Tls::Newest).await.unwrap()).await);
    let old = open(&sluice, Tls::V12).await;
    assert!(matches!(old, Err(HarnessError::Io { .. })), "too old a version: {old:?}");
}

#[tokio::test]
async fn tls_is_not_offered_where_it_is_disabled() {
    let server = mysql().await;
    let keys = "client_tls: { mode: disabled }\nbackend_tls: { mode: required }";
    let sluice = sluice(&server, keys).await;
    assert!(matches!(open(&sluice, Tls::Newest).await, Err(HarnessError::Protocol(_))));
    assert!(backend_in_tls(&mut open(&sluice, Tls::Never).await.unwrap()).await);
}

#[tokio::test]
async fn an_encrypted_client_is_never_given_a_leg_in_the_clear_by_as_client() {
    let server = mariadb(None).await;
    // As in front of that server itself: clients that take TLS where it is offered come without.
    let as_client = sluice(&server, "").await;
    assert!(matches!(open(&as_client, Tls::Newest).await, Err(HarnessError::Protocol(_))));
    assert!(!backend_in_tls(&mut open(&as_client, Tls::Never).await.unwrap()).await);
    let preferred = sluice(&server, "backend_tls: { mode: preferred }").await;
    assert!(!backend_in_tls(&mut open(&preferred, Tls::Newest).await.unwrap()).await);
    let ours = Certificates::new().unwrap();
    let issued = ours.issue("sluice", &["127.0.0.1"]).unwrap();
    let named = format!("cert: {}, key: {}", issued.cert.display(), issued.key.display());
    for keys in ["mode: required", &named] {
        let wanted = sluice(&server, &format!("client_tls: {{ {keys} }}")).await;
        let (errno, message) = refused(&wanted, Tls::Newest).await;
        assert_eq!(errno, 1043, "{keys}");
        assert!(message.contains("[sluice]") && message.contains("no TLS"), "{message}");
        let is_told = || async { Ok(wanted.log()?.contains("server_without_tls")) };
        wait_until("the reason in the log", Duration::from_secs(5), is_told).await.unwrap();
    }
}

#[tokio::test]
async fn a_server_is_verified_as_far_as_the_mode_says() {
    let (ours, others) = (Certificates::new().unwrap(), Certificates::new().unwrap());
    let server = mariadb(Some(&ours)).await;
    let keys = |mode: &str, made: &Certificates, more: &str| {
        format!("backend_tls: {{ mode: {mode}, ca: {}{more} }}", made.ca().display())
    };
    for (keys, expected) in [
        (keys("verify_ca", &ours, ""), None),
        (keys("verify_identity", &ours, ""), None),
        (keys("verify_identity", &ours, ", server_name: localhost"), None),
        (keys("verify_ca", &others, ""), Some("UnknownIssuer")),
        (keys("verify_identity", &others, ""), Some("UnknownIssuer")),
        (keys("verify_identity", &ours, ", server_name: db.example"), Some("not valid for name")),
    ] {
        let mut process = unready(&server, &keys).await;
        match expected {
            None => {
                process.wait_until_ready().await.unwrap();
                assert!(backend_in_tls(&mut open(&process, Tls::Never).await.unwrap()).await);
            }
            Some(why) => {
                let (errno, message) = refused(&process, Tls::Never).await;
                assert_eq!(errno, 1043, "{keys}");
                assert!(message.contains("[sluice]") && message.contains(why), "{message}");
                let errors = process.metrics().await.unwrap();
                let tls = [("cluster", "main"), ("kind", "tls")];
                assert_eq!(errors.value("sluice_backend_errors_total", &tls), Some(1.0));
            }
        }
    }
}

/// A Sluice whose probe may not get through: only its ports are waited for.
async fn unready(server: &Server, keys: &str) -> SluiceProcess {
    let config = config(server, keys);
    let password = [("SLUICE_PROBE_PASSWORD", "sluice-probe")];
    let process =
        SluiceProcess::spawn(&config.render(), config.listen, config.admin, &password).unwrap();
    for _ in 0..500 {
        if process.http_get("/healthz").await.is_ok() {
            return process;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("sluice does not come up: {}", process.log().unwrap());
}

#[tokio::test]
async fn probes_and_sessions_trust_the_same_servers() {
    let (ours, others) = (Certificates::new().unwrap(), Certificates::new().unwrap());
    let shown = ours.issue("server", &["db.example"]).unwrap();
    let mut options = ServerOptions::new(Flavour::MariaDb);
    options.extra_args = vec![
        format!("--ssl-cert={}", shown.cert.display()),
        format!("--ssl-key={}", shown.key.display()),
    ];
    let server = Server::start(options).await.unwrap();
    for (mode, made, more, expected) in [
        ("verify_ca", &ours, "", None),
        ("verify_identity", &ours, ", server_name: db.example", None),
        ("verify_identity", &ours, "", Some("not valid for name")),
        ("verify_ca", &others, "", Some("UnknownIssuer")),
    ] {
        let keys = format!("backend_tls: {{ mode: {mode}, ca: {}{more} }}", made.ca().display());
        let mut process = unready(&server, &keys).await;
        match expected {
            None => {
                process.wait_until_ready().await.unwrap();
                open(&process, Tls::Never).await.unwrap().quit().await.unwrap();
                let log = process.log().unwrap();
                assert!(!log.contains("probe failed"), "{keys}: {log}");
            }
            Some(why) => {
                let (_, message) = refused(&process, Tls::Never).await;
                assert!(message.contains(why), "{keys}: {message}");
                let failure = failed_probe(&process).await;
                assert!(failure.contains(why), "{keys}: {failure}");
            }
        }
    }
}

/// What the log says of the first probe that failed.
async fn failed_probe(process: &SluiceProcess) -> String {
    for _ in 0..500 {
        let log = process.log().unwrap();
        if let Some(line) = log.lines().find(|line| line.contains("probe failed")) {
            return line.to_owned();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("no probe fails: {}", process.log().unwrap());
}

#[tokio::test]
async fn mysqls_own_certificate_names_nobody_but_is_signed_by_its_authority() {
    let server = mysql().await;
    let ca = server.dir().join("data/ca.pem");
    let keys = |mode| format!("backend_tls: {{ mode: {mode}, ca: {} }}", ca.display());
    let signed = sluice(&server, &keys("verify_ca")).await;
    assert!(backend_in_tls(&mut open(&signed, Tls::Newest).await.unwrap()).await);
    let named = unready(&server, &keys("verify_identity")).await;
    assert_eq!(refused(&named, Tls::Newest).await.0, 1043);
}

#[tokio::test]
async fn a_certificate_is_shown_anew_when_its_file_changes() {
    let certificates = Certificates::new().unwrap();
    let server = mysql().await;
    let issued = certificates.issue("sluice", &["db.example"]).unwrap();
    let keys =
        format!("client_tls: {{ cert: {}, key: {} }}", issued.cert.display(), issued.key.display());
    let config = config(&server, &keys);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let mut before = open(&sluice, Tls::Newest).await.unwrap();
    let first = before.certificate().unwrap();
    certificates.issue("sluice", &["db.example"]).unwrap();
    let second = changed(&sluice, &first).await;
    before.query("SELECT 1").await.unwrap().accepted().unwrap();
    std::fs::write(&issued.cert, "nothing").unwrap();
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    let kept = open(&sluice, Tls::Newest).await.unwrap().certificate().unwrap();
    assert_eq!(kept, second, "what cannot be used changes nothing");
    assert!(sluice.log().unwrap().contains("certificates cannot be used"));
    sluice.write_config(&config.cluster("").render()).unwrap();
    let self_signed = changed(&sluice, &second).await;
    assert_ne!(self_signed, first);
}

#[tokio::test]
async fn a_certificate_that_breaks_holds_up_no_edit_and_shows_in_the_metrics() {
    let certificates = Certificates::new().unwrap();
    let server = mysql().await;
    let issued = certificates.issue("sluice", &["db.example"]).unwrap();
    let keys =
        format!("client_tls: {{ cert: {}, key: {} }}", issued.cert.display(), issued.key.display());
    let config = config(&server, &keys);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let client = [("cluster", "main"), ("leg", "client")];
    let metrics = sluice.metrics().await.unwrap();
    assert_eq!(metrics.value("sluice_certificates_usable", &client), Some(1.0));
    let ends = metrics.value("sluice_certificate_not_after_seconds", &client).unwrap();
    assert!(ends > 1_700_000_000.0, "{ends}");
    std::fs::write(&issued.cert, "nothing").unwrap();
    usable(&sluice, 0.0).await;
    let denying = "- { name: no-etl, match: { app: etl }, deny: true, permanent: true }";
    sluice.write_config(&config.clone().rules(denying).render()).unwrap();
    let login = Login::new("app").tls(Tls::Newest).attribute("sluice_app", "etl");
    let mut conn = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
    for attempt in 0.. {
        if conn
            .query("INSERT INTO nowhere VALUES (1)")
            .await
            .unwrap()
            .err()
            .is_some_and(|(errno, _)| errno == 1226)
        {
            break;
        }
        assert!(attempt < 100, "the rule is not in force: {}", sluice.log().unwrap());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let metrics = sluice.metrics().await.unwrap();
    assert_eq!(metrics.value("sluice_config_last_reload_successful", &[]), Some(1.0));
    assert_eq!(metrics.value("sluice_certificate_not_after_seconds", &client), Some(ends));
    let elsewhere = config.cluster("client_tls: { cert: /nowhere/c.pem, key: /nowhere/k.pem }");
    sluice.write_config(&elsewhere.render()).unwrap();
    for attempt in 0.. {
        let metrics = sluice.metrics().await.unwrap();
        if metrics.value("sluice_config_last_reload_successful", &[]) == Some(0.0) {
            break;
        }
        assert!(attempt < 100, "a new file that is not there is taken");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    certificates.issue("sluice", &["db.example"]).unwrap();
    usable(&sluice, 1.0).await;
}

/// Waits until the metrics say that of the client's leg.
async fn usable(sluice: &SluiceProcess, expected: f64) {
    let client = [("cluster", "main"), ("leg", "client")];
    for _ in 0..100 {
        let metrics = sluice.metrics().await.unwrap();
        if metrics.value("sluice_certificates_usable", &client) == Some(expected) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("not {expected} for ten seconds: {}", sluice.log().unwrap());
}

#[tokio::test]
async fn a_client_cannot_write_lines_of_its_own_into_the_log() {
    let server = mysql().await;
    let config = config(&server, "client_tls: { mode: required }")
        .rules("- { name: nobody, deny: true, permanent: true }");
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let forged = "INFO forged";
    for line_break in ["\n", "\r\n", "\r"] {
        let stranger = Login::new(format!("x{line_break}{forged}").as_str());
        let refused = RawConn::open(sluice.listen_addr(), &stranger).await;
        assert!(matches!(refused, Err(HarnessError::Refused { errno: 3159, .. })), "{refused:?}");
    }
    let strange = [
        "CREATE USER 'etl\\nINFO forged'@'%' IDENTIFIED BY 'p'",
        "GRANT ALL ON test.* TO 'etl\\nINFO forged'@'%'",
    ];
    server.run_sql(&strange).await.unwrap();
    let login = Login::new("etl\nINFO forged").password("p").tls(Tls::Newest);
    let mut conn = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
    assert_eq!(conn.query("INSERT INTO nowhere VALUES (1)").await.unwrap().err().unwrap().0, 1226);
    let log = sluice.log().unwrap();
    let lines: Vec<&str> = log.split(['\n', '\r']).collect();
    assert!(!lines.iter().any(|line| line.starts_with(forged)), "{log}");
    let named = |event, name: &str| {
        lines.iter().filter(|line| line.contains(event) && line.contains(name)).count()
    };
    assert_eq!(named("login refused", "user=\"x\\"), 3, "{log}");
    assert_eq!(
        named("statement refused", r#"app="etl\nINFO forged" user="etl\nINFO forged""#),
        1,
        "{log}"
    );
}

/// The certificate that is shown once it is not `known` any more.
async fn changed(sluice: &SluiceProcess, known: &[u8]) -> Vec<u8> {
    for _ in 0..100 {
        let shown = open(sluice, Tls::Newest).await.unwrap().certificate().unwrap();
        if shown != known {
            return shown;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the same certificate for ten seconds: {}", sluice.log().unwrap());
}

#[tokio::test]
async fn clients_show_a_certificate_where_one_is_demanded() {
    let (ours, others) = (Certificates::new().unwrap(), Certificates::new().unwrap());
    let server = mysql().await;
    let keys = format!("client_tls: {{ mode: required, client_ca: {} }}", ours.ca().display());
    let sluice = sluice(&server, &keys).await;
    let issued = |made: &Certificates| made.issue("client", &["client"]).unwrap();
    open(&sluice, Tls::WithCertificate(issued(&ours))).await.unwrap();
    // With TLS 1.3 the client's certificate is looked at after the client thinks that it is in.
    assert!(open(&sluice, Tls::WithCertificate(issued(&others))).await.is_err());
    assert!(open(&sluice, Tls::Newest).await.is_err());
}

#[tokio::test]
async fn a_server_that_demands_a_certificate_of_its_clients_gets_sluices() {
    let certificates = Certificates::new().unwrap();
    let server = mariadb(Some(&certificates)).await;
    server.run_sql(&["ALTER USER 'app'@'%' REQUIRE X509"]).await.unwrap();
    let issued = certificates.issue("sluice", &["sluice"]).unwrap();
    let keys = format!(
        "backend_tls: {{ mode: required, cert: {}, key: {} }}",
        issued.cert.display(),
        issued.key.display()
    );
    let with = sluice(&server, &keys).await;
    assert!(backend_in_tls(&mut open(&with, Tls::Never).await.unwrap()).await);
    let without = sluice(&server, "backend_tls: { mode: required }").await;
    assert_eq!(refused(&without, Tls::Newest).await.0, 1045, "the server's own error");
}

#[tokio::test]
async fn what_is_sent_in_the_clear_behind_a_request_for_tls_is_never_looked_at() {
    let server = mysql().await;
    let sluice = sluice(&server, "").await;
    let mut conn = RawConn::connect(sluice.listen_addr()).await.unwrap();
    conn.read_packet().await.unwrap();
    let caps = capability::USUAL & !capability::CONNECT_WITH_DB | capability::SSL;
    let mut fixed = caps.to_le_bytes().to_vec();
    fixed.extend([0, 0, 0, 1, 45]);
    fixed.extend([0; 23]);
    let mut response = fixed.clone();
    response.extend(b"injected\0\0caching_sha2_password\0\0");
    let injected = [framed(1, &fixed), framed(2, &response)].concat();
    conn.send_bytes(&injected).await.unwrap();
    conn.set_read_limit(Duration::from_secs(5));
    let answer = conn.read_to_end().await.unwrap();
    assert!(answer.len() < 16, "at most an alert of TLS: {}", answer.escape_ascii());
    // And a response that says TLS begins, and goes on in the clear.
    let mut conn = RawConn::connect(sluice.listen_addr()).await.unwrap();
    conn.read_packet().await.unwrap();
    conn.send_payload(1, &response).await.unwrap();
    conn.set_read_limit(Duration::from_secs(5));
    assert_eq!(conn.read_to_end().await.unwrap(), b"");
    let log = sluice.log().unwrap();
    assert!(!log.contains("injected"), "{log}");
}

#[tokio::test]
async fn identity_and_refusals_work_inside_tls() {
    let server = mysql().await;
    let config = config(&server, "").rules(
        "- { name: no-etl, match: { app: \"job:etl\" }, deny: true, statements: [write], permanent: true }\n\
         - { name: everything, gate: none, permanent: true }",
    );
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let login = Login::new("app").tls(Tls::Newest).attribute("sluice_app", "job:etl");
    let mut conn = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
    let refused = conn.query("CREATE TABLE tls_t (id INT)").await.unwrap();
    assert_eq!(refused.err(), None, "DDL is not what the rule is about");
    let refused = conn.query("INSERT INTO tls_t VALUES (1)").await.unwrap();
    let (errno, message) = refused.err().unwrap();
    assert_eq!(errno, 1226);
    assert!(message.contains("rule=no-etl identity=job:etl"), "{message}");
    let rows = conn.query("SELECT COUNT(*) FROM tls_t").await.unwrap();
    assert_eq!(rows.first_text().as_deref(), Some("0"));
    // Longer than what TLS puts into one record, and than any buffer.
    let mut conn = open(&sluice, Tls::Newest).await.unwrap();
    let large = format!("SELECT REPEAT('x', {})", 3 << 20);
    assert_eq!(conn.query(large).await.unwrap().first_text().unwrap().len(), 3 << 20);
    let upload = format!("SELECT LENGTH('{}')", "y".repeat(3 << 20));
    let answer = conn.query(upload).await.unwrap().first_text();
    assert_eq!(answer, Some((3 << 20).to_string()));
}

#[tokio::test]
async fn certificates_that_cannot_be_used_are_faults_of_the_file() {
    let server = mysql().await;
    let keys = "client_tls:\n  cert: /nowhere/cert.pem\n  key: /nowhere/key.pem";
    let config = config(&server, keys);
    let mut process =
        SluiceProcess::spawn(&config.render(), config.listen, config.admin, &[]).unwrap();
    for _ in 0..500 {
        if let Some(status) = process.exited() {
            assert!(!status.success());
            let log = process.log().unwrap();
            assert!(log.contains("clusters.main.client_tls.cert: /nowhere/cert.pem"), "{log}");
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it runs without its certificate");
}

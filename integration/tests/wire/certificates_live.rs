//! Authorities that change while Sluice runs: whom clients and servers are trusted by is what the files say now, for
//! connections that begin now.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use integration::certificates::{Certificates, Issued};
use integration::error::{HarnessError, Result};
use integration::raw::{Login, RawConn, Tls};
use integration::scenario::wait_until;
use integration::server::{Flavour, Server, ServerOptions};
use integration::sluice::{Config, SluiceProcess};

#[tokio::test]
async fn clients_are_trusted_by_the_authority_that_the_file_holds_now() {
    let (old, new) = (Certificates::new().unwrap(), Certificates::new().unwrap());
    let server = Server::start(ServerOptions::new(Flavour::MySql)).await.unwrap();
    let file = Authorities::new(&server, &[&old]);
    let keys = format!("client_tls: {{ mode: required, client_ca: {} }}", file.path.display());
    let sluice = start(&server, &keys).await;
    let client = |made: &Certificates| made.issue("client", &["client"]).unwrap();
    let (olds, news) = (client(&old), client(&new));
    let mut open = as_client(&sluice, &olds).await.unwrap();
    assert!(as_client(&sluice, &news).await.is_err());

    file.write(&[&new]);
    let trusted = |who: &'static str, issued: Issued| {
        let sluice = &sluice;
        async move {
            let in_time = || async { Ok(as_client(sluice, &issued).await.is_ok()) };
            wait_until(who, SOON, in_time).await.unwrap();
        }
    };
    trusted("the new authority's client is let in", news.clone()).await;
    assert!(as_client(&sluice, &olds).await.is_err());
    open.query("SELECT 1").await.unwrap().accepted().unwrap();

    // Both, as one does between the two; and what cannot be used changes nothing.
    file.write(&[&new, &old]);
    trusted("the old authority's client is let in again", olds.clone()).await;
    as_client(&sluice, &news).await.unwrap();
    std::fs::write(&file.path, "nothing").unwrap();
    is_outlived(&sluice).await;
    for issued in [&olds, &news] {
        as_client(&sluice, issued).await.unwrap();
    }
    open.query("SELECT 1").await.unwrap().accepted().unwrap();
}

#[tokio::test]
async fn servers_are_trusted_by_the_authority_that_the_file_holds_now() {
    let (ours, others) = (Certificates::new().unwrap(), Certificates::new().unwrap());
    let mut options = ServerOptions::new(Flavour::MariaDb);
    options.extra_args = ours.server_args().unwrap();
    let server = Server::start(options).await.unwrap();
    let file = Authorities::new(&server, &[&ours]);
    let keys = format!("backend_tls: {{ mode: verify_identity, ca: {} }}", file.path.display());
    let sluice = start(&server, &keys).await;
    let mut open = in_the_clear(&sluice).await.unwrap();

    file.write(&[&others]);
    let refused = || async { Ok(in_the_clear(&sluice).await.is_err()) };
    wait_until("the server is not trusted", SOON, refused).await.unwrap();
    let Err(HarnessError::Refused { errno, message }) = in_the_clear(&sluice).await else {
        panic!("it is trusted again");
    };
    assert!(errno == 1043 && message.contains("UnknownIssuer"), "{errno} {message}");
    open.query("SELECT 1").await.unwrap().accepted().unwrap();

    file.write(&[&others, &ours]);
    let served = || async { Ok(in_the_clear(&sluice).await.is_ok()) };
    wait_until("the server is trusted again", SOON, served).await.unwrap();
    std::fs::write(&file.path, "nothing").unwrap();
    is_outlived(&sluice).await;
    in_the_clear(&sluice).await.unwrap();
    open.query("SELECT 1").await.unwrap().accepted().unwrap();
}

async fn start(server: &Server, keys: &str) -> SluiceProcess {
    let config = Config::in_front_of(server.addr(), Vec::new()).unwrap().cluster(keys);
    SluiceProcess::start(&config).await.unwrap()
}

/// A client that shows this certificate. With TLS 1.3 it is looked at after the client thinks that it is in.
async fn as_client(sluice: &SluiceProcess, issued: &Issued) -> Result<RawConn> {
    let login = Login::new("app").tls(Tls::WithCertificate(issued.clone()));
    let mut conn = RawConn::open(sluice.listen_addr(), &login).await?;
    conn.query("SELECT 1").await?.accepted()?;
    Ok(conn)
}

async fn in_the_clear(sluice: &SluiceProcess) -> Result<RawConn> {
    RawConn::open(sluice.listen_addr(), &Login::new("app")).await
}

/// Waits until Sluice says that the files cannot be used.
async fn is_outlived(sluice: &SluiceProcess) {
    let said = || async { Ok(sluice.log()?.contains("certificates cannot be used")) };
    wait_until("the log says that the file is of no use", SOON, said).await.unwrap();
}

/// A file of certificates of authorities, gone with the server whose folder it is in.
struct Authorities {
    path: PathBuf,
}

impl Authorities {
    fn new(server: &Server, made: &[&Certificates]) -> Self {
        let authorities = Self { path: server.dir().join("authorities.pem") };
        authorities.write(made);
        authorities
    }

    /// A new file in place of the old one, as those do who keep certificates up to date.
    fn write(&self, made: &[&Certificates]) {
        let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
        let all: String = made.iter().map(|made| read(made.ca())).collect();
        let beside: &Path = &self.path.with_extension("new");
        std::fs::write(beside, all).unwrap();
        std::fs::rename(beside, &self.path).unwrap();
    }
}

const SOON: Duration = Duration::from_secs(15);

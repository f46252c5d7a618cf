//! What the legs of a connection go through: nothing, TLS, compression, or compression in TLS. Sluice's leg to
//! the server goes through the same as its client's.

use std::net::SocketAddr;

use integration::raw::{Compress, Login, RawConn, Response, Tls};
use integration::server::Flavour;
use integration::topology::Topology;

use super::{both, plain};

/// The keys of a cluster by which the leg behind Sluice is as the one before it; that of TLS is as the client's
/// unless told.
pub(crate) const AS_CLIENT: &str = "backend_compression: as_client";

/// What both legs go through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Legs {
    pub(crate) in_tls: bool,
    pub(crate) compress: Compress,
}

impl Legs {
    pub(crate) const CLEAR: Self = Self { in_tls: false, compress: Compress::Never };
    pub(crate) const ALL: [Self; 6] = [
        Self::CLEAR,
        Self { in_tls: true, compress: Compress::Never },
        Self { in_tls: false, compress: Compress::Zlib },
        Self { in_tls: false, compress: Compress::Zstd(3) },
        Self { in_tls: true, compress: Compress::Zlib },
        Self { in_tls: true, compress: Compress::Zstd(3) },
    ];

    pub(crate) fn is_compressed(self) -> bool {
        self.compress != Compress::Never
    }

    /// The login of a client through Sluice.
    pub(crate) fn through(self, login: &Login) -> Login {
        let tls = if self.in_tls { Tls::Newest } else { Tls::Never };
        login.clone().tls(tls).compress(self.compress)
    }

    /// The same past Sluice. MariaDB has no zstd: what is said inside compression is the same with zlib.
    pub(crate) fn direct(self, login: &Login, flavour: Flavour) -> Login {
        let through = self.through(login);
        match (flavour, self.compress) {
            (Flavour::MariaDb, Compress::Zstd(_)) => through.compress(Compress::Zlib),
            _ => through,
        }
    }

    /// The two ways to a server, direct first.
    pub(crate) fn both_ways(
        self,
        servers: &Topology,
        sluice: SocketAddr,
        login: &Login,
    ) -> [(SocketAddr, Login); 2] {
        let direct = self.direct(login, servers.primary.flavour());
        [(servers.primary.addr(), direct), (sluice, self.through(login))]
    }
}

#[tokio::test]
async fn the_leg_behind_sluice_goes_through_what_its_clients_leg_does() {
    for servers in both().await {
        let sluice = plain(servers).await;
        for legs in Legs::ALL {
            let login = legs.through(&Login::new("app"));
            let mut conn = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
            assert_eq!(conn.certificate().is_some(), legs.in_tls, "{legs:?}");
            assert_eq!(conn.compressed_packets().is_some(), legs.is_compressed(), "{legs:?}");
            let cipher = conn.query("SHOW SESSION STATUS LIKE 'Ssl_cipher'").await.unwrap();
            assert_eq!(!value(&cipher).is_empty(), legs.in_tls, "{legs:?}");
            let (name, expected) = match (servers.primary.flavour(), legs.compress) {
                (Flavour::MySql, Compress::Never) => ("Compression_algorithm", ""),
                (Flavour::MySql, Compress::Zlib) => ("Compression_algorithm", "zlib"),
                (Flavour::MySql, Compress::Zstd(_)) => ("Compression_algorithm", "zstd"),
                (Flavour::MariaDb, Compress::Zlib) => ("Compression", "ON"),
                (Flavour::MariaDb, Compress::Never | Compress::Zstd(_)) => ("Compression", "OFF"),
            };
            let status = conn.query(format!("SHOW SESSION STATUS LIKE '{name}'")).await.unwrap();
            assert_eq!(value(&status), expected, "{legs:?}");
        }
    }
}

/// The second column of the first row.
fn value(response: &Response) -> String {
    let rows = response.text_rows().unwrap().into_iter();
    let value = rows.flatten().nth(1).flatten();
    String::from_utf8(value.unwrap_or_default()).unwrap()
}

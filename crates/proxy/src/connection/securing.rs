//! TLS and compression with either side, and the passwords that cross from an encrypted leg to one
//! that is not.

use std::io;

use session::{CloseReason, Crypt, Sealing, Side};
use wire::compress::Role;

use super::{Connection, Ended};
use crate::auth::{self, OwnKey};
use crate::printable::Printable;
use crate::telemetry::BackendErrorKind;
use crate::tls;

impl Connection {
    /// Does the handshake that the session wants.
    ///
    /// # Cancellation
    /// That side is closed.
    pub(super) async fn start_tls(&mut self, side: Side, drop: usize) -> Result<(), Ended> {
        match side {
            Side::Client => {
                self.client.consume(drop);
                let handshake = async {
                    let config = self.shared.cluster.tls.server_config()?;
                    self.client.accept_tls(config).await
                };
                let limit = self.policy.network.login_timeout;
                let done = tokio::time::timeout(limit, handshake).await;
                if let Err(error) = done.unwrap_or_else(|_| Err(timed_out())) {
                    let cluster = &self.shared.cluster;
                    let told = cluster.turned_away.client_tls.lock().again(cluster.now());
                    if let Some(untold) = told {
                        let (cluster, peer) = (&cluster.name, &self.peer);
                        tracing::info!(%cluster, %peer, %error, untold, "no TLS with a client");
                    }
                    return Err(Ended::ByClient);
                }
                self.session.handle_encrypted(side);
            }
            Side::Backend => {
                self.backend.consume(drop);
                let name = tls::server_name(&self.policy.backend_tls, &self.policy.primary);
                let handshake = async {
                    let config = self.shared.cluster.tls.client_config()?;
                    self.backend.connect_tls(config, name).await
                };
                let done = tokio::time::timeout(self.policy.connect_timeout, handshake).await;
                match done.unwrap_or_else(|_| Err(timed_out())) {
                    Ok(()) => self.session.handle_encrypted(side),
                    Err(error) => {
                        let cluster = &self.shared.cluster;
                        self.shared.telemetry.backend_error(&cluster.name, BackendErrorKind::Tls);
                        let told = cluster.turned_away.backend_tls.lock().again(cluster.now());
                        if let Some(untold) = told {
                            let cluster = &cluster.name;
                            tracing::warn!(%cluster, %error, untold, "no TLS with the primary");
                        }
                        self.session.handle_not_encrypted(error.to_string());
                    }
                }
            }
        }
        Ok(())
    }

    /// Changes to what was agreed on for either leg, behind the OK of its login.
    pub(super) fn start_compression(&mut self) {
        let codecs = &self.shared.cluster.codecs;
        if let Some(compression) = self.session.compression(Side::Client) {
            self.client.compress(Role::Server, compression, codecs);
        }
        if let Some(compression) = self.session.compression(Side::Backend) {
            self.backend.compress(Role::Client, compression, codecs);
        }
    }

    /// Does the arithmetic that the session wants. What is slow is done on another thread.
    ///
    /// # Cancellation
    /// Safe.
    pub(super) async fn crypt(&mut self, crypt: Crypt) -> Result<(), Ended> {
        match crypt {
            Crypt::ShowKey => match self.own_key().await {
                Some(key) => self.session.handle_own_key(key.public_pem()),
                None => {
                    tracing::error!(peer = %self.peer, "no RSA key can be made; the login fails");
                    return Err(Ended::Told);
                }
            },
            Crypt::Seal(sealing) => {
                let Sealing { key, masked } = *sealing;
                self.session.handle_sealed(auth::seal(&key, &masked));
            }
            Crypt::Open(sealed) => {
                let key = self.own_key().await;
                let opening = tokio::task::spawn_blocking(move || key?.open(&sealed));
                self.session.handle_opened(opening.await.ok().flatten());
            }
        }
        Ok(())
    }

    async fn own_key(&self) -> Option<std::sync::Arc<OwnKey>> {
        let cluster = self.shared.cluster.clone();
        let making = tokio::task::spawn_blocking(move || cluster.own_key());
        making.await.ok().flatten()
    }

    /// Tells of a login that Sluice has refused.
    pub(super) fn note_denied_login(&self, ended: &Ended) {
        let Ended::BySession(CloseReason::LoginDenied(denial)) = ended else { return };
        let cluster = &self.shared.cluster;
        let reason = denial.as_str();
        if let Some(untold) = cluster.turned_away.login.again(reason, cluster.now()) {
            tracing::info!(
                cluster = %cluster.name,
                peer = %self.peer,
                user = %Printable(self.session.user()),
                reason,
                untold,
                "login refused"
            );
        }
    }
}

fn timed_out() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the handshake took too long")
}

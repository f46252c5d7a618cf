//! What the bytes of a raw connection go through.

use std::io;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::certificates::Issued;

/// Whether the client asks for TLS, and how. The server's certificate is not verified: tests look at it.
#[derive(Debug, Clone, Default)]
pub enum Tls {
    /// In the clear.
    #[default]
    Never,
    /// The newest version.
    Newest,
    /// TLS 1.2.
    V12,
    /// The newest version, with a certificate of the client.
    WithCertificate(Issued),
}

/// A socket, and TLS over it.
#[derive(Debug)]
pub(super) enum Transport {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    /// A handshake has failed.
    Closed,
}

impl Transport {
    /// The socket. Under TLS too; nothing is left of it after a handshake that failed.
    pub(super) fn socket(&mut self) -> Option<&mut TcpStream> {
        match self {
            Self::Plain(socket) => Some(socket),
            Self::Tls(tls) => Some(tls.get_mut().0),
            Self::Closed => None,
        }
    }

    pub(super) async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.write_all(bytes).await,
            Self::Tls(tls) => {
                tls.write_all(bytes).await?;
                tls.flush().await
            }
            Self::Closed => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    pub(super) async fn read_exact(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.read_exact(bytes).await.map(drop),
            Self::Tls(tls) => tls.read_exact(bytes).await.map(drop),
            Self::Closed => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    pub(super) async fn read_to_end(&mut self, all: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.read_to_end(all).await.map(drop),
            Self::Tls(tls) => tls.read_to_end(all).await.map(drop),
            Self::Closed => Ok(()),
        }
    }

    /// Goes on in TLS.
    pub(super) async fn start_tls(&mut self, tls: &Tls) -> io::Result<()> {
        let config = config(tls)?;
        let Self::Plain(socket) = std::mem::replace(self, Self::Closed) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
        let stream = TlsConnector::from(config).connect(name, socket).await?;
        *self = Self::Tls(Box::new(stream));
        Ok(())
    }

    /// The certificate that the server showed, in DER.
    pub(super) fn certificate(&self) -> Option<Vec<u8>> {
        let Self::Tls(tls) = self else { return None };
        let certificates = tls.get_ref().1.peer_certificates()?;
        certificates.first().map(|certificate| certificate.to_vec())
    }
}

fn config(tls: &Tls) -> io::Result<Arc<ClientConfig>> {
    let versions = match tls {
        Tls::V12 => &[&TLS12][..],
        Tls::Never | Tls::Newest | Tls::WithCertificate(_) => &[&TLS13],
    };
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(versions)
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anything));
    let config = match tls {
        Tls::WithCertificate(issued) => {
            let certificate =
                CertificateDer::from_pem_file(&issued.cert).map_err(io::Error::other)?;
            let key = PrivateKeyDer::from_pem_file(&issued.key).map_err(io::Error::other)?;
            builder.with_client_auth_cert(vec![certificate], key).map_err(io::Error::other)?
        }
        Tls::Never | Tls::Newest | Tls::V12 => builder.with_no_client_auth(),
    };
    Ok(Arc::new(config))
}

/// Takes every certificate.
#[derive(Debug)]
struct Anything;

impl ServerCertVerifier for Anything {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        aws_lc_rs::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

//! The server's side: TLS with clients.

use std::sync::Arc;

use policy::{ClientTls, TlsVersion};
use rcgen::CertifiedKey;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::version::TLS13;
use rustls::{DEFAULT_VERSIONS, ServerConfig, SupportedProtocolVersion};

use super::fault::FileFault;
use super::held::Made;
use super::{files, validity};

/// What clients are shown when no certificate is named.
pub(super) struct SelfSigned {
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
}

impl SelfSigned {
    /// Makes one. None, and a line in the log, when this machine cannot.
    pub(super) fn make(cluster: &str) -> Option<Self> {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
        match rcgen::generate_simple_self_signed(names) {
            Ok(CertifiedKey { cert, signing_key }) => Some(Self {
                certificate: cert.der().clone(),
                key: PrivatePkcs8KeyDer::from(signing_key.serialize_der()),
            }),
            Err(error) => {
                tracing::error!(%cluster, %error, "a self-signed certificate cannot be made");
                None
            }
        }
    }
}

/// The configuration for handshakes; `own` is asked for when no certificate is named.
pub(super) fn config<'a>(
    settings: &ClientTls,
    own: impl FnOnce() -> Option<&'a SelfSigned>,
) -> Result<Made<ServerConfig>, FileFault> {
    let (chain, key, file) = match &settings.identity {
        Some(identity) => {
            let (chain, key) = files::identity(identity)?;
            (chain, key, Some(&identity.key))
        }
        None => {
            let own = own().ok_or_else(|| unnamed("no self-signed certificate can be made"))?;
            let key = PrivateKeyDer::Pkcs8(own.key.clone_key());
            (vec![own.certificate.clone()], key, None)
        }
    };
    let fault = |error: rustls::Error| match file {
        Some(file) => FileFault::new(file, error),
        None => unnamed(&error.to_string()),
    };
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions(settings.min_version))
        .map_err(fault)?;
    let builder = match verifier(settings)? {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let not_after = validity::not_after_first(&chain);
    let mut config = builder.with_single_cert(chain, key).map_err(fault)?;
    // Clients that reconnect may resume; nothing is kept for them here.
    config.ticketer = aws_lc_rs::Ticketer::new().map_err(fault)?;
    Ok(Made { config: Arc::new(config), not_after })
}

/// What is wrong with the files, each by itself.
pub(super) fn check(settings: &ClientTls) -> Vec<FileFault> {
    let alone = ClientTls { client_ca: None, ..settings.clone() };
    let fits = || config(&alone, || None).map(drop);
    let mut faults = files::identity_faults(settings.identity.as_ref(), fits);
    faults.extend(verifier(settings).err());
    faults
}

/// Who looks at the certificates of clients, if they need one.
fn verifier(settings: &ClientTls) -> Result<Option<Arc<dyn ClientCertVerifier>>, FileFault> {
    let Some(file) = &settings.client_ca else { return Ok(None) };
    let roots = files::roots(&files::certificates(file)?, file)?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| FileFault::new(file, error))?;
    Ok(Some(verifier))
}

fn versions(min: TlsVersion) -> &'static [&'static SupportedProtocolVersion] {
    match min {
        TlsVersion::V12 => DEFAULT_VERSIONS,
        TlsVersion::V13 => ONLY_TLS13,
    }
}

const ONLY_TLS13: &[&SupportedProtocolVersion] = &[&TLS13];

fn unnamed(why: &str) -> FileFault {
    FileFault { key: "client_tls".to_owned(), line: 0, message: why.to_owned() }
}

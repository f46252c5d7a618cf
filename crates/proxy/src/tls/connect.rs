//! The client's side: TLS with servers, and what is demanded of their certificates.
//!
//! The certificates that MySQL makes for itself name nobody, so `verify_ca` looks at the signatures
//! only. A certificate that stands in `ca` itself is good without any: whoever names a server's
//! self-signed certificate there means it.

use std::sync::Arc;

use policy::{BackendTls, BackendTlsMode, TlsFile};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    ClientConfig, DEFAULT_VERSIONS, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use super::fault::FileFault;
use super::held::Made;
use super::{files, validity};

/// The configuration for handshakes.
pub(super) fn config(settings: &BackendTls) -> Result<Made<ClientConfig>, FileFault> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let algorithms = provider.signature_verification_algorithms;
    let verifier = Verifier { demand: demand(settings)?, algorithms };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(DEFAULT_VERSIONS)
        .map_err(|error| unnamed(&error))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let (config, not_after) = match &settings.identity {
        Some(identity) => {
            let (chain, key) = files::identity(identity)?;
            let not_after = validity::not_after_first(&chain);
            let config = builder.with_client_auth_cert(chain, key);
            (config.map_err(|error| FileFault::new(&identity.key, error))?, not_after)
        }
        None => (builder.with_no_client_auth(), None),
    };
    Ok(Made { config: Arc::new(config), not_after })
}

/// What is wrong with the files, each by itself.
pub(super) fn check(settings: &BackendTls) -> Vec<FileFault> {
    let alone = BackendTls { mode: BackendTlsMode::Required, ca: None, ..settings.clone() };
    let fits = || config(&alone).map(drop);
    let mut faults = files::identity_faults(settings.identity.as_ref(), fits);
    faults.extend(demand(settings).err());
    faults
}

fn demand(settings: &BackendTls) -> Result<Demand, FileFault> {
    let trust = |ca: &TlsFile| -> Result<Trust, FileFault> {
        let certificates = files::certificates(ca)?;
        Ok(Trust { roots: files::roots(&certificates, ca)?, certificates })
    };
    match (settings.mode, &settings.ca) {
        (BackendTlsMode::VerifyCa, Some(ca)) => Ok(Demand::Signed(trust(ca)?)),
        (BackendTlsMode::VerifyIdentity, Some(ca)) => Ok(Demand::Named(trust(ca)?)),
        // The configuration has made sure that there is one.
        (BackendTlsMode::VerifyCa | BackendTlsMode::VerifyIdentity, None) => {
            Ok(Demand::Signed(Trust { roots: RootCertStore::empty(), certificates: Vec::new() }))
        }
        (
            BackendTlsMode::Disabled
            | BackendTlsMode::AsClient
            | BackendTlsMode::Preferred
            | BackendTlsMode::Required,
            _,
        ) => Ok(Demand::Nothing),
    }
}

/// What a server's certificate must be.
#[derive(Debug)]
enum Demand {
    /// Anything: listeners are kept out, impostors are not.
    Nothing,
    /// Signed by one of these.
    Signed(Trust),
    /// Signed, and made out to the server's name.
    Named(Trust),
}

#[derive(Debug)]
struct Trust {
    roots: RootCertStore,
    certificates: Vec<CertificateDer<'static>>,
}

impl Trust {
    fn verify(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
        algorithms: &WebPkiSupportedAlgorithms,
    ) -> Result<(), Error> {
        if self.certificates.iter().any(|certificate| certificate == end_entity) {
            return Ok(());
        }
        let parsed = ParsedCertificate::try_from(end_entity)?;
        let all = algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, intermediates, now, all)
    }
}

#[derive(Debug)]
struct Verifier {
    demand: Demand,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.demand {
            Demand::Nothing => {}
            Demand::Signed(trust) => {
                trust.verify(end_entity, intermediates, now, &self.algorithms)?;
            }
            Demand::Named(trust) => {
                trust.verify(end_entity, intermediates, now, &self.algorithms)?;
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match &self.demand {
            // Whose key it is was not asked; old servers' certificates cannot even be read here.
            Demand::Nothing => Ok(HandshakeSignatureValid::assertion()),
            Demand::Signed(_) | Demand::Named(_) => {
                verify_tls12_signature(message, cert, dss, &self.algorithms)
            }
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match &self.demand {
            Demand::Nothing => Ok(HandshakeSignatureValid::assertion()),
            Demand::Signed(_) | Demand::Named(_) => {
                verify_tls13_signature(message, cert, dss, &self.algorithms)
            }
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn unnamed(error: &Error) -> FileFault {
    FileFault { key: "backend_tls".to_owned(), line: 0, message: error.to_string() }
}

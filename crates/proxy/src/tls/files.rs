//! Certificates and keys in PEM.

use policy::{TlsFile, TlsIdentity};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::fault::FileFault;

/// A certificate with those between it and its root, and its key.
pub(super) fn identity(
    identity: &TlsIdentity,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), FileFault> {
    Ok((certificates(&identity.cert)?, key(&identity.key)?))
}

fn key(file: &TlsFile) -> Result<PrivateKeyDer<'static>, FileFault> {
    PrivateKeyDer::from_pem_file(&file.path).map_err(|error| FileFault::new(file, error))
}

/// What is wrong with a certificate and with its key; what each has for itself may not fit together.
pub(super) fn identity_faults(
    identity: Option<&TlsIdentity>,
    fits: impl FnOnce() -> Result<(), FileFault>,
) -> Vec<FileFault> {
    let Some(identity) = identity else { return Vec::new() };
    let each = [certificates(&identity.cert).err(), key(&identity.key).err()];
    let faults: Vec<FileFault> = each.into_iter().flatten().collect();
    if faults.is_empty() { fits().err().into_iter().collect() } else { faults }
}

/// All certificates of a file; at least one.
pub(super) fn certificates(file: &TlsFile) -> Result<Vec<CertificateDer<'static>>, FileFault> {
    let certificates = CertificateDer::pem_file_iter(&file.path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| FileFault::new(file, error))?;
    if certificates.is_empty() {
        return Err(FileFault::new(file, "there is no certificate in it"));
    }
    Ok(certificates)
}

/// Certificates as roots that others are checked against.
pub(super) fn roots(
    certificates: &[CertificateDer<'static>],
    file: &TlsFile,
) -> Result<RootCertStore, FileFault> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate.clone()).map_err(|error| FileFault::new(file, error))?;
    }
    Ok(roots)
}

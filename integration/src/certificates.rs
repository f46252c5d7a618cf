//! Certificates for servers, clients and Sluice, made for one test.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::error::{HarnessError, Result};

/// A folder with a certificate authority of its own. Gone with its owner.
#[derive(Debug)]
pub struct Certificates {
    dir: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, each a file in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issued {
    /// The certificate.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

impl Certificates {
    /// A new authority.
    ///
    /// # Errors
    /// When it cannot be made or written.
    pub fn new() -> Result<Self> {
        let unique = KeyPair::generate().map_err(failed)?;
        let random = unique.public_key_raw().iter().skip(1).take(8);
        let number: String = random.map(|byte| format!("{byte:02x}")).collect();
        let name = format!("sluice-it-certificates-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&dir).map_err(HarnessError::io("cannot make a folder"))?;
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, format!("authority {number}"));
        let certificate = params.self_signed(&unique).map_err(failed)?;
        let made = Self { dir, issuer: Issuer::new(params, unique) };
        write(&made.ca(), &certificate.pem())?;
        Ok(made)
    }

    /// The authority's certificate.
    #[must_use]
    pub fn ca(&self) -> PathBuf {
        self.dir.join("ca.pem")
    }

    /// Signs a certificate for these names, and writes it over the one of the same file name.
    ///
    /// # Errors
    /// When it cannot be made or written.
    pub fn issue(&self, file: &str, names: &[&str]) -> Result<Issued> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().map_err(failed)?;
        let params = CertificateParams::new(names).map_err(failed)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed)?;
        let issued = Issued {
            cert: self.dir.join(format!("{file}-cert.pem")),
            key: self.dir.join(format!("{file}-key.pem")),
        };
        write(&issued.key, &key.serialize_pem())?;
        write(&issued.cert, &certificate.pem())?;
        Ok(issued)
    }

    /// Options that make a MySQL or MariaDB server show a certificate for 127.0.0.1.
    ///
    /// # Errors
    /// When it cannot be made or written.
    pub fn server_args(&self) -> Result<Vec<String>> {
        let issued = self.issue("server", &["127.0.0.1", "localhost"])?;
        Ok(vec![
            format!("--ssl-ca={}", self.ca().display()),
            format!("--ssl-cert={}", issued.cert.display()),
            format!("--ssl-key={}", issued.key.display()),
        ])
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.dir).ok();
    }
}

fn write(path: &Path, pem: &str) -> Result<()> {
    std::fs::write(path, pem).map_err(HarnessError::io("cannot write a certificate"))
}

fn failed(error: rcgen::Error) -> HarnessError {
    HarnessError::Malformed(format!("no certificate: {error}"))
}

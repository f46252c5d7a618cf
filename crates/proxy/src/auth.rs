//! The RSA half of bridging passwords: Sluice's own key for clients, the server's key for servers.
//!
//! caching_sha2_password and sha256_password encrypt with OAEP padding and SHA-1. A key of one's
//! own is made when the first client needs it, and kept for as long as the process lives.

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rsa::{
    KeySize, OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, OaepPublicEncryptingKey,
    PrivateDecryptingKey, PublicEncryptingKey,
};
use pem::{EncodeConfig, LineEnding, Pem};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;
use session::Password;

/// Sluice's own pair of keys.
pub(crate) struct OwnKey {
    private: OaepPrivateDecryptingKey,
    public_pem: String,
}

impl OwnKey {
    /// Makes a pair; takes a good part of a second. None when this machine cannot.
    pub(crate) fn make() -> Option<Self> {
        let private = PrivateDecryptingKey::generate(KeySize::Rsa2048).ok()?;
        let public: PublicKeyX509Der<'_> = private.public_key().as_der().ok()?;
        // As the servers write it: they read and send files of OpenSSL.
        let unix = EncodeConfig::new().set_line_ending(LineEnding::LF);
        let public_pem = pem::encode_config(&Pem::new("PUBLIC KEY", public.as_ref()), unix);
        Some(Self { private: OaepPrivateDecryptingKey::new(private).ok()?, public_pem })
    }

    /// The public key as clients are sent it.
    pub(crate) fn public_pem(&self) -> &[u8] {
        self.public_pem.as_bytes()
    }

    /// Decrypts. None when it was not encrypted with the public key.
    pub(crate) fn open(&self, sealed: &[u8]) -> Option<Password> {
        let mut room = vec![0; self.private.min_output_size()];
        let opened = self.private.decrypt(&OAEP_SHA1_MGF1SHA1, sealed, &mut room, None).ok()?;
        let opened = Password::new(opened.to_vec());
        // The room goes the same way.
        drop(Password::new(room));
        Some(opened)
    }
}

/// Encrypts with a server's public key. None when the key cannot be read, or is too small for the
/// password.
pub(crate) fn seal(server_key: &[u8], password: &Password) -> Option<Vec<u8>> {
    let der = SubjectPublicKeyInfoDer::from_pem_slice(server_key).ok()?;
    let key = OaepPublicEncryptingKey::new(PublicEncryptingKey::from_der(&der).ok()?).ok()?;
    let mut sealed = vec![0; key.ciphertext_size()];
    let len = key.encrypt(&OAEP_SHA1_MGF1SHA1, password.bytes(), &mut sealed, None).ok()?.len();
    sealed.truncate(len);
    Some(sealed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_with_the_public_key_is_opened_with_the_private_one() {
        let own = OwnKey::make().unwrap();
        assert!(own.public_pem().starts_with(b"-----BEGIN PUBLIC KEY-----\nMIIB"));
        let password = Password::new(b"secret\0".to_vec());
        let sealed = seal(own.public_pem(), &password).unwrap();
        assert_eq!(sealed.len(), 256);
        assert_eq!(own.open(&sealed), Some(password));
        let another = OwnKey::make().unwrap();
        assert_eq!(another.open(&sealed), None);
        assert_eq!(own.open(b"short"), None);
    }

    #[test]
    fn a_password_that_is_too_long_or_a_broken_key_seals_nothing() {
        let own = OwnKey::make().unwrap();
        let longest = Password::new(vec![b'a'; 256 - 42]);
        assert!(seal(own.public_pem(), &longest).is_some());
        let too_long = Password::new(vec![b'a'; 256 - 41]);
        assert_eq!(seal(own.public_pem(), &too_long), None);
        assert_eq!(
            seal(b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", &longest),
            None
        );
        assert_eq!(seal(b"", &longest), None);
    }
}

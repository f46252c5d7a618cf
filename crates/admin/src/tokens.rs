//! Tokens, compared so that the time it takes says nothing: their SHA-256 digests, all of them,
//! each to its end.

use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{Digest, SHA256, digest};
use policy::{ADMIN_TOKEN_LEN_MIN, AdminToken, Secret};
use proxy::secret;

/// The tokens that may change something.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tokens {
    known: Vec<Known>,
    /// Of those that could not be read: whose each is, and why.
    pub(crate) faults: Vec<String>,
}

#[derive(Debug, Clone)]
struct Known {
    owner: Arc<str>,
    digest: Digest,
}

impl Tokens {
    /// Reads them where the file says. Whoever's token cannot be read has none: so one that was taken
    /// away does not go on.
    pub(crate) fn read(named: &[AdminToken]) -> Self {
        let mut tokens = Self::default();
        for AdminToken { name, secret } in named {
            match secret::read(secret) {
                Ok(token) => match secret::too_short(&token, ADMIN_TOKEN_LEN_MIN) {
                    None => tokens.add(name, &token),
                    Some(why) => {
                        tokens.faults.push(format!("{name} ({}): {why}", place(secret)));
                    }
                },
                Err(error) => tokens.faults.push(format!("{name}: {error}")),
            }
        }
        tokens
    }

    fn add(&mut self, owner: &Arc<str>, token: &str) {
        let digest = digest(&SHA256, token.as_bytes());
        self.known.push(Known { owner: Arc::clone(owner), digest });
    }

    /// Whose token this is.
    pub(crate) fn owner(&self, token: &[u8]) -> Option<Arc<str>> {
        let shown = digest(&SHA256, token);
        let mut owner = None;
        for known in &self.known {
            let is_it = verify_slices_are_equal(known.digest.as_ref(), shown.as_ref());
            if is_it.is_ok() && owner.is_none() {
                owner = Some(&known.owner);
            }
        }
        owner.cloned()
    }

    /// Whether nobody has one.
    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Whether the same tokens have the same owners, and the same cannot be read.
    pub(crate) fn same_as(&self, other: &Self) -> bool {
        let said = |tokens: &Self| -> Vec<(Arc<str>, Vec<u8>)> {
            let known = tokens.known.iter();
            known.map(|known| (known.owner.clone(), known.digest.as_ref().to_vec())).collect()
        };
        said(self) == said(other) && self.faults == other.faults
    }
}

fn place(secret: &Secret) -> String {
    match secret {
        Secret::Env(name) => name.clone(),
        Secret::File(path) => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_its_owners_and_no_part_of_it_is() {
        let mut tokens = Tokens::default();
        tokens.add(&"ann".into(), "correct horse");
        tokens.add(&"bob".into(), "battery staple");
        assert_eq!(tokens.owner(b"correct horse").as_deref(), Some("ann"));
        assert_eq!(tokens.owner(b"battery staple").as_deref(), Some("bob"));
        for wrong in ["", "correct", "correct horse ", "Correct horse", "battery staple\0"] {
            assert_eq!(tokens.owner(wrong.as_bytes()), None, "{wrong:?}");
        }
        assert_eq!(Tokens::default().owner(b""), None);
    }

    #[test]
    fn who_has_a_short_token_or_none_may_nothing() {
        let folder = std::env::temp_dir().join(format!("sluice-tokens-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let token =
            |name: &str| AdminToken { name: name.into(), secret: Secret::File(folder.join(name)) };
        let named = ["good", "short", "empty", "gone"].map(token);
        std::fs::write(folder.join("good"), "correct horse\n").unwrap();
        std::fs::write(folder.join("short"), "horse\n").unwrap();
        std::fs::write(folder.join("empty"), "\n").unwrap();
        let tokens = Tokens::read(&named);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(tokens.owner(b"correct horse").as_deref(), Some("good"));
        assert_eq!((tokens.owner(b""), tokens.owner(b"horse")), (None, None));
        assert_eq!(tokens.faults.len(), 3, "{:?}", tokens.faults);
        assert!(tokens.faults.iter().all(|fault| !fault.contains("horse")), "{:?}", tokens.faults);
    }
}

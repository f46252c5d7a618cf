//! Secrets, read where the file says: the environment or a file. They are never logged and never
//! part of an error.

use std::path::PathBuf;
use std::{env, fmt, fs, io};

use policy::{Config, Fault, NamedSecret, Secret};

/// A secret that is not there. It names the place, never the content.
#[derive(Debug)]
pub enum SecretError {
    /// The environment has no such variable, or it is not UTF-8.
    Env(String),
    /// The file cannot be read, or is not UTF-8.
    File(PathBuf, io::Error),
}

/// Reads a secret.
///
/// # Errors
/// When it is not there.
pub fn read(secret: &Secret) -> Result<String, SecretError> {
    match secret {
        Secret::Env(name) => env::var(name).map_err(|_| SecretError::Env(name.clone())),
        Secret::File(path) => {
            let text =
                fs::read_to_string(path).map_err(|error| SecretError::File(path.clone(), error))?;
            let line = text.strip_suffix('\n').unwrap_or(&text);
            Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
        }
    }
}

/// Those of a file's secrets that cannot be read, each as a fault where it is named. What `in_force`
/// names too is not looked at: whoever uses it has it.
pub(crate) fn faults(named: &[NamedSecret], in_force: Option<&Config>) -> Vec<Fault> {
    let is_known = |secret: &Secret| {
        in_force.is_some_and(|known| known.secrets.iter().any(|named| named.secret == *secret))
    };
    let named = named.iter().filter(|named| !is_known(&named.secret));
    named
        .filter_map(|named| {
            let message = match read(&named.secret) {
                Ok(secret) => too_short(&secret, named.len_min)?,
                Err(error) => error.to_string(),
            };
            Some(Fault { path: named.key.clone(), line: named.line, message })
        })
        .collect()
}

/// What is wrong with a secret that can be guessed. It says nothing of what it is.
pub fn too_short(secret: &str, len_min: usize) -> Option<String> {
    let len = secret.chars().count();
    (len < len_min).then(|| format!("the secret there has {len} characters; {len_min} are needed"))
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "the environment variable {name} is not set"),
            Self::File(path, error) => {
                write!(f, "cannot read the file {}: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for SecretError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_end_that_closes_a_file_is_not_part_of_its_secret() {
        let path = env::temp_dir().join(format!("sluice-secret-{}", std::process::id()));
        fs::write(&path, "a b \r\n").unwrap();
        assert_eq!(read(&Secret::File(path.clone())).unwrap(), "a b ");
        fs::remove_file(&path).unwrap();
        let error = read(&Secret::File(path.clone())).unwrap_err().to_string();
        assert!(error.contains(&path.display().to_string()), "{error}");
    }

    #[test]
    fn a_secret_that_is_too_short_is_not_told() {
        assert_eq!(too_short("12345678", 8), None);
        assert_eq!(too_short("", 0), None);
        let told = too_short("hunter2", 8).unwrap();
        assert!(told.contains("7 characters") && !told.contains("hunter2"), "{told}");
    }

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        let error = read(&Secret::Env("SLUICE_TEST_UNSET".into())).unwrap_err();
        assert_eq!(error.to_string(), "the environment variable SLUICE_TEST_UNSET is not set");
    }
}

//! What stands behind the question mark of an address, and what is wrong with it in words.

use axum::extract::Query;
use axum::http::Uri;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::refusal::{Error, Refusal};

/// What an endpoint may be asked with, each at most once.
pub(crate) trait Parameters: DeserializeOwned {
    /// Every one that there is.
    const KNOWN: &'static [Parameter];
}

/// One of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameter {
    name: &'static str,
    takes: Takes,
}

impl Parameter {
    /// Whose value is looked at by whoever asked for it.
    pub(crate) const fn text(name: &'static str) -> Self {
        Self { name, takes: Takes::Text }
    }

    /// A whole number that fits into 64 bits.
    pub(crate) const fn number(name: &'static str) -> Self {
        Self { name, takes: Takes::Number }
    }

    /// One of these words.
    pub(crate) const fn word(name: &'static str, words: &'static [&'static str]) -> Self {
        Self { name, takes: Takes::Word(words) }
    }
}

/// What a value has to be.
#[derive(Debug, Clone, Copy)]
enum Takes {
    Text,
    Number,
    Word(&'static [&'static str]),
}

/// The parameters of what has none.
#[derive(Debug, Deserialize)]
pub(crate) struct NoParameters {}

impl Parameters for NoParameters {
    const KNOWN: &'static [Parameter] = &[];
}

/// What stands behind the question mark.
///
/// # Errors
/// When that has other names, one of them twice, or values that make no sense: which, what it was,
/// and what there may be.
pub(crate) fn query<T: Parameters>(uri: &Uri) -> Result<T, Refusal> {
    let unreadable = |_| Refusal::new(Error::BadRequest, "the parameters cannot be read");
    let Query(given) = Query::<Vec<(String, String)>>::try_from_uri(uri).map_err(unreadable)?;
    for (place, (name, value)) in given.iter().enumerate() {
        let known = T::KNOWN.iter().find(|parameter| parameter.name == name);
        known.ok_or_else(|| unknown(name, T::KNOWN))?.takes.check(name, value)?;
        if given.iter().take(place).any(|(before, _)| before == name) {
            return Err(Refusal::new(Error::BadRequest, format!("`{name}` is given twice"))
                .remedy("give it once"));
        }
    }
    Query::<T>::try_from_uri(uri).map(|Query(query)| query).map_err(unreadable)
}

fn unknown(name: &str, known: &[Parameter]) -> Refusal {
    let message = format!("there is no parameter {:?} here", shortened(name));
    let names: Vec<&str> = known.iter().map(|parameter| parameter.name).collect();
    let remedy = match *names {
        [] => "it takes no parameters".to_owned(),
        [one] => format!("the one that there is: {one}"),
        _ => format!("those that there are: {}", names.join(", ")),
    };
    Refusal::new(Error::BadRequest, message).remedy(remedy)
}

impl Takes {
    fn check(self, name: &str, value: &str) -> Result<(), Refusal> {
        let allowed = match self {
            Self::Text => return Ok(()),
            Self::Number if value.parse::<u64>().is_ok() => return Ok(()),
            Self::Number => format!("a whole number from 0 to {}", u64::MAX),
            Self::Word(words) if words.contains(&value) => return Ok(()),
            Self::Word(words) => format!("one of {}", words.join(", ")),
        };
        let message = format!("`{name}` has no value {:?}", shortened(value));
        Err(Refusal::new(Error::BadRequest, message).remedy(allowed))
    }
}

/// As much of what somebody has sent as is worth saying back.
fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 100;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Asked {
        limit: Option<u64>,
        source: Option<String>,
        app: Option<String>,
    }

    impl Parameters for Asked {
        const KNOWN: &'static [Parameter] = &[
            Parameter::number("limit"),
            Parameter::word("source", &["file", "runtime"]),
            Parameter::text("app"),
        ];
    }

    fn asked(query: &str) -> Result<Asked, (String, String)> {
        let uri: Uri = format!("/x?{query}").parse().unwrap();
        super::query(&uri).map_err(|refusal| (refusal.message, refusal.remedy.unwrap_or_default()))
    }

    fn refused(query: &str) -> (String, String) {
        asked(query).unwrap_err()
    }

    #[test]
    fn what_is_asked_for_is_read() {
        let app = Some("a b&c".to_owned());
        assert_eq!(asked("limit=3&app=a+b%26c"), Ok(Asked { limit: Some(3), source: None, app }));
        let source = Some("file".to_owned());
        assert_eq!(asked("source=file"), Ok(Asked { limit: None, source, app: None }));
        assert_eq!(asked(""), Ok(Asked { limit: None, source: None, app: None }));
    }

    /// What was said was serde's: which key it was about, and what it takes, was not in it.
    #[test]
    fn what_is_wrong_is_named_with_what_there_may_be() {
        let number = "a whole number from 0 to 18446744073709551615".to_owned();
        for (value, said) in [("x", "x"), ("-1", "-1"), ("1.5", "1.5"), ("", ""), ("%00", "\\0")] {
            let message = format!("`limit` has no value \"{said}\"");
            assert_eq!(refused(&format!("limit={value}")), (message, number.clone()));
        }
        assert_eq!(refused("limit=18446744073709551616").1, number);
        let (message, remedy) = refused("source=disk");
        assert_eq!(
            (&*message, &*remedy),
            ("`source` has no value \"disk\"", "one of file, runtime")
        );
        let (message, remedy) = refused("app=x&Limit=3");
        assert_eq!(message, "there is no parameter \"Limit\" here");
        assert_eq!(remedy, "those that there are: limit, source, app");
        assert_eq!(refused("app=x&app=x").0, "`app` is given twice");
        assert!(refused(&format!("{}=1", "é".repeat(5_000))).0.len() < 300);
        let uri: Uri = "/x?a=1".parse().unwrap();
        let none = super::query::<NoParameters>(&uri).unwrap_err();
        assert_eq!(none.remedy.as_deref(), Some("it takes no parameters"));
    }
}

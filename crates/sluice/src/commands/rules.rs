//! `sluice throttle`, `hold`, `exempt`, `deny`, `unthrottle` and `rules`: rules that are made while
//! Sluice runs.

mod listing;

use std::process::ExitCode;

use admin::rules::Changed;
use policy::Secret;
use policy::refusal::is_unprintable;
use serde_json::{Map, Value, json};

use super::door::{Failure, ask, tell};
use crate::cli::{Asked, Format, Made, Rules, Token, Unthrottle, Whom};

/// Where the token is unless told.
const TOKEN_ENV: &str = "SLUICE_ADMIN_TOKEN";

pub(super) const RULES_PATH: &str = "/api/v1/rules";

/// Makes a rule with this effect.
pub(crate) fn make(made: &Made, effect: &str, ratio: Option<f64>) -> ExitCode {
    answer(|| {
        let Made { whom, classes, lasts, reason, asked, token, format } = made;
        let Whom { app, user, cluster } = whom;
        let mut draft = Map::new();
        let texts = [
            ("app", app),
            ("user", user),
            ("cluster", cluster),
            ("for", lasts),
            ("reason", reason),
            ("effect", &Some(effect.to_owned())),
        ];
        for (key, value) in texts {
            if let Some(value) = value {
                draft.insert(key.to_owned(), json!(value));
            }
        }
        if !classes.is_empty() {
            draft.insert("classes".to_owned(), json!(classes));
        }
        if let Some(ratio) = ratio {
            draft.insert("ratio".to_owned(), json!(ratio));
        }
        let body = Value::Object(draft).to_string();
        change(asked, token, ("POST", RULES_PATH, &body), *format)
    })
}

pub(crate) fn unthrottle(command: &Unthrottle) -> ExitCode {
    answer(|| {
        let Unthrottle { whom, asked, token, format } = command;
        let Whom { app, user, cluster } = whom;
        let path = with_query(&[("app", app), ("user", user), ("cluster", cluster)]);
        change(asked, token, ("DELETE", &path, ""), *format)
    })
}

pub(crate) fn rules(command: &Rules) -> ExitCode {
    answer(|| {
        let Rules { cluster, asked, format } = command;
        let path = with_query(&[("cluster", cluster)]);
        let body = ask(asked, None, ("GET", &path, ""))?;
        match format {
            Format::Json => Ok(whole_line(&body)),
            Format::Text => Ok(listing::table(&read::<admin::rules::Rules>(&body)?)),
        }
    })
}

/// Prints what came of it.
fn answer(made: impl FnOnce() -> Result<String, Failure>) -> ExitCode {
    tell(made())
}

fn change(
    asked: &Asked,
    token: &Token,
    request: (&str, &str, &str),
    format: Format,
) -> Result<String, Failure> {
    let token = read_token(token)?;
    let body = ask(asked, token.as_deref(), request)?;
    match format {
        Format::Json => Ok(whole_line(&body)),
        Format::Text => Ok(format!("{}\n", printable(&read::<Changed>(&body)?.done))),
    }
}

/// What came of a change, in words.
pub(super) fn made(
    asked: &Asked,
    token: &Token,
    request: (&str, &str, &str),
) -> Result<String, Failure> {
    change(asked, token, request, Format::Text).map(|told| told.trim_end().to_owned())
}

/// None: nobody has set one, and it may do without.
pub(super) fn read_token(token: &Token) -> Result<Option<String>, Failure> {
    let secret = match token {
        Token { token_file: Some(file), .. } => Secret::File(file.clone()),
        Token { token_env: Some(name), .. } => Secret::Env(name.clone()),
        Token { token_env: None, token_file: None } => {
            if std::env::var_os(TOKEN_ENV).is_none() {
                return Ok(None);
            }
            Secret::Env(TOKEN_ENV.to_owned())
        }
    };
    let token = proxy::secret::read(&secret).map_err(|error| Failure::usage(error.to_string()))?;
    // What is no visible ASCII would be read as something else, or as further headers.
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let message = "the token is empty or has other characters than visible ASCII";
        return Err(Failure::usage(message.to_owned()));
    }
    Ok(Some(token))
}

pub(super) fn read<T: serde::de::DeserializeOwned>(body: &str) -> Result<T, Failure> {
    serde_json::from_str(body)
        .map_err(|error| Failure::refused(format!("what was answered is not Sluice's: {error}")))
}

fn with_query(keys: &[(&str, &Option<String>)]) -> String {
    let mut path = RULES_PATH.to_owned();
    let given = keys.iter().filter_map(|(key, value)| Some((key, value.as_ref()?)));
    for (index, (key, value)) in given.enumerate() {
        let separator = if index == 0 { '?' } else { '&' };
        path.push(separator);
        path.push_str(&format!("{key}={}", encoded(value)));
    }
    path
}

/// As it stands in an address: RFC 3986's unreserved characters, and the others by their bytes.
pub(super) fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// Names and reasons come from others: nothing of them may act on a terminal, or turn its lines
/// round.
pub(super) fn printable(text: &str) -> String {
    let shown = |c| if is_unprintable(c) { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().map(shown).collect()
}

pub(super) fn whole_line(body: &str) -> String {
    format!("{}\n", body.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_acts_on_a_terminal_or_turns_a_line_round() {
        assert_eq!(
            printable("a\x1b[31mb\u{2028}\u{202e}c\u{200b}é"),
            "a\u{fffd}[31mb\u{fffd}\u{fffd}c\u{fffd}é"
        );
    }

    #[test]
    fn names_of_every_byte_are_one_value_in_the_address() {
        let app = Some("a b/c?d&e=f#g%é".to_owned());
        let path = with_query(&[("app", &app), ("user", &None), ("cluster", &Some("m".into()))]);
        let expected = "/api/v1/rules?app=a%20b%2Fc%3Fd%26e%3Df%23g%25%C3%A9&cluster=m";
        assert_eq!(path, expected);
        assert_eq!(with_query(&[("app", &None)]), RULES_PATH);
    }
}

//! What the door answers to what it does not do: a status, and `{error, message, remedy}` as JSON.

use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::rules::KeyFault;

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) error: Error,
    /// What is wrong, in a sentence.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) remedy: Option<String>,
    /// The methods that may be used instead.
    pub(crate) allow: Option<&'static str>,
    /// What is wrong with which key, where a body has faults.
    pub(crate) faults: Vec<KeyFault>,
}

/// The closed list of what can be wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Error {
    /// What is asked for cannot be read, or makes no sense.
    BadRequest,
    /// Who asks has to show a token.
    NoToken,
    /// The token is nobody's.
    WrongToken,
    /// It may not be changed from here, whoever asks.
    Forbidden,
    /// There is no such thing.
    NotFound,
    /// It is there, and cannot be asked for in this way.
    MethodNotAllowed,
    /// The body is larger than anything that could be meant.
    TooLarge,
    /// The body is not JSON, by its content type.
    NotJson,
    /// The request calls the door by a name that is not its own.
    Misdirected,
    /// There are as many already as there may be.
    Full,
    /// It is there, and what stands in the way is not the asker's doing.
    Unavailable,
    /// Something here went wrong that should not.
    Internal,
}

#[derive(Serialize)]
struct Said<'a> {
    error: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<&'a str>,
    #[serde(skip_serializing_if = "<[KeyFault]>::is_empty")]
    faults: &'a [KeyFault],
}

impl Refusal {
    pub(crate) fn new(error: Error, message: impl Into<String>) -> Self {
        Self { error, message: message.into(), remedy: None, allow: None, faults: Vec::new() }
    }

    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    pub(crate) fn allow(mut self, methods: &'static str) -> Self {
        self.allow = Some(methods);
        self
    }

    pub(crate) fn faults(mut self, faults: Vec<KeyFault>) -> Self {
        self.faults = faults;
        self
    }

    /// Its body.
    pub(crate) fn json(&self) -> Vec<u8> {
        let Self { error, message, remedy, allow: _, faults } = self;
        let said = Said { error: error.as_str(), message, remedy: remedy.as_deref(), faults };
        // Strings always are JSON.
        let mut json = serde_json::to_vec(&said).unwrap_or_default();
        json.push(b'\n');
        json
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")];
        let mut response = (self.error.status(), headers, self.json()).into_response();
        if let Some(challenge) = self.error.challenge() {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        if let Some(allow) = self.allow {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
        }
        response
    }
}

impl Error {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::BadRequest => "bad_request",
            Self::NoToken => "no_token",
            Self::WrongToken => "wrong_token",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::TooLarge => "too_large",
            Self::NotJson => "not_json",
            Self::Misdirected => "misdirected",
            Self::Full => "full",
            Self::Unavailable => "unavailable",
            Self::Internal => "internal",
        }
    }

    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::BadRequest => StatusCode::BAD_REQUEST,
            Self::NoToken | Self::WrongToken => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Misdirected => StatusCode::MISDIRECTED_REQUEST,
            Self::Full => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// How to show who one is; RFC 6750.
    const fn challenge(self) -> Option<&'static str> {
        match self {
            Self::NoToken => Some("Bearer realm=\"sluice\""),
            Self::WrongToken => Some("Bearer realm=\"sluice\", error=\"invalid_token\""),
            Self::BadRequest
            | Self::Forbidden
            | Self::NotFound
            | Self::MethodNotAllowed
            | Self::TooLarge
            | Self::NotJson
            | Self::Misdirected
            | Self::Full
            | Self::Unavailable
            | Self::Internal => None,
        }
    }
}

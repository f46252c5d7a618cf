//! What a request carries: its query, and its body, which is JSON and small.

mod parameters;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};

pub(crate) use self::parameters::{NoParameters, Parameter, Parameters, query};
use crate::refusal::{Error, Refusal};

/// Far more than any rule.
pub(crate) const BODY_LEN_MAX: usize = 16 << 10;

/// Reads a body of JSON. A form of another site cannot send that content type.
///
/// # Errors
/// When it is said to be something else, or is too large, or breaks off.
pub(crate) async fn read_json(headers: &HeaderMap, body: Body) -> Result<Bytes, Refusal> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case(JSON) {
        let message = format!("the body has to be JSON, and its Content-Type {JSON}");
        return Err(Refusal::new(Error::NotJson, message));
    }
    let announced = headers.get(CONTENT_LENGTH).and_then(|len| len.to_str().ok());
    let announced: Option<usize> = announced.and_then(|len| len.parse().ok());
    if announced.is_some_and(|len| len > BODY_LEN_MAX) {
        return Err(too_large());
    }
    to_bytes(body, BODY_LEN_MAX).await.map_err(|error| {
        // What else goes wrong with a body is that its sender has left.
        tracing::debug!(%error, "a body was not read");
        too_large()
    })
}

fn too_large() -> Refusal {
    Refusal::new(Error::TooLarge, format!("the body has more than {BODY_LEN_MAX} bytes"))
}

const JSON: &str = "application/json";

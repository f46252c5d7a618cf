//! What stands in the address of a request: bytes, for clients send any.

use axum::http::Uri;

/// Parameters of a request; more are not looked at.
const PARAMETERS_MAX: usize = 64;

/// The parameters of a query, decoded, in their order.
#[derive(Debug, Default)]
pub(crate) struct Parameters(Vec<(Vec<u8>, Vec<u8>)>);

impl Parameters {
    pub(crate) fn of(uri: &Uri) -> Self {
        let query = uri.query().unwrap_or_default();
        let pairs = query.split('&').filter(|pair| !pair.is_empty()).take(PARAMETERS_MAX);
        let pairs = pairs.map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(key, Plus::Space), decoded(value, Plus::Space))
        });
        Self(pairs.collect())
    }

    /// The first value of a parameter.
    pub(crate) fn get(&self, key: &str) -> Option<&[u8]> {
        self.0.iter().find(|(known, _)| known == key.as_bytes()).map(|(_, value)| &**value)
    }

    /// The same as text; none if it is not.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        std::str::from_utf8(self.get(key)?).ok()
    }

    /// All values of a parameter, each of which may be a list with commas.
    pub(crate) fn list(&self, key: &str) -> Vec<Vec<u8>> {
        let values = self.0.iter().filter(|(known, _)| known == key.as_bytes());
        let parts = values.flat_map(|(_, value)| value.split(|byte| *byte == b','));
        parts.filter(|part| !part.is_empty()).map(<[u8]>::to_vec).collect()
    }

    /// `rows`: the rows that a client means to write.
    ///
    /// # Errors
    /// When it is no whole number.
    pub(crate) fn rows(&self) -> Result<Option<u64>, NoRows> {
        match (self.get("rows"), self.text("rows")) {
            (None, _) => Ok(None),
            (Some(_), text) => {
                let rows = text.and_then(|text| text.parse().ok());
                rows.map(Some).ok_or(NoRows)
            }
        }
    }
}

/// `rows` is not a whole number.
#[derive(Debug)]
pub(crate) struct NoRows;

impl NoRows {
    pub(crate) const MESSAGE: &str = "`rows` is not a whole number";
}

/// The parts of a path, decoded.
pub(crate) fn path(uri: &Uri) -> Vec<Vec<u8>> {
    let parts = uri.path().split('/').filter(|part| !part.is_empty());
    parts.take(PARAMETERS_MAX).map(|part| decoded(part, Plus::Itself)).collect()
}

/// What a `+` stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plus {
    Space,
    Itself,
}

/// Without percent encoding; what is none stays as it is.
fn decoded(text: &str, plus: Plus) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        rest = behind;
        match (first, behind) {
            (b'%', [high, low, further @ ..])
                if digit(*high).is_some() && digit(*low).is_some() =>
            {
                let value = digit(*high).unwrap_or(0) << 4 | digit(*low).unwrap_or(0);
                bytes.push(value);
                rest = further;
            }
            (b'+', _) if plus == Plus::Space => bytes.push(b' '),
            (byte, _) => bytes.push(byte),
        }
    }
    bytes
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_bytes_and_the_first_of_a_name_counts() {
        let uri: Uri =
            "/x?app=a%3Ab+c&app=z&m=lag&m=self%2Ft,shard&bad=%f&odd=%ff%00".parse().unwrap();
        let parameters = Parameters::of(&uri);
        assert_eq!(parameters.get("app"), Some(&b"a:b c"[..]));
        assert_eq!(parameters.list("m"), [&b"lag"[..], b"self/t", b"shard"]);
        assert_eq!(parameters.get("bad"), Some(&b"%f"[..]));
        assert_eq!(parameters.get("odd"), Some(&b"\xff\0"[..]));
        assert_eq!((parameters.text("odd"), parameters.get("none")), (None, None));
    }

    #[test]
    fn a_path_keeps_encoded_slashes_in_their_part() {
        let uri: Uri = "/check/a%2Fb+c/mysql/main".parse().unwrap();
        assert_eq!(path(&uri), [&b"check"[..], b"a/b+c", b"mysql", b"main"]);
    }

    #[test]
    fn rows_are_a_whole_number_or_absent() {
        let rows = |query: &str| Parameters::of(&format!("/x{query}").parse().unwrap()).rows();
        assert!(matches!(rows(""), Ok(None)));
        assert!(matches!(rows("?rows=1000"), Ok(Some(1_000))));
        for bad in ["?rows=", "?rows=-1", "?rows=1e3", "?rows=%ff", "?rows=99999999999999999999"] {
            assert!(rows(bad).is_err(), "{bad}");
        }
    }
}

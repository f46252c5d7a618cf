//! Until when a certificate is valid: the one field of it that TLS itself does not tell.
//!
//! ```text
//! Certificate ::= SEQUENCE { tbsCertificate SEQUENCE {
//!     version [0] OPTIONAL, serialNumber INTEGER, signature SEQUENCE, issuer SEQUENCE,
//!     validity SEQUENCE { notBefore Time, notAfter Time }, … } … }        (RFC 5280, 4.1)
//! ```

use std::time::Duration;

use rustls::pki_types::CertificateDer;

/// Until when the certificate at the head of a chain is valid, in Unix time.
pub(super) fn not_after_first(chain: &[CertificateDer<'_>]) -> Option<Duration> {
    chain.first().and_then(|certificate| not_after(certificate))
}

/// Its `notAfter`, in Unix time; what ended before 1970 ended then. `None`: it is no such
/// certificate.
fn not_after(certificate: &[u8]) -> Option<Duration> {
    let mut fields = Elements(Elements(certificate).next_of(SEQUENCE)?);
    let mut fields = Elements(fields.next_of(SEQUENCE)?);
    let mut first = fields.next()?;
    if first.tag == VERSION {
        first = fields.next()?;
    }
    if first.tag != INTEGER {
        return None;
    }
    fields.next_of(SEQUENCE)?;
    fields.next_of(SEQUENCE)?;
    let mut validity = Elements(fields.next_of(SEQUENCE)?);
    validity.next()?;
    let Element { tag, content } = validity.next()?;
    let seconds = match tag {
        UTC_TIME => {
            let (year, rest) = number(content, 2)?;
            let century = if year < 50 { 2000 } else { 1900 };
            unix_seconds(century + year, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = number(content, 4)?;
            unix_seconds(year, rest)
        }
        _ => None,
    }?;
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or_default()))
}

/// One element of DER.
struct Element<'a> {
    tag: u8,
    content: &'a [u8],
}

/// Elements, one after the other.
struct Elements<'a>(&'a [u8]);

impl<'a> Elements<'a> {
    fn next(&mut self) -> Option<Element<'a>> {
        let ([tag, short], rest) = self.0.split_first_chunk()?;
        let (len, rest) = match short {
            0..=0x7f => (usize::from(*short), rest),
            0x81..=0x84 => {
                let (len, rest) = rest.split_at_checked(usize::from(short & 0x7f))?;
                let of_bytes = |len: usize, byte: &u8| len << 8 | usize::from(*byte);
                (len.iter().fold(0, of_bytes), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(len)?;
        self.0 = rest;
        Some(Element { tag: *tag, content })
    }

    /// The content of the next one, if it is one of these.
    fn next_of(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|element| element.tag == tag).map(|element| element.content)
    }
}

/// So many decimal digits, and what is behind them.
fn number(text: &[u8], digits: usize) -> Option<(i64, &[u8])> {
    let (digits, rest) = text.split_at_checked(digits)?;
    let mut value = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(digit - b'0');
    }
    Some((value, rest))
}

/// What `MMDDHHMMSSZ` of a year is: in DER there is no other form.
fn unix_seconds(year: i64, text: &[u8]) -> Option<i64> {
    let (month, text) = number(text, 2)?;
    let (day, text) = number(text, 2)?;
    let (hour, text) = number(text, 2)?;
    let (minute, text) = number(text, 2)?;
    let (second, text) = number(text, 2)?;
    let is_time = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60
        && text == b"Z";
    is_time.then(|| days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// Days since 1970-01-01 in the Gregorian calendar. Years are counted from March, so that a leap
/// day ends one.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    let before_month = (153 * month + 2) / 5;
    year * 365 + leap_days + before_month + day - 1 - DAYS_TO_1970
}

/// From 0000-03-01.
const DAYS_TO_1970: i64 = 719_468;

const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    fn ending(year: i32, month: u8, day: u8) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["db.example".to_owned()]).unwrap();
        params.not_before = date_time_ymd(1960, 1, 1);
        params.not_after = date_time_ymd(year, month, day);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn a_certificate_tells_until_when_it_is_valid() {
        // In two digits of the year up to 2049, in four from then on.
        for (year, month, day, expected) in [
            (1970, 1, 1, 0),
            (2000, 2, 29, 951_782_400),
            (2000, 3, 1, 951_868_800),
            (2026, 12, 31, 1_798_675_200),
            (2049, 12, 31, 2_524_521_600),
            (2050, 1, 1, 2_524_608_000),
            (2100, 3, 1, 4_107_542_400),
            (4096, 1, 1, 67_090_118_400),
            (1961, 5, 6, 0),
        ] {
            let seconds = not_after(&ending(year, month, day)).map(|time| time.as_secs());
            assert_eq!(seconds, Some(expected), "{year}-{month}-{day}");
        }
    }

    #[test]
    fn what_is_no_certificate_tells_nothing() {
        let whole = ending(2030, 1, 2);
        assert!(not_after(&whole).is_some());
        for len in 0..whole.len() {
            assert_eq!(not_after(&whole[..len]), None, "{len}");
        }
        for at in 0..200 {
            let mut broken = whole.clone();
            broken[at] ^= 0xff;
            // Whatever it makes of it.
            not_after(&broken);
        }
        assert_eq!(not_after(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff, 0]), None);
    }

    #[test]
    fn a_time_is_one_of_der() {
        assert_eq!(unix_seconds(2026, b"0102030405Z"), Some(1_767_323_045));
        for wrong in [&b"0102030405"[..], b"0102030405+0100", b"1302030405Z", b"010203040xZ", b""] {
            assert_eq!(unix_seconds(2026, wrong), None);
        }
    }
}

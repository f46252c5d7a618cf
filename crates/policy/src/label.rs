//! The app as metrics show it.

/// Longest label, in bytes.
const LABEL_LEN_MAX: usize = 128;

/// Writes the metric label of `app`: its levels without those that are UUID-like or numeric,
/// `other` when none is left. What is not UTF-8, or not printable, is replaced.
pub fn app_label(app: &[u8], out: &mut String) {
    out.clear();
    for level in named_levels(app) {
        if !out.is_empty() {
            out.push(':');
        }
        for chunk in level.utf8_chunks() {
            out.extend(chunk.valid().chars().map(|c| if c.is_control() { REPLACED } else { c }));
            if !chunk.invalid().is_empty() {
                out.push(REPLACED);
            }
        }
    }
    if out.len() > LABEL_LEN_MAX {
        out.truncate(out.floor_char_boundary(LABEL_LEN_MAX));
    }
    if out.is_empty() {
        out.push_str(OTHER);
    }
}

/// Stands for what cannot be shown.
const REPLACED: char = char::REPLACEMENT_CHARACTER;

/// The label of apps without a name.
const OTHER: &str = "other";

/// The levels of an app that name something.
pub(crate) fn named_levels(app: &[u8]) -> impl Iterator<Item = &[u8]> {
    app.split(|byte| *byte == b':').filter(|level| !level.is_empty() && !is_serial(level))
}

/// Whether a level only numbers things: it is UUID-like (32 hexadecimal digits, with or without
/// their four `-` or `_`), or a number.
pub(crate) fn is_serial(level: &[u8]) -> bool {
    if !level.is_empty() && level.iter().all(u8::is_ascii_digit) {
        return true;
    }
    match level.len() {
        32 => level.iter().all(u8::is_ascii_hexdigit),
        36 => level.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => matches!(byte, b'-' | b'_'),
            _ => byte.is_ascii_hexdigit(),
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(app: &[u8]) -> String {
        let mut out = String::from("old");
        app_label(app, &mut out);
        out
    }

    #[test]
    fn levels_that_only_number_things_are_dropped() {
        let app = b"d666bbfc_169e_11ef_b0b3_0a43f95f28a3:vcopier:vreplication:online-ddl";
        assert_eq!(label(app), "vcopier:vreplication:online-ddl");
        assert_eq!(label(b"etl:2024:d666bbfc169e11efb0b30a43f95f28a3"), "etl");
        assert_eq!(label(b"etl-2024"), "etl-2024");
        assert_eq!(label(b"deadbeef"), "deadbeef");
    }

    #[test]
    fn an_app_without_a_name_is_other() {
        for app in [&b""[..], b"42", b"::", b"d666bbfc-169e-11ef-b0b3-0a43f95f28a3"] {
            assert_eq!(label(app), "other", "{app:?}");
        }
    }

    #[test]
    fn what_cannot_be_shown_is_replaced_and_the_length_is_bounded() {
        assert_eq!(label(b"a\xffb\x01"), "a\u{fffd}b\u{fffd}");
        let long = label("ä".repeat(300).as_bytes());
        assert!(long.len() <= LABEL_LEN_MAX && long.chars().all(|c| c == 'ä'));
    }
}

//! Executable comments: `/*! … */`, `/*!80000 … */`, `/*M! … */`.
//!
//! Whether their content is code depends on the server and its version; the rules were tried
//! against MySQL 9.7 and MariaDB 10.11 and follow `sql_lex.cc` of both.

use super::bytes::is_space;

/// Whose rule decides whether the content of an executable comment is code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExecutableRule {
    /// All of them are code.
    Inline,
    /// None of them is.
    Skip,
    MySql {
        version: u32,
        /// Versions of six digits, which MySQL 9 knows and 8.0 reads as five and a digit of code.
        digits: SixDigits,
    },
    MariaDb {
        version: u32,
    },
}

/// Whether a version may have six digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SixDigits {
    /// If white space follows them.
    BeforeSpace,
    /// Never: the sixth is code.
    Never,
}

/// What an executable comment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Code, which begins this many bytes after the `!`.
    Code { after: usize },
    /// A comment that may hold one level of comments.
    Nested,
    /// A comment that ends at the first `*/`.
    Plain,
}

/// Which kind of executable comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    /// `/*!`
    MySql,
    /// `/*M!`
    MariaDb,
}

impl ExecutableRule {
    /// What the comment is whose text after the `!` is `rest`.
    pub(super) fn content(self, marker: Marker, rest: &[u8]) -> Content {
        let found = rest.iter().take(6).take_while(|byte| byte.is_ascii_digit()).count();
        match self {
            Self::Inline => Content::Code { after: if found >= 5 { found } else { 0 } },
            Self::Skip => match marker {
                Marker::MySql => Content::Nested,
                Marker::MariaDb => Content::Plain,
            },
            Self::MySql { version, digits } => match marker {
                Marker::MySql => {
                    let len = match digits {
                        SixDigits::Never => found.min(5),
                        SixDigits::BeforeSpace if rest.get(6).copied().is_some_and(is_space) => {
                            found
                        }
                        SixDigits::BeforeSpace => found.min(5),
                    };
                    if len < 5 {
                        return Content::Code { after: 0 };
                    }
                    code_if(number(rest, len) <= version, len)
                }
                Marker::MariaDb => Content::Plain,
            },
            Self::MariaDb { version } => {
                if found < 5 {
                    return Content::Code { after: 0 };
                }
                let asked = number(rest, found);
                let foreign = marker == Marker::MySql && (50_700..=99_999).contains(&asked);
                code_if(asked <= version && !foreign, found)
            }
        }
    }

    /// Whether `rest`, the text after the `!`, is read differently by releases of one server.
    pub(super) fn is_unsure(self, rest: &[u8]) -> bool {
        match self {
            Self::MySql { version, .. } => {
                version < 90_000 && rest.iter().take(6).filter(|b| b.is_ascii_digit()).count() == 6
            }
            Self::Inline | Self::Skip | Self::MariaDb { .. } => false,
        }
    }
}

fn code_if(runs: bool, after: usize) -> Content {
    if runs { Content::Code { after } } else { Content::Nested }
}

/// The first `len` digits as a number; at most six digits, so it cannot overflow.
fn number(rest: &[u8], len: usize) -> u32 {
    rest.iter().take(len).fold(0_u32, |sum, byte| {
        sum.wrapping_mul(10).wrapping_add(u32::from(byte.wrapping_sub(b'0')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MYSQL: ExecutableRule =
        ExecutableRule::MySql { version: 90_704, digits: SixDigits::BeforeSpace };
    const MARIA: ExecutableRule = ExecutableRule::MariaDb { version: 101_119 };

    fn runs(rule: ExecutableRule, marker: Marker, rest: &str) -> bool {
        matches!(rule.content(marker, rest.as_bytes()), Content::Code { .. })
    }

    #[test]
    fn the_table_of_both_servers_holds() {
        let m = Marker::MySql;
        for (rest, mysql, maria) in [
            (" +1 */", true, true),
            ("50000 +1 */", true, true),
            ("80000 +1 */", true, false),
            ("50701 +1 */", true, false),
            ("100100 +1 */", false, true),
            ("99999 +1 */", false, false),
            ("999999 +1 */", false, false),
            ("090704 +1 */", true, false),
            ("090705 +1 */", false, false),
        ] {
            assert_eq!(runs(MYSQL, m, rest), mysql, "MySQL {rest}");
            assert_eq!(runs(MARIA, m, rest), maria, "MariaDB {rest}");
        }
        assert!(!runs(MYSQL, Marker::MariaDb, " +1"));
        assert!(runs(MARIA, Marker::MariaDb, "100100 +1"));
        assert!(runs(MARIA, Marker::MariaDb, "50701 +1"));
        assert!(!runs(MARIA, Marker::MariaDb, "999999 +1"));
    }

    #[test]
    fn mysql_reads_six_digits_as_a_version_only_before_white_space() {
        assert_eq!(MYSQL.content(Marker::MySql, b"080000+1"), Content::Code { after: 5 });
        assert_eq!(MYSQL.content(Marker::MySql, b"080000 +1"), Content::Code { after: 6 });
        assert_eq!(MYSQL.content(Marker::MySql, b"4000 +1"), Content::Code { after: 0 });
    }
}

//! The words that the walk looks at.

/// A word that says something of clauses, joins or conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyword {
    Select,
    Values,
    Table,
    With,
    Update,
    Delete,
    From,
    Where,
    Group,
    Order,
    Having,
    Into,
    Lock,
    Procedure,
    Set,
    Limit,
    Window,
    For,
    /// UNION, EXCEPT, INTERSECT.
    Union,
    Returning,
    /// JOIN, STRAIGHT_JOIN.
    Join,
    Natural,
    On,
    Using,
    Lateral,
    In,
    /// An operator or a literal.
    Constant,
    /// A literal behind IS, and a name elsewhere.
    Unknown,
}

impl Keyword {
    /// Whether a condition of nothing else says nothing of any column.
    pub(super) fn is_constant(self) -> bool {
        matches!(self, Self::Constant | Self::In)
    }

    /// Whether it ends a WHERE at its own depth. Reserved in all servers, or told by the server.
    pub(super) fn ends_where(self) -> bool {
        matches!(
            self,
            Self::Where
                | Self::Group
                | Self::Order
                | Self::Having
                | Self::Into
                | Self::Lock
                | Self::Procedure
                | Self::Limit
                | Self::For
                | Self::Union
                | Self::On
        )
    }
}

/// Longest word that is looked at.
const WORD_LEN_MAX: usize = 13;

/// The keyword that a word is.
pub(super) fn keyword(word: &[u8]) -> Option<Keyword> {
    let is_number = match word {
        [b'0', b'x', digits @ ..] => digits.iter().all(u8::is_ascii_hexdigit),
        [b'0', b'b', digits @ ..] => digits.iter().all(|digit| matches!(digit, b'0' | b'1')),
        _ => false,
    };
    if is_number {
        return Some(Keyword::Constant);
    }
    let mut upper = [0; WORD_LEN_MAX];
    let upper = upper.get_mut(..word.len())?;
    upper.copy_from_slice(word);
    upper.make_ascii_uppercase();
    Some(match &*upper {
        b"SELECT" => Keyword::Select,
        b"VALUES" => Keyword::Values,
        b"TABLE" => Keyword::Table,
        b"WITH" => Keyword::With,
        b"UPDATE" => Keyword::Update,
        b"DELETE" => Keyword::Delete,
        b"FROM" => Keyword::From,
        b"WHERE" => Keyword::Where,
        b"GROUP" => Keyword::Group,
        b"ORDER" => Keyword::Order,
        b"HAVING" => Keyword::Having,
        b"INTO" => Keyword::Into,
        b"LOCK" => Keyword::Lock,
        b"PROCEDURE" => Keyword::Procedure,
        b"SET" => Keyword::Set,
        b"LIMIT" => Keyword::Limit,
        b"WINDOW" => Keyword::Window,
        b"FOR" => Keyword::For,
        b"UNION" | b"EXCEPT" | b"INTERSECT" => Keyword::Union,
        b"RETURNING" => Keyword::Returning,
        b"JOIN" | b"STRAIGHT_JOIN" => Keyword::Join,
        b"NATURAL" => Keyword::Natural,
        b"ON" => Keyword::On,
        b"USING" => Keyword::Using,
        b"LATERAL" => Keyword::Lateral,
        b"IN" => Keyword::In,
        b"TRUE" | b"FALSE" | b"NULL" | b"NOT" | b"AND" | b"OR" | b"XOR" | b"IS" | b"BETWEEN"
        | b"LIKE" | b"RLIKE" | b"REGEXP" | b"DIV" | b"MOD" | b"BINARY" => Keyword::Constant,
        b"UNKNOWN" => Keyword::Unknown,
        _ => return None,
    })
}

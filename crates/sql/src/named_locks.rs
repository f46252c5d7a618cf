//! A text that is one call of GET_LOCK() or of its family, and nothing else.
//!
//! Only of such a text does the one value of its result say what became of the lock: in any other
//! the function may be called never, or many times, or beside another.

use crate::{
    effects::NamedLockUse,
    lexer::{Kind, Lexer, NoComments, Reading, Token},
    mode::LexMode,
};

/// Whether `text` is `SELECT GET_LOCK(…)`, perhaps with an alias, or DO, or another function of
/// the family. Its arguments are literals, user variables and parameters: whatever else they might
/// be can write or call. Gives how the call uses the locks.
pub(crate) fn sole_call(text: &[u8], mode: LexMode, reading: Reading) -> Option<NamedLockUse> {
    let mut call = Call { lexer: Lexer::new(text, mode, reading, NoComments) };
    let verb = call.token();
    let selects = call.is(verb, b"SELECT");
    if !selects && !call.is(verb, b"DO") {
        return None;
    }
    let function = call.token();
    let is = |name: &[u8]| call.is(function, name);
    let named_locks = if is(b"GET_LOCK") && selects {
        NamedLockUse::SoleGet
    } else if is(b"RELEASE_LOCK") && selects {
        NamedLockUse::SoleRelease
    } else if is(b"GET_LOCK") || is(b"RELEASE_LOCK") || is(b"RELEASE_ALL_LOCKS") {
        NamedLockUse::Other
    } else if is(b"IS_FREE_LOCK") || is(b"IS_USED_LOCK") {
        NamedLockUse::None
    } else {
        return None;
    };
    (call.arguments() && call.ends(selects)).then_some(named_locks)
}

struct Call<'t> {
    lexer: Lexer<'t, NoComments>,
}

impl Call<'_> {
    fn token(&mut self) -> Token {
        self.lexer.next()
    }

    fn is(&self, token: Token, word: &[u8]) -> bool {
        token.kind == Kind::Word && self.lexer.bytes(token).eq_ignore_ascii_case(word)
    }

    fn arguments(&mut self) -> bool {
        if self.token().kind != Kind::Punct(b'(') {
            return false;
        }
        loop {
            match self.token().kind {
                Kind::Punct(b')') => return true,
                Kind::Text | Kind::Number | Kind::UserVar => {}
                Kind::Punct(b',' | b'?' | b'-' | b'+') => {}
                Kind::Word
                | Kind::Name
                | Kind::DollarText
                | Kind::SysVar
                | Kind::Punct(_)
                | Kind::Semicolon
                | Kind::End => return false,
            }
        }
    }

    /// Nothing more than an alias, where there may be one.
    fn ends(&mut self, may_have_alias: bool) -> bool {
        let mut token = self.token();
        if may_have_alias {
            let named = self.is(token, b"AS");
            if named {
                token = self.token();
            }
            if matches!(token.kind, Kind::Word | Kind::Name | Kind::Text) {
                token = self.token();
            } else if named {
                return false;
            }
        }
        while token.kind == Kind::Semicolon {
            self.lexer.end_statement();
            token = self.token();
        }
        token.kind == Kind::End
    }
}

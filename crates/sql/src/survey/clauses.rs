//! What the words of clauses do to the walk.

use super::block::{Clause, Filter, Joins, Kind};
use super::keyword::Keyword;
use super::walk::Walk;
use crate::lexer::Kind as TokenKind;
use crate::mode::Server;

impl Walk<'_, '_> {
    pub(super) fn keyword(&mut self, keyword: Keyword, at: u32) {
        let behind_for = self.is_before("FOR");
        let expected = std::mem::take(&mut self.expects);
        self.in_at = None;
        match keyword {
            Keyword::Select | Keyword::Values | Keyword::Table => self.query(keyword),
            Keyword::With => self.with(),
            Keyword::Update | Keyword::Delete => self.write_behind_with(keyword, at),
            Keyword::From => self.from(),
            Keyword::Where => self.where_(),
            Keyword::Group | Keyword::Order if behind_for => {}
            Keyword::Group
            | Keyword::Order
            | Keyword::Having
            | Keyword::Into
            | Keyword::Lock
            | Keyword::Procedure
            | Keyword::Set => self.end_clause(),
            Keyword::Limit => self.limit(),
            Keyword::Window => {
                // A clause in MySQL, and a name elsewhere.
                self.frame().joins.unsure = true;
                self.end_clause();
            }
            Keyword::For => self.for_(),
            Keyword::Union => self.union(),
            Keyword::Returning => self.returning(),
            Keyword::Join if behind_for => {}
            Keyword::Join => {
                if self.in_tables() {
                    self.frame().joins.join(at);
                    self.expects = true;
                }
            }
            Keyword::Natural => self.frame().joins.natural = true,
            Keyword::On => self.on(),
            Keyword::Using => self.using(),
            Keyword::Lateral => {
                if expected {
                    self.frame().joins.has_derived = true;
                    self.expects = true;
                }
            }
            Keyword::In => {
                // The values of a partition are no condition.
                self.in_at = (!self.is_before("VALUES")).then_some(at);
            }
            Keyword::Constant | Keyword::Unknown => {}
        }
    }

    /// SELECT, or what stands for one: at the beginning of brackets, and of what INSERT or CREATE
    /// takes.
    fn query(&mut self, keyword: Keyword) {
        let begins = self.depth == 0
            || self.before.is_some_and(|before| before.kind == TokenKind::Punct(b'('))
            || self.frame().kind == Kind::With;
        let with = self.with;
        let frame = self.frame();
        let kind = frame.kind;
        let is_new = match kind {
            Kind::Plain | Kind::With => {
                begins && (keyword == Keyword::Select || self.depth > 0 || self.before.is_none())
            }
            Kind::Tables | Kind::List(_) => begins,
            Kind::Query | Kind::Update | Kind::Delete => false,
        };
        if !is_new {
            // `UNION TABLE t`.
            self.survey.has_from |= keyword == Keyword::Table && kind == Kind::Query;
            return;
        }
        let frame = self.frame();
        frame.kind = Kind::Query;
        frame.derived = kind == Kind::Tables;
        frame.joins = Joins::beside(with);
        if keyword == Keyword::Table {
            self.survey.has_from = true;
        }
        if kind == Kind::Tables
            && let Some(outer) = self.depth.checked_sub(1)
        {
            self.frame_at(outer).joins.has_derived = true;
        }
    }

    fn with(&mut self) {
        let begins = self.depth == 0
            || self.before.is_some_and(|before| before.kind == TokenKind::Punct(b'('));
        if begins && matches!(self.frame().kind, Kind::Plain | Kind::Tables | Kind::List(_)) {
            self.frame().kind = Kind::With;
            self.with = true;
        }
    }

    /// `WITH … UPDATE`; elsewhere these words belong to something else.
    fn write_behind_with(&mut self, keyword: Keyword, at: u32) {
        if self.depth != 0 || self.frame().kind != Kind::With {
            // FOR UPDATE, ON DUPLICATE KEY UPDATE.
            return;
        }
        self.began_at = at;
        if keyword == Keyword::Update {
            self.main_block(Kind::Update, Clause::From);
        } else {
            self.main_block(Kind::Delete, Clause::Head);
        }
    }

    fn from(&mut self) {
        let frame = self.frame();
        if !frame.kind.is_block() || frame.clause != Clause::Head {
            return;
        }
        frame.clause = Clause::From;
        self.survey.has_from |= self.frame().kind == Kind::Query && !self.is_dual_next();
        self.expects = true;
    }

    /// DUAL is no table. It stands alone: no server takes a join with it.
    fn is_dual_next(&mut self) -> bool {
        let next = self.lexer.peeked();
        next.kind == TokenKind::Word && self.lexer.bytes(next).eq_ignore_ascii_case(b"DUAL")
    }

    fn where_(&mut self) {
        let frame = self.frame();
        if frame.kind.is_block() {
            frame.clause = Clause::Where;
            frame.filter = Filter::Constant;
        }
    }

    fn end_clause(&mut self) {
        let frame = self.frame();
        if frame.kind.is_block() && matches!(frame.clause, Clause::From | Clause::Where) {
            frame.clause = Clause::Tail;
        }
    }

    fn limit(&mut self) {
        self.end_clause();
        let frame = self.frame();
        frame.limited |= matches!(frame.kind, Kind::Update | Kind::Delete);
    }

    fn for_(&mut self) {
        let of_index = self.is_before("INDEX") || self.is_before("KEY");
        let next = self.lexer.peeked();
        let of_time = next.kind == TokenKind::Word
            && self.lexer.bytes(next).eq_ignore_ascii_case(b"SYSTEM_TIME");
        if !of_index && !of_time {
            self.end_clause();
        }
    }

    /// Another query block at the same depth.
    fn union(&mut self) {
        if self.frame().kind != Kind::Query {
            return;
        }
        self.settle(self.depth);
        let has_derived = self.with;
        let frame = self.frame();
        frame.clause = Clause::Head;
        frame.filter = Filter::Absent;
        frame.joins = Joins::beside(has_derived);
    }

    /// Ends the WHERE in MariaDB, and is a name in MySQL.
    fn returning(&mut self) {
        match self.lexer.mode().server {
            Server::MariaDb { .. } => self.end_clause(),
            Server::MySql { .. } => {}
            Server::Unknown => {
                if self.frame().clause == Clause::Where {
                    self.give_up_on_filters();
                }
            }
        }
    }

    fn on(&mut self) {
        if !self.in_tables() {
            // Of ON DUPLICATE KEY UPDATE.
            self.end_clause();
            return;
        }
        let next = self.lexer.peeked();
        let of_insert = next.kind == TokenKind::Word
            && self.lexer.bytes(next).eq_ignore_ascii_case(b"DUPLICATE");
        if of_insert {
            self.end_clause();
        } else {
            self.frame().joins.condition();
        }
    }

    fn using(&mut self) {
        if !self.in_tables() {
            return;
        }
        let has_derived = self.with;
        if self.frame().kind == Kind::Delete && std::mem::take(&mut self.targets) {
            // What stood behind FROM is deleted; the tables come now.
            self.frame().joins = Joins::beside(has_derived);
            self.expects = true;
        } else {
            self.frame().joins.condition();
        }
    }
}

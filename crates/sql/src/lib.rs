//! What a statement says about itself.
//!
//! The text of one command goes in, a [`Statement`] comes out: its [`Class`], what it does to the
//! session if the server accepts it ([`Effects`]), whether it is never held back ([`Exemption`]),
//! and the tags its comments carry. Everything here is a pure function of bytes. Nothing fails:
//! what cannot be read is [`Class::Unknown`], and unknown is gated as a write.
//!
//! The mechanism is a byte lexer that follows the servers' own (`sql_lex.cc` of MySQL and MariaDB)
//! in what counts: where a literal, a quoted name, a comment or a statement ends. It runs in one
//! pass, in time linear in the text, without recursion and without allocating once the caller's
//! [`Scratch`] is warm. Where the text alone does not say how the server reads it (an executable
//! comment for a server of unknown version, say), every plausible reading is made and the strictest
//! class counts; what would loosen anything counts only if all readings agree.
//!
//! The `parse` module is for administration only: a full parser for normalised text, off the path
//! of statements, on a thread of its own.
#![deny(clippy::arithmetic_side_effects)]

mod builtin;
mod calls;
mod class;
mod comments;
mod describe;
mod digest;
mod effects;
mod exemption;
mod explaining;
mod lexer;
mod mode;
mod named_locks;
#[cfg(feature = "parser")]
pub mod parse;
mod routines;
mod seen;
mod survey;
mod tables;
mod tags;
mod text;
mod written;

pub use class::{Class, ClassSet};
pub use comments::{Scratch, Tags};
pub use describe::{Statement, Whole, describe};
pub use digest::{
    DIGEST_TEXT_MAX, DigestMemo, Extent, Mould, TextHead, TextKey, digest, digest_front,
    readable_digest,
};
pub use effects::{
    AppSetting, Effects, Kill, Locks, NamedLockUse, PlainEffects, SqlPrepare, TransactionAfter,
    TransactionVerbs, VerbsRun,
};
pub use exemption::Exemption;
pub use explaining::{Explainable, explainable};
pub use mode::{Charset, LexMode, Server, Setting};
pub use routines::{Called, Routine, RoutineKind, Routines};
pub use survey::{
    Accepts, CleanSurvey, InList, Survey, Surveyor, Temporary, Unfiltered, Unjudged, survey,
};
pub use tables::{Completeness, TableRef, tables};
pub use tags::{Tag, Tool};
pub use text::SqlText;
pub use written::{WriteVerb, written};

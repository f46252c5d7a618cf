//! What the fuzz targets of this crate check, over the corpora that they have found (`fuzz/corpus`).

mod comments;
mod digest;
mod dress;
mod lexer;
mod mode;

use testkit::replay;

#[test]
fn tags_are_read_from_comments_and_from_nothing_else() {
    replay("comments", comments::check);
}

#[test]
fn no_text_is_read_as_less_than_it_does() {
    replay("lexer", lexer::check);
}

#[test]
fn a_digest_keeps_no_value_and_no_comment() {
    replay("digest", digest::check);
}

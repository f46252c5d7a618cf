//! What the fuzz targets of this crate check, over the corpora that they have found
//! (`fuzz/corpus`).

mod commands;
mod compression;
mod frames;
mod handshake;
mod proxy_protocol;
mod responses;

use testkit::replay;

#[test]
fn frames_end_where_their_lengths_say_at_every_cut() {
    replay("frames", frames::check);
}

#[test]
fn handshakes_are_read_and_patched_in_place() {
    replay("handshake", handshake::check);
}

#[test]
fn commands_are_read_as_they_were_written() {
    replay("commands", commands::check);
}

#[test]
fn responses_end_where_they_were_made_to_end() {
    replay("responses", responses::check);
}

#[test]
fn headers_of_proxies_are_read_to_their_last_byte_and_no_further() {
    replay("proxy_protocol", proxy_protocol::check);
}

#[test]
fn compressed_frames_come_out_as_they_went_in() {
    replay("compression", compression::check);
}

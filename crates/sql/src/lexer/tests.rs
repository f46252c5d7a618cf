use super::*;

fn kinds(text: &[u8], mode: LexMode) -> Vec<(Kind, &[u8])> {
    let mut lexer = Lexer::new(text, mode, Reading::first(mode), NoComments);
    let mut out = Vec::new();
    loop {
        let token = lexer.next();
        if token.kind == Kind::End {
            return out;
        }
        out.push((token.kind, lexer.bytes(token)));
    }
}

fn pieces(text: &str) -> Vec<&str> {
    let mode = LexMode { server: Server::MySql { version: 90_704 }, ..LexMode::default() };
    kinds(text.as_bytes(), mode)
        .into_iter()
        .map(|(_, bytes)| std::str::from_utf8(bytes).expect("cut between characters"))
        .collect()
}

#[test]
fn numbers_and_names_end_where_the_server_ends_them() {
    for (text, expected) in [
        ("1e5FOR", vec!["1e5", "FOR"]),
        ("1e+5FOR", vec!["1e+5", "FOR"]),
        ("1e+FOR", vec!["1e", "+", "FOR"]),
        ("1.5FOR", vec!["1.5", "FOR"]),
        (".5e3FOR", vec![".5e3", "FOR"]),
        ("1.FOR", vec!["1.", "FOR"]),
        ("1FOR", vec!["1FOR"]),
        ("0x4DFOR", vec!["0x4DFOR"]),
        ("t.1e5FOR", vec!["t", ".", "1e5FOR"]),
        ("t.5FOR", vec!["t", ".", "5FOR"]),
        ("@a.b$c-1", vec!["@a.b$c", "-", "1"]),
        ("@`a``b`c", vec!["@`a``b`", "c"]),
        ("@@global.x", vec!["@@", "global", ".", "x"]),
        ("a$b 'x''y\\'z' \"q\"\"r\"", vec!["a$b", "'x''y\\'z'", "\"q\"\"r\""]),
        ("$$a'$$b $t$ $$ $t$", vec!["$$a'$$", "b", "$t$ $$ $t$"]),
        ("é1é", vec!["é1é"]),
    ] {
        assert_eq!(pieces(text), expected, "{text}");
    }
}

#[test]
fn words_alone_are_the_words_among_all_tokens() {
    let text = b"SELECT a, `b`, 'c', 1, .5e, 1e5x, t.2d, @e, f(g) /* h */ -- i\n ; # j\n k";
    let mode = LexMode::default();
    let mut lexer = Lexer::new(text, mode, Reading::first(mode), NoComments);
    let mut words = Vec::new();
    loop {
        let token = lexer.next_word();
        if token.kind == Kind::End {
            break;
        }
        words.push((token.kind, lexer.bytes(token)));
    }
    let expected: Vec<_> = kinds(text, mode)
        .into_iter()
        .filter(|(kind, _)| matches!(kind, Kind::Word | Kind::Name | Kind::Semicolon))
        .collect();
    assert_eq!(words, expected);
}

#[test]
fn every_byte_begins_something_in_every_mode() {
    for charset in [
        Charset::Plain,
        Charset::Euc,
        Charset::SingleByte,
        Charset::Latin,
        Charset::Dos,
        Charset::Swe7,
        Charset::Big5,
        Charset::Cp932,
        Charset::Gbk,
        Charset::Sjis,
        Charset::Gb18030,
    ] {
        for first in 0..=u8::MAX {
            for second in 0..=u8::MAX {
                let mode = LexMode { charset, ..LexMode::default() };
                let text = [first, second, b'a', first];
                assert!(kinds(&text, mode).len() <= text.len());
            }
        }
    }
}

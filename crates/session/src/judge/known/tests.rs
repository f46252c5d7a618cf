use sql::{Charset, Server, Setting, Whole, describe, survey};

use super::*;

const MODE: LexMode = LexMode {
    no_backslash_escapes: Setting::Off,
    ansi_quotes: Setting::Off,
    charset: Charset::Plain,
    server: Server::MySql { version: 90_704 },
};

fn text(number: usize, value: usize) -> Vec<u8> {
    format!("SELECT c FROM t{number} WHERE id = {value}").into_bytes()
}

/// Texts with one head, and so of one set.
fn of_one_set(number: usize, value: usize) -> Vec<u8> {
    format!("SELECT c FROM t WHERE id = {value} AND c{number} = 1").into_bytes()
}

/// A text comes; its digest, if it was here.
fn comes(session: &mut Recent, known: &KnownTexts, text: &[u8]) -> Option<u64> {
    session.pass();
    session.find(known, (text, MODE), &mut Scratch::default());
    let digest = session.digest(known, 1);
    let mut scratch = Scratch::default();
    session.note(known, (text, MODE), &describe(text, MODE, Whole::Yes, &mut scratch));
    digest
}

/// It comes until it is kept, with its number for a digest.
fn is_kept(session: &mut Recent, known: &KnownTexts, text: &[u8], digest: usize) {
    for _ in 0..100 {
        comes(session, known, text);
        if session.found {
            return session.note_digest(known, u64::try_from(digest).unwrap(), 1);
        }
    }
    panic!("{} is not kept", String::from_utf8_lossy(text));
}

fn kept(count: usize, text: impl Fn(usize, usize) -> Vec<u8>) -> KnownTexts {
    let known = KnownTexts::default();
    for number in 0..count {
        is_kept(&mut Recent::default(), &known, &text(number, 1), number);
    }
    known
}

#[test]
fn texts_that_come_in_turn_are_found_where_they_came_the_last_time() {
    let known = kept(300, text);
    let mut session = Recent::default();
    for turn in 0..3 {
        for number in 0..300 {
            let expected = known.0.borrow().places[session.last].next;
            let found = comes(&mut session, &known, &text(number, turn * 100 + number));
            assert_eq!(found, u64::try_from(number).ok(), "turn {turn}");
            assert!(turn < 2 || session.last == expected, "nothing else was looked at");
        }
    }
}

#[test]
fn what_one_session_has_sent_serves_all_in_any_order() {
    let known = kept(100, text);
    let mut sessions = [Recent::default(), Recent::default(), Recent::default()];
    for step in 0..1_000 {
        let number = step * 37 % 100;
        let session = &mut sessions[step % 3];
        let found = comes(session, &known, &text(number, step));
        assert_eq!(found, u64::try_from(number).ok());
        session.pass();
    }
    let [session, ..] = &mut sessions;
    assert_eq!(comes(session, &known, &text(100, 9)), None, "it never came");
    session.find(&known, (&text(3, 9), MODE), &mut Scratch::default());
    assert!(session.found);
    assert_eq!(session.digest(&known, 2), None, "nobody was told in that generation");
    let other = LexMode { ansi_quotes: Setting::On, ..MODE };
    session.find(&known, (&text(3, 9), other), &mut Scratch::default());
    assert_eq!(session.digest(&known, 1), None, "the mode has changed");
}

#[test]
fn of_more_texts_than_have_room_none_is_found_for_another() {
    let known = KnownTexts::default();
    let mut session = Recent::default();
    for number in 0..3 * WAYS {
        for value in 0..3 * usize::try_from(KEPT_OF).unwrap() {
            if comes(&mut session, &known, &of_one_set(number, value)).is_none() {
                session.note_digest(&known, u64::try_from(number).unwrap(), 1);
            }
        }
        for other in 0..=number {
            session.find(&known, (&of_one_set(other, 2), MODE), &mut Scratch::default());
            let found = session.digest(&known, 1);
            assert!(found.is_none() || found == u64::try_from(other).ok(), "{found:?}");
        }
    }
}

#[test]
fn texts_that_come_once_do_not_displace_those_that_come_again() {
    let known = kept(WAYS / 2, of_one_set);
    let mut session = Recent::default();
    for once in 0..10_000 {
        comes(&mut session, &known, &of_one_set(1_000 + once, 1));
        let number = once % (WAYS / 2);
        let found = comes(&mut session, &known, &of_one_set(number, once));
        assert_eq!(found, u64::try_from(number).ok());
    }
    let places = &known.0.borrow().places;
    assert_eq!(places.len(), SETS * WAYS, "and no more room is taken");
}

#[test]
fn what_comes_again_no_more_makes_room() {
    let known = kept(WAYS, of_one_set);
    let mut session = Recent::default();
    for number in 0..WAYS {
        comes(&mut session, &known, &of_one_set(number, 7));
    }
    for number in WAYS..2 * WAYS {
        is_kept(&mut session, &known, &of_one_set(number, 1), number);
        assert_eq!(comes(&mut session, &known, &of_one_set(number, 2)), u64::try_from(number).ok());
    }
}

#[test]
fn what_was_found_out_about_a_text_goes_with_it() {
    let known = kept(1, text);
    let mut session = Recent::default();
    comes(&mut session, &known, &text(0, 5));
    let survey = survey(&text(0, 1), MODE, Whole::Yes);
    assert_eq!(session.survey(&known), None);
    session.note_survey(&known, &survey);
    assert_eq!(session.survey(&known), Some(survey));
    session.find(&known, (b"DELETE FROM t", MODE), &mut Scratch::default());
    assert_eq!((session.survey(&known), session.digest(&known, 1)), (None, None));
    let mut other = Recent::default();
    comes(&mut other, &known, &text(0, 77));
    assert_eq!((other.survey(&known), other.digest(&known, 1)), (Some(survey), Some(0)));
    other.pass();
    assert_eq!((other.survey(&known), other.digest(&known, 1)), (None, None), "it is over");
    // Its place is another's.
    let known = kept(WAYS, of_one_set);
    for number in 0..WAYS {
        comes(&mut session, &known, &of_one_set(number, 0));
        session.note_survey(&known, &survey);
    }
    for number in WAYS..4 * WAYS {
        for _ in 0..2 * KEPT_OF {
            if comes(&mut session, &known, &of_one_set(number, 3)).is_some() {
                break;
            }
            assert_eq!((session.survey(&known), session.digest(&known, 1)), (None, None));
        }
    }
}

#[test]
fn what_guards_could_object_to_is_looked_at_each_time() {
    let known = KnownTexts::default();
    let mut session = Recent::default();
    for text in ["DELETE FROM t", "SELECT a FROM t WHERE b IN (1)", "SELECT 1 FROM t, u"] {
        is_kept(&mut session, &known, text.as_bytes(), 1);
        session.note_survey(&known, &survey(text.as_bytes(), MODE, Whole::Yes));
        assert_eq!(session.survey(&known), None, "{text}");
    }
}

/// Tracers put theirs ahead of the text, another each time.
#[test]
fn comments_ahead_of_a_text_leave_it_in_its_set() {
    let known = kept(4 * WAYS, |number, value| {
        [format!("/* trace {value} */ ").into_bytes(), text(number, value)].concat()
    });
    let mut session = Recent::default();
    for number in 0..4 * WAYS {
        let traced = [b"/* trace 99 */ ".to_vec(), text(number, 3)].concat();
        assert_eq!(comes(&mut session, &known, &traced), u64::try_from(number).ok());
    }
}

//! Small damage done to sequences: to their bytes, their steps, and how they are sent.

use crate::scenario::Chance;
use crate::siege::sequence::{Act, Step};

/// Changes something, once or a few times.
pub fn mutate(chance: &mut Chance, steps: &mut Vec<Step>) {
    for _ in 0..=chance.below(3) {
        match chance.below(4) {
            0 => rearrange(chance, steps),
            _ => damage(chance, steps),
        }
    }
}

/// Sends steps together with those behind them.
pub fn join(chance: &mut Chance, steps: &mut [Step]) {
    for step in steps.iter_mut() {
        let alone = matches!(step.act, Act::ChangeUser(..) | Act::Infile(_));
        step.joined = !alone && chance.below(2) == 0;
    }
    if let Some(last) = steps.last_mut() {
        last.joined = false;
    }
}

fn rearrange(chance: &mut Chance, steps: &mut Vec<Step>) {
    if steps.is_empty() {
        return;
    }
    let (a, b) = (chance.index(steps.len()), chance.index(steps.len()));
    match chance.below(3) {
        0 => steps.swap(a, b),
        1 => {
            let copy = steps.get(a).cloned();
            steps.extend(copy);
        }
        _ if steps.len() > 1 => drop(steps.remove(a)),
        _ => {}
    }
}

fn damage(chance: &mut Chance, steps: &mut [Step]) {
    let index = chance.index(steps.len());
    let other = steps.get(chance.index(steps.len())).map(|step| step.act.bytes().to_vec());
    let Some(text) = steps.get_mut(index).and_then(|step| step.act.text_mut()) else {
        return;
    };
    let (a, b) = (chance.index(text.len()), chance.index(text.len()));
    let (from, to) = (a.min(b), a.max(b).min(a.min(b).saturating_add(12)));
    match chance.below(7) {
        0 => drop(text.drain(from..to)),
        1 => {
            let copy: Vec<u8> = text.get(from..to).unwrap_or_default().to_vec();
            text.splice(a..a, copy).for_each(drop);
        }
        2 if !text.is_empty() => text.swap(a, b),
        3 => {
            if let Some(byte) = text.get_mut(a) {
                *byte = chance.byte();
            }
        }
        4 => {
            let sign = SIGNS.get(chance.index(SIGNS.len())).copied().unwrap_or_default();
            text.splice(a..a, sign.iter().copied()).for_each(drop);
        }
        5 => {
            let other = other.unwrap_or_default();
            let from = chance.index(other.len());
            text.splice(a.., other.get(from..).unwrap_or_default().to_vec()).for_each(drop);
        }
        _ => {
            // Letters of the other case.
            if let Some(part) = text.get_mut(from..to) {
                part.iter_mut()
                    .for_each(|byte| *byte ^= if byte.is_ascii_alphabetic() { 0x20 } else { 0 });
            }
        }
    }
}

const SIGNS: [&[u8]; 32] = [
    b"'",
    b"\"",
    b"`",
    b"\\",
    b";",
    b"/*",
    b"*/",
    b"/*!",
    b"/*!50000 ",
    b"/*!99999 ",
    b"/*M!",
    b"-- ",
    b"#",
    b"\n",
    b"\0",
    b"$$",
    b"$a$",
    b"(",
    b")",
    b"/*+ ",
    b"\xe5",
    b"\xbf\\",
    b" FOR ",
    b" BEGIN ",
    b" END ",
    b" FROM ",
    b"@",
    b".",
    b" INTO ",
    b"{",
    b"}",
    b"N'",
];

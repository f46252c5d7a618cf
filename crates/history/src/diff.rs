//! Two texts, line by line.

/// Lines of one text that are compared each with each.
const COMPARED_MAX: usize = 1_000;

/// Lines of a difference that are kept.
const SHOWN_MAX: usize = 200;

/// What another text says otherwise: lines that are gone with `-`, new ones with `+`, and where
/// each group begins.
pub(crate) fn lines(before: &str, after: &str) -> String {
    let old: Vec<&str> = before.lines().collect();
    let new: Vec<&str> = after.lines().collect();
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = |lines: &[&str]| lines.len().saturating_sub(same);
    let most = rest(&old).min(rest(&new));
    let tail =
        old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(a, b)| a == b).count();
    let middle = |lines: &[&str]| same..lines.len().saturating_sub(tail);
    let old_middle = old.get(middle(&old)).unwrap_or_default();
    let new_middle = new.get(middle(&new)).unwrap_or_default();
    let mut shown: Vec<String> = Vec::new();
    let mut last = None;
    for step in steps(old_middle, new_middle) {
        let (line, text) = match step {
            Step::Gone(place) => (place, old_middle.get(place).map(|line| format!("-{line}"))),
            Step::New(at, place) => (at, new_middle.get(place).map(|line| format!("+{line}"))),
        };
        if last.is_none_or(|last: usize| line > last.saturating_add(1)) {
            shown.push(format!("@@ line {}", line.saturating_add(same).saturating_add(1)));
        }
        last = Some(line);
        shown.extend(text);
    }
    let further = shown.len().saturating_sub(SHOWN_MAX);
    shown.truncate(SHOWN_MAX);
    if further > 0 {
        shown.push(format!("… {further} more lines"));
    }
    shown.join("\n")
}

enum Step {
    Gone(usize),
    /// At this place of the old text, this one of the new.
    New(usize, usize),
}

/// The fewest lines that make one text of the other; of long texts, all of them.
fn steps(old: &[&str], new: &[&str]) -> Vec<Step> {
    if old.len() > COMPARED_MAX || new.len() > COMPARED_MAX {
        let gone = (0..old.len()).map(Step::Gone);
        return gone.chain((0..new.len()).map(|place| Step::New(old.len(), place))).collect();
    }
    let longest = common(old, new);
    let at = |a: usize, b: usize| longest.get(a).and_then(|row| row.get(b)).copied().unwrap_or(0);
    let (mut a, mut b) = (0_usize, 0_usize);
    let mut steps = Vec::new();
    while a < old.len() || b < new.len() {
        if a < old.len() && b < new.len() && old.get(a) == new.get(b) {
            a = a.saturating_add(1);
            b = b.saturating_add(1);
        } else if a < old.len()
            && (b >= new.len() || at(a.saturating_add(1), b) >= at(a, b.saturating_add(1)))
        {
            steps.push(Step::Gone(a));
            a = a.saturating_add(1);
        } else {
            steps.push(Step::New(a, b));
            b = b.saturating_add(1);
        }
    }
    steps
}

/// The length of the longest common part from each place on.
fn common(old: &[&str], new: &[&str]) -> Vec<Vec<u16>> {
    let mut below = vec![0_u16; new.len().saturating_add(1)];
    let mut rows = vec![below.clone()];
    for line in old.iter().rev() {
        let mut row = vec![0_u16; new.len().saturating_add(1)];
        let mut right = 0_u16;
        for (place, other) in new.iter().enumerate().rev() {
            let down = below.get(place).copied().unwrap_or(0);
            let across = below.get(place.saturating_add(1)).copied().unwrap_or(0);
            right = if line == other { across.saturating_add(1) } else { down.max(right) };
            if let Some(cell) = row.get_mut(place) {
                *cell = right;
            }
        }
        below.clone_from(&row);
        rows.push(row);
    }
    rows.reverse();
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_shown_with_its_line() {
        let before = "a\nb\nc\nd\ne\nf\n";
        let after = "a\nB\nc\nd\ne\nnew\nf\n";
        assert_eq!(lines(before, after), "@@ line 2\n-b\n+B\n@@ line 6\n+new");
        assert_eq!(lines(before, before), "");
        assert_eq!(lines("", "x"), "@@ line 1\n+x");
    }

    #[test]
    fn long_texts_are_cut() {
        let long = |c: &str| format!("{c}\n").repeat(3_000);
        let shown = lines(&long("a"), &long("b"));
        assert!(shown.ends_with("… 5801 more lines"), "{}", shown.lines().last().unwrap());
    }
}

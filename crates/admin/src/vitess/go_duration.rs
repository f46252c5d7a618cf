//! Durations as Go's `time.ParseDuration` reads them: `90s`, `1h30m`, `1.5h`, `300ms`.

use std::time::Duration;

/// The duration; none if it is not one, is negative, or is too long to be counted.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    let mut sum = Duration::ZERO;
    let mut parts = 0_u32;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, behind) = rest.split_at_checked(digits)?;
        let unit_len =
            behind.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(behind.len());
        let (unit, further) = behind.split_at_checked(unit_len)?;
        let number: f64 = number.parse().ok()?;
        sum = sum.checked_add(Duration::try_from_secs_f64(number * seconds_of(unit)?).ok()?)?;
        rest = further;
        parts = parts.saturating_add(1);
    }
    (parts > 0).then_some(sum)
}

fn seconds_of(unit: &str) -> Option<f64> {
    match unit {
        "ns" => Some(1e-9),
        "us" | "µs" | "μs" => Some(1e-6),
        "ms" => Some(1e-3),
        "s" => Some(1.0),
        "m" => Some(60.0),
        "h" => Some(3_600.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_go_reads_is_read_and_nothing_else() {
        let ms = |ms| Some(Duration::from_millis(ms));
        let read = [
            ("90s", ms(90_000)),
            ("1h30m", ms(5_400_000)),
            ("1.5h", ms(5_400_000)),
            ("300ms", ms(300)),
            ("+2m3.5s", ms(123_500)),
            ("0", ms(0)),
        ];
        for (text, expected) in read {
            assert_eq!(parse(text), expected, "{text}");
        }
        for bad in
            ["", "-1s", "1", "1d", "s", "1.2.3s", "1h 30m", ".s", "9e9h", "99999999999999999h"]
        {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}

//! What was seen, kept in files: weathers are run one by one, and drawn together.

use std::fmt::Write as _;
use std::path::Path;

use benches::Result;
use benches::lag_panel::thinned;
use benches::watch::Said;
use benches::way::Way;

use crate::run::Seen;
use crate::weathers::Weather;

/// The lag of one weather, as it is drawn.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Kept {
    /// Points of time and lag, in seconds.
    pub(crate) ways: Vec<(Way, Vec<(f64, f64)>)>,
    /// Moments of the first way, in seconds.
    pub(crate) moments: Vec<f64>,
}

impl Kept {
    pub(crate) fn of(ways: &[Seen]) -> Self {
        let moments = ways.first().map(|seen| seen.moments.as_slice()).unwrap_or_default();
        Self {
            ways: ways.iter().map(|seen| (seen.figures.way, thinned(&seen.lag))).collect(),
            moments: moments.iter().map(std::time::Duration::as_secs_f64).collect(),
        }
    }

    pub(crate) fn write(&self, weather: &Weather, folder: &Path) -> Result<()> {
        Ok(std::fs::write(folder.join(format!("{}.csv", weather.name)), self.text())?)
    }

    /// `None` when the weather was never run into this folder.
    pub(crate) fn read(weather: &Weather, folder: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(folder.join(format!("{}.csv", weather.name))).ok()?;
        Self::parse(&text)
    }

    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        for at in &self.moments {
            writeln!(text, "moment,{at:.2},").ok();
        }
        for (way, points) in &self.ways {
            for (at, lag) in points {
                writeln!(text, "{},{at:.2},{lag:.3}", way.as_str()).ok();
            }
        }
        text
    }

    fn parse(text: &str) -> Option<Self> {
        let mut kept = Self { ways: Way::ALL.map(|way| (way, Vec::new())).into(), moments: vec![] };
        for line in text.lines() {
            let (what, numbers) = line.split_once(',')?;
            let (at, lag) = numbers.split_once(',')?;
            let at = at.parse().ok()?;
            if what == "moment" {
                kept.moments.push(at);
                continue;
            }
            let (_, points) = kept.ways.iter_mut().find(|(way, _)| way.as_str() == what)?;
            points.push((at, lag.parse().ok()?));
        }
        kept.ways.retain(|(_, points)| !points.is_empty());
        Some(kept)
    }
}

/// What Sluice said, for whoever wants to see more than the table has.
pub(crate) fn write_said(weather: &Weather, seen: &Seen, folder: &Path) -> Result<()> {
    let mut text = format!("{}\n", Said::CSV_HEADER);
    for said in &seen.said {
        writeln!(text, "{}", said.csv())?;
    }
    let name = format!("{}-{}.said.csv", weather.name, seen.figures.way.as_str());
    Ok(std::fs::write(folder.join(name), text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_as_it_was() {
        let kept = Kept {
            ways: vec![
                (Way::Adaptive, vec![(0.0, 0.25), (0.5, 0.125)]),
                (Way::Direct, vec![(0.25, 4.5)]),
            ],
            moments: vec![1.5, 2.25],
        };
        assert_eq!(Kept::parse(&kept.text()), Some(kept));
        assert_eq!(Kept::parse("fog,1,2\n"), None);
    }
}

//! A small panel for each weather: the lag over time in the three ways.

use benches::lag_panel::LagPanel;
use benches::plot::{Plot, Stands};

use crate::THRESHOLD;
use crate::kept::Kept;

/// The picture of these weathers, two beside one another.
pub(crate) fn svg(weathers: &[(&'static str, Kept)]) -> String {
    let rows = u32::try_from(weathers.len().div_ceil(2)).unwrap_or(u32::MAX);
    let height = f64::from(rows) * ROW + FOOT;
    let mut plot = Plot::new(2.0 * COLUMN, height);
    for ((name, kept), number) in weathers.iter().zip(0_u32..) {
        let corner = (f64::from(number % 2) * COLUMN, f64::from(number / 2) * ROW);
        panel(&mut plot, corner, (name, kept));
    }
    let below = "true lag over seconds, each way with servers of its own; red: the threshold; \
                 blue: counting begins, restarts";
    plot.note((2.0 * COLUMN - 12.0, height - 6.0), Stands::Before, "black", below);
    plot.finish()
}

fn panel(plot: &mut Plot, (left, top): (f64, f64), (name, kept): (&str, &Kept)) {
    let points = || kept.ways.iter().flat_map(|(_, points)| points);
    let panel = LagPanel {
        across: (left + 40.0, left + COLUMN - 12.0),
        down: (top + 22.0, top + ROW - 18.0),
        time_s: points().map(|(at, _)| *at).fold(1.0, f64::max),
        lag_s: points().map(|(_, lag)| *lag).fold(2.0, f64::max),
    };
    panel.grid(plot, THRESHOLD);
    for at_s in &kept.moments {
        panel.mark(plot, *at_s);
    }
    for (way, points) in &kept.ways {
        panel.line(plot, *way, points);
    }
    panel.legend(plot, kept.ways.iter().map(|(way, _)| *way));
    plot.note((panel.across.0, top + 15.0), Stands::Behind, "black", name);
    let until = format!("{:.0} s", panel.time_s);
    plot.note((panel.across.1, panel.down.1 + 12.0), Stands::Before, "#777", until);
}

const COLUMN: f64 = 400.0;
const ROW: f64 = 190.0;
const FOOT: f64 = 20.0;

#[cfg(test)]
mod tests {
    use super::*;
    use benches::way::Way;

    #[test]
    fn every_weather_has_a_panel_with_its_name() {
        let kept = || Kept {
            ways: vec![(Way::Adaptive, vec![(0.0, 0.1), (9.0, 0.4)])],
            moments: vec![3.0],
        };
        let drawn = svg(&[("drop", kept()), ("restart", kept()), ("patient", kept())]);
        assert!(drawn.contains(">drop<") && drawn.contains(">restart<"), "{drawn}");
        assert!(
            drawn.contains(">patient<") && drawn.contains("viewBox=\"0 0 800 400\""),
            "{drawn}"
        );
        assert_eq!(drawn.matches("<polyline").count(), 3);
    }
}

//! Small SVG plots: levels, lines, dots and notes, at places that the caller has scaled.

use std::fmt::{Display, Write as _};

/// A picture that grows. Sizes and places are in the picture's own units, from its upper left corner.
#[derive(Debug)]
pub struct Plot {
    text: String,
}

/// On which side of its place a note stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stands {
    /// To the right of it.
    Behind,
    /// To the left of it.
    Before,
}

impl Plot {
    /// An empty picture.
    #[must_use]
    pub fn new(width: f64, height: f64) -> Self {
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"sans-serif\" font-size=\"11\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
        );
        Self { text }
    }

    /// A horizontal line, and before it what it stands for.
    pub fn level(&mut self, (left, right): (f64, f64), y: f64, colour: &str, name: impl Display) {
        self.put(format_args!("<path d=\"M{left} {y:.1}H{right}\" stroke=\"{colour}\"/>"));
        self.note((left - 4.0, y + 4.0), Stands::Before, "black", name);
    }

    /// A vertical line.
    pub fn mark(&mut self, x: f64, (top, bottom): (f64, f64), colour: &str) {
        self.put(format_args!("<path d=\"M{x:.1} {top}V{bottom}\" stroke=\"{colour}\"/>"));
    }

    /// A line through these points.
    pub fn line(&mut self, colour: &str, points: impl IntoIterator<Item = (f64, f64)>) {
        let points: Vec<String> =
            points.into_iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let points = points.join(" ");
        self.put(format_args!("<polyline fill=\"none\" stroke=\"{colour}\" points=\"{points}\"/>"));
    }

    /// A point.
    pub fn dot(&mut self, (x, y): (f64, f64), colour: &str) {
        self.put(format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"));
    }

    /// A few words.
    pub fn note(&mut self, (x, y): (f64, f64), stands: Stands, colour: &str, words: impl Display) {
        let anchor = match stands {
            Stands::Behind => "start",
            Stands::Before => "end",
        };
        self.put(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{colour}\" text-anchor=\"{anchor}\">{words}</text>"
        ));
    }

    /// The picture.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.put(format_args!("</svg>"));
        self.text
    }

    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        writeln!(self.text, "{element}").ok();
    }
}

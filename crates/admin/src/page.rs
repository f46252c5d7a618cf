//! The page for people: the [status](crate::status) as HTML.

use std::fmt::{self, Write as _};

use policy::refusal::is_unprintable;

use crate::AdminState;
use crate::status::words::{self, Line, Table, Tone};
use crate::status::{Status, gather};

/// Waiting statements shown for each cluster.
const WAITING_LEN: usize = 50;

/// The whole page.
pub(crate) fn render(state: &AdminState) -> String {
    let mut html = String::from(HEAD);
    // Writing to a String cannot fail.
    write_page(&mut html, &gather(state, WAITING_LEN)).ok();
    html
}

fn write_page(html: &mut String, status: &Status) -> fmt::Result {
    write_lines(html, &words::head(status))?;
    for cluster in &status.clusters {
        write!(html, "<h2>{}</h2>", Escaped(&cluster.cluster))?;
        write_lines(html, &words::cluster_head(cluster))?;
        for table in words::tables(cluster) {
            write_table(html, &table)?;
        }
    }
    html.push_str(FOOT);
    Ok(())
}

fn write_lines(html: &mut String, lines: &[Line]) -> fmt::Result {
    for Line { tone, text } in lines {
        write!(html, "<p{}>{}</p>", class(*tone), Escaped(text))?;
    }
    Ok(())
}

fn write_table(html: &mut String, table: &Table) -> fmt::Result {
    let Table { caption, columns, rows, total } = table;
    write!(html, "<table><caption>{caption}</caption><tr>")?;
    for column in *columns {
        write!(html, "<th>{column}")?;
    }
    for row in rows {
        write!(html, "<tr{}>", class(row.tone))?;
        for cell in &row.cells {
            write!(html, "<td>{}", Escaped(cell))?;
        }
    }
    html.push_str("</table>");
    let shown = u64::try_from(rows.len()).unwrap_or(u64::MAX);
    let further = total.saturating_sub(shown);
    if further > 0 {
        write!(html, "<p>… and {further} more.</p>")?;
    }
    Ok(())
}

const fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Good => " class=good",
        Tone::Bad => " class=bad",
    }
}

/// Text that is only text in HTML, also inside a quoted attribute.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c if is_unprintable(c) => f.write_char(char::REPLACEMENT_CHARACTER)?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

const HEAD: &str = "<!doctype html><html lang=en><head><meta charset=utf-8>\
<meta http-equiv=refresh content=2><title>Sluice</title><style>\
body{font:15px/1.4 system-ui,sans-serif;margin:2em;max-width:75em;color:#222}\
table{border-collapse:collapse;margin:1em 0}caption{text-align:left;font-weight:600;padding:.2em 0}\
th,td{text-align:left;padding:.15em 1.2em .15em 0;border-bottom:1px solid #ddd;vertical-align:top}\
th{font-weight:400;color:#666}.good{color:#17682b}.bad{color:#a61b1b;font-weight:600}\
@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}th{color:#999}\
th,td{border-color:#333}.good{color:#6bc381}.bad{color:#ff8f8f}a{color:#8ab4ff}}\
</style></head><body><h1>Sluice</h1>";

const FOOT: &str = "<p>The same in a terminal: <code>sluice status</code>; as JSON: \
    <a href=\"/api/v1/status\">status</a>, <a href=\"/api/v1/waiting\">waiting</a>. \
    <a href=\"/metrics\">metrics</a> · <a href=\"/readyz\">readyz</a></p></body></html>\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_clients_are_only_text() {
        let hostile = "<script>&\"'\u{7}";
        assert_eq!(Escaped(hostile).to_string(), "&lt;script&gt;&amp;&quot;&#39;\u{fffd}");
    }
}

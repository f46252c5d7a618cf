//! A view, drawn. Pure: the same state and size are the same cells.

mod plots;

use admin::status::words::{self, Row as Words, Tone, tables};
use admin::status::{ClusterStatus, RuleStatus};
use clap::ValueEnum as _;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style as Look};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph, Row, Table, TableState, Wrap};

use super::course::Watched;
use super::limits::{self, REASON};
use super::plain::title;
use super::table::{Order, table};
use super::view::{Mode, Panel, View};
use crate::cli::Column;
use crate::commands::status::text::{Style, shown};

/// From this height on all tables are shown at once.
const TALL: u16 = 40;

/// From this width on the totals of the identities are.
const WIDE: u16 = 110;

/// Where they stand in the table.
const TOTALS: std::ops::Range<usize> = 7..10;

/// Characters of a cell: no terminal has more for one.
const CELL_LEN_MAX: usize = 200;

const KEYS: &str =
    " q end  ? keys  Tab table  ←→ column  r order  c cluster  h hold  t throttle  u lift";

/// Draws it all.
pub(super) fn draw(frame: &mut Frame<'_>, watched: &Watched, view: &View, style: Style) {
    let paint = Paint(style);
    let plots_height = if frame.area().height >= TALL { 12 } else { 8 };
    let rows = [
        Constraint::Length(2),
        Constraint::Length(plots_height),
        Constraint::Min(3),
        Constraint::Length(1),
    ];
    let [head, plots, rest, foot] = Layout::vertical(rows).areas(frame.area());
    frame.render_widget(Paragraph::new(head_lines(watched, view, paint)), head);
    if let Some(cluster) = view.cluster(watched) {
        plots::draw(frame, plots, (watched, cluster), paint);
        draw_tables(frame, rest, (watched, view, cluster), paint);
    }
    let message = view.message.as_ref().map(|message| format!(" {}", shown(message)));
    let foot_line =
        message.map_or_else(|| Line::from(KEYS), |text| Line::styled(text, paint.bold()));
    frame.render_widget(foot_line, foot);
    match &view.mode {
        Mode::Watching => {}
        Mode::Asking(change) => {
            let mut lines: Vec<String> = change.words().iter().map(|line| shown(line)).collect();
            lines.push(String::new());
            lines.push("y does it, n or Esc leaves everything as it is.".to_owned());
            draw_box(frame, " Shall this be done? ", &lines);
        }
        Mode::Help => draw_box(frame, " Keys ", &HELP.map(str::to_owned)),
    }
}

const HELP: [&str; 12] = [
    "1 2 3, Tab    identities, servers, rules",
    "4 5 6 7       who was refused, budgets, guards, what is in quarantine",
    "↑ ↓ k j       choose a row; PgUp, PgDn, Home and End go further",
    "← →           sort the identities by another column",
    "r             the other way round",
    "c             the next cluster",
    "h             hold the chosen identity for an hour",
    "t             throttle it for an hour: 9 of 10 of its checks are refused",
    "u             lift the chosen rule, or that of the chosen identity",
    "q, Ctrl-C     end",
    "",
    "h, t and u ask first, and need the token that sluice hold needs.",
];

/// Whether there is colour.
#[derive(Clone, Copy)]
pub(super) struct Paint(Style);

impl Paint {
    pub(super) fn coloured(self, color: Color) -> Look {
        match self.0 {
            Style::Coloured => Look::new().fg(color),
            Style::Plain => Look::new(),
        }
    }

    fn bold(self) -> Look {
        Look::new().add_modifier(Modifier::BOLD)
    }

    fn tone(self, tone: Tone) -> Look {
        match tone {
            Tone::Plain => Look::new(),
            Tone::Good => self.coloured(Color::Green),
            Tone::Bad => self.coloured(Color::Red).add_modifier(Modifier::BOLD),
        }
    }
}

fn head_lines(watched: &Watched, view: &View, paint: Paint) -> Vec<Line<'static>> {
    let status = &watched.status;
    let trouble = status.not_ready.iter().chain(&status.notes).next();
    let first = match (&watched.lost, trouble) {
        (Some(why), _) => {
            let text = format!(" NO ANSWER since {}: {}", shown(&status.now), shown(why));
            Line::styled(text, paint.tone(Tone::Bad))
        }
        (None, Some(trouble)) => Line::styled(
            format!(
                " Sluice {}, {}: {}",
                shown(&status.version),
                shown(&status.now),
                shown(trouble)
            ),
            paint.tone(Tone::Bad),
        ),
        (None, None) => {
            let about = format!(" Sluice {}, {}", shown(&status.version), shown(&status.now));
            Line::styled(about, paint.bold())
        }
    };
    let of = status.clusters.len();
    let more = if of > 1 { format!(" (one of {of}: c)") } else { String::new() };
    let second = view.cluster(watched).map(|cluster| {
        let refused = cluster.refused_total;
        let (tone, refused) = match refused {
            0 => (Tone::Plain, String::new()),
            one_or_more => (Tone::Bad, format!(" {one_or_more} refused lately: 4;")),
        };
        Line::styled(format!("{refused} {}{more}", title(cluster)), paint.tone(tone))
    });
    vec![first, second.unwrap_or_default()]
}

fn draw_tables(
    frame: &mut Frame<'_>,
    area: Rect,
    (watched, view, cluster): (&Watched, &View, &ClusterStatus),
    paint: Paint,
) {
    let draw = |frame: &mut Frame<'_>, area: Rect, panel: Panel| match panel {
        Panel::Identities => draw_identities(frame, area, (watched, view, cluster), paint),
        Panel::Servers => draw_servers(frame, area, (view, cluster), paint),
        Panel::Rules => draw_rules(frame, area, (watched, view, cluster), paint),
        Panel::Refused | Panel::Budgets | Panel::Guards | Panel::Quarantine => {
            draw_limits(frame, area, (view, cluster, panel), paint);
        }
    };
    if frame.area().height < TALL {
        draw(frame, area, view.panel);
        return;
    }
    let with_frame = |rows: usize| u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(3).min(8);
    // Who was refused is nowhere to be overlooked; a table that somebody goes to stands in place of
    // the rules.
    let refused = if cluster.refused.is_empty() { 0 } else { with_frame(cluster.refused.len()) };
    let servers = with_frame(cluster.replicas.len().saturating_add(1));
    let rows = [
        Constraint::Fill(3),
        Constraint::Length(refused),
        Constraint::Length(servers),
        Constraint::Fill(2),
    ];
    let [identities, lately, servers, last] = Layout::vertical(rows).areas(area);
    draw(frame, identities, Panel::Identities);
    if refused > 0 {
        draw(frame, lately, Panel::Refused);
    }
    draw(frame, servers, Panel::Servers);
    let panel = match view.panel {
        panel @ (Panel::Budgets | Panel::Guards | Panel::Quarantine) => panel,
        Panel::Refused if refused == 0 => Panel::Refused,
        Panel::Identities | Panel::Servers | Panel::Rules | Panel::Refused => Panel::Rules,
    };
    draw(frame, last, panel);
}

/// One of the tables of what refuses statements beside gates.
fn draw_limits(
    frame: &mut Frame<'_>,
    area: Rect,
    (view, cluster, panel): (&View, &ClusterStatus, Panel),
    paint: Paint,
) {
    let Some(words) = limits::table(panel, cluster) else { return };
    let is_shown =
        |place: &usize| panel != Panel::Refused || area.width >= WIDE || *place != REASON;
    let places: Vec<usize> = (0..words.columns.len()).filter(is_shown).collect();
    let head: Vec<String> = places
        .iter()
        .filter_map(|place| words.columns.get(*place))
        .map(|name| (*name).to_owned())
        .collect();
    let rows: Vec<Words> = words.rows.iter().map(|row| picked(row, &places)).collect();
    let key = match panel {
        Panel::Identities | Panel::Servers | Panel::Rules => return,
        Panel::Refused => 4,
        Panel::Budgets => 5,
        Panel::Guards => 6,
        Panel::Quarantine => 7,
    };
    let caption = format!(" {key} {}: {} ", words.caption, words.total);
    let chosen = (view.panel == panel).then(|| view.place(rows.len()));
    draw_table(frame, area, (&caption, &head, &rows), (chosen, &[Some(2)]), paint);
}

fn draw_identities(
    frame: &mut Frame<'_>,
    area: Rect,
    (watched, view, cluster): (&Watched, &View, &ClusterStatus),
    paint: Paint,
) {
    let (all, at) = view.identities(watched);
    let words = table(&all, cluster.apps_total);
    let columns = Column::value_variants();
    let sorted_by = columns.iter().position(|column| *column == view.sorting.column);
    let mark = match view.sorting.order {
        Order::Natural => '▼',
        Order::Reversed => '▲',
    };
    let is_shown = |place: &usize| area.width >= WIDE || !TOTALS.contains(place);
    let places: Vec<usize> = (0..words.columns.len()).filter(is_shown).collect();
    let head: Vec<String> = places
        .iter()
        .filter_map(|place| {
            let name = words.columns.get(*place)?;
            let is_sorted = sorted_by == Some(*place);
            Some(if is_sorted { format!("{name}{mark}") } else { (*name).to_owned() })
        })
        .collect();
    let rows: Vec<Words> = words.rows.iter().map(|row| picked(row, &places)).collect();
    let caption = format!(" 1 Identities: {} ", words.total);
    let chosen = (view.panel == Panel::Identities).then_some(at);
    let fill = [Some(3), Some(2)];
    draw_table(frame, area, (&caption, &head, &rows), (chosen, &fill), paint);
}

fn picked(row: &Words, places: &[usize]) -> Words {
    let cells = places.iter().filter_map(|place| row.cells.get(*place).cloned()).collect();
    Words { tone: row.tone, cells }
}

fn draw_servers(
    frame: &mut Frame<'_>,
    area: Rect,
    (view, cluster): (&View, &ClusterStatus),
    paint: Paint,
) {
    let Some(words) = tables(cluster).into_iter().find(|table| table.caption == "Servers") else {
        return;
    };
    let head: Vec<String> = words.columns.iter().map(|column| (*column).to_owned()).collect();
    let chosen = (view.panel == Panel::Servers).then_some(usize::MAX);
    draw_table(frame, area, (" 2 Servers ", &head, &words.rows), (chosen, &[]), paint);
}

fn draw_rules(
    frame: &mut Frame<'_>,
    area: Rect,
    (watched, view, cluster): (&Watched, &View, &ClusterStatus),
    paint: Paint,
) {
    let (rules, at) = view.rules(watched);
    let head = ["rule", "does", "mode", "statements", "left", "who and why"].map(str::to_owned);
    let rows: Vec<Words> = rules.iter().map(rule_row).collect();
    let caption = format!(" 3 Rules, the first that matches decides: {} ", cluster.rules_total);
    let chosen = (view.panel == Panel::Rules).then_some(at);
    let fill = [Some(2), Some(3)];
    draw_table(frame, area, (&caption, &head, &rows), (chosen, &fill), paint);
}

fn rule_row(rule: &RuleStatus) -> Words {
    let RuleStatus { rule: name, does, mode, standing, expires_in_s, hits, author, reason, .. } =
        rule;
    let left = match (&**standing, expires_in_s) {
        ("in_force", Some(left)) => countdown(*left),
        ("in_force", None) => "–".to_owned(),
        (other, _) => other.replace('_', " "),
    };
    let who = match author {
        Some(author) if reason.is_empty() => author.clone(),
        Some(author) => format!("{author}: {reason}"),
        None => reason.clone(),
    };
    let cells = vec![name.clone(), does.clone(), mode.clone(), hits.to_string(), left, who];
    let is_made = author.is_some() && standing == "in_force";
    Words { tone: if is_made { Tone::Bad } else { Tone::Plain }, cells }
}

/// `59:01`, `23:59:01`, and days from two of them on.
fn countdown(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    match hours {
        0 => format!("{minutes}:{:02}", seconds % 60),
        1..48 => format!("{hours}:{minutes:02}:{:02}", seconds % 60),
        _ => format!("{} d", hours / 24),
    }
}

/// Names in cells come from clients. `fill`: the share of what is left that a column gets, from the
/// first on; others are as wide as what is in them, and the last one has five parts. A row is chosen
/// where the table is the one to move in; one that is not there marks the table alone.
fn draw_table(
    frame: &mut Frame<'_>,
    area: Rect,
    (caption, head, rows): (&str, &[String], &[Words]),
    (chosen, fill): (Option<usize>, &[Option<u16>]),
    paint: Paint,
) {
    let cells: Vec<(Tone, Vec<String>)> = rows
        .iter()
        .map(|row| {
            let cut = |cell: &String| cell.chars().take(CELL_LEN_MAX).collect::<String>();
            (row.tone, row.cells.iter().map(|cell| shown(&cut(cell))).collect())
        })
        .collect();
    let last = head.len().saturating_sub(1);
    let widths = head.iter().enumerate().map(|(place, name)| {
        if place == last {
            return Constraint::Fill(5);
        }
        if let Some(Some(part)) = fill.get(place) {
            return Constraint::Fill(*part);
        }
        let longest = cells.iter().filter_map(|(_, row)| row.get(place));
        let longest = longest.map(|cell| cell.chars().count()).chain([name.chars().count()]).max();
        Constraint::Length(u16::try_from(longest.unwrap_or(0)).unwrap_or(u16::MAX).min(24))
    });
    let widths: Vec<Constraint> = widths.collect();
    let rows = cells.into_iter().map(|(tone, row)| Row::new(row).style(paint.tone(tone)));
    let border = if chosen.is_some() { paint.bold() } else { Look::new() };
    let table = Table::new(rows, widths)
        .header(Row::new(head.to_vec()).style(paint.bold()))
        .block(Block::bordered().title(caption.to_owned()).border_style(border))
        .row_highlight_style(Look::new().add_modifier(Modifier::REVERSED));
    let chosen = chosen.filter(|chosen| *chosen != usize::MAX);
    let mut state = TableState::new().with_selected(chosen);
    frame.render_stateful_widget(table, area, &mut state);
}

/// A box over everything else, in the middle.
fn draw_box(frame: &mut Frame<'_>, caption: &str, lines: &[String]) {
    let area = frame.area();
    let width = area.width.min(76);
    let inner = usize::from(width.saturating_sub(4).max(1));
    let folded = lines.iter().map(|line| line.chars().count().div_ceil(inner).max(1));
    // Words do not break as evenly as this.
    let height = u16::try_from(folded.sum::<usize>()).unwrap_or(u16::MAX).saturating_add(4);
    let height = height.min(area.height);
    let place = Rect {
        x: area.x.saturating_add(area.width.saturating_sub(width) / 2),
        y: area.y.saturating_add(area.height.saturating_sub(height) / 2),
        width,
        height,
    };
    let text: Vec<Line<'_>> = lines.iter().map(|line| Line::from(line.as_str())).collect();
    let block = Block::bordered().title(caption.to_owned());
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: false }).block(block), place);
}

/// As the page and `sluice status` say it.
fn amount(value: Option<f64>, unit: &str) -> String {
    value.map_or_else(|| "no value".to_owned(), |value| words::amount(value, unit))
}

#[cfg(test)]
mod tests;

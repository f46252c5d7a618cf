//! What the screen shows of what is watched, and what keys do to that. Pure: time and Sluice are
//! outside.

use admin::status::{ClusterStatus, RuleStatus};
use clap::ValueEnum as _;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::change::Change;
use super::course::{Identity, Watched};
use super::limits;
use super::table::{Order, Sorting, sorted};
use crate::cli::Column;

/// The state of the screen.
#[derive(Debug)]
pub(super) struct View {
    /// The cluster that is shown; None: the first.
    pub(super) cluster: Option<String>,
    pub(super) panel: Panel,
    pub(super) sorting: Sorting,
    pub(super) mode: Mode,
    /// App and rule of the chosen identity. It stays chosen wherever it is sorted to.
    identity: Option<(String, String)>,
    /// The name of the chosen rule.
    rule: Option<String>,
    /// The row that was gone to in a table of which none is chosen.
    place: usize,
    /// What came of the last change, or why there is none.
    pub(super) message: Option<String>,
    /// A change is under way.
    busy: bool,
}

/// A table to move in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Panel {
    Identities,
    Servers,
    Rules,
    /// Who was refused of late.
    Refused,
    Budgets,
    Guards,
    Quarantine,
}

/// What keys are for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mode {
    Watching,
    /// Shall this be done?
    Asking(Change),
    Help,
}

/// What is to be done besides drawing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    Nothing,
    Make(Change),
    Quit,
}

/// Rows that PgUp and PgDn go.
const PAGE: isize = 10;

impl View {
    pub(super) fn new(cluster: Option<String>, sorting: Sorting) -> Self {
        Self {
            cluster,
            panel: Panel::Identities,
            sorting,
            mode: Mode::Watching,
            identity: None,
            rule: None,
            place: 0,
            message: None,
            busy: false,
        }
    }

    /// The cluster that is shown.
    pub(super) fn cluster<'w>(&self, watched: &'w Watched) -> Option<&'w ClusterStatus> {
        let clusters = &watched.status.clusters;
        let chosen = |cluster: &&ClusterStatus| self.cluster.as_ref() == Some(&cluster.cluster);
        clusters.iter().find(chosen).or(clusters.first())
    }

    /// Its identities in their order, and where the chosen one is.
    pub(super) fn identities<'w>(&self, watched: &'w Watched) -> (Vec<&'w Identity>, usize) {
        let course = self.cluster(watched).and_then(|cluster| watched.course(&cluster.cluster));
        let all = course.map_or_else(Vec::new, |course| sorted(&course.identities, self.sorting));
        let chosen = self.identity.as_ref().and_then(|(app, rule)| {
            all.iter().position(|identity| identity.app == *app && identity.rule == *rule)
        });
        (all, chosen.unwrap_or(0))
    }

    /// Its rules, and where the chosen one is.
    pub(super) fn rules<'w>(&self, watched: &'w Watched) -> (&'w [RuleStatus], usize) {
        let rules = self.cluster(watched).map_or(&[][..], |cluster| &cluster.rules);
        let chosen = rules.iter().position(|rule| self.rule.as_ref() == Some(&rule.rule));
        (rules, chosen.unwrap_or(0))
    }

    /// A key was pressed.
    pub(super) fn press(&mut self, key: KeyEvent, watched: &Watched) -> Effect {
        let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if with_control {
            return if key.code == KeyCode::Char('c') { Effect::Quit } else { Effect::Nothing };
        }
        match std::mem::replace(&mut self.mode, Mode::Watching) {
            Mode::Watching => self.watch(key.code, watched),
            Mode::Asking(change) => self.answer(key.code, change),
            // Any key closes it.
            Mode::Help => Effect::Nothing,
        }
    }

    /// Somebody was asked. Only `y` is yes.
    fn answer(&mut self, key: KeyCode, mut change: Change) -> Effect {
        match key {
            KeyCode::Char('y' | 'Y') => {
                self.busy = true;
                self.message = Some("asking Sluice …".to_owned());
                return Effect::Make(change);
            }
            KeyCode::Tab => change.next_target(),
            KeyCode::Char(digit @ '0'..='9') => {
                let digit = digit.to_digit(10).and_then(|digit| u8::try_from(digit).ok());
                change.choose_tenths(digit.unwrap_or(0));
            }
            KeyCode::Char('n' | 'N' | 'q') | KeyCode::Esc => {
                self.message = Some("nothing was changed".to_owned());
                return Effect::Nothing;
            }
            _ => {}
        }
        self.mode = Mode::Asking(change);
        Effect::Nothing
    }

    fn watch(&mut self, key: KeyCode, watched: &Watched) -> Effect {
        match key {
            KeyCode::Char('q') => return Effect::Quit,
            KeyCode::Char('?') => self.mode = Mode::Help,
            KeyCode::Tab => self.show(self.panel.next()),
            KeyCode::Char('1') => self.show(Panel::Identities),
            KeyCode::Char('2') => self.show(Panel::Servers),
            KeyCode::Char('3') => self.show(Panel::Rules),
            KeyCode::Char('4') => self.show(Panel::Refused),
            KeyCode::Char('5') => self.show(Panel::Budgets),
            KeyCode::Char('6') => self.show(Panel::Guards),
            KeyCode::Char('7') => self.show(Panel::Quarantine),
            KeyCode::Char('c') => self.next_cluster(watched),
            KeyCode::Left => self.sort_by(|at, len| at.checked_sub(1).unwrap_or(len - 1)),
            KeyCode::Right => self.sort_by(|at, len| (at + 1) % len),
            KeyCode::Char('r') => {
                self.sorting.order = match self.sorting.order {
                    Order::Natural => Order::Reversed,
                    Order::Reversed => Order::Natural,
                }
            }
            KeyCode::Up | KeyCode::Char('k') => self.go(-1, watched),
            KeyCode::Down | KeyCode::Char('j') => self.go(1, watched),
            KeyCode::PageUp => self.go(-PAGE, watched),
            KeyCode::PageDown => self.go(PAGE, watched),
            KeyCode::Home => self.go(isize::MIN, watched),
            KeyCode::End => self.go(isize::MAX, watched),
            KeyCode::Char('h') => self.propose(watched, Change::hold),
            KeyCode::Char('t') => self.propose(watched, Change::throttle),
            KeyCode::Char('u') => self.propose_lift(watched),
            _ => {}
        }
        Effect::Nothing
    }

    fn show(&mut self, panel: Panel) {
        if self.panel != panel {
            self.place = 0;
        }
        self.panel = panel;
    }

    /// Where one is in a table of so many rows of which none is chosen.
    pub(super) fn place(&self, len: usize) -> usize {
        self.place.min(len.saturating_sub(1))
    }

    fn next_cluster(&mut self, watched: &Watched) {
        let clusters = &watched.status.clusters;
        let shown = self.cluster(watched).map(|cluster| &cluster.cluster);
        let at = clusters.iter().position(|cluster| Some(&cluster.cluster) == shown).unwrap_or(0);
        let next = clusters.iter().cycle().nth(at.saturating_add(1));
        self.cluster = next.map(|cluster| cluster.cluster.clone());
    }

    fn sort_by(&mut self, other: impl Fn(usize, usize) -> usize) {
        let columns = Column::value_variants();
        let at = columns.iter().position(|column| *column == self.sorting.column).unwrap_or(0);
        if let Some(column) = columns.get(other(at, columns.len())) {
            self.sorting.column = *column;
        }
    }

    /// So many rows down, and no further than the last.
    fn go(&mut self, rows: isize, watched: &Watched) {
        let moved =
            |at: usize, len: usize| at.saturating_add_signed(rows).min(len.saturating_sub(1));
        match self.panel {
            Panel::Identities => {
                let (all, at) = self.identities(watched);
                let chosen = all.get(moved(at, all.len()));
                self.identity = chosen.map(|one| (one.app.clone(), one.rule.clone()));
            }
            Panel::Rules => {
                let (rules, at) = self.rules(watched);
                self.rule = rules.get(moved(at, rules.len())).map(|rule| rule.rule.clone());
            }
            Panel::Servers => {}
            Panel::Refused | Panel::Budgets | Panel::Guards | Panel::Quarantine => {
                let len =
                    self.cluster(watched).map_or(0, |cluster| limits::rows(self.panel, cluster));
                self.place = moved(self.place(len), len);
            }
        }
    }

    /// Asks whether that shall be done to the chosen identity.
    fn propose(
        &mut self,
        watched: &Watched,
        change: fn(&str, &Identity) -> Result<Change, String>,
    ) {
        if self.panel != Panel::Identities {
            self.message = Some("choose an identity first: key 1, and the arrows".to_owned());
            return;
        }
        let (all, at) = self.identities(watched);
        let Some((cluster, identity)) = self.cluster(watched).zip(all.get(at)) else {
            self.message = Some("there is nobody yet".to_owned());
            return;
        };
        // It is asked about by its name from here on.
        self.identity = Some((identity.app.clone(), identity.rule.clone()));
        let change = change(&cluster.cluster, identity);
        self.ask(change);
    }

    /// Asks whether the chosen rule, or that of the chosen identity, shall be lifted.
    fn propose_lift(&mut self, watched: &Watched) {
        let Some(cluster) = self.cluster(watched) else { return };
        let rule = match self.panel {
            Panel::Rules => {
                let (rules, at) = self.rules(watched);
                rules.get(at).map(|rule| rule.rule.clone())
            }
            Panel::Identities => {
                let (all, at) = self.identities(watched);
                all.get(at).map(|identity| identity.rule.clone())
            }
            Panel::Servers
            | Panel::Refused
            | Panel::Budgets
            | Panel::Guards
            | Panel::Quarantine => None,
        };
        let stands = |name: &String| cluster.rules.iter().any(|rule| rule.rule == *name);
        let change = match rule {
            Some(rule) if stands(&rule) => Change::lift(&cluster.cluster, &rule),
            Some(rule) => Err(format!("{rule} does not stand any more")),
            None => Err("choose a rule first: key 3, and the arrows".to_owned()),
        };
        self.ask(change);
    }

    fn ask(&mut self, change: Result<Change, String>) {
        match change {
            _ if self.busy => self.message = Some("the last change is under way yet".to_owned()),
            Ok(change) => {
                self.message = None;
                self.mode = Mode::Asking(change);
            }
            Err(why) => self.message = Some(why),
        }
    }

    /// What came of a change.
    pub(super) fn done(&mut self, told: String) {
        self.busy = false;
        self.message = Some(told);
    }
}

impl Panel {
    const fn next(self) -> Self {
        match self {
            Self::Identities => Self::Servers,
            Self::Servers => Self::Rules,
            Self::Rules => Self::Refused,
            Self::Refused => Self::Budgets,
            Self::Budgets => Self::Guards,
            Self::Guards => Self::Quarantine,
            Self::Quarantine => Self::Identities,
        }
    }
}

#[cfg(test)]
pub(super) mod tests;

//! What the primary says of itself for its sessions: which functions write nothing, and with which
//! settings a session begins.
//!
//! The server adds up its routines each second, bodies and all, and only when the sum is another
//! they are read. So a function that was dropped and made anew within a second does not go
//! unseen, whatever its times say. While they are read no list is shown, and one that is not the
//! same from its begin to its end is not shown either.

mod list;

use std::time::Duration;

use mysql_async::Row;
use session::ServerFacts;
use sql::{Charset, Routines, Server, Setting};

use self::list::Sum;
use super::ProbeTarget;
use crate::board::ProbeError;
use crate::facts::Reading;
use crate::link::Link;

/// How often it is looked whether something has changed.
const INTERVAL: Duration = Duration::from_secs(1);

/// The longest a question may take: a server may have some thousand routines.
const TIME_LIMIT: Duration = Duration::from_secs(2);

const SETTINGS: &str = "SELECT @@GLOBAL.sql_mode, @@GLOBAL.character_set_client, \
    @@GLOBAL.init_connect, VERSION()";

/// Runs until it is dropped.
pub(super) async fn watch(target: ProbeTarget) {
    let board = &target.site.cluster.facts;
    let mut rhythm = target.site.rhythm(INTERVAL, INTERVAL);
    let mut watcher = Watcher { link: target.link(TIME_LIMIT), known: None, told: false };
    loop {
        rhythm.beat().await;
        let settings = watcher.settings().await;
        target.note_contact(&settings);
        let facts = match settings {
            Ok((server, facts)) => watcher.with_routines(&target, server, facts).await,
            // Whatever it says next, it may be another by then.
            Err(_) => Some((None, ServerFacts::default())),
        };
        if let Some((reading, facts)) = facts {
            board.publish(&target.server, reading, facts);
        }
        target.site.cluster.probes.note_settings_asked();
    }
}

struct Watcher {
    link: Link,
    /// What was shown last.
    known: Option<Shown>,
    /// It has been said that there is no list.
    told: bool,
}

struct Shown {
    sum: Sum,
    reading: Reading,
    settings: ServerFacts,
}

impl Watcher {
    async fn settings(&mut self) -> Result<(Server, ServerFacts), ProbeError> {
        let unusable = || ProbeError::Unusable("no settings".into());
        let row = self.link.first(SETTINGS).await?.ok_or_else(unusable)?;
        settings(&row).ok_or_else(unusable)
    }

    /// The facts with the routines, and the reading by which those hold; nothing if all is as it
    /// was shown.
    async fn with_routines(
        &mut self,
        target: &ProbeTarget,
        server: Server,
        settings: ServerFacts,
    ) -> Option<(Option<Reading>, ServerFacts)> {
        let board = &target.site.cluster.facts;
        let reading = board.begin_reading();
        let sum = match (reading, list::sum(&mut self.link, server).await) {
            (Some(reading), Ok(sum)) => (reading, sum),
            (None, Ok(_)) => return Some((None, settings)),
            (_, Err(error)) => {
                self.note(target, &error);
                self.known = None;
                return Some((None, settings));
            }
        };
        let (reading, sum) = sum;
        let unchanged = |shown: &Shown| {
            shown.sum == sum && shown.reading == reading && shown.settings == settings
        };
        if self.known.as_ref().is_some_and(unchanged) {
            return None;
        }
        board.publish(&target.server, None, settings.clone());
        let routines = self.routines(server, &sum).await;
        match routines {
            Ok(routines) => {
                self.known = Some(Shown { sum, reading, settings: settings.clone() });
                Some((Some(reading), ServerFacts { routines, ..settings }))
            }
            // They change while they are read: once more, at the next look.
            Err(_) => {
                self.known = None;
                None
            }
        }
    }

    /// Reads all routines; they must be the same from begin to end.
    async fn routines(&mut self, server: Server, sum: &Sum) -> Result<Routines, ProbeError> {
        let routines = list::read(&mut self.link, server, sum).await?;
        if list::sum(&mut self.link, server).await? == *sum {
            Ok(routines)
        } else {
            Err(ProbeError::Unusable("routines change while they are read".into()))
        }
    }

    /// Says once what is missing. Whether the server answers at all other probes say.
    fn note(&mut self, target: &ProbeTarget, error: &ProbeError) {
        let missing = matches!(error, ProbeError::Refused { .. } | ProbeError::Unusable(_));
        if missing && !std::mem::replace(&mut self.told, true) {
            tracing::info!(
                cluster = %target.site.cluster.name, server = %target.server, %error,
                "every text that calls a stored function is of class call: the server's list of \
                 routines cannot be read (MySQL: SHOW_ROUTINE, and SELECT on performance_schema, \
                 which must be on; MariaDB: SELECT on mysql.proc and mysql.func)"
            );
        }
    }
}

/// What a row of [`SETTINGS`] says.
fn settings(row: &Row) -> Option<(Server, ServerFacts)> {
    let (sql_mode, charset, init_connect, version): (String, String, String, String) =
        mysql_async::from_row_opt(row.clone()).ok()?;
    // What runs at the begin of most sessions may set anything.
    let ansi_quotes = if init_connect.trim().is_empty() {
        sql_mode.split(',').any(|mode| mode.eq_ignore_ascii_case("ANSI_QUOTES")).into()
    } else {
        Setting::Unknown
    };
    let facts = ServerFacts {
        routines: Routines::default(),
        ansi_quotes,
        charset_client: Charset::from_name(charset.as_bytes()),
    };
    Some((server_of(&version)?, facts))
}

/// Which server says `version` of itself.
pub(super) fn server_of(version: &str) -> Option<Server> {
    let number = version.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
    let mut parts = number.split('.').map(str::parse::<u32>);
    let mut part = || parts.next()?.ok();
    let (major, minor, patch) = (part()?, part()?, part().unwrap_or(0));
    let version_number = major
        .saturating_mul(10_000)
        .saturating_add(minor.saturating_mul(100))
        .saturating_add(patch);
    Some(if version.to_ascii_lowercase().contains("mariadb") {
        Server::MariaDb { version: version_number }
    } else {
        Server::MySql { version: version_number }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_by_its_version() {
        assert_eq!(server_of("9.7.4-2"), Some(Server::MySql { version: 90_704 }));
        let mariadb = Some(Server::MariaDb { version: 101_119 });
        assert_eq!(server_of("10.11.19-MariaDB-0+deb12u1"), mariadb);
        assert_eq!(server_of("of old"), None);
    }
}

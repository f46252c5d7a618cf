//! From an accepted client to the end of its connection.
//!
//! What only the login or the end needs is boxed, and given back when it is over: the task of an idle
//! connection is the connection, and what it reads with.

use tokio::time::Instant;

use super::arrival::{LoginDeadlines, join};
use super::{Arrival, Connection, Ended};
use crate::registry::{Inbox, Registration};
use crate::telemetry::ConnectionGauge;

/// Serves one accepted client until it is over, or is to go on on that thread ([`resume`]). When it has logged in
/// `logs_in` is dropped.
///
/// # Cancellation
/// Dropping it closes both sockets and leaves the queue; the server rolls back what was open.
pub(crate) async fn serve<L>(arrival: Box<Arrival>, logs_in: L) -> Option<(Box<Begun>, usize)> {
    let begun = Box::pin(begin(arrival)).await;
    drop(logs_in);
    resume(begun?).await
}

/// Serves a client that has logged in.
///
/// # Cancellation
/// As [`serve`].
pub(crate) async fn resume(mut begun: Box<Begun>) -> Option<(Box<Begun>, usize)> {
    begun.run().await.map(|to| (begun, to))
}

/// Finds out who comes, and relays the login. `None`: it was turned away.
///
/// What it gives is boxed too: a future has room for it twice when it comes out of an `Option`.
async fn begin(arrival: Box<Arrival>) -> Option<Box<Begun>> {
    let Arrival { shared, affinity, client, peer, mut registration, control } = *arrival;
    let gauge = shared.telemetry.client_connected(&shared.cluster.name);
    let policy = shared.cluster.policy();
    let joined = join(&shared, &policy, client, peer, &mut registration).await?;
    let (connection, deadlines) = Connection::new(shared, affinity, policy, joined);
    let counted = (registration, gauge);
    Some(Box::new(Begun::log_in(connection, deadlines, counted, control).await))
}

/// A connection whose login is over.
pub(crate) struct Begun {
    pub(super) connection: Connection,
    control: Inbox,
    /// The login has failed.
    ended: Option<Ended>,
    /// Given up behind the connection, when the last bytes are out: a drain waits for this.
    _counted: Counted,
}

/// Where it is entered as long as it lasts.
pub(super) type Counted = (Registration, ConnectionGauge);

impl Begun {
    /// Relays the login.
    pub(super) async fn log_in(
        mut connection: Connection,
        deadlines: LoginDeadlines,
        mut counted: Counted,
        mut control: Inbox,
    ) -> Self {
        let logged_in = connection.login(deadlines, &mut control).await;
        connection.note_contact(&logged_in);
        match logged_in {
            Ok(()) => {
                counted.0.log_in(connection.session.connection_id());
                let now = Instant::now();
                connection.birth.answered = now;
                connection.leaving.note_login(now);
            }
            Err(_) => connection.note_unexpected_header(),
        }
        Self { connection, control, ended: logged_in.err(), _counted: counted }
    }

    /// Relays what follows, to the end, or until it is to go on on that thread.
    pub(super) async fn run(&mut self) -> Option<usize> {
        let ended = match self.ended.take() {
            Some(ended) => ended,
            None => self.connection.converse(&mut self.control).await,
        };
        if let Ended::Moves { to } = ended {
            return Some(to);
        }
        Box::pin(self.connection.end(ended)).await;
        None
    }
}

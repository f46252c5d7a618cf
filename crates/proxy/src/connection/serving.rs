//! From an accepted client to the end of its connection.
//!
//! What only the login or the end needs is boxed, and given back when it is over: the task of an idle
//! connection is the connection, and what it reads with.

use tokio::time::Instant;

use super::arrival::{LoginDeadlines, join};
use super::{Arrival, Connection, Ended};
use crate::registry::{Inbox, Registration};

/// Serves one accepted client until it is over.
///
/// # Cancellation
/// Dropping it closes both sockets and leaves the queue; the server rolls back what was open.
pub(crate) async fn serve(arrival: Box<Arrival>) {
    let gauge = arrival.shared.telemetry.client_connected(&arrival.shared.cluster.name);
    if let Some(mut begun) = Box::pin(begin(arrival)).await {
        begun.run().await;
    }
    drop(gauge);
}

/// Finds out who comes, and relays the login. `None`: it was turned away.
///
/// What it gives is boxed too: a future has room for it twice when it comes out of an `Option`.
async fn begin(arrival: Box<Arrival>) -> Option<Box<Begun>> {
    let Arrival { shared, client, peer, mut registration, control } = *arrival;
    let policy = shared.cluster.policy();
    let joined = join(&shared, &policy, client, peer, &mut registration).await?;
    let (connection, deadlines) = Connection::new(shared, policy, joined);
    Some(Box::new(Begun::log_in(connection, deadlines, registration, control).await))
}

/// A connection whose login is over.
pub(super) struct Begun {
    connection: Connection,
    control: Inbox,
    /// The login has failed.
    ended: Option<Ended>,
    /// Given up behind the connection, when the last bytes are out: a drain waits for this.
    _registration: Registration,
}

impl Begun {
    /// Relays the login.
    pub(super) async fn log_in(
        mut connection: Connection,
        deadlines: LoginDeadlines,
        mut registration: Registration,
        mut control: Inbox,
    ) -> Self {
        let logged_in = connection.login(deadlines, &mut control).await;
        connection.note_contact(&logged_in);
        match logged_in {
            Ok(()) => {
                registration.log_in(connection.session.connection_id());
                connection.leaving.note_login(Instant::now());
            }
            Err(_) => connection.note_unexpected_header(),
        }
        Self { connection, control, ended: logged_in.err(), _registration: registration }
    }

    /// Relays what follows, to the end.
    pub(super) async fn run(&mut self) {
        let ended = match self.ended.take() {
            Some(ended) => ended,
            None => self.connection.converse(&mut self.control).await,
        };
        Box::pin(self.connection.end(ended)).await;
    }
}

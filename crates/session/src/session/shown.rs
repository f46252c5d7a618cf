//! What the shell may know of a session.

use admission::BudgetSet;
use policy::Likeness;
use policy::identity::{SessionIdentity, Source, TraceId};
use sql::Server;
use wire::capability::Capabilities;
use wire::response_tracker::ResponseEnd;

use super::{Phase, Session};
use crate::action::Side;
use crate::compression::Compression;
use crate::cut_over::{CutOver, MigrationWork};
use crate::judge::subject::About;
use crate::leg::OF_EACH_LEG;
use crate::outcome::{CursorUse, StatementOutcome};
use crate::phase::forwarding::Forwarding;

impl Session {
    /// Bytes the session made itself, for [`crate::Move::Replace`].
    pub fn outbox(&self) -> &[u8] {
        self.out.bytes()
    }

    /// The budgets that meet the statement which was asked for.
    pub fn budgets(&self) -> &BudgetSet {
        &self.judge.bench.budgets
    }

    /// Whether nothing is under way, so that the policy may change.
    pub fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Idle)
    }

    /// Whether the rest of a command is to come from the client, whose head was sent on.
    pub fn awaits_rest(&self) -> bool {
        self.forwarding().is_some_and(Forwarding::awaits_rest)
    }

    /// The statement that was sent on and whose response has not ended. It is counted by
    /// [`crate::Action::Finished`], or by the shell when the connection ends before that.
    pub fn under_way(&self) -> Option<StatementOutcome> {
        self.forwarding().and_then(Forwarding::statement)
    }

    /// What the command that was sent on does to cursors, while its response has not ended.
    pub fn cursor_use(&self) -> Option<CursorUse> {
        self.forwarding().and_then(Forwarding::cursor)
    }

    /// How the server has ended its answer, if the last bytes of that are what is to be moved now,
    /// and there is no cursor in it.
    pub fn ended_answer(&self) -> Option<&ResponseEnd> {
        self.forwarding().and_then(Forwarding::ended)
    }

    /// What the statement that was sent on is like, if its rule puts what it kills in quarantine.
    pub fn likeness(&self) -> Option<Likeness> {
        self.forwarding().and_then(Forwarding::likeness)
    }

    /// Rows that the server has answered so far, of the command that was sent last.
    pub fn answered_rows(&self) -> u64 {
        self.tracker.rows()
    }

    /// Whether the client's next packets are a file that the server has asked for.
    pub fn awaits_file(&self) -> bool {
        self.forwarding().is_some_and(Forwarding::awaits_file)
    }

    /// While a stream of the binary log's events goes to the client: the number that this server's
    /// replicas await of the compressed packet behind an event which they have to acknowledge.
    pub fn streams_events(&self) -> Option<u8> {
        let forwarding = self.forwarding()?;
        let number = match self.server.mode.server {
            Server::MySql { .. } | Server::Unknown => 0,
            Server::MariaDb { .. } => 1,
        };
        forwarding.streams_events().then_some(number)
    }

    fn forwarding(&self) -> Option<&Forwarding> {
        match &self.phase {
            Phase::Forwarding(forwarding) => Some(forwarding),
            Phase::Greeting
            | Phase::Login(_)
            | Phase::LoggedIn
            | Phase::Idle
            | Phase::Asking(_)
            | Phase::Clearing(_)
            | Phase::Guarding(_)
            | Phase::Planned(_)
            | Phase::Sending(_)
            | Phase::Refusing(_)
            | Phase::Closing(_)
            | Phase::Closed => None,
        }
    }

    /// Whether the server is to answer what Sluice itself has asked it during a login.
    pub fn awaits_key(&self) -> bool {
        matches!(&self.phase, Phase::Login(login) if login.awaits_key())
    }

    /// Whether the server has greeted. It may say an error in place of its greeting.
    pub fn is_greeted(&self) -> bool {
        self.negotiated.connection_id != 0
    }

    /// Whether the server has greeted and had no answer.
    pub fn owes_login(&self) -> bool {
        self.is_greeted() && !self.negotiated.is_answered
    }

    /// What this leg is compressed with from the login's end on.
    pub fn compression(&self, side: Side) -> Option<Compression> {
        match side {
            Side::Client => self.negotiated.compressions.client,
            Side::Backend => self.negotiated.compressions.backend,
        }
    }

    /// Whether a transaction is open, by the server's flags.
    pub fn in_transaction(&self) -> bool {
        self.server.transaction.is_open()
    }

    /// Whether its open transaction is certain to be the one that was last admitted.
    pub fn is_admitted(&self) -> bool {
        self.server.transaction.is_certainly_admitted()
    }

    /// Whether it has locked tables, or everything, so that others wait for it.
    pub fn holds_table_locks(&self) -> bool {
        self.server.transaction.holds_table_locks()
    }

    /// The migration for whose cut-over gh-ost has locked tables in this session, for as long as it
    /// is certain that it holds them.
    pub fn cut_over(&self) -> Option<&CutOver> {
        let cut_over = self.server.cut_over.as_deref()?;
        let holds = self.server.transaction.holds_tables()
            && match &self.phase {
                Phase::Idle
                | Phase::Clearing(_)
                | Phase::Guarding(_)
                | Phase::Planned(_)
                | Phase::Asking(_)
                | Phase::Refusing(_) => true,
                Phase::Sending(sending) => !sending.running.may_unlock_tables(),
                Phase::Forwarding(forwarding) => !forwarding.may_unlock_tables(),
                Phase::Greeting
                | Phase::Login(_)
                | Phase::LoggedIn
                | Phase::Closing(_)
                | Phase::Closed => false,
            };
        holds.then_some(cut_over)
    }

    /// What the statement that is asked for is about, if it may belong to a migration of gh-ost.
    pub fn migration_work(&self) -> Option<&MigrationWork> {
        match &self.phase {
            Phase::Asking(asking) => asking.work(),
            Phase::Greeting
            | Phase::Login(_)
            | Phase::LoggedIn
            | Phase::Idle
            | Phase::Clearing(_)
            | Phase::Guarding(_)
            | Phase::Planned(_)
            | Phase::Sending(_)
            | Phase::Forwarding(_)
            | Phase::Refusing(_)
            | Phase::Closing(_)
            | Phase::Closed => None,
        }
    }

    /// What the connection says of who it is.
    pub fn identity(&self) -> &SessionIdentity {
        self.judge.bench.who.identity()
    }

    /// Whether somebody logs in: at the beginning, or by COM_CHANGE_USER.
    pub fn is_logging_in(&self) -> bool {
        matches!(self.phase, Phase::Login(_))
    }

    /// Whether a login can only go on when the client has answered what it was asked.
    pub fn awaits_login_answer(&self) -> bool {
        matches!(&self.phase, Phase::Login(login) if login.awaits_client())
    }

    /// The backend's id of this connection.
    pub fn connection_id(&self) -> u32 {
        self.negotiated.connection_id
    }

    /// The app of the statement under way, or of the last one.
    pub fn app(&self) -> &[u8] {
        self.judge.bench.who.app()
    }

    /// Changes whenever the user or the app do, and is never again what it was in this session: who
    /// has seen both in this state need not look at them again.
    pub fn naming(&self) -> u64 {
        self.judge.bench.who.naming()
    }

    /// Who named that app; none before the first statement.
    pub fn app_source(&self) -> Option<Source> {
        self.judge.bench.who.source()
    }

    /// The trace that the statement under way says it belongs to, where a rule may hold it back.
    pub fn trace_id(&self) -> Option<TraceId> {
        self.judge.bench.who.trace()
    }

    /// What the last identity claim that was ignored wanted to be; empty if none was.
    pub fn refused_claim(&self) -> &[u8] {
        self.judge.bench.who.refused_claim()
    }

    /// What the statement under way is about, or the last one; only while the shell shows
    /// [`crate::Input::digests`].
    pub fn about(&self) -> About<'_> {
        self.judge.bench.subject.about(&self.judge.bench.who)
    }

    /// The MySQL user.
    pub fn user(&self) -> &[u8] {
        self.judge.bench.who.identity().user()
    }

    /// What the server offers and Sluice does not relay.
    pub fn masked_capabilities(&self) -> Capabilities {
        let server = self.negotiated.server_capabilities;
        server.without(server.followable() | OF_EACH_LEG)
    }

    /// Gives back buffers that a large statement has grown.
    pub fn shrink(&mut self) {
        self.judge.shrink();
        self.out.shrink();
    }
}

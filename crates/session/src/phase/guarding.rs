//! A command that guards have something to say of, until the shell has counted it.

use admission::Mode;
use policy::GuardReport;
use wire::command::{Command, Execute, LAST_PREPARED};

use crate::action::{Action, ByGuards};
use crate::answer::Answer;
use crate::command::{Sending, Then};
use crate::outcome::StatementOutcome;
use crate::phase::refusing::Refusing;
use crate::plan::Plan;
use crate::server::prepared::PreparedStatements;

/// A command that guards object to, or could not judge.
#[derive(Debug)]
pub(crate) struct Guarding {
    behind: Behind,
}

/// What is done with it if they let it pass.
#[derive(Debug)]
pub(crate) enum Behind {
    /// A statement, which the rules have their say about.
    Statement(Box<Plan>),
    /// Another command: COM_STMT_PREPARE.
    Command(Sending),
}

impl Guarding {
    /// The shell is shown what they say.
    pub(crate) fn begin(report: Box<GuardReport>, behind: Behind) -> (Self, Action) {
        let running = match &behind {
            Behind::Statement(plan) => &plan.sending.running,
            Behind::Command(sending) => &sending.running,
        };
        let class = match &running.then {
            Then::Prepare(description) => Some(description.class),
            Then::Nothing
            | Then::PrepareName(..)
            | Then::ResetStatement(_)
            | Then::ResetConnection
            | Then::Schema(_)
            | Then::Kill(_) => running.statement.map(|statement| statement.class),
        };
        let by_guards = ByGuards::of(report, class);
        (Self { behind }, Action::Guard(by_guards))
    }

    /// No guard refuses it.
    pub(crate) fn into_behind(self) -> Behind {
        self.behind
    }

    /// One does.
    pub(crate) fn refuse(self, answer: Answer, prepared: &mut PreparedStatements) -> Refusing {
        let mut sending = match self.behind {
            Behind::Statement(plan) => plan.sending,
            Behind::Command(sending) => sending,
        };
        if let Then::Prepare(description) = &sending.running.then {
            prepared.handle_prepare_refused();
            // Preparing is no statement, but this is the end of the one that it was for.
            let class = description.class;
            let refused = StatementOutcome {
                rule: None,
                watched: None,
                class,
                mode: Mode::Enforce,
                never_held: false,
                long_data: 0,
            };
            sending.running.statement = Some(refused);
        }
        if let Some(statement) = &mut sending.running.statement {
            // Whatever the rule's mode: this is carried out.
            statement.mode = Mode::Enforce;
        }
        Refusing::statement(sending, answer)
    }
}

/// A command on the last statement prepared, when the server has not seen that: MariaDB's clients
/// send it along with the COM_STMT_PREPARE, and the server would take the one before.
pub(crate) fn of_refused(command: &Command<'_>, prepared: &PreparedStatements) -> Option<Refusing> {
    if !prepared.is_last_refused() {
        return None;
    }
    let (statement_id, is_answered) = match *command {
        Command::Execute(Execute { statement_id, .. })
        | Command::BulkExecute { statement_id }
        | Command::ResetStatement { statement_id }
        | Command::Fetch { statement_id, .. } => (statement_id, true),
        Command::SendLongData { statement_id } | Command::CloseStatement { statement_id } => {
            (statement_id, false)
        }
        Command::Query(_)
        | Command::Prepare(_)
        | Command::ResetConnection
        | Command::InitDb(_)
        | Command::ProcessKill { .. }
        | Command::ChangeUser
        | Command::Quit
        | Command::Clone
        | Command::SubscribeGroupReplication
        | Command::Ping
        | Command::Statistics
        | Command::FieldList
        | Command::SetOption(_)
        | Command::ProcessInfo
        | Command::Debug
        | Command::Refresh
        | Command::Shutdown
        | Command::BinlogDump
        | Command::BinlogDumpGtid
        | Command::TableDump
        | Command::RegisterReplica
        | Command::Other(_)
        | Command::Empty => return None,
    };
    if statement_id != LAST_PREPARED {
        return None;
    }
    let answer = Answer {
        errno: ER_UNKNOWN_STMT_HANDLER,
        sqlstate: *b"HY000",
        message: b"Unknown prepared statement handler [sluice: its COM_STMT_PREPARE was refused; \
                   executed=no]"
            .to_vec(),
    };
    Some(if is_answered { Refusing::command(answer) } else { Refusing::silent() })
}

/// The server's own answer to a statement that it does not know.
const ER_UNKNOWN_STMT_HANDLER: u16 = 1243;

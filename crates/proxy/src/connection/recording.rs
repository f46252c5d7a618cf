//! What is told of statements to those who count: signals made of latencies, and insights.

use std::time::Duration;

use admission::Mode;
use insights::{Ending, Record};
use session::{About, CursorUse, Finished, Move, Side, StatementOutcome};

use super::Connection;
use crate::insights::{Whose, reason_number};
use crate::telemetry::StatementDecision;

impl Connection {
    /// The server has what signals may be made of.
    pub(super) fn note_begun(&mut self) {
        if let Some(StatementOutcome { rule, class, .. }) = self.session.under_way() {
            let name_of = |index| self.policy.rule(index).map(|rule| &*rule.name);
            let named = (self.session.naming(), self.session.app());
            self.latency.begin(named, rule, class, name_of);
        }
    }

    /// A statement is over that was kept waiting for so long.
    pub(super) fn record(&mut self, statement: &StatementOutcome, queued: Option<Duration>) {
        if !self.policy.insights.enabled {
            return;
        }
        let Self { session, insights, shared, affinity, timing, admission, .. } = self;
        let ending = match (insights.answer(), admission.decision()) {
            (Some(answer), _) => answer.error.map_or(Ending::Done, Ending::Failed),
            (None, StatementDecision::ClientGone) => Ending::ClientGone,
            (None, StatementDecision::Rejected) if statement.mode == Mode::Enforce => {
                Ending::Refused(reason_number(admission.why()))
            }
            (None, StatementDecision::Rejected | StatementDecision::Admitted) => Ending::Lost,
        };
        let record = Record {
            server_ns: Record::nanos(timing.backend),
            queued_ns: queued.map_or(0, Record::nanos),
            ending,
            ..Record::default()
        };
        let about = match ending {
            Ending::Failed(errno) if PARSE_ERRORS.contains(&errno) => {
                About { digest: None, news: None, ..session.about() }
            }
            Ending::Failed(_)
            | Ending::Done
            | Ending::Lost
            | Ending::Refused(_)
            | Ending::ClientGone
            | Ending::Fetched
            | Ending::FetchFailed(_) => session.about(),
        };
        let whose = Whose { app: session.app(), user: session.user(), about };
        let ahead = u64::try_from(statement.long_data).unwrap_or(u64::MAX);
        insights.bytes_in = insights.bytes_in.saturating_add(ahead);
        insights.record(record, whose, (&shared.cluster.insights, affinity.index()));
    }

    /// A command is over: if it has fetched rows, that is told of the statement whose they are.
    pub(super) fn record_fetched(&mut self, finished: &Finished) {
        let (Some(CursorUse::Fetch(statement_id)), Some(end)) =
            (finished.cursor, finished.response)
        else {
            return;
        };
        if self.policy.insights.enabled {
            self.insights.note_answer(&end);
            let record = Record {
                server_ns: Record::nanos(self.timing.backend),
                ending: end.error.map_or(Ending::Fetched, Ending::FetchFailed),
                ..Record::default()
            };
            let counted = self.cursors.counted(statement_id);
            let board = (&self.shared.cluster.insights, self.affinity.index());
            self.insights.record_more(record, counted, board);
        }
    }

    /// Bytes are moved.
    pub(super) fn note_moved(&mut self, moved: Move) {
        match moved {
            Move::Forward { from, len } => {
                let sum = match from {
                    Side::Client => &mut self.insights.bytes_in,
                    Side::Backend => &mut self.insights.bytes_out,
                };
                *sum = sum.saturating_add(u64::try_from(len).unwrap_or(u64::MAX));
            }
            Move::Replace { .. } | Move::Drop { .. } => {}
        }
    }
}

/// `ER_PARSE_ERROR` and `ER_SYNTAX_ERROR`. Of a text that the server could not read nobody knows what in
/// it is a name: behind a quote too many, values look like names, and would be shown. The server's own
/// `performance_schema` counts such texts without a digest as well.
const PARSE_ERRORS: [u16; 2] = [1064, 1149];

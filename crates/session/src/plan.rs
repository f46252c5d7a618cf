//! What becomes of a statement: sent on, or held until the shell has an answer.

mod alike;
mod sized;

use std::sync::Arc;

use admission::{BudgetSet, DigestKey, Written};
use policy::{Cover, GuardReport, Likeness, PassReason, Priority, ShapeNeeds, ShapeText};
use sql::{Class, LexMode, Statement, Tool, Whole, describe};
use wire::capability::{CLIENT_QUERY_ATTRIBUTES, Capabilities};
use wire::command::{Execute, Query, QueryAttributes, execute_attributes, execute_layout};
use wire::response_tracker::{Cursor, Expect};

use self::alike::{Alike, budget_question};
use self::sized::sized;
use crate::action::{Held, Input, Question};
use crate::command::{Arrived, Running, Sending, Then};
use crate::consequences::Consequences;
use crate::cut_over::{CutOver, MigrationWork, Text};
use crate::judge::memo::{Remembered, Ruling};
use crate::judge::{Bench, Judge, SaidByExecution};
use crate::outcome::{CursorUse, StatementOutcome};
use crate::server::ServerSide;
use crate::server::prepared::{CallsFrom, Description, Elsewhere, Likenesses, owned_tag};
use crate::server::transaction::{Admitted, Transaction};

/// What becomes of a statement.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) sending: Sending,
    pub(crate) hold: Hold,
    /// What it is about, of a held statement that may belong to a migration of gh-ost.
    pub(crate) work: Option<Box<MigrationWork>>,
    /// What guards have to say first.
    pub(crate) guarded: Option<Box<GuardReport>>,
}

/// What has to be heard before it is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hold {
    Nothing,
    Ask(Held),
    Deny(Held),
}

/// What a text says, and what the rules say to it.
struct Ruled {
    class: Class,
    ruling: Ruling,
    /// The rule whose `runaway` is about it.
    watched: Option<u32>,
    /// Whether the ruling holds it back where its session stands.
    held: bool,
    /// What keeps it from being held there.
    cover: Cover,
    /// What its budgets want of it, if it meets any.
    budgeted: Option<Question>,
    /// What its cost is predicted by, if it is to be asked for.
    digest: Option<DigestKey>,
    /// What it writes, if what its rows cost is to be learned.
    written: Option<Written>,
    consequences: Consequences,
    then: Then,
    changes_routines: bool,
    work: Option<Box<MigrationWork>>,
    /// What was prepared is like.
    likenesses: Option<Likenesses>,
}

/// A statement in text: COM_QUERY.
#[inline(never)]
pub(crate) fn query(
    query: &Query<'_>,
    arrived: Arrived<'_>,
    judge: &mut Judge,
    server: &ServerSide,
    input: &Input<'_>,
) -> Plan {
    let whole = if arrived.whole { Whole::Yes } else { Whole::Truncated };
    let Judge { texts, bench } = judge;
    bench.begin_statement(input);
    let text = (query.text, server.mode);
    let known = match whole {
        Whole::Yes => bench.recent.find(input.texts, text, texts),
        Whole::Truncated => None,
    };
    let mut statement = match known {
        Some(statement) => statement,
        None => describe(query.text, server.mode, whole, texts),
    };
    if whole == Whole::Yes {
        bench.recent.note(input.texts, text, &statement);
    }
    if statement.classes.contains(Class::Call) {
        let schema = server.default_schema(&bench.who);
        excuse_calls(&mut statement, schema, input);
    }
    let mut ruled = match executed(&statement, server) {
        Some(description) => {
            let said =
                SaidByExecution { attributes: query.attributes, statement: Some(&statement) };
            bench.note_description(&description, input);
            on_description(&description, said, bench, server, input)
        }
        None => {
            let ruled = on_statement(&statement, query, bench, server, input);
            bench.note_text((query.text, server.mode), &statement, input);
            ruled
        }
    };
    let len = query.text.len().saturating_add(arrived.unseen());
    ruled.digest = ruled.digest.map(|DigestKey(digest)| sized(digest, len));
    let text = (query.text, whole);
    let alike = Alike::of_text(&ruled, bench, (text, &statement), server, input);
    let mut plan = ruled.plan(None, Expect::ResultSets, input);
    if let Some(alike) = alike {
        plan.be_like(alike, &mut bench.budgets, input);
    }
    plan
}

/// Takes from the classes of a text that calls functions what the server's list excuses. A text of
/// several statements is not excused: a function may be replaced while one ahead of it waits.
#[cold]
fn excuse_calls(statement: &mut Statement<'_>, schema: &[u8], input: &Input<'_>) {
    if statement.statement_count == 1 {
        statement.classes = statement.classes_with(&input.facts.routines, schema);
        statement.class = statement.classes.strictest().unwrap_or(Class::Unknown);
    }
}

/// A statement that cannot be read.
pub(crate) fn unknown(judge: &mut Judge, server: &ServerSide, input: &Input<'_>) -> Plan {
    let description = Description::default();
    judge.bench.begin_statement(input);
    let ruled =
        on_description(&description, SaidByExecution::default(), &mut judge.bench, server, input);
    ruled.plan(None, Expect::ResultSets, input)
}

/// A COM_STMT_EXECUTE or COM_STMT_BULK_EXECUTE.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Execution<'a> {
    pub(crate) statement_id: u32,
    pub(crate) payload: &'a [u8],
    /// Bytes of its first frame, there or not.
    pub(crate) len: usize,
    /// Its own flags, which a COM_STMT_BULK_EXECUTE has none of.
    pub(crate) execute: Option<Execute<'a>>,
}

/// An execution of a prepared statement.
#[inline(never)]
pub(crate) fn execution(
    execution: Execution<'_>,
    capabilities: Capabilities,
    judge: &mut Judge,
    server: &mut ServerSide,
    input: &Input<'_>,
) -> Plan {
    let Execution { statement_id, payload, len, execute } = execution;
    let ServerSide { mode, transaction, prepared, .. } = server;
    let cursor = CursorUse::Execute(prepared.resolve(statement_id));
    let mut num_columns = 0;
    let (unread, mut forgotten);
    let (mut is_read, mut long_data) = (true, 0);
    let (description, last, attributes) = match prepared.executed(statement_id, *mode) {
        Some(statement) => {
            // Values sent ahead as long data are not in the packet: then it cannot be read to its
            // end.
            num_columns = statement.num_columns;
            let may_have = capabilities.has(CLIENT_QUERY_ATTRIBUTES);
            is_read = !(statement.long_data.is_some() && may_have);
            long_data = statement.long_data.unwrap_or_default();
            let layout = (may_have && is_read)
                .then(|| execute_layout(payload, statement.num_params, capabilities))
                .flatten();
            let attributes = layout
                .map(|layout| execute_attributes(payload, &layout, statement.num_params))
                .unwrap_or_default();
            (&*statement.description, &mut statement.remembered, attributes)
        }
        None => {
            (unread, forgotten) = (Description::default(), Remembered::default());
            (&unread, &mut forgotten, QueryAttributes::default())
        }
    };
    judge.bench.begin_statement(input);
    judge.bench.note_description(description, input);
    let ruling = judge.bench.rule_on_execution(description, last, attributes, input);
    let expect = Expect::Execution(execute.map_or(Cursor::NotAsked, |e| e.cursor(num_columns)));
    let mut ruled = described(description, ruling, (&judge.bench, transaction), input);
    let sent = len.saturating_add(long_data);
    ruled.digest = ruled.digest.map(|DigestKey(digest)| sized(digest, sent));
    if ruled.held {
        ruled.work = description.work.clone();
    }
    let alike = Alike::of_prepared(&ruled, input);
    let attributes = is_read.then_some(attributes);
    let guarded = judge.bench.guard_execution(description, attributes, input);
    let mut plan = ruled.plan(Some(statement_id), expect, input);
    plan.sending.running.cursor = Some(cursor);
    if let Some(statement) = &mut plan.sending.running.statement {
        statement.long_data = long_data;
    }
    plan.guarded = guarded;
    if let Some(alike) = alike {
        plan.be_like(alike, &mut judge.bench.budgets, input);
    }
    plan
}

/// Describes the text of a COM_STMT_PREPARE once, for all its executions.
///
/// Servers read it again when what it is about has changed, in the mode of that execution. So what
/// it says in the mode of now stands as long as it is executed in this mode only; besides that is
/// kept what it may say in any.
pub(crate) fn preparation(
    text: &[u8],
    whole: Whole,
    judge: &mut Judge,
    server: &ServerSide,
) -> Description {
    let Judge { texts, bench } = judge;
    let schema = server.default_schema(&bench.who).to_vec();
    let text = (text, whole, schema.as_slice());
    let unknown = LexMode::unknown(server.mode.server);
    let varies = !describe(text.0, unknown, whole, texts).is_certain();
    let description = prepared_in(server.mode, text, texts, bench, server);
    let elsewhere = (varies && server.mode != unknown).then(|| {
        let description = Arc::new(prepared_in(unknown, text, texts, bench, server));
        Elsewhere { mode: server.mode, description }
    });
    Description { elsewhere, ..description }
}

fn on_statement(
    statement: &Statement<'_>,
    query: &Query<'_>,
    bench: &mut Bench,
    server: &ServerSide,
    input: &Input<'_>,
) -> Ruled {
    let class = statement.class;
    let ruling = bench.rule_on_text(statement, query, server.mode, input);
    let cover = server.transaction.cover(&statement.effects.plain);
    let held = ruling.holds(cover, input.policy);
    let budgeted = budgeted(ruling, cover, &bench.budgets);
    let is_asked = matches!(ruling, Ruling::Ask(..)) && held;
    let is_judged = is_asked || budgeted.is_some();
    let digest = (is_judged && !statement.runs_other_text())
        .then(|| bench.digest((query.text, server.mode), statement, input));
    let work = if is_judged {
        migration_work(statement, (query.text, server.mode), bench, server).map(Box::new)
    } else {
        None
    };
    let then = sql_prepare(statement, bench, server);
    let mut consequences = Consequences::of(&statement.effects);
    if statement.effects.plain.takes.tables {
        consequences = consequences.with_cut_over(cut_over(statement, query.text, bench, server));
    }
    Ruled {
        class,
        ruling,
        watched: bench.watched,
        held,
        cover,
        budgeted,
        digest: digest.map(DigestKey),
        written: (is_asked && input.policy.learns_row_costs())
            .then(|| written_by((query.text, server.mode), statement, bench, server))
            .flatten(),
        consequences,
        then,
        changes_routines: statement.may_change_routines(server.mode.server),
        work,
        likenesses: None,
    }
}

/// What a text of one statement writes.
fn written_by(
    (text, mode): (&[u8], LexMode),
    statement: &Statement<'_>,
    bench: &Bench,
    server: &ServerSide,
) -> Option<Written> {
    let one = statement.statement_count == 1 && statement.is_certain();
    one.then(|| policy::written(text, mode, server.default_schema(&bench.who))).flatten()
}

/// What a statement that is held is about, if it comes from gh-ost and may be part of a migration.
fn migration_work(
    statement: &Statement<'_>,
    (text, mode): (&[u8], LexMode),
    bench: &Bench,
    server: &ServerSide,
) -> Option<MigrationWork> {
    let identity = bench.who.identity();
    if !identity.is_sticky(Tool::GhOst) {
        return None;
    }
    let schema = server.default_schema(&bench.who);
    MigrationWork::of(&Text { text, statement, mode, schema }, identity.user())
}

/// What gh-ost locks for its cut-over.
#[cold]
fn cut_over(
    statement: &Statement<'_>,
    text: &[u8],
    bench: &Bench,
    server: &ServerSide,
) -> Option<CutOver> {
    let identity = bench.who.identity();
    if !identity.is_sticky(Tool::GhOst) || statement.statement_count != 1 {
        return None;
    }
    let schema = server.default_schema(&bench.who);
    CutOver::of(&Text { text, statement, mode: server.mode, schema }, identity.user())
}

fn on_description(
    description: &Description,
    said: SaidByExecution<'_>,
    bench: &mut Bench,
    server: &ServerSide,
    input: &Input<'_>,
) -> Ruled {
    let ruling = bench.rule_on_description(description, said, input);
    described(description, ruling, (bench, &server.transaction), input)
}

#[inline(always)]
fn described(
    description: &Description,
    ruling: Ruling,
    (bench, transaction): (&Bench, &Transaction),
    input: &Input<'_>,
) -> Ruled {
    let (_, class) = description.classes_with(&input.facts.routines);
    let cover = transaction.cover(&description.consequences.plain);
    let held = ruling.holds(cover, input.policy);
    Ruled {
        class,
        ruling,
        watched: bench.watched,
        held,
        cover,
        budgeted: budgeted(ruling, cover, &bench.budgets),
        digest: description.own_digest().map(DigestKey),
        written: description.written,
        consequences: description.consequences.clone(),
        then: Then::Nothing,
        changes_routines: description.changes_routines,
        work: None,
        likenesses: Some(description.likenesses()),
    }
}

/// What the budgets that meet a statement want of it.
fn budgeted(ruling: Ruling, cover: Cover, budgets: &BudgetSet) -> Option<Question> {
    (!budgets.is_empty()).then(|| budget_question(ruling, cover))
}

impl Ruled {
    #[inline(always)]
    fn plan(self, execution: Option<u32>, expect: Expect, input: &Input<'_>) -> Plan {
        let Self { class, ruling, watched, held, budgeted, digest, written, .. } = self;
        let Self { consequences, then, changes_routines, work, .. } = self;
        let rule = ruling.rule();
        let mode = rule
            .and_then(|index| input.policy.rule(index))
            .map_or(input.policy.mode, |rule| rule.mode);
        let never_held = matches!(ruling, Ruling::Pass(_, PassReason::NeverHeld(_)));
        let statement =
            Some(StatementOutcome { rule, watched, class, mode, never_held, long_data: 0 });
        let asked = |question, priority| Held { rule, question, class, digest, written, priority };
        let hold = match ruling {
            Ruling::Ask(_, priority) if held => Hold::Ask(asked(Question::Rule, priority)),
            Ruling::Deny(_) if held => {
                Hold::Deny(asked(budgeted.unwrap_or(Question::Rule), Priority::LOWEST))
            }
            Ruling::Pass(..) | Ruling::Ask(..) | Ruling::Deny(_) => match budgeted {
                Some(question) => Hold::Ask(asked(question, Priority::LOWEST)),
                None => Hold::Nothing,
            },
        };
        let admits = match ruling {
            Ruling::Pass(_, why) => Admitted::of_passed(class, why),
            Ruling::Ask(..) | Ruling::Deny(_) if held => Admitted::of_asked(class),
            Ruling::Ask(..) | Ruling::Deny(_) => Admitted::No,
        };
        let (likeness, cursor) = (None, None);
        let running =
            Running { statement, admits, consequences, then, changes_routines, likeness, cursor };
        Plan { sending: Sending { running, expect, execution }, hold, work, guarded: None }
    }
}

/// What SQL `EXECUTE name` runs, when that is all the text does and the session has prepared it.
fn executed(statement: &Statement<'_>, server: &ServerSide) -> Option<Arc<Description>> {
    if statement.statement_count != 1 {
        return None;
    }
    server.prepared.name(statement.effects.execute?)
}

/// What SQL `PREPARE` prepares. Text from a variable, or of which the server may read other bytes
/// than stand in the literal, is not known: its execution is of class `unknown`.
fn sql_prepare(statement: &Statement<'_>, bench: &mut Bench, server: &ServerSide) -> Then {
    let Some(prepare) = statement.effects.prepare else { return Then::Nothing };
    let description = match prepare.text.filter(sql::SqlText::is_prepared_as_it_stands) {
        Some(literal) => {
            let mut text = Vec::new();
            literal.unescape_into(&mut text);
            // A statement ahead of it may be a USE.
            let schema = match statement.statement_count {
                1 => server.default_schema(&bench.who).to_vec(),
                _ => Vec::new(),
            };
            // The text around it still stands in the session's own scratch.
            let text = (text.as_slice(), Whole::Yes, schema.as_slice());
            let description = prepared(text, &mut sql::Scratch::default(), bench, server);
            // Who asks for a digest now means that of the PREPARE.
            bench.shape.clear();
            description
        }
        None => Description::default(),
    };
    Then::PrepareName(prepare.name.into(), Arc::new(description))
}

/// Describes the text of a SQL `PREPARE`, of which it is not certain how the server takes it out of
/// its literal: what it may be in any mode counts, if that is another class.
fn prepared(
    text: (&[u8], Whole, &[u8]),
    texts: &mut sql::Scratch,
    bench: &mut Bench,
    server: &ServerSide,
) -> Description {
    let unknown = LexMode::unknown(server.mode.server);
    let in_any = describe(text.0, unknown, text.1, texts).classes;
    let mode = if describe(text.0, server.mode, text.1, texts).classes == in_any {
        server.mode
    } else {
        unknown
    };
    prepared_in(mode, text, texts, bench, server)
}

/// Describes a text that was prepared in `mode` while `calling_schema` was the default one.
fn prepared_in(
    mode: LexMode,
    (text, whole, calling_schema): (&[u8], Whole, &[u8]),
    texts: &mut sql::Scratch,
    bench: &mut Bench,
    server: &ServerSide,
) -> Description {
    let statement = describe(text, mode, whole, texts);
    let session = bench.who.identity();
    bench.shape.read(&ShapeText::of_session(text, mode, session, &statement), ShapeNeeds::ALL);
    Description {
        class: statement.class,
        classes: statement.classes,
        exemption: statement.exemption,
        tool: statement.tool(),
        tags: statement.tags().map(|tag| owned_tag((tag.key, tag.value))).collect(),
        has_all_tags: statement.is_certain(),
        shape: bench.shape.to_owned(),
        written: written_by((text, mode), &statement, bench, server),
        consequences: Consequences::of(&statement.effects),
        calls: statement
            .called()
            .filter(|_| statement.statement_count == 1)
            .map(|functions| Box::new(CallsFrom { functions, schema: calling_schema.into() })),
        changes_routines: statement.may_change_routines(server.mode.server),
        work: migration_work(&statement, (text, mode), bench, server).map(Box::new),
        text_hash: (whole == Whole::Yes).then(|| Likeness::hash_of_text(text)),
        runs_other_text: statement.runs_other_text(),
        elsewhere: None,
    }
}

//! What rules, guards and budgets decide, on real servers: nothing gets past, and what is admitted runs once.

mod admission_points;
mod budgets;
mod certainty;
mod chaos;
mod charsets;
mod cut_over;
mod exactly_once;
mod guards;
mod identity;
mod nothing_gets_past;
mod other_sessions;
mod refusal;
mod rule_keys;
mod runaway;
mod runtime_rules;
mod transactions;

//! The chain of one statement in words.

use std::time::Duration;

use jiff::tz::TimeZone;

use super::{GuardShown, LineShown, QuarantineShown, RuleShown, SignalShown, Why};
use crate::record::At;
use crate::words::{counted, quantity, span};

impl Why {
    /// The chain in words.
    #[must_use]
    pub fn sentences(&self, now: At, zone: &TimeZone) -> Vec<String> {
        let mut said = vec![self.what(now, zone), self.who()];
        said.extend(self.by_guard());
        said.push(self.by_rule());
        said.extend(self.in_quarantine(now, zone));
        said.extend(self.speed());
        said.extend(self.dice());
        said.extend(self.gate());
        said.extend(self.pace());
        said.extend(self.in_line());
        said.push(self.remedy(now, zone));
        said
    }

    fn what(&self, now: At, zone: &TimeZone) -> String {
        let waited = span(seconds(self.waited_s));
        let reason = self.reason.as_deref().unwrap_or("paced");
        let at = crate::words::at(self.at, now, zone);
        let app = &self.app;
        match (&*self.end, &self.id) {
            ("waiting", _) => format!("a statement of {app} has waited for {waited}: {reason}"),
            ("admitted", Some(id)) => {
                format!("statement {id} of {app} was admitted at {at} after it had waited {waited}")
            }
            ("left", Some(id)) => format!(
                "statement {id} of {app} waited for {waited}, until its client left at {at}: {reason}"
            ),
            (_, Some(id)) if self.waited_s >= AT_ONCE_S => {
                format!("statement {id} of {app} was refused at {at} after {waited}: {reason}")
            }
            (_, Some(id)) => {
                format!("statement {id} of {app} was refused at once at {at}: {reason}")
            }
            (end, None) => format!("a statement of {app} was {end} at {at}"),
        }
    }

    fn who(&self) -> String {
        let Self { app, user, client, connection_id, .. } = self;
        let source = match self.source.as_deref() {
            Some("query_attribute") => ", named by a query attribute",
            Some("comment") => ", named by a comment in the statement",
            Some("tool") => ", a tool known by its comment in the statement",
            Some("session_variable") => ", named by SET @sluice_app",
            Some("sticky_tool") => ", the tool last seen on the connection",
            Some("connection_attribute") => ", named by a connection attribute",
            Some("user") => ", which is its MySQL user",
            Some(_) | None => "",
        };
        let class = self.class.as_deref().map(|class| format!(", class {class}"));
        let class = class.unwrap_or_default();
        format!(
            "identity: {app}{source}; user {user} at {client}, connection {connection_id}{class}"
        )
    }

    fn by_guard(&self) -> Option<String> {
        let GuardShown { guard, check, offset, advice, reason } = self.guard.as_ref()?;
        let because = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
        Some(format!("guard: {guard}{because}, {check} at byte {offset} of the text: {advice}"))
    }

    fn in_quarantine(&self, now: At, zone: &TimeZone) -> Option<String> {
        let QuarantineShown { id, by, app, since, until } = self.quarantine.as_ref()?;
        let (since, until) =
            (crate::words::at(*since, now, zone), crate::words::at(*until, now, zone));
        let rule = &self.rule.rule;
        Some(format!(
            "quarantine: {id} holds statements of rule {rule} with the same {by} until {until}, for \
             one of {app} ran away at {since}"
        ))
    }

    fn by_rule(&self) -> String {
        let RuleShown { rule, effect, author, reason, expires_at, .. } = &self.rule;
        let author = author.as_deref().map(|author| format!(", made by {author} at runtime"));
        let ends = expires_at.as_deref().map(|at| format!(", ends {at}"));
        let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        let (author, ends) = (author.unwrap_or_default(), ends.unwrap_or_default());
        if self.guard.is_some() {
            return "rule: none was asked, for guards come before rules".to_owned();
        }
        let budget = self.by_budget();
        if rule.is_empty() {
            return format!("rule: none matched{budget}");
        }
        format!("rule: {rule} ({effect}{author}{ends}){because}{budget}")
    }

    /// Whether the dice and the gate of its rule had no say.
    fn is_stopped(&self) -> bool {
        self.guard.is_some() || self.quarantine.is_some()
    }

    fn speed(&self) -> Option<String> {
        let speed = quantity(self.rule.speed.filter(|_| !self.is_stopped())? * 100.0, "%");
        Some(format!(
            "speed: a session of it goes at {speed} of its own, by pauses behind what has taken the \
             server"
        ))
    }

    fn dice(&self) -> Option<String> {
        let RuleShown { ratio, check_interval_s, effect, .. } = &self.rule;
        if effect != "throttle" || self.is_stopped() {
            return None;
        }
        if *ratio <= 0.0 {
            return Some("dice: none (ratio 0)".to_owned());
        }
        let again = quantity(*check_interval_s, "s");
        if *ratio >= 1.0 {
            return Some(format!(
                "dice: every check is lost (ratio 1), and repeated after {again}"
            ));
        }
        Some(format!(
            "dice: a check is lost with a probability of {ratio} and repeated after {again}"
        ))
    }

    fn gate(&self) -> Option<String> {
        if self.rule.effect == "deny" || self.is_stopped() || self.signals.is_empty() {
            return None;
        }
        let signals: Vec<String> = self.signals.iter().map(SignalShown::in_words).collect();
        Some(format!("gate: {}", signals.join("; ")))
    }

    /// Whose pace held it.
    fn pace(&self) -> Option<String> {
        if self.reason.as_deref() != Some("paced") {
            return None;
        }
        let rule = &self.rule.rule;
        match (self.limit.as_deref(), &self.signal) {
            (Some("speed"), _) => Some(format!("pace: it pauses for the speed of rule {rule}")),
            (Some(limit), _) => Some(format!("pace: {limit} of rule {rule} is used up")),
            (None, Some(signal)) => Some(format!("pace: that of {signal} has no room for it")),
            (None, None) => None,
        }
    }

    fn in_line(&self) -> Option<String> {
        let LineShown { ahead_at_first, waiting, ahead, ahead_by_app } = self.line.as_ref()?;
        let first = counted(*ahead_at_first, "statement");
        let then = if self.end == "waiting" { "now" } else { "when it left" };
        let wait = if *waiting == 1 { "waits" } else { "wait" };
        let others = match ahead {
            None => String::new(),
            Some(0) => ", none of which had come before it".to_owned(),
            Some(ahead) => {
                let apps: Vec<String> =
                    ahead_by_app.iter().map(|it| format!("{} {}", it.app, it.count)).collect();
                format!(", {ahead} of which had come before it ({})", apps.join(", "))
            }
        };
        Some(format!("line: {first} waited when it came; {then} {waiting} {wait}{others}"))
    }

    /// What would have let it through.
    fn remedy(&self, now: At, zone: &TimeZone) -> String {
        let would = match self.reason.as_deref() {
            Some("guard") => self.remedy_of_guard(),
            Some("quarantined") => self.remedy_of_quarantine(now, zone),
            Some(reason) if reason.starts_with("budget_") => self.remedy_of_budget(reason),
            Some(reason) => self.remedy_of_rule(reason),
            // It came through at last, by a check that was won.
            None if self.rule.ratio > 0.0 => self.remedy_of_rule("ratio"),
            None => self.remedy_of_rule("paced"),
        };
        match &*self.end {
            "waiting" => format!("what lets it through: {would}"),
            "admitted" => format!("what would have let it through sooner: {would}"),
            _ => format!("what would have let it through: {would}"),
        }
    }

    fn remedy_of_guard(&self) -> String {
        let guard = self.guard.as_ref().map_or("(one that is gone)", |guard| &*guard.guard);
        format!(
            "a text that says what guard {guard} asks for; or an edit of the guard in the file: mode: \
             warn, or a match that leaves {} out",
            self.app
        )
    }

    fn remedy_of_quarantine(&self, now: At, zone: &TimeZone) -> String {
        let Some(QuarantineShown { id, by, until, .. }) = &self.quarantine else {
            return "the end of the quarantine".to_owned();
        };
        let until = crate::words::at(*until, now, zone);
        format!(
            "the end of the quarantine at {until}, or sooner by `sluice quarantine --free {id}`; or \
             another {by}"
        )
    }

    fn by_budget(&self) -> String {
        let Some(budget) = &self.budget else { return String::new() };
        let reason = self.budget_reason.as_deref().unwrap_or_default();
        let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        format!("; budget {budget} decided{because}")
    }

    fn remedy_of_budget(&self, reason: &str) -> String {
        let budget = self.budget.as_deref().unwrap_or("(one that is gone)");
        let more = match reason {
            "budget_concurrency" => "a larger max_concurrency",
            "budget_rate" => "a larger rate or rows_per_s",
            "budget_share" => "a larger share or burst",
            "budget_query" => "a larger max_query_cost",
            _ => "more",
        };
        let less = match reason {
            "budget_concurrency" => "fewer statements of it at the server at once",
            "budget_query" => "a cheaper statement (`sluice insights` has what its digest costs)",
            _ => "less that uses it",
        };
        let exempt = self.exempt();
        format!("{more} of budget {budget}; {less}; or {exempt}")
    }

    fn exempt(&self) -> String {
        format!("`sluice exempt {} --for 10m`", self.app)
    }

    fn lift(&self) -> String {
        let RuleShown { rule, author, .. } = &self.rule;
        match author {
            Some(_) => format!("`sluice unthrottle {}`", self.app),
            None => format!("an edit of rule {rule} in the file"),
        }
    }

    fn remedy_of_rule(&self, reason: &str) -> String {
        let RuleShown { rule, max_delay_s, ratio, expires_at, .. } = &self.rule;
        let delay = max_delay_s.map(|delay| quantity(delay, "s")).unwrap_or_default();
        let (lift, exempt) = (self.lift(), self.exempt());
        match reason {
            "gate_closed" => {
                let below = self.open_gate();
                if let Some(cause) = self.end_of_cause() {
                    return format!("{below}, once {cause}; or {exempt}");
                }
                format!("{below} within its max_delay of {delay}; a longer max_delay; or {exempt}")
            }
            "no_data" => {
                let cause = self.end_of_cause().map(|cause| format!(", once {cause}"));
                let cause = cause
                    .unwrap_or_else(|| " (`sluice status` says what keeps the probe)".to_owned());
                format!("a value for the gate's signals{cause}; on_no_data: open; or {exempt}")
            }
            "hold" => format!("the end of the hold, by {lift}"),
            "deny" => format!("nothing but {lift}"),
            "ratio" if *ratio >= 1.0 => {
                let lower = match expires_at.as_deref() {
                    Some(at) => format!("the end of rule {rule}, at {at}, or a lower ratio"),
                    None => "a lower ratio than 1".to_owned(),
                };
                format!("{lower}, by {lift}; or {exempt}")
            }
            "ratio" => format!(
                "luckier dice: one check in {} wins; a lower ratio, by {lift}; or {exempt}",
                quantity(1.0 / (1.0 - ratio), "")
            ),
            "queue_full" => {
                format!("fewer who wait already, or a larger max_queue of rule {rule}")
            }
            "no_primary" | "failover" => {
                "a primary that answers (`sluice status` says what is known of it)".to_owned()
            }
            "shutdown" => "nothing: Sluice was ending; the next one answers".to_owned(),
            "paced" if self.is_slowed() => format!("a greater speed, by {lift}; or {exempt}"),
            "paced" if self.limit.is_some() => {
                let limit = self.limit.as_deref().unwrap_or_default();
                format!("a larger {limit}, by {lift}; fewer ahead of it; or {exempt}")
            }
            // What shut its gate, if that did, has opened by now.
            _ if self.end == "admitted" => {
                let sooner = self.signals.iter().map(SignalShown::bound).collect::<Vec<_>>();
                let sooner = if sooner.is_empty() {
                    String::new()
                } else {
                    format!("{} sooner; ", sooner.join(" and "))
                };
                format!("{sooner}fewer ahead of it; a larger weight of rule {rule}; or {exempt}")
            }
            _ => format!(
                "fewer ahead of it, or a longer max_delay than {delay}; a larger weight of rule {rule}; \
                 or {exempt}"
            ),
        }
    }

    /// Whether it has only paused for its rule's `speed`.
    fn is_slowed(&self) -> bool {
        match self.limit.as_deref() {
            Some(limit) => limit == "speed",
            None => self.rule.speed.is_some() && self.line.is_none(),
        }
    }

    /// What has to end before a gate can open, where something besides the load keeps it shut.
    fn end_of_cause(&self) -> Option<String> {
        let mut shut = self.signals.iter().filter(|signal| !signal.open);
        let SignalShown { server, advice, .. } = shut.find(|signal| signal.cause.is_some())?;
        let server = server.as_deref().map(|server| format!(" at {server}")).unwrap_or_default();
        let advice = advice.as_deref().map(|advice| format!(" ({advice})")).unwrap_or_default();
        Some(format!("that is mended{server}{advice}"))
    }

    fn open_gate(&self) -> String {
        let shut = self.signals.iter().filter(|signal| !signal.open);
        let shut: Vec<String> = shut.map(SignalShown::bound).collect();
        if shut.is_empty() { "the gate open".to_owned() } else { shut.join(" and ") }
    }
}

impl SignalShown {
    /// What it has to be for its gate to open.
    fn bound(&self) -> String {
        format!("{} below {}", self.signal, quantity(self.threshold, &self.unit))
    }

    fn in_words(&self) -> String {
        let Self { signal, value, threshold, unit, open, server, cause, advice: _ } = self;
        let value = value.map_or_else(|| "no value".to_owned(), |value| quantity(value, unit));
        let server = server.as_deref().map(|server| format!(" at {server}")).unwrap_or_default();
        let cause = cause.as_deref().map(|cause| format!(" ({cause})")).unwrap_or_default();
        let state = if *open { "open" } else { "shut" };
        format!(
            "{signal} {value}{server}{cause}, threshold {}: {state}",
            quantity(*threshold, unit)
        )
    }
}

/// Nobody calls less than this a wait.
const AT_ONCE_S: f64 = 0.001;

fn seconds(length: f64) -> Duration {
    Duration::try_from_secs_f64(length).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paced() -> Why {
        let rule = RuleShown {
            rule: "etl".to_owned(),
            effect: "throttle".to_owned(),
            max_delay_s: Some(5.0),
            ..RuleShown::default()
        };
        Why {
            app: "etl".to_owned(),
            end: "waiting".to_owned(),
            reason: Some("paced".to_owned()),
            rule,
            line: Some(LineShown::default()),
            ..Why::default()
        }
    }

    fn said(why: &Why) -> String {
        why.sentences(At(0), &TimeZone::UTC).join("\n")
    }

    #[test]
    fn whose_pace_it_is_is_told_with_what_helps() {
        let by_signal = Why { signal: Some("threads_running".to_owned()), ..paced() };
        let by_signal = said(&by_signal);
        assert!(by_signal.contains("pace: that of threads_running has no room"), "{by_signal}");
        let by_limit = said(&Why { limit: Some("max_rate".to_owned()), ..paced() });
        assert!(by_limit.contains("pace: max_rate of rule etl is used up"), "{by_limit}");
        assert!(by_limit.contains("what lets it through: a larger max_rate"), "{by_limit}");
        let unknown = said(&paced());
        assert!(!unknown.contains("pace: "), "{unknown}");
    }

    /// One check in a thousand was said to win.
    #[test]
    fn at_ratio_1_no_luck_is_told_of_but_the_rules_end() {
        let of = |ratio, expires_at: Option<&str>| {
            let expires_at = expires_at.map(str::to_owned);
            let rule = RuleShown { ratio, expires_at, author: Some("ann".into()), ..paced().rule };
            said(&Why { reason: Some("ratio".to_owned()), rule, ..paced() })
        };
        let all = of(1.0, Some("2026-11-22T07:00:00Z"));
        assert!(all.contains("dice: every check is lost (ratio 1)"), "{all}");
        let lifted = "what lets it through: the end of rule etl, at 2026-11-22T07:00:00Z, or a \
                      lower ratio, by `sluice unthrottle etl`; or `sluice exempt etl --for 10m`";
        assert!(all.ends_with(lifted), "{all}");
        let endless = of(1.0, None);
        assert!(endless.contains(": a lower ratio than 1, by `sluice unthrottle"), "{endless}");
        let most = of(0.998, None);
        assert!(most.contains("luckier dice: one check in 500 wins"), "{most}");
    }

    #[test]
    fn a_budget_that_decided_says_why_it_exists() {
        let budget = Some("reports".to_owned());
        let of = |budget_reason| said(&Why { budget: budget.clone(), budget_reason, ..paced() });
        let told = of(Some("the shop goes first".to_owned()));
        assert!(told.contains("; budget reports decided: the shop goes first\n"), "{told}");
        for unsaid in [None, Some(String::new())] {
            let told = of(unsaid);
            assert!(told.contains("; budget reports decided\n"), "{told}");
        }
    }

    /// It was told that a longer `max_delay` would have let it through sooner.
    #[test]
    fn who_waited_at_a_gate_that_has_opened_is_told_of_the_gate() {
        let lag = SignalShown {
            signal: "lag".to_owned(),
            value: Some(0.0),
            threshold: 5.0,
            unit: "s".to_owned(),
            open: true,
            ..SignalShown::default()
        };
        let end = "admitted".to_owned();
        let id = Some("7604ca5c".to_owned());
        let why = said(&Why { end, id, reason: None, signals: vec![lag], ..paced() });
        let sooner =
            "what would have let it through sooner: lag below 5 s sooner; fewer ahead of it";
        assert!(why.contains(sooner), "{why}");
        assert!(!why.contains("max_delay"), "{why}");
    }

    /// Where an applier was stopped, a longer `max_delay` was told to help.
    #[test]
    fn what_keeps_a_gate_shut_besides_the_load_is_named_with_what_ends_it() {
        let lag = SignalShown {
            signal: "lag".to_owned(),
            value: Some(7.6),
            threshold: 1.0,
            unit: "s".to_owned(),
            server: Some("db3".to_owned()),
            ..SignalShown::default()
        };
        let cause = Some("the applier (SQL thread) is stopped: error 1062: Duplicate".to_owned());
        let advice = Some("on that server: START REPLICA".to_owned());
        let stopped = SignalShown { cause, advice, ..lag.clone() };
        let of = |reason: &str, signal: &SignalShown| {
            let (reason, signals) = (Some(reason.to_owned()), vec![signal.clone()]);
            said(&Why { reason, signals, ..paced() })
        };
        let why = of("gate_closed", &stopped);
        let gate = "gate: lag 7.6 s at db3 (the applier (SQL thread) is stopped: error 1062: \
                    Duplicate), threshold 1 s: shut";
        assert!(why.contains(gate), "{why}");
        let remedy = "what lets it through: lag below 1 s, once that is mended at db3 (on that \
                      server: START REPLICA); or `sluice exempt";
        assert!(why.contains(remedy) && !why.contains("max_delay"), "{why}");
        assert!(of("gate_closed", &lag).contains("a longer max_delay"), "it only lags");

        let cause = Some("db3: error 1045: Access denied".to_owned());
        let unknown = SignalShown { value: None, server: None, ..lag };
        let refused = SignalShown { cause, ..unknown.clone() };
        let why = of("no_data", &refused);
        assert!(why.contains("lag no value (db3: error 1045: Access denied), "), "{why}");
        assert!(why.contains("signals, once that is mended; on_no_data: open"), "{why}");
        assert!(of("no_data", &unknown).contains("`sluice status` says what keeps"));
    }

    #[test]
    fn a_pause_for_speed_is_no_place_in_line() {
        let rule = RuleShown { speed: Some(0.1), ..paced().rule };
        let limit = Some("speed".to_owned());
        let pauses = said(&Why { limit, rule: rule.clone(), line: None, ..paced() });
        assert!(pauses.contains("pace: it pauses for the speed of rule etl"), "{pauses}");
        assert!(pauses.contains("what lets it through: a greater speed"), "{pauses}");
        assert!(!pauses.contains("line: "), "{pauses}");
        let queued = said(&Why { rule, ..paced() });
        assert!(queued.contains("fewer ahead of it"), "{queued}");
    }
}

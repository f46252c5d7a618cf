//! `sluice why`: why was it refused?

use std::process::ExitCode;

use history::WhyAnswer;

use super::door::{Failure, ask, complain, print};
use super::rules::printable;
use super::{history as asking, zone};
use crate::cli::{Format, Why};

pub(crate) fn run(command: &Why) -> ExitCode {
    let told = answer(command).and_then(|(text, is_known)| print(&text).map(|()| is_known));
    match told {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => complain(&failure),
    }
}

fn answer(command: &Why) -> Result<(String, bool), Failure> {
    let Why { what, asked, format } = command;
    let path = format!("/api/v1/why/{}", asking::escaped(what));
    let body = ask(asked, None, ("GET", &path, ""))?;
    let answer: WhyAnswer = serde_json::from_str(&body)
        .map_err(|_| Failure::refused("what answers there is not Sluice".to_owned()))?;
    let is_known = !answer.statements.is_empty();
    let text = match format {
        Format::Json => format!("{}\n", body.trim_end()),
        Format::Text => in_words(&answer),
    };
    Ok((text, is_known))
}

/// In this machine's zone, a paragraph for each statement.
fn in_words(answer: &WhyAnswer) -> String {
    let zone = zone::local();
    if answer.statements.is_empty() {
        return answer.sentences.iter().map(|line| format!("{line}\n")).collect();
    }
    let paragraph = |why: &history::Why| {
        let lines = why.sentences(answer.now, &zone);
        lines.iter().map(|line| format!("{}\n", printable(line))).collect::<String>()
    };
    answer.statements.iter().map(paragraph).collect::<Vec<String>>().join("\n")
}

//! A rule as it is kept: in the table, and in the journal.

use policy::{Fault, RuntimeEffect, RuntimeRule, RuntimeSpec, UnixTime};
use serde::{Deserialize, Serialize};

use crate::draft::{RuleDraft, rule_name};

/// The form of [`RuleBody`]. A higher one is not understood, and so not guessed at.
pub(crate) const FORMAT: u32 = 1;

/// What a rule says, but for its end and who made it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleBody {
    pub(crate) format: u32,
    /// Random: which making of the rule this is.
    pub(crate) id: u64,
    pub(crate) app: Option<String>,
    pub(crate) user: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) classes: Vec<String>,
    pub(crate) effect: EffectName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ratio: Option<f64>,
    #[serde(default)]
    pub(crate) reason: String,
    /// Unix time in milliseconds, by the clock of where it was made.
    pub(crate) made_at_ms: i64,
}

/// [`RuntimeEffect`] in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EffectName {
    Throttle,
    Hold,
    Exempt,
    Deny,
}

impl RuleBody {
    pub(crate) fn new(draft: &RuleDraft, id: u64, made_at_ms: i64) -> Self {
        let (effect, ratio) = match draft.effect {
            RuntimeEffect::Throttle { ratio } => (EffectName::Throttle, Some(ratio)),
            RuntimeEffect::Hold => (EffectName::Hold, None),
            RuntimeEffect::Exempt => (EffectName::Exempt, None),
            RuntimeEffect::Deny => (EffectName::Deny, None),
        };
        Self {
            format: FORMAT,
            id,
            app: draft.app.clone(),
            user: draft.user.clone(),
            classes: draft.classes.clone(),
            effect,
            ratio,
            reason: draft.reason.clone(),
            made_at_ms,
        }
    }

    /// What a row says, if this version of Sluice understands it.
    ///
    /// # Errors
    /// Why it does not.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let format: Format = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if format.format != FORMAT {
            return Err(format!("it is of format {}, and this is {FORMAT}", format.format));
        }
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    pub(crate) fn text(&self) -> String {
        // Strings, numbers and lists of them always are JSON.
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(crate) fn name(&self) -> String {
        rule_name(self.app.as_deref(), self.user.as_deref())
    }

    pub(crate) fn effect(&self) -> RuntimeEffect {
        match self.effect {
            // Without a number it holds more, not less.
            EffectName::Throttle => RuntimeEffect::Throttle { ratio: self.ratio.unwrap_or(1.0) },
            EffectName::Hold => RuntimeEffect::Hold,
            EffectName::Exempt => RuntimeEffect::Exempt,
            EffectName::Deny => RuntimeEffect::Deny,
        }
    }

    /// The rule that it stands for.
    ///
    /// # Errors
    /// What a file would be told of it.
    pub(crate) fn compile(&self, author: &str, ends: UnixTime) -> Result<RuntimeRule, Vec<Fault>> {
        let spec = RuntimeSpec {
            name: self.name(),
            app: self.app.clone(),
            user: self.user.clone(),
            classes: self.classes.clone(),
            effect: self.effect(),
            reason: self.reason.clone(),
            made_at_ms: self.made_at_ms,
        };
        RuntimeRule::new(spec, author.into(), ends)
    }
}

#[derive(Deserialize)]
struct Format {
    format: u32,
}

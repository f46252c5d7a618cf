//! Sequences that look for a way past: each is made of traps, in the order that chance gives.
//!
//! A trap is something that a reader of the protocol or of the text can get wrong. It sets the session
//! up (`modes`), hides a statement that writes (`hiding`), has it run by another (`routes`), holds
//! something that would exempt it (`holding`), or is about packets (`packets`).

use crate::scenario::Chance;
use crate::server::Flavour;
use crate::siege::mutation;
use crate::siege::sequence::{Act, Entry, Sequence, Step};

mod hiding;
mod holding;
mod modes;
mod packets;
mod prepared;
mod routes;
mod system;
mod words;

/// What a part of a sequence is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it; each has a function of its own")]
pub enum Trap {
    Quotes,
    Comments,
    Prepare,
    Binary,
    Transaction,
    Lock,
    Routine,
    Cursor,
    System,
    Packets,
    Compound,
    Login,
    Ended,
    Tagged,
}

impl Trap {
    /// All, some of them more than once: the more there is to get wrong, the more often.
    pub const ALL: [Self; 22] = [
        Self::Quotes,
        Self::Quotes,
        Self::Quotes,
        Self::Quotes,
        Self::Comments,
        Self::Comments,
        Self::Prepare,
        Self::Prepare,
        Self::Prepare,
        Self::Binary,
        Self::Transaction,
        Self::Transaction,
        Self::Lock,
        Self::Lock,
        Self::Routine,
        Self::Cursor,
        Self::System,
        Self::Packets,
        Self::Compound,
        Self::Login,
        Self::Ended,
        Self::Tagged,
    ];

    /// The trap of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|trap| format!("{trap:?}").eq_ignore_ascii_case(name))
    }
}

/// Makes sequences; the same seed makes the same ones.
#[derive(Debug)]
pub struct Maker {
    pub(super) chance: Chance,
    pub(super) flavour: Flavour,
    only: Vec<Trap>,
    names: Vec<&'static str>,
    steps: Vec<Step>,
    entry: Entry,
    /// Nothing more is added to the sequence, and it is not damaged.
    as_it_is: bool,
}

impl Maker {
    /// A maker for one server.
    #[must_use]
    pub fn new(seed: u64, flavour: Flavour) -> Self {
        let chance = Chance::new(seed);
        Self {
            chance,
            flavour,
            only: Trap::ALL.to_vec(),
            as_it_is: false,
            names: Vec::new(),
            steps: Vec::new(),
            entry: Entry::default(),
        }
    }

    /// Only with these traps.
    #[must_use]
    pub fn only(mut self, traps: &[Trap]) -> Self {
        self.only = traps.to_vec();
        self
    }

    /// The next sequence.
    pub fn sequence(&mut self) -> Sequence {
        self.steps.clear();
        self.names.clear();
        self.as_it_is = false;
        self.entry = self.random_entry();
        let traps = [1, 1, 1, 2, 2, 3];
        for _ in 0..self.pick(&traps) {
            if self.as_it_is {
                break;
            }
            if self.one_in(3) {
                self.mode();
            }
            self.trap();
        }
        let mut steps = std::mem::take(&mut self.steps);
        if !self.as_it_is && self.one_in(4) {
            self.names.push("mutated");
            mutation::mutate(&mut self.chance, &mut steps);
        }
        if !self.as_it_is && self.one_in(12) {
            self.names.push("pipelined");
            mutation::join(&mut self.chance, &mut steps);
        }
        steps.truncate(STEPS_MAX);
        Sequence { name: self.names.join(" "), entry: std::mem::take(&mut self.entry), steps }
    }

    fn trap(&mut self) {
        let only = std::mem::take(&mut self.only);
        let trap = self.pick(&only);
        self.only = only;
        match trap {
            Trap::Quotes => self.hidden_text(),
            Trap::Comments => self.comment(),
            Trap::Prepare => self.sql_prepare(),
            Trap::Binary => self.binary_prepare(),
            Trap::Transaction => self.transaction(),
            Trap::Lock => self.lock(),
            Trap::Routine => self.routine(),
            Trap::Cursor => self.cursor("1"),
            Trap::System => self.system_schema(),
            Trap::Packets => self.packet(),
            Trap::Compound => self.compound(),
            Trap::Login => self.plain_write(),
            Trap::Ended => self.ended(),
            Trap::Tagged => self.tagged(),
        }
    }

    pub(super) fn named(&mut self, name: &'static str) {
        if self.names.last() != Some(&name) {
            self.names.push(name);
        }
    }

    #[expect(clippy::expect_used, reason = "every list here has at least one element")]
    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let index = self.chance.index(from.len());
        from.get(index).copied().or_else(|| from.first().copied()).expect("nothing to pick from")
    }

    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.chance.below(n) == 0
    }

    pub(super) fn push(&mut self, act: Act) {
        self.steps.push(Step::new(act));
    }

    pub(super) fn query(&mut self, text: impl Into<Vec<u8>>) {
        self.push(Act::Query(text.into()));
    }

    /// A text, by one of the ways that statements are sent.
    pub(super) fn send(&mut self, text: impl Into<Vec<u8>>) {
        let text = text.into();
        match self.chance.below(16) {
            0 | 1 => {
                self.push(Act::Prepare(text));
                let nth = self.prepares();
                self.push(Act::Execute { nth, flags: 0, params: Vec::new() });
            }
            2 => {
                let blanks = self.pick(&[1, 70, 5_000, 300_000]);
                self.push(Act::Padded(blanks, text));
            }
            3 => {
                let cut = u16::try_from(self.chance.below(40)).ok();
                self.steps.push(Step { cut, ..Step::new(Act::Query(text)) });
            }
            _ => self.query(text),
        }
    }

    /// How many statements have been prepared by now.
    pub(super) fn prepares(&self) -> u32 {
        let count = self.steps.iter().filter(|step| matches!(step.act, Act::Prepare(_))).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}

const STEPS_MAX: usize = 24;

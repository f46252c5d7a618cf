//! One depth of brackets, and the query block that it may be.

/// What stands between two brackets, or is the whole statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// An expression, a list of columns, anything else.
    #[default]
    Plain,
    /// Tables: the brackets in `FROM a JOIN (b, c)`.
    Tables,
    /// The common table expressions of a WITH.
    With,
    /// A query block.
    Query,
    Update,
    Delete,
    /// A list of IN, which began there.
    List(u32),
}

impl Kind {
    /// Whether it has clauses of its own.
    pub(super) fn is_block(self) -> bool {
        match self {
            Self::Query | Self::Update | Self::Delete => true,
            Self::Plain | Self::Tables | Self::With | Self::List(_) => false,
        }
    }
}

/// The clause of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Clause {
    /// Ahead of FROM.
    #[default]
    Head,
    From,
    Where,
    /// Behind both.
    Tail,
}

/// What a WHERE says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Filter {
    #[default]
    Absent,
    /// Nothing but constants, so far.
    Constant,
    /// Something else.
    Present,
}

/// Joins of one list of tables.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Joins {
    /// Joins behind the last comma that wait for their ON, and the first of them.
    open: u32,
    first_open: u32,
    /// Joins that waited when an ON came that may speak for them too.
    covered: u32,
    /// A join that no ON can speak for any more.
    loose: Option<u32>,
    /// A loose one within brackets behind the last comma, for which an ON outside may speak.
    inner: Option<u32>,
    /// An ON or USING was there.
    pub(super) has_on: bool,
    /// One of the tables is a subquery or a function, which may give one row.
    pub(super) has_derived: bool,
    /// NATURAL stands ahead of the next JOIN, which then needs no ON.
    pub(super) natural: bool,
    /// A loose join within a derived table, for which a WHERE outside may speak.
    pub(super) derived_loose: Option<u32>,
    /// Something in the list was not understood.
    pub(super) unsure: bool,
}

impl Joins {
    /// No joins yet, in a statement that has a WITH or has none: what it names may give one row.
    pub(super) fn beside(with: bool) -> Self {
        Self { has_derived: with, ..Self::default() }
    }

    pub(super) fn join(&mut self, at: u32) {
        if std::mem::take(&mut self.natural) {
            return;
        }
        if self.open == 0 {
            self.first_open = at;
        }
        self.open = self.open.saturating_add(1);
    }

    /// ON or USING: for the last join that waits, and perhaps for those before it.
    pub(super) fn condition(&mut self) {
        self.has_on = true;
        if self.inner.take().is_some() {
            self.covered = self.covered.saturating_add(1);
        }
        if self.open > 0 {
            self.covered = self.covered.saturating_add(self.open.saturating_sub(1));
            self.open = 0;
        } else {
            self.covered = self.covered.saturating_sub(1);
        }
    }

    /// No ON behind this speaks for what is ahead of it.
    fn close_item(&mut self) {
        let open = (self.open > 0).then_some(self.first_open);
        self.loose = self.loose.or(self.inner).or(open);
        self.inner = None;
        self.open = 0;
    }

    pub(super) fn comma(&mut self, at: u32) {
        self.close_item();
        self.loose = self.loose.or(Some(at));
    }

    /// Brackets around tables have closed.
    pub(super) fn take_in(&mut self, mut group: Self) {
        group.close_item();
        self.inner = self.inner.or(group.loose);
        self.covered = self.covered.saturating_add(group.covered);
        self.has_on |= group.has_on;
        self.has_derived |= group.has_derived;
        self.derived_loose = self.derived_loose.or(group.derived_loose);
        self.unsure |= group.unsure;
    }

    /// What is to be said of a list in a block with this WHERE.
    pub(super) fn verdict(mut self, filter: Filter) -> Verdict {
        self.close_item();
        let Self { loose, covered, has_on, has_derived, derived_loose, unsure, .. } = self;
        match filter {
            // Whether it joins the tables is not looked at.
            Filter::Present => Verdict::of_maybe(derived_loose.is_some()),
            Filter::Absent | Filter::Constant => match loose {
                Some(_) if has_derived || unsure => Verdict::Unjudged,
                Some(at) => Verdict::Loose(at),
                None if has_on => Verdict::of_maybe(covered > 0 || derived_loose.is_some()),
                None => match derived_loose {
                    Some(at) => Verdict::Loose(at),
                    None => Verdict::of_maybe(covered > 0),
                },
            },
        }
    }
}

/// What is to be said of the joins of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Joined,
    /// This one has no condition.
    Loose(u32),
    Unjudged,
}

impl Verdict {
    fn of_maybe(unjudged: bool) -> Self {
        if unjudged { Self::Unjudged } else { Self::Joined }
    }
}

/// One query block, list or pair of brackets at each depth, the statement itself first.
#[derive(Debug, Default)]
pub(super) struct Frames {
    outermost: Frame,
    inner: Vec<Frame>,
}

impl Frames {
    /// As at the beginning of a statement.
    pub(super) fn clear(&mut self) {
        self.outermost = Frame::default();
        self.inner.clear();
    }

    /// What opens at this depth, in place of what was there before.
    pub(super) fn open(&mut self, depth: usize, frame: Frame) {
        self.inner.truncate(depth.saturating_sub(1));
        self.inner.push(frame);
    }

    /// What stands at a depth; the outermost where nothing has been opened.
    pub(super) fn at(&mut self, depth: usize) -> &mut Frame {
        match depth.checked_sub(1) {
            None => &mut self.outermost,
            Some(at) => self.inner.get_mut(at).unwrap_or(&mut self.outermost),
        }
    }

    /// Gives back memory that a deeply nested text has taken.
    pub(super) fn shrink(&mut self) {
        self.inner.clear();
        self.inner.shrink_to(FRAMES_KEPT);
    }
}

/// Depths for which memory is kept from one text to the next, about 1 KiB.
const FRAMES_KEPT: usize = 16;

/// One depth of brackets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    pub(super) clause: Clause,
    pub(super) filter: Filter,
    /// The depth of the block that it is part of.
    pub(super) block: usize,
    pub(super) joins: Joins,
    /// Commas of a list.
    pub(super) commas: u32,
    /// Where the block began.
    pub(super) at: u32,
    pub(super) limited: bool,
    /// The block is a table of the one around it.
    pub(super) derived: bool,
    /// The block is a common table expression.
    pub(super) common: bool,
}

//! Virtual time: what members that contend are entitled to, in proportion to their weights.

/// What contends together: the rules at a gate, the apps of a rule, the identities of an app.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Level {
    /// Virtual time: rows for each weight.
    clock: f64,
    /// Weights of those that contend.
    weight: f64,
    members: u32,
}

/// One of them, as its level knows it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Member {
    weight: f64,
    /// Up to when it has been given what it is entitled to, in the virtual time of its level.
    at: f64,
    contends: bool,
}

impl Level {
    pub(super) const fn is_idle(&self) -> bool {
        self.members == 0
    }

    /// Those who contend are entitled to so many rows together; less than nothing: to so many
    /// fewer.
    pub(super) fn advance(&mut self, rows: f64) {
        if !self.is_idle() {
            self.clock += rows / self.weight;
        }
    }

    /// The same where one more contends that is no member.
    pub(super) fn advance_beside(&mut self, rows: f64, other: f64) {
        if !self.is_idle() {
            self.clock += rows / (self.weight + other);
        }
    }

    pub(super) fn join(&mut self, member: &mut Member, weight: f64) {
        if !member.contends {
            *member = Member { weight, at: self.clock, contends: true };
            self.weight += weight;
            self.members = self.members.saturating_add(1);
        }
    }

    pub(super) fn leave(&mut self, member: &mut Member) {
        if !member.contends {
            return;
        }
        member.contends = false;
        self.weight -= member.weight;
        self.members = self.members.saturating_sub(1);
        if self.is_idle() {
            // Sums of floats drift; nothing is left to be summed, and nobody looks at the clock.
            (self.weight, self.clock) = (0.0, 0.0);
        }
    }

    /// What a member is entitled to since it was last asked.
    pub(super) fn due(&self, member: &mut Member) -> f64 {
        if !member.contends {
            return 0.0;
        }
        let due = member.weight * (self.clock - member.at);
        member.at = self.clock;
        due
    }
}

impl Member {
    pub(super) const fn contends(&self) -> bool {
        self.contends
    }

    /// Its level is another one.
    pub(super) fn forget(&mut self) {
        self.contends = false;
    }

    /// What it was when it last contended.
    pub(super) const fn weight(&self) -> f64 {
        self.weight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_contends_is_entitled_to_its_weights_part_of_what_is_given_meanwhile() {
        let (mut level, mut one, mut three) =
            (Level::default(), Member::default(), Member::default());
        level.advance(1_000.0);
        level.join(&mut one, 1.0);
        level.advance(10.0);
        level.join(&mut three, 3.0);
        level.advance(40.0);
        assert_eq!((level.due(&mut one), level.due(&mut three)), (20.0, 30.0));
        level.leave(&mut one);
        level.advance(5.0);
        level.advance(-2.0);
        assert_eq!((level.due(&mut one), level.due(&mut three)), (0.0, 3.0));
        level.leave(&mut three);
        assert!(level.is_idle());
    }
}

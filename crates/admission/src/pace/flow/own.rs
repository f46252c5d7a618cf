//! A replica with a threshold of its own.
//!
//! The law holds for it with its own T. What it aims for is bounded by what acknowledging takes
//! (q* ≤ 0.85 c, but for what large statements and transactions raise it by), since more keeps no
//! replica busier. A replica that may lag for longer than the others is there to be allowed to:
//! whoever reads from it keeps it busy for seconds, and nobody is to wait for that. So a queue of a fifth of its T is let stand there, in the window as in the
//! pace. The rate is measured as ever, from the small q* on: with the large one it would grow for
//! seconds before anything told that it is enough.

use super::queue::{TARGET, TARGET_MAX};
use super::{Aim, Flow};

impl Flow {
    /// What the law aims at for this replica.
    pub(super) fn own(&self, aim: &Aim) -> Aim {
        let aim = Aim { looking: self.looking.seconds(aim.probe), ..*aim };
        let Some(own) = self.threshold else { return aim };
        let lenient = (own > aim.threshold).then_some(TARGET * own);
        Aim { threshold: own, lenient, ..aim }
    }

    /// The queue that is let stand, in seconds.
    pub(super) fn allowed(&self, aim: &Aim) -> f64 {
        let target = self.target(aim);
        let Some(lenient) = aim.lenient else { return target };
        let most = TARGET_MAX * (aim.threshold - self.standing(aim));
        lenient.min(most).max(target)
    }
}

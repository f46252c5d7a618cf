//! A KILL QUERY has crossed the end of the statement that it was for: whatever of it still stands at
//! the server must not meet the next one.
//!
//! A server that has been told to end a query ends what it does next, if it had just ended that. So it
//! is given something of no consequence: COM_PING, whose answer, which may be the error of the KILL, is
//! dropped.

use wire::response_tracker::{Expect, Progress, ResponseTracker};

use crate::action::{Action, CloseReason, Input, Move, Reads, Side};
use crate::outbox::Outbox;

/// `COM_PING`.
const COM_PING: u8 = 0x0E;

/// What is left of a KILL is being cleared away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clearing {
    /// The command goes to the server.
    Asks,
    /// Its answer comes back and is dropped.
    Hears,
}

/// What happens next.
#[derive(Debug)]
pub(crate) enum Next {
    Stay(Clearing, Action),
    /// The last of the answer is dropped: the session is idle behind that.
    Done(Action),
    Close(CloseReason),
}

impl Clearing {
    pub(crate) fn next(
        self,
        tracker: &mut ResponseTracker,
        out: &mut Outbox,
        input: &Input<'_>,
    ) -> Next {
        match self {
            Self::Asks => {
                out.put_frame(0, &[COM_PING]);
                tracker.begin(Expect::OnePacket);
                Next::Stay(Self::Hears, Move::outbox_to(Side::Backend).into())
            }
            Self::Hears if input.backend.is_empty() => {
                Next::Stay(self, Action::Read(Reads::Backend))
            }
            Self::Hears => match tracker.feed(input.backend) {
                Ok(fed) => {
                    let drop = Move::Drop { from: Side::Backend, len: fed.consumed }.into();
                    match fed.progress {
                        Progress::End(_) => Next::Done(drop),
                        Progress::More | Progress::LocalInfile => Next::Stay(self, drop),
                    }
                }
                Err(_) => Next::Close(CloseReason::BackendProtocol),
            },
        }
    }
}

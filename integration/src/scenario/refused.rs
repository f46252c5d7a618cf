//! A refusal's message, taken apart: `Lock wait timeout … [sluice id=… rule=… executed=no]`.

use crate::raw::Response;

/// An ERR packet and its `[sluice key=value …]` part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The error number.
    pub errno: u16,
    /// The SQLSTATE.
    pub sqlstate: String,
    /// The whole text.
    pub message: String,
    /// The sequence id of the packet.
    pub sequence: u8,
}

impl Refused {
    /// The ERR that ended a response, if one did.
    #[must_use]
    pub fn of(response: &Response) -> Option<Self> {
        let packet = response.packets.last()?;
        let (errno, message) = packet.err()?;
        let sqlstate = match packet.payload.get(3..9) {
            Some([b'#', state @ ..]) => String::from_utf8_lossy(state).into_owned(),
            _ => String::new(),
        };
        Some(Self { errno, sqlstate, message, sequence: packet.seq })
    }

    /// A value of the `key=value` part.
    #[must_use]
    pub fn part(&self, key: &str) -> Option<&str> {
        let (_, parts) = self.message.split_once("[sluice ")?;
        let (parts, _) = parts.split_once(']')?;
        let pairs = parts.split(' ').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// The `reason` of the message.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.part("reason")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::Packet;

    #[test]
    fn a_refusal_is_taken_apart() {
        let mut payload = vec![0xff, 0xb5, 0x04];
        payload.extend_from_slice(
            b"#HY000Lock wait timeout exceeded [sluice id=7f rule=r reason=hold]",
        );
        let packets = vec![Packet { seq: 1, payload }];
        let refused = Refused::of(&Response { packets, ..Response::default() }).unwrap();
        assert_eq!(
            (refused.errno, refused.sqlstate.as_str(), refused.sequence),
            (1205, "HY000", 1)
        );
        assert_eq!(refused.part("rule"), Some("r"));
        assert_eq!(refused.reason(), Some("hold"));
        assert_eq!(refused.part("waited_ms"), None);
        assert!(Refused::of(&Response::default()).is_none());
    }
}

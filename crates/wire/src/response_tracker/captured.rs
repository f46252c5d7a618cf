//! As much of a packet as will be decoded.

/// Most bytes of one packet that are decoded. Room for an OK with a dozen changed variables; what
/// stands behind is forwarded unseen.
pub const CAPTURE_LEN_MAX: usize = 4096;

/// One packet of the server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packet<'a> {
    /// Length of its first frame's payload: what tells an EOF from a row.
    pub(super) frame_len: usize,
    /// Its beginning, at least as long as is wanted of such a packet, or all of it.
    pub(super) start: &'a [u8],
}

impl<'a> Packet<'a> {
    /// A packet of one frame.
    pub(super) fn of_frame(payload: &'a [u8]) -> Self {
        let start = payload.get(..CAPTURE_LEN_MAX).unwrap_or(payload);
        Self { frame_len: payload.len(), start }
    }

    pub(super) fn first_byte(self) -> u8 {
        self.start.first().copied().unwrap_or_default()
    }

    /// All bytes of the packet, if they are few enough to have been kept.
    pub(super) fn whole(self) -> Option<&'a [u8]> {
        let is_whole = self.frame_len <= CAPTURE_LEN_MAX && self.start.len() == self.frame_len;
        is_whole.then_some(self.start)
    }
}

/// A packet that arrives in pieces. The buffer is reused.
#[derive(Debug, Clone, Default)]
pub(super) struct CutPacket {
    frame_len: usize,
    start: Vec<u8>,
    wanted: usize,
}

impl CutPacket {
    pub(super) fn begin(&mut self, frame_len: usize) {
        self.frame_len = frame_len;
        self.start.clear();
    }

    /// Takes what comes next. `wanted_len` says by the first byte how much of the packet is of use.
    pub(super) fn push(&mut self, bytes: &[u8], wanted_len: impl FnOnce(u8) -> usize) {
        if self.start.is_empty() {
            self.wanted = wanted_len(bytes.first().copied().unwrap_or_default());
        }
        let room = self.wanted.saturating_sub(self.start.len());
        self.start.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    pub(super) fn packet(&self) -> Packet<'_> {
        Packet { frame_len: self.frame_len, start: &self.start }
    }
}

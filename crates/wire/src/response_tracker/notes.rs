//! What the OK packets of a response said about the session.

use crate::packet::{SessionChange, SessionChanges};

/// Changes reported by one response; the last one of a kind counts. The buffers are reused.
#[derive(Debug, Clone, Default)]
pub(super) struct SessionNotes {
    schema: Note,
    charset_client: Note,
    cut: bool,
}

impl SessionNotes {
    pub(super) fn clear(&mut self) {
        self.schema.reported = false;
        self.charset_client.reported = false;
        self.cut = false;
    }

    pub(super) fn schema(&self) -> Option<&[u8]> {
        self.schema.value()
    }

    pub(super) fn charset_client(&self) -> Option<&[u8]> {
        self.charset_client.value()
    }

    pub(super) fn cut(&self) -> bool {
        self.cut
    }

    pub(super) fn note_cut(&mut self) {
        self.cut = true;
    }

    pub(super) fn note(&mut self, changes: SessionChanges<'_>) {
        for change in changes {
            match change {
                SessionChange::Schema(schema) => self.schema.set(schema),
                SessionChange::SystemVariable { name: CHARACTER_SET_CLIENT, value } => {
                    self.charset_client.set(value);
                }
                SessionChange::SystemVariable { .. } | SessionChange::Other(_) => {}
            }
        }
    }
}

#[derive(Debug, Clone, Default)]
struct Note {
    reported: bool,
    value: Vec<u8>,
}

impl Note {
    fn value(&self) -> Option<&[u8]> {
        self.reported.then_some(&self.value)
    }

    fn set(&mut self, value: &[u8]) {
        self.reported = true;
        self.value.clear();
        self.value.extend_from_slice(value.get(..NOTE_LEN_MAX).unwrap_or(value));
    }
}

const CHARACTER_SET_CLIENT: &[u8] = b"character_set_client";

/// 64 characters of at most 4 bytes: the longest name of a schema.
const NOTE_LEN_MAX: usize = 256;

//! MySQL bytes to frames, packets and commands, and where a response ends.

//! One client connection as a state machine.

//! Real servers and real clients around Sluice.

//! How a file of YAML is read: every value with its line, and all faults at once. Other files of
//! Sluice's are read by it as well.

pub use crate::fault::{Fault, Faults, Place};
pub use crate::raw::fields::{Fields, FromNode, Maybe, Named, OneOrMany, Spanned, expected};
pub use crate::raw::node::{MappingEntry, Node, Value, parse};

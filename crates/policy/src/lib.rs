//! The YAML file to validated rules, identity, and which rule decides.

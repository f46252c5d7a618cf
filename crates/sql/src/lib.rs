//! What a statement says about itself.

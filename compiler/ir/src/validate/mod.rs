//! Checks the rules of the crate documentation, in their order.

//! From a memory descriptor to its sequence of byte addresses.

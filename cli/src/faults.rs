//! Faults of our own on purpose, for tests of how they are told. Builds without debug assertions have none.

/// Panics if `DFLOW_PANIC` names this place.
#[cfg(debug_assertions)]
pub(crate) fn at(place: &str) {
    if std::env::var_os("DFLOW_PANIC").is_some_and(|name| name == place) {
        panic!("a test panics here");
    }
}

/// Nothing.
#[cfg(not(debug_assertions))]
pub(crate) fn at(_: &str) {}

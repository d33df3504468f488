//! Tests of both schedulers: timing by hand, and random machines compared.

mod generate;
mod random;
mod script;
mod timing;

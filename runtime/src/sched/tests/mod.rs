//! Tests of the schedulers: timing by hand, and random machines compared.

mod abroad;
mod borders;
mod broken;
mod chain;
mod exchange;
mod generate;
mod hears;
mod ir;
mod leaps;
mod limits;
mod lines;
mod machines;
mod orders;
mod places;
mod progress;
mod random;
mod rounds;
mod script;
mod sizes;
mod steady;
mod switched;
mod timing;

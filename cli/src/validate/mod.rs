//! Programs of ours against published measurements.
//!
//! The programs are written from the descriptions that came with the measurements, and nothing
//! in the model knows them. Invariants: every row that is published and can be tried is shown,
//! also where it is missed; a row says whether a constant, or the program itself, was fitted on
//! its family.

mod bench;
mod compute;
mod fabric;
mod reduce;
mod stencil;
mod vector;
mod wave;

use dflow_ir::target::{Override, TargetId};

use crate::exit::Failure;
pub(crate) use bench::Bench;

/// How far a row may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Within {
    /// Share of what is published.
    pub(crate) share: f64,
    /// Cycles beside that: what lies outside of the description.
    pub(crate) cycles: f64,
}

impl Within {
    /// So many per cent.
    pub(crate) fn percent(percent: f64) -> Within {
        Within { share: percent / 100.0, cycles: 0.0 }
    }

    /// So many cycles.
    pub(crate) fn cycles(cycles: f64) -> Within {
        Within { share: 0.0, cycles }
    }
}

/// What a row says of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    /// A constant was fitted on its family.
    Fitted,
    /// No constant was; but how the program is built, which the source leaves open, was chosen
    /// among variants with the published numbers at hand.
    Shaped,
    /// Nothing was.
    Predicted,
}

impl Basis {
    /// As the table has it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Basis::Fitted => "fitted",
            Basis::Shaped => "shaped",
            Basis::Predicted => "predicted",
        }
    }
}

/// One published number and ours.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The table, as `c1`.
    pub(crate) table: &'static str,
    /// Rows that are one law.
    pub(crate) family: &'static str,
    /// What was run.
    pub(crate) what: String,
    /// The unit of both numbers.
    pub(crate) unit: &'static str,
    /// The published number.
    pub(crate) published: f64,
    /// Ours.
    pub(crate) ours: f64,
    /// Fitted, shaped or predicted.
    pub(crate) basis: Basis,
    /// How far it may be off, where the evidence is good enough to say.
    pub(crate) within: Option<Within>,
    /// Other than default constants.
    pub(crate) changes: Vec<Override>,
}

impl Row {
    /// By how much ours is greater, as a share of the published number.
    pub(crate) fn error(&self) -> f64 {
        (self.ours - self.published) / self.published
    }

    /// Whether it is no farther off than it may be: always, where nobody says how far.
    pub(crate) fn is_inside(&self) -> bool {
        self.within.is_none_or(|within| {
            let most = within.share * self.published.abs() + within.cycles;
            (self.ours - self.published).abs() <= most + 1e-9
        })
    }
}

/// A table of measurements.
pub(crate) struct Table {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// What was measured, and where that is published.
    pub(crate) about: &'static str,
    /// Which generation.
    pub(crate) target: TargetId,
    /// Runs the programs.
    pub(crate) rows: fn(&Bench) -> Result<Vec<Row>, Failure>,
}

/// All tables.
pub(crate) const TABLES: &[Table] = &[
    reduce::TABLE,
    vector::TABLE,
    compute::GEMM,
    compute::VOLUME,
    wave::TABLE,
    stencil::TABLE,
    fabric::TABLE,
    vector::RATES,
];

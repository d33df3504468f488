//! From an image to a machine: what a run needs beside the image, made once.
//!
//! Invariant: a feature that the engines do not model is refused here, by name.

use dflow_ir::mesh::{Color, Coord};

/// Why an image cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// A router feature that the engines do not model yet.
    #[error("color {} on PE ({}, {}) uses {feature}, which is not supported yet", color.index(), at.x, at.y)]
    Unsupported {
        /// The feature.
        feature: &'static str,
        /// First PE.
        at: Coord,
        /// Color.
        color: Color,
    },
    /// Two input queues of a program take the same color.
    #[error("program `{program}` binds color {} to input queues {first} and {second}", color.index())]
    TwoQueues {
        /// The program.
        program: String,
        /// The color.
        color: Color,
        /// First queue.
        first: u8,
        /// Second queue.
        second: u8,
    },
    /// The image contradicts itself or its target.
    #[error("the image is not valid: {0}")]
    Invalid(String),
}

//! What a router knows from its configuration: immutable, one per distinct configuration.

use dflow_ir::image::RouterConfig;
use dflow_ir::mesh::{Color, Coord, PopMode};

use crate::load::LoadError;

/// "No such color" in [`RouterPlan::index_of`].
pub(crate) const NONE: u8 = u8::MAX;

/// A router configuration, ready for use.
#[derive(Clone, Debug)]
pub(crate) struct RouterPlan {
    /// Index into `colors` by color number, or [`NONE`].
    pub(crate) index_of: [u8; Color::COUNT],
    /// Configured colors.
    pub(crate) colors: Vec<ColorPlan>,
}

/// One color of a router.
#[derive(Clone, Debug)]
pub(crate) struct ColorPlan {
    /// The color.
    pub(crate) color: u8,
    /// Receive ports per position, as port bits.
    pub(crate) rx: [u8; 4],
    /// Transmit ports per position, as port bits.
    pub(crate) tx: [u8; 4],
    /// Number of valid positions.
    pub(crate) positions: u8,
    /// Position at the start.
    pub(crate) initial: u8,
    /// Whether position 0 follows the last.
    pub(crate) ring: bool,
    /// What passing control wavelets lose.
    pub(crate) pop: PopMode,
}

impl RouterPlan {
    /// Reads a configuration; `at` is a PE that has it, for the error.
    pub(crate) fn new(config: &RouterConfig, at: Coord) -> Result<RouterPlan, LoadError> {
        let mut plan = RouterPlan { index_of: [NONE; Color::COUNT], colors: Vec::new() };
        for (color, config, _) in &config.colors {
            let feature = if config.filter.is_some() {
                Some("a filter")
            } else if config.teardown {
                Some("teardown")
            } else if config.swap_x || config.swap_y {
                Some("a color swap")
            } else {
                None
            };
            if let Some(feature) = feature {
                return Err(LoadError::Unsupported { feature, at, color: *color });
            }
            let mut row = ColorPlan {
                color: color.index(),
                rx: [0; 4],
                tx: [0; 4],
                positions: 0,
                initial: config.switch.map_or(0, |switch| switch.initial),
                ring: config.switch.is_some_and(|switch| switch.ring),
                pop: config.switch.map_or(PopMode::None, |switch| switch.pop),
            };
            for (index, route) in config.positions().into_iter().enumerate() {
                let Some(route) = route else { break };
                row.rx[index] = route.rx.0;
                row.tx[index] = route.tx.0;
                row.positions += 1;
            }
            if row.initial >= row.positions {
                let color = color.index();
                let message = format!(
                    "color {color} at ({}, {}) starts at an invalid switch position",
                    at.x, at.y
                );
                return Err(LoadError::Invalid(message));
            }
            plan.index_of[usize::from(row.color)] = plan.colors.len() as u8;
            plan.colors.push(row);
        }
        Ok(plan)
    }
}

impl ColorPlan {
    /// The position after `position`, by ADV.
    pub(crate) fn next(&self, position: u8) -> u8 {
        if position + 1 < self.positions {
            position + 1
        } else if self.ring {
            0
        } else {
            position
        }
    }
}

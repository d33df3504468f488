//! What a router knows from its configuration: shared by all routers with the same one, copied
//! by a router whose configuration registers are written.

use dflow_ir::image::RouterConfig;
use dflow_ir::mesh::wavelet::Command;
use dflow_ir::mesh::{Color, ColorConfig, Coord, Filter, PopMode, SwitchEntry};

use super::control;
use super::router::RAMP;
use crate::load::LoadError;

/// "No such color" in [`RouterPlan::index_of`].
pub(crate) const NONE: u8 = u8::MAX;

/// All ports, as bits.
const ANYWHERE: u8 = 0b1_1111;

/// A router configuration, ready for use.
#[derive(Clone, Debug)]
pub(crate) struct RouterPlan {
    /// Index into `colors` by color number, or [`NONE`].
    pub(crate) index_of: [u8; Color::COUNT],
    /// Configured colors.
    pub(crate) colors: Vec<ColorPlan>,
    /// Colors that have a swap, and their partners, as bits.
    pub(crate) swaps: u32,
    /// Colors of which the program of its PE may write registers at run time, as bits.
    pub(crate) written: u32,
}

/// One color of a router.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ColorPlan {
    /// The color.
    pub(crate) color: u8,
    /// Whether it is configured; if not, words of it have no business here.
    pub(crate) known: bool,
    /// Receive and transmit ports of position 0, as port bits.
    pub(crate) base: Ports,
    /// What positions 1 to 3 name.
    pub(crate) entries: [Entry; 3],
    /// Direction and side of each, as the switch register of wse2 has them: what an invalid
    /// position holds is kept.
    pub(crate) codes: [u8; 3],
    /// Receive ports per position, as port bits; follows from `base` and `entries`.
    pub(crate) rx: [u8; 4],
    /// Transmit ports per position, likewise.
    pub(crate) tx: [u8; 4],
    /// Transmit ports of all positions together.
    pub(crate) any_tx: u8,
    /// Number of valid positions, likewise.
    pub(crate) positions: u8,
    /// Position at the start.
    pub(crate) initial: u8,
    /// Whether position 0 follows the last.
    pub(crate) ring: bool,
    /// What passing control wavelets lose.
    pub(crate) pop: PopMode,
    /// Takes words of its partner that enter from WEST or EAST.
    pub(crate) swap_x: bool,
    /// Takes words of its partner that enter from SOUTH or NORTH.
    pub(crate) swap_y: bool,
    /// Starts in teardown.
    pub(crate) teardown: bool,
    /// Filter before the ramp.
    pub(crate) filter: Option<Filter>,
}

/// Two sets of ports, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ports {
    pub(crate) rx: u8,
    pub(crate) tx: u8,
}

/// The sides that a position names; none of them: it is invalid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) rx: Option<u8>,
    pub(crate) tx: Option<u8>,
}

impl Entry {
    /// Code of "no direction", the side being that of transmit ports.
    pub(crate) const INVALID: u8 = 5;

    /// Direction and side: a direction's code, and 8 if it is received from.
    fn code(self) -> u8 {
        let direction = |ports: u8| match ports {
            0 => Entry::INVALID,
            ports => ports.trailing_zeros() as u8,
        };
        match self {
            Entry { rx: Some(rx), .. } => direction(rx) | 8,
            Entry { rx: None, tx: Some(tx) } => direction(tx),
            Entry { rx: None, tx: None } => Entry::INVALID,
        }
    }

    /// The inverse.
    pub(crate) fn from_code(code: u8) -> Entry {
        match (code & 7, code & 8 != 0) {
            (Entry::INVALID.., _) => Entry::default(),
            (port, true) => Entry { rx: Some(1 << port), tx: None },
            (port, false) => Entry { rx: None, tx: Some(1 << port) },
        }
    }
}

impl RouterPlan {
    /// A configuration of no color.
    pub(crate) fn without_colors() -> RouterPlan {
        RouterPlan { index_of: [NONE; Color::COUNT], colors: Vec::new(), swaps: 0, written: 0 }
    }

    /// Colors, as bits, of which words from several sides may meet.
    pub(crate) fn meetings(&self) -> u32 {
        let meet = self.colors.iter().filter(|row| row.meets() || self.is_swapped(row.color));
        meet.fold(0, |all, row| all | 1 << row.color)
    }

    /// Reads a configuration; `at` is a PE that has it, for the error.
    pub(crate) fn new(config: &RouterConfig, at: Coord) -> Result<RouterPlan, LoadError> {
        let mut plan = RouterPlan::without_colors();
        for (color, config, _) in &config.colors {
            let row = ColorPlan::new(*color, config);
            if row.initial >= row.positions {
                let color = color.index();
                let message = format!(
                    "color {color} at ({}, {}) starts at an invalid switch position",
                    at.x, at.y
                );
                return Err(LoadError::Invalid(message));
            }
            plan.add(row);
        }
        plan.note_swaps();
        Ok(plan)
    }

    /// Computes which colors have a swap.
    pub(crate) fn note_swaps(&mut self) {
        let swapped = self.colors.iter().filter(|row| row.swap_x || row.swap_y);
        self.swaps = swapped.fold(0, |all, row| all | 1 << row.color | 1 << (row.color ^ 1));
    }

    /// Whether words of a color may be received as those of its partner, or the other way round.
    pub(crate) fn is_swapped(&self, color: u8) -> bool {
        self.swaps >> color & 1 != 0
    }

    /// Colors that it sends to its core in some position, as bits.
    pub(crate) fn ramp(&self) -> u32 {
        let to_core = |row: &&ColorPlan| row.any_tx >> RAMP & 1 != 0;
        self.colors.iter().filter(to_core).fold(0, |all, row| all | 1 << row.color)
    }

    /// Appends a color; its index.
    pub(crate) fn add(&mut self, row: ColorPlan) -> u8 {
        let index = self.colors.len() as u8;
        self.index_of[usize::from(row.color)] = index;
        self.colors.push(row);
        index
    }

    /// The row of a color.
    pub(crate) fn row(&self, color: u8) -> Option<&ColorPlan> {
        self.colors.get(usize::from(self.index_of[usize::from(color)]))
    }

    /// Whether its PE's program may write registers of a color at run time.
    pub(crate) fn is_written(&self, color: u8) -> bool {
        self.written >> color & 1 != 0
    }

    /// The row of a color, if it is configured, and neither a swap nor a register that is written has a say in it.
    pub(crate) fn fixed(&self, color: u8) -> Option<&ColorPlan> {
        let fixed = !self.is_swapped(color) && !self.is_written(color);
        self.row(color).filter(|row| row.known && fixed)
    }

    /// The ports by which a color may leave, in whatever position, and as its partner if there are swaps; all of them if
    /// its registers may be written.
    pub(crate) fn may_leave_by(&self, color: u8) -> u8 {
        if self.is_written(color) {
            return ANYWHERE;
        }
        let ways = |color: u8| self.row(color).map_or(0, |row| row.any_tx);
        if self.is_swapped(color) { ways(color) | ways(color ^ 1) } else { ways(color) }
    }

    /// Whether another color may leave by one of these ports, as bits.
    pub(crate) fn shares(&self, color: u8, ports: u8) -> bool {
        let mut others = self.colors.iter().filter(|other| other.color != color && other.known);
        self.written & !(1 << color) != 0 || others.any(|other| other.any_tx & ports != 0)
    }
}

impl ColorPlan {
    fn new(color: Color, config: &ColorConfig) -> ColorPlan {
        let ColorConfig { route, switch, filter, teardown, swap_x, swap_y } = config;
        let switch = switch.unwrap_or_default();
        let entry = |entry: Option<SwitchEntry>| match entry {
            None => Entry::default(),
            Some(SwitchEntry::Rx(rx)) => Entry { rx: Some(rx.0), tx: None },
            Some(SwitchEntry::Tx(tx)) => Entry { rx: None, tx: Some(tx.0) },
            Some(SwitchEntry::Both(route)) => Entry { rx: Some(route.rx.0), tx: Some(route.tx.0) },
        };
        let mut row = ColorPlan {
            known: true,
            base: Ports { rx: route.rx.0, tx: route.tx.0 },
            entries: switch.positions.map(entry),
            initial: switch.initial,
            ring: switch.ring,
            pop: switch.pop,
            swap_x: *swap_x,
            swap_y: *swap_y,
            teardown: *teardown,
            filter: *filter,
            ..ColorPlan::unknown(color.index())
        };
        row.codes = row.entries.map(Entry::code);
        row.derive();
        row
    }

    /// A color that is not configured.
    pub(crate) fn unknown(color: u8) -> ColorPlan {
        ColorPlan {
            color,
            known: false,
            base: Ports::default(),
            entries: [Entry::default(); 3],
            codes: [Entry::INVALID; 3],
            rx: [0; 4],
            tx: [0; 4],
            any_tx: 0,
            positions: 1,
            initial: 0,
            ring: false,
            pop: PopMode::None,
            swap_x: false,
            swap_y: false,
            teardown: false,
            filter: None,
        }
    }

    /// Computes what follows from `base` and `entries`: a position keeps from the one before it
    /// what it does not name; the first invalid one ends the sequence.
    pub(crate) fn derive(&mut self) {
        let mut ports = self.base;
        (self.rx[0], self.tx[0]) = (ports.rx, ports.tx);
        for (at, entry) in self.entries.iter().enumerate() {
            ports.rx = entry.rx.unwrap_or(ports.rx);
            ports.tx = entry.tx.unwrap_or(ports.tx);
            (self.rx[at + 1], self.tx[at + 1]) = (ports.rx, ports.tx);
        }
        let invalid = |entry: &Entry| *entry == Entry::default();
        self.any_tx = self.tx.iter().fold(0, |all, tx| all | tx);
        let valid = self.entries.iter().position(invalid).unwrap_or(self.entries.len());
        self.positions = valid as u8 + 1;
    }

    /// Whether words from several sides may meet at one of its positions.
    fn meets(&self) -> bool {
        self.rx[..usize::from(self.positions)].iter().any(|rx| rx.count_ones() > 1)
    }

    /// Whether its words are copied, wherever they come from.
    pub(crate) fn forks(&self) -> bool {
        self.positions == 1 && self.tx[0].count_ones() > 1
    }

    /// The position after `position`, by a command.
    pub(crate) fn after(&self, position: u8, command: Command) -> u8 {
        match command {
            Command::Nop | Command::Teardown => position,
            Command::Advance => self.next(position),
            Command::Reset => 0,
        }
    }

    /// What a control wavelet leaves behind in a position: the one after its first command, and its payload
    /// beyond the router.
    pub(crate) fn obey(&self, position: u8, payload: u32) -> (u8, u32) {
        let command = control::first(payload);
        let new = self.after(position, command);
        let pops = match self.pop {
            PopMode::None => false,
            PopMode::Always => true,
            PopMode::OnAdvance => new != position,
            PopMode::OnAdvanceOrNop => new != position || command == Command::Nop,
        };
        (new, if pops { control::pop(payload) } else { payload })
    }

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

    /// Whether words go straight on from a port in a position, and commands do not change that one.
    pub(crate) fn passes(&self, position: u8, from: u8) -> bool {
        self.tx[usize::from(position)] == 1 << (from ^ 1) && self.next(position) == position
    }

    /// Whether it takes what enters by a port on its partner, the color that differs in bit 0.
    pub(crate) fn swaps(&self, port: u8) -> bool {
        match port / 2 {
            0 => self.swap_x,
            1 => self.swap_y,
            _ramp => self.swap_x && self.swap_y,
        }
    }
}

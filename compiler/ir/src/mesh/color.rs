//! Colors, routes, switches, filters.

use serde::{Deserialize, Serialize};

/// A routable color, 0..24. No other number is read from an image either.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Color(u8);

impl TryFrom<u8> for Color {
    type Error = &'static str;

    fn try_from(index: u8) -> Result<Color, &'static str> {
        Color::new(index).ok_or("no such color")
    }
}

impl From<Color> for u8 {
    fn from(color: Color) -> u8 {
        color.0
    }
}

impl Color {
    /// Number of colors.
    pub const COUNT: usize = 24;

    /// A color, if the number is one.
    pub fn new(index: u8) -> Option<Color> {
        (usize::from(index) < Color::COUNT).then_some(Color(index))
    }

    /// Its number.
    pub fn index(self) -> u8 {
        self.0
    }
}

impl std::fmt::Debug for Color {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "color{}", self.0)
    }
}

/// A router's five ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Port {
    /// Towards x - 1.
    West,
    /// Towards x + 1.
    East,
    /// Towards y + 1.
    South,
    /// Towards y - 1.
    North,
    /// Between router and compute element.
    Ramp,
}

impl Port {
    /// All ports in the order of the hardware's direction codes.
    pub const ALL: [Port; 5] = [Port::West, Port::East, Port::South, Port::North, Port::Ramp];

    /// The port on the other end of the link (the ramp's is itself).
    pub fn opposite(self) -> Port {
        match self {
            Port::West => Port::East,
            Port::East => Port::West,
            Port::South => Port::North,
            Port::North => Port::South,
            Port::Ramp => Port::Ramp,
        }
    }

    /// Step in (x, y) to the neighbor; the ramp leads nowhere.
    pub fn step(self) -> (i32, i32) {
        match self {
            Port::West => (-1, 0),
            Port::East => (1, 0),
            Port::South => (0, 1),
            Port::North => (0, -1),
            Port::Ramp => (0, 0),
        }
    }

    /// The name as in the language.
    pub fn name(self) -> &'static str {
        match self {
            Port::West => "WEST",
            Port::East => "EAST",
            Port::South => "SOUTH",
            Port::North => "NORTH",
            Port::Ramp => "RAMP",
        }
    }
}

/// A set of ports: bit `p` for `Port::ALL[p]`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct PortSet(pub u8);

impl PortSet {
    /// No port.
    pub const EMPTY: PortSet = PortSet(0);

    /// One port.
    pub fn one(port: Port) -> PortSet {
        PortSet(1 << port as u8)
    }

    /// With a port.
    #[must_use]
    pub fn with(self, port: Port) -> PortSet {
        PortSet(self.0 | 1 << port as u8)
    }

    /// Whether a port is in.
    pub fn contains(self, port: Port) -> bool {
        self.0 >> port as u8 & 1 != 0
    }

    /// Whether no port is in.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The ports, in order.
    pub fn iter(self) -> impl Iterator<Item = Port> {
        Port::ALL.into_iter().filter(move |&port| self.contains(port))
    }
}

/// Receive and transmit ports of a color at a router.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct Route {
    /// Ports it is taken from.
    pub rx: PortSet,
    /// Ports it is sent to, all at once.
    pub tx: PortSet,
}

/// Configuration of one color on one PE.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ColorConfig {
    /// Position 0.
    pub route: Route,
    /// Further positions.
    pub switch: Option<Switch>,
    /// Filter before the ramp.
    pub filter: Option<Filter>,
    /// Starts suspended.
    pub teardown: bool,
    /// Swaps with the color that differs in bit 0 when entering from EAST or WEST (wse2).
    pub swap_x: bool,
    /// Swaps with the color that differs in bit 0 when entering from NORTH or SOUTH (wse2).
    pub swap_y: bool,
}

/// Switch positions 1 to 3 and how they advance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Switch {
    /// What each further position changes; `None` is invalid.
    pub positions: [Option<SwitchEntry>; 3],
    /// Position at the start, 0 to 3.
    pub initial: u8,
    /// After the last valid position comes position 0.
    pub ring: bool,
    /// Which commands a passing control wavelet loses.
    pub pop: PopMode,
}

/// What a position changes against the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SwitchEntry {
    /// Other receive ports.
    Rx(PortSet),
    /// Other transmit ports.
    Tx(PortSet),
    /// Both (targets that can).
    Both(Route),
}

/// Which commands a passing control wavelet loses at a router.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PopMode {
    /// None.
    #[default]
    None,
    /// The first, always.
    Always,
    /// The first, if the position changed.
    OnAdvance,
    /// The first, if the position changed or the command was a no-operation.
    OnAdvanceOrNop,
}

/// Rule by which a router drops wavelets before the ramp.
#[expect(missing_docs, reason = "the line above each form explains its fields")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Filter {
    /// Data wavelets with an index (high half) in the range pass.
    Range { min: u16, max: u16 },
    /// The first `max + 1` of every `limit + 1` wavelets pass.
    Counter { data: bool, control: bool, initial: u16, limit: u16, max: u16, filter_control: bool },
    /// As `Counter`; the second limit replaces the first once, then all pass.
    Sparse {
        data: bool,
        control: bool,
        initial: u16,
        limit: u16,
        limit2: Option<u16>,
        max: u16,
        filter_control: bool,
    },
}

impl ColorConfig {
    /// The route of each position, as far as they are valid: a position keeps from the one
    /// before it what it does not name. Position 0 is always there.
    pub fn positions(&self) -> [Option<Route>; 4] {
        let mut routes = [Some(self.route), None, None, None];
        let Some(switch) = self.switch else { return routes };
        let mut current = self.route;
        for (entry, slot) in switch.positions.iter().zip(&mut routes[1..]) {
            match entry {
                Some(SwitchEntry::Rx(rx)) => current.rx = *rx,
                Some(SwitchEntry::Tx(tx)) => current.tx = *tx,
                Some(SwitchEntry::Both(route)) => current = *route,
                None => break,
            }
            *slot = Some(current);
        }
        routes
    }
}

//! A router's configuration as registers: the bits of spec/registers.md.

use dflow_ir::mesh::PopMode;
use dflow_ir::registers::{BankKind, COLOR_WORDS, FILTER_WORDS};

use super::filter::FilterState;
use super::plan::{ColorPlan, Entry, Ports};
use super::router::Router;
use crate::sched::plan::Plan;

/// What of a color changes as words pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Current {
    pub(crate) position: u8,
    pub(crate) torn: bool,
}

const POPS: [PopMode; 4] =
    [PopMode::None, PopMode::Always, PopMode::OnAdvance, PopMode::OnAdvanceOrNop];

fn pop_code(pop: PopMode) -> u16 {
    POPS.iter().position(|&known| known == pop).unwrap_or(0) as u16
}

fn bit(value: bool, at: u32) -> u16 {
    u16::from(value) << at
}

fn ports(ports: Ports) -> u16 {
    u16::from(ports.tx & 31) | u16::from(ports.rx & 31) << 5
}

fn ports_of(value: u16) -> Ports {
    Ports { tx: (value & 31) as u8, rx: (value >> 5 & 31) as u8 }
}

/// The value of a register.
fn encode(row: &ColorPlan, current: Current, kind: BankKind, word: u16) -> u16 {
    match (kind, word) {
        (BankKind::Route, _) => {
            ports(row.base)
                | bit(row.swap_y, 10)
                | bit(row.swap_x, 11)
                | pop_code(row.pop) << 12
                | bit(current.torn, 14)
        }
        (BankKind::Switch, _) => {
            let mut value = bit(row.ring, 12) | u16::from(current.position) << 13;
            for (at, &code) in row.codes.iter().enumerate() {
                value |= u16::from(code) << (4 * at);
            }
            value
        }
        (_, 0) => ports(row.base),
        (_, 1..=3) => {
            let Entry { rx, tx } = row.entries[usize::from(word) - 1];
            ports(Ports { rx: rx.unwrap_or(0), tx: tx.unwrap_or(0) })
                | bit(rx.is_some(), 10)
                | bit(tx.is_some(), 11)
        }
        _state => {
            u16::from(current.position)
                | bit(row.ring, 2)
                | pop_code(row.pop) << 3
                | bit(current.torn, 5)
        }
    }
}

/// Writes a register.
fn decode(row: &mut ColorPlan, current: &mut Current, kind: BankKind, word: u16, value: u16) {
    let flag = |at: u32| value >> at & 1 != 0;
    match (kind, word) {
        (BankKind::Route, _) => {
            row.base = ports_of(value);
            (row.swap_y, row.swap_x) = (flag(10), flag(11));
            row.pop = POPS[usize::from(value >> 12 & 3)];
            current.torn = flag(14);
        }
        (BankKind::Switch, _) => {
            row.codes = [0, 4, 8].map(|at| (value >> at & 15) as u8);
            row.entries = row.codes.map(Entry::from_code);
            row.ring = flag(12);
            current.position = (value >> 13 & 3) as u8;
        }
        (_, 0) => row.base = ports_of(value),
        (_, 1..=3) => {
            let Ports { rx, tx } = ports_of(value);
            row.entries[usize::from(word) - 1] =
                Entry { rx: flag(10).then_some(rx), tx: flag(11).then_some(tx) };
        }
        _state => {
            current.position = (value & 3) as u8;
            row.ring = flag(2);
            row.pop = POPS[usize::from(value >> 3 & 3)];
            current.torn = flag(5);
        }
    }
    row.derive();
}

/// The color and word of an index; none if the word is not used, or not a color's.
pub(crate) fn color_word(kind: BankKind, index: u16) -> Option<(u8, u16)> {
    match kind {
        BankKind::Route | BankKind::Switch => Some((index as u8, 0)),
        BankKind::Color => {
            let word = index % COLOR_WORDS;
            (word <= 4).then_some(((index / COLOR_WORDS) as u8, word))
        }
        BankKind::Filter => Some(((index / FILTER_WORDS) as u8, index % FILTER_WORDS)),
        BankKind::Teardown
        | BankKind::Console
        | BankKind::Input
        | BankKind::Output
        | BankKind::Clock
        | BankKind::ClockControl => None,
    }
}

fn filter_word(state: &FilterState, word: u16) -> u16 {
    match word {
        0 => state.counter,
        1 => state.limit,
        2 => state.max,
        _state => bit(state.open, 0) | bit(state.closed, 1),
    }
}

/// Reads a register of the router of PE `number`, which may not have been made yet; none if there
/// is nothing behind the address.
pub(crate) fn read(
    plan: &Plan,
    number: usize,
    router: Option<&Router>,
    kind: BankKind,
    index: u16,
) -> Option<u16> {
    let (color, word) = color_word(kind, index)?;
    let table = match router {
        Some(router) => Some(router.table(plan)),
        None => plan.routers.get(*plan.router_of.get(number)? as usize),
    };
    let row = table.and_then(|table| table.row(color));
    if kind == BankKind::Filter {
        let made = router.and_then(|router| router.filter(color).copied());
        let fresh = || Some(FilterState::new(color, row?.filter?));
        return Some(made.or_else(fresh).map_or(0, |state| filter_word(&state, word)));
    }
    let blank = ColorPlan::unknown(color);
    let row = row.unwrap_or(&blank);
    let current = match router {
        Some(router) => router.current(color),
        None => Current { position: row.initial, torn: row.teardown },
    };
    Some(encode(row, current, kind, word))
}

/// Writes a register; what is wrong if it cannot be.
pub(crate) fn write(
    plan: &Plan,
    router: &mut Router,
    kind: BankKind,
    index: u16,
    value: u16,
) -> Result<(), &'static str> {
    let Some((color, word)) = color_word(kind, index) else { return Err("is not used") };
    if kind == BankKind::Filter {
        let Some(state) = router.filter_mut(color) else {
            return Err("belongs to a color that has no filter");
        };
        match word {
            0 => state.counter = value,
            1 => state.limit = value,
            2 => state.max = value,
            _state => (state.open, state.closed) = (value & 1 != 0, value & 2 != 0),
        }
        router.refresh(plan);
        return Ok(());
    }
    let mut current = router.current(color);
    let index = router.index(plan, color);
    let table = router.own(plan);
    let row = &mut table.colors[usize::from(index)];
    row.known = true;
    decode(row, &mut current, kind, word, value);
    table.note_swaps();
    router.set_current(color, current);
    router.refresh(plan);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> ColorPlan {
        let mut row = ColorPlan {
            known: true,
            base: Ports { rx: 1, tx: 0b10010 },
            entries: [
                Entry { rx: None, tx: Some(2) },
                Entry { rx: Some(16), tx: None },
                Entry::default(),
            ],
            pop: PopMode::OnAdvance,
            codes: [1, 12, 5],
            ring: true,
            swap_x: true,
            ..ColorPlan::unknown(4)
        };
        row.derive();
        row
    }

    #[test]
    fn the_words_of_wse2_are_as_documented() {
        let current = Current { position: 2, torn: true };
        // Out RAMP and EAST, in WEST, swap E/W, pop on advance, teardown.
        assert_eq!(encode(&row(), current, BankKind::Route, 0), 0b0110_1000_0011_0010);
        // EAST out; RAMP in; invalid; ring; position 2.
        assert_eq!(encode(&row(), current, BankKind::Switch, 0), 0b0101_0101_1100_0001);
    }

    #[test]
    fn writing_what_was_read_changes_nothing() {
        let current = Current { position: 2, torn: true };
        for (kind, words) in
            [(BankKind::Route, 0..1), (BankKind::Switch, 0..1), (BankKind::Color, 0..5)]
        {
            for word in words {
                let (mut copy, mut now) = (row(), current);
                let value = encode(&copy, now, kind, word);
                decode(&mut copy, &mut now, kind, word, value);
                assert_eq!(format!("{copy:?}"), format!("{:?}", row()));
                assert_eq!(now, current);
            }
        }
    }

    #[test]
    fn an_invalid_position_ends_the_sequence_and_keeps_what_it_had() {
        let (mut row, mut current) = (row(), Current { position: 2, torn: false });
        decode(&mut row, &mut current, BankKind::Switch, 0, 0x0555 | 1 << 13);
        assert_eq!((row.positions, current.position), (1, 1));
        assert_eq!((row.rx, row.tx), ([1; 4], [0b10010; 4]));
        // The side of an invalid position is kept until a direction is written.
        decode(&mut row, &mut current, BankKind::Switch, 0, 0x055d);
        assert_eq!(encode(&row, current, BankKind::Switch, 0), 0x055d);
        assert_eq!(row.positions, 1);
    }
}

//! Numbers for nets: those that meet get different ones.

use dflow_ir::mesh::{Color, Coord};

use super::{Cells, Fault, Request};

/// Per net: its number, or what it may not have.
struct Choice {
    number: Option<Color>,
    /// Numbers of nets that it meets (bit set).
    taken: u32,
    /// Numbers that it could have.
    allowed: u32,
    meets: Vec<usize>,
}

/// The least number for each net, those with the least choice first.
///
/// # Errors
/// Two nets with fixed numbers clash, or no number is left for one.
pub(super) fn choose(request: &Request, cells: &[Cells]) -> Result<Vec<Color>, Fault> {
    let mut choices = choices(request, cells);
    for (index, net) in request.nets.iter().enumerate() {
        let Some(color) = net.fixed else { continue };
        let clash = |&other: &usize| choices[other].number == Some(color);
        if let Some(&other) = choices[index].meets.iter().find(|other| clash(other)) {
            let nets = (other, index);
            return Err(Fault::Clash { nets, color, at: meeting(cells, other, index) });
        }
        give(&mut choices, index, color);
    }
    while let Some(index) = next(&choices) {
        let Choice { taken, allowed, .. } = &choices[index];
        let free = allowed & !taken;
        let Some(color) = Color::new(free.trailing_zeros() as u8) else {
            return Err(no_color(&choices, cells, index));
        };
        give(&mut choices, index, color);
    }
    Ok(choices.into_iter().filter_map(|choice| choice.number).collect())
}

fn choices(request: &Request, cells: &[Cells]) -> Vec<Choice> {
    let all = (1 << Color::COUNT) - 1;
    let nets = request.nets.iter().enumerate();
    nets.map(|(index, net)| {
        let others = (0..cells.len()).filter(|&other| other != index);
        let meets = others.filter(|&other| cells[index].common(&cells[other]).is_some());
        let allowed = if net.switched { all & request.switch_colors } else { all };
        let allowed = allowed & !net.avoid;
        Choice { number: None, taken: 0, allowed, meets: meets.collect() }
    })
    .collect()
}

fn give(choices: &mut [Choice], index: usize, color: Color) {
    choices[index].number = Some(color);
    for other in choices[index].meets.clone() {
        choices[other].taken |= 1 << color.index();
    }
}

/// The net without a number that has the fewest left; the first of several.
fn next(choices: &[Choice]) -> Option<usize> {
    let open = choices.iter().enumerate().filter(|(_, choice)| choice.number.is_none());
    open.min_by_key(|(_, choice)| (choice.allowed & !choice.taken).count_ones())
        .map(|(index, _)| index)
}

fn no_color(choices: &[Choice], cells: &[Cells], net: usize) -> Fault {
    let meets = choices[net].meets.iter();
    let numbered = meets.filter_map(|&other| Some((choices[other].number?, other)));
    let mut taken: Vec<(Color, usize)> = numbered.collect();
    taken.sort_unstable();
    let at = taken.first().map_or(Coord::default(), |&(_, other)| meeting(cells, other, net));
    Fault::NoColor { net, taken, at }
}

fn meeting(cells: &[Cells], a: usize, b: usize) -> Coord {
    cells[a].common(&cells[b]).unwrap_or_default()
}

//! How the rectangle is cut for threads.

use dflow_ir::mesh::{Color, ColorConfig, Coord, Port, PortSet, Route};
use dflow_ir::target::TargetId;

use super::script::Spec;
use crate::config::EngineKind;
use crate::machine::HostLinkInfo;

const SIDE: u16 = 32;

/// A mesh whose rows (`across`) or columns (`down`), or both, carry ways of so many links, one behind the other.
fn mesh(across: bool, down: bool, length: u16) -> Spec {
    mesh_of(SIDE, across, down, length)
}

/// Likewise, with so many rows and columns.
fn mesh_of(side: u16, across: bool, down: bool, length: u16) -> Spec {
    let mut spec = Spec::new(TargetId::Wse2, side, side);
    for y in 0..side {
        for x in 0..side {
            let pe = usize::from(y * side + x);
            let ways = [(across, x, Port::West, Port::East), (down, y, Port::North, Port::South)];
            for (color, (_, at, from, to)) in
                ways.into_iter().enumerate().filter(|(_, (has, ..))| *has)
            {
                let rank = at % (length + 1);
                let rx = if rank == 0 { Port::Ramp } else { from };
                let tx = if rank == length { Port::Ramp } else { to };
                let route = Route { rx: PortSet::one(rx), tx: PortSet::one(tx) };
                let color = Color::new(color as u8).unwrap();
                spec.routers[pe].colors.push((
                    color,
                    ColorConfig { route, ..Default::default() },
                    Default::default(),
                ));
            }
        }
    }
    spec
}

/// Width and height of regions for two threads.
fn regions(spec: &Spec) -> (u32, u32) {
    spec.engine(EngineKind::Exact, 2, 0).plan.extent
}

#[test]
fn borders_run_along_long_ways() {
    let (whole, half) = (u32::from(SIDE), u32::from(SIDE) / 2);
    assert_eq!(regions(&mesh(true, false, SIDE - 1)), (whole, half));
    assert_eq!(regions(&mesh(false, true, SIDE - 1)), (half, whole));
}

#[test]
fn long_ways_in_both_directions_are_left_to_one_thread() {
    let spec = mesh(true, true, SIDE - 1);
    assert_eq!(regions(&spec), (u32::from(SIDE), u32::from(SIDE)));
    assert_eq!(spec.engine(EngineKind::Exact, 2, 0).threads(), 1);
}

#[test]
fn short_ways_may_cross() {
    let spec = mesh(true, true, 1);
    assert_eq!(regions(&spec).1, u32::from(SIDE) / 2);
    assert_eq!(spec.engine(EngineKind::Exact, 2, 0).threads(), 2);
}

/// Regions of `flow` for so many threads.
fn flowing(spec: &Spec, threads: usize) -> (u32, u32) {
    spec.engine(EngineKind::Flow, threads, 0).plan.extent
}

#[test]
fn regions_of_flow_are_the_same_for_any_number_of_threads() {
    let (side, half) = (2 * SIDE, u32::from(SIDE));
    let large = mesh_of(side, true, true, 2);
    for threads in [1, 2, 3, 8] {
        assert_eq!(flowing(&large, threads), (u32::from(side), half));
        assert_eq!(flowing(&mesh(true, true, 1), threads), (half, half));
    }
    assert_eq!(large.engine(EngineKind::Flow, 8, 0).threads(), 2);
}

/// The host's words by a color go down all columns: no border crosses them.
#[test]
fn borders_of_flow_cross_no_ways_of_the_host() {
    let (side, half) = (2 * SIDE, u32::from(SIDE));
    let mut spec = mesh_of(side, true, true, 2);
    assert_eq!(flowing(&spec, 2), (u32::from(side), half));
    let (color, port, to_mesh) = (Color::new(1).unwrap(), Port::North, true);
    spec.links.push(HostLinkInfo { at: Coord { x: 3, y: 0 }, port, color, to_mesh });
    assert_eq!(flowing(&spec, 2), (half, u32::from(side)));
}

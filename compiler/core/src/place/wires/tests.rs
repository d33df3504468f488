//! Random placements: every wire that is laid delivers, and no PE has two uses of a color.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const SIDES: [Port; 4] = [Port::West, Port::East, Port::North, Port::South];

fn at(x: u16, y: u16) -> Coord {
    Coord { x, y }
}

fn net(size: (u16, u16), cells: &[Coord]) -> Net {
    let mut used = Cells::none(size);
    cells.iter().for_each(|cell| used.insert(*cell));
    Net { fixed: None, switched: false, avoid: 0, cells: used }
}

/// A mesh of one-PE regions, a net of its own for each wire.
fn request(size: (u16, u16), wires: &[(End, End)]) -> Request {
    let mut code = Cells::none(size);
    let mut nets = Vec::new();
    for &(from, to) in wires {
        let ends: Vec<Coord> = [from, to].into_iter().filter_map(place).collect();
        ends.iter().for_each(|end| code.insert(*end));
        nets.push(net(size, &ends));
    }
    let wires = wires.iter().enumerate();
    let wires = wires.map(|(net, &(from, to))| Wire { net, from, to }).collect();
    Request { size, code, switch_colors: 0xff, nets, wires }
}

fn place(end: End) -> Option<Coord> {
    match end {
        End::Side(at, _) => Some(at),
        End::Host(_) => None,
    }
}

/// Follows a word from where it leaves to where it comes.
fn follow(wire: &Wire, laid: &Laid, size: (u16, u16)) {
    let next = |at: Coord, port: Port| {
        let (dx, dy) = port.step();
        let to = at_signed(i32::from(at.x) + dx, i32::from(at.y) + dy)?;
        (to.x < size.0 && to.y < size.1).then_some(to)
    };
    let (mut here, mut entry) = match wire.from {
        End::Side(at, out) => (next(at, out), out.opposite()),
        End::Host(_) => {
            let (at, side) = laid.host.expect("the host is joined");
            assert_eq!(next(at, side), None, "the host is beyond an edge");
            (Some(at), side)
        }
    };
    for (at, route) in &laid.routes {
        assert_eq!((here, route.rx), (Some(*at), PortSet::one(entry)));
        let tx = route.tx.iter().next().expect("a wire goes on");
        (here, entry) = (next(*at, tx), tx.opposite());
    }
    match wire.to {
        End::Side(at, side) => assert_eq!((here, entry), (Some(at), side)),
        End::Host(_) => {
            let (at, side) = laid.host.expect("the host is joined");
            assert_eq!((here, entry), (None, side.opposite()));
            let last = laid.routes.last().map(|(at, _)| *at).or(place(wire.from));
            assert_eq!(last, Some(at));
        }
    }
}

fn at_signed(x: i32, y: i32) -> Option<Coord> {
    Some(at(u16::try_from(x).ok()?, u16::try_from(y).ok()?))
}

/// Every wire delivers, and each PE has each color once.
fn check(request: &Request, wired: &Wired) {
    let mut used: BTreeMap<(Coord, Color), usize> = BTreeMap::new();
    let area = Rect { x: 0, y: 0, width: request.size.0, height: request.size.1 };
    for (index, net) in request.nets.iter().enumerate() {
        for cell in area.coords().filter(|cell| net.cells.contains(*cell)) {
            let before = used.insert((cell, wired.colors[index]), index);
            assert!(before.is_none(), "nets {before:?} and {index} at {cell:?}");
        }
        if let Some(color) = net.fixed {
            assert_eq!(wired.colors[index], color);
        }
        if net.switched {
            assert!(request.switch_colors >> wired.colors[index].index() & 1 != 0);
        }
    }
    let mut joined = BTreeSet::new();
    for (wire, laid) in request.wires.iter().zip(&wired.wires) {
        follow(wire, laid, request.size);
        for (cell, _) in &laid.routes {
            let before = used.insert((*cell, wired.colors[wire.net]), wire.net);
            assert!(before.is_none(), "nets {before:?} and {} at {cell:?}", wire.net);
        }
        assert!(laid.host.is_none_or(|host| joined.insert(host)), "two wires at one side");
    }
}

use dflow_ir::mesh::Rect;

#[test]
fn neighbors_need_no_way() {
    let size = (3, 1);
    let ends = (End::Side(at(0, 0), Port::East), End::Side(at(1, 0), Port::West));
    let request = request(size, &[ends]);
    let wired = plan(&request).unwrap();
    assert_eq!(wired.wires, [Laid::default()]);
    check(&request, &wired);
}

#[test]
fn a_wire_goes_around_code_unless_that_is_far() {
    let size = (9, 9);
    let ends = (End::Side(at(1, 4), Port::East), End::Side(at(7, 4), Port::West));
    let mut wall = request(size, &[ends]);
    (3..=5).for_each(|y| wall.code.insert(at(4, y)));
    let around = plan(&wall).unwrap();
    check(&wall, &around);
    assert!(around.wires[0].routes.iter().all(|(at, _)| !wall.code.contains(*at)));
    (0..9).for_each(|y| wall.code.insert(at(4, y)));
    let through = plan(&wall).unwrap();
    check(&wall, &through);
    assert_eq!(through.wires[0].routes.len(), 5);
}

#[test]
fn a_net_that_bars_the_way_is_a_fault() {
    let size = (5, 3);
    let ends = (End::Side(at(0, 1), Port::East), End::Side(at(4, 1), Port::West));
    let mut barred = request(size, &[ends]);
    (0..3).for_each(|y| barred.nets[0].cells.insert(at(2, y)));
    assert_eq!(plan(&barred), Err(Fault::NoPath { wire: 0 }));
    let outside = request(size, &[(End::Side(at(0, 1), Port::West), ends.1)]);
    assert_eq!(plan(&outside), Err(Fault::NoPath { wire: 0 }));
}

#[test]
fn a_port_at_the_edge_is_joined_to_the_host_there() {
    let size = (4, 4);
    let request = request(size, &[(End::Host(None), End::Side(at(0, 2), Port::West))]);
    let wired = plan(&request).unwrap();
    assert_eq!(wired.wires[0], Laid { routes: Vec::new(), host: Some((at(0, 2), Port::West)) });
}

#[test]
fn the_host_can_be_joined_by_way_of_a_pe() {
    let size = (9, 7);
    let request = request(size, &[(End::Side(at(3, 3), Port::East), End::Host(Some(at(6, 1))))]);
    let wired = plan(&request).unwrap();
    check(&request, &wired);
    assert!(wired.wires[0].routes.iter().any(|(cell, _)| *cell == at(6, 1)));
}

#[test]
fn fixed_numbers_that_meet_are_a_fault_and_others_go_around_them() {
    let size = (2, 1);
    let mut request = request(size, &[]);
    let color = Color::new(0);
    request.nets = vec![net(size, &[at(0, 0)]), net(size, &[at(0, 0)]), net(size, &[at(1, 0)])];
    request.nets[1].fixed = color;
    request.nets[2].fixed = color;
    let wired = plan(&request).unwrap();
    assert_eq!(wired.colors.iter().map(|color| color.index()).collect::<Vec<_>>(), [1, 0, 0]);
    request.nets[0].fixed = color;
    let fault = Fault::Clash { nets: (0, 1), color: color.unwrap(), at: at(0, 0) };
    assert_eq!(plan(&request), Err(fault));
}

#[test]
fn more_nets_than_colors_are_a_fault() {
    let size = (1, 1);
    let mut request = request(size, &[]);
    request.nets = vec![net(size, &[at(0, 0)]); 9];
    request.nets.iter_mut().for_each(|net| net.switched = true);
    let Err(Fault::NoColor { net, taken, at: cell }) = plan(&request) else { panic!("planned") };
    assert_eq!((net, taken.len(), cell), (8, 8, at(0, 0)));
    request.nets.iter_mut().for_each(|net| net.switched = false);
    assert_eq!(plan(&request).map(|wired| wired.colors.len()), Ok(9));
    request.nets[4].avoid = 0b1_1111;
    let numbers = plan(&request).map(|wired| wired.colors[4].index());
    assert!(numbers.is_ok_and(|number| number >= 5));
}

/// The eight wires of two facing edges, and of edges around a corner.
#[test]
fn wide_ports_are_joined_pe_by_pe() {
    let size = (24, 24);
    for (side, turned) in [(Port::West, false), (Port::North, true)] {
        let mut all = request(size, &[]);
        let mut cells = Cells::none(size);
        for n in 0..8 {
            let from = at(4, 8 + n);
            let to = if turned { at(12 + n, 20) } else { at(14, 3 + n) };
            [from, to].iter().for_each(|cell| cells.insert(*cell));
            let (from, to) = (End::Side(from, Port::East), End::Side(to, side));
            // Around a corner the lowest is the first: wires must not cross.
            all.wires.push(Wire { net: 0, from, to });
        }
        if turned {
            let starts: Vec<End> = all.wires.iter().rev().map(|wire| wire.from).collect();
            all.wires.iter_mut().zip(starts).for_each(|(wire, from)| wire.from = from);
        }
        all.code = cells.clone();
        all.nets = vec![Net { fixed: None, switched: false, avoid: 0, cells }];
        let wired = plan(&all).unwrap();
        check(&all, &wired);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// PEs anywhere, joined by pairs or to the host: all that is laid delivers, and with this much
    /// room all is laid.
    #[test]
    fn random_placements_deliver(
        cells in vec((1u16..15, 1u16..15), 2..20),
        sides in vec((0usize..4, 0usize..4, 0u8..6), 10),
    ) {
        let size = (16, 16);
        let mut places: Vec<Coord> = Vec::new();
        for (x, y) in cells {
            let free = places.iter().all(|old| old.x.abs_diff(x) + old.y.abs_diff(y) > 2);
            if free {
                places.push(at(x, y));
            }
        }
        let mut wires = Vec::new();
        for (pair, &(first, second, kind)) in places.chunks(2).zip(&sides) {
            let end = |index: usize, side: usize| pair.get(index).map(|&at| End::Side(at, SIDES[side]));
            let (from, to) = (end(0, first), end(1, second));
            match (from, to, kind) {
                (Some(from), Some(to), 0..4) => wires.push((from, to)),
                (Some(from), to, 4) => {
                    wires.push((from, End::Host(None)));
                    wires.extend(to.map(|to| (End::Host(None), to)));
                }
                (Some(from), ..) => wires.push((End::Host(None), from)),
                (None, ..) => {}
            }
        }
        let request = request(size, &wires);
        let wired = plan(&request);
        prop_assert!(wired.is_ok(), "{wired:?}");
        if let Ok(wired) = &wired {
            check(&request, wired);
            prop_assert_eq!(&plan(&request), &Ok(Wired { wires: wired.wires.clone(), colors: wired.colors.clone() }));
        }
    }
}

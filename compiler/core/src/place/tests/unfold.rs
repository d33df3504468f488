//! Unfolding the placement gives the plan back.

use std::collections::BTreeMap;

use dflow_ir::image::ProgramId;
use dflow_ir::mesh::Port;
use proptest::prelude::*;

use super::*;

/// Program and slots, and a set of colors, of each PE.
type Cells = Vec<(u8, [u64; 2], u8)>;

fn case(width: u16, height: u16, cells: &Cells, is_folded: bool) -> Case {
    // Programs 1 and 2 are equal, whatever their index, when they have one name.
    let names = if is_folded { ["a", "b", "b"] } else { ["a", "b", "c"] };
    let mut case = Case::empty(width, height, names.map(|name| program(name, 2)).into());
    case.programs[0].colors.push((color(20), config(&[Port::Ramp], &[Port::Ramp]), line(30)));
    for (at, &(program, slots, colors)) in case.plan.rect.coords().zip(cells) {
        case.tile(at, u32::from(program), &slots);
        for number in (0..8).filter(|number| colors >> number & 1 != 0) {
            let tx = if number % 2 == 0 { Port::Ramp } else { Port::East };
            case.route(at, number, config(&[Port::West], &[tx]), line(12 + u32::from(number)));
        }
    }
    case
}

proptest! {
    #[test]
    fn placement_unfolds_to_the_plan(
        width in 1u16..7,
        height in 1u16..7,
        cells in prop::collection::vec((0u8..3, [0u64..9, 0u64..9], any::<u8>()), 36),
        is_folded in any::<bool>(),
    ) {
        let case = case(width, height, &cells, is_folded);
        let image = case.image();
        let mut next: BTreeMap<ProgramId, usize> = BTreeMap::new();
        for (at, &(program, slots, colors)) in case.plan.rect.coords().zip(&cells) {
            let placed = *image.placement.programs.get(at).expect("every PE runs something");
            let expected = &case.programs[usize::from(program)].name;
            prop_assert_eq!(&image.programs[placed].name, expected);

            let block = next.entry(placed).or_default();
            let values = &image.placement.slots[placed][*block..*block + 2];
            prop_assert_eq!(values, &slots[..]);
            *block += 2;

            let router = *image.placement.router_map.get(at).expect("every PE has a router");
            let router = &image.placement.routers[router as usize];
            let numbers: Vec<u8> = router.colors.iter().map(|entry| entry.0.index()).collect();
            let own = (program == 0).then_some(20);
            let asked = (0..8).filter(|number| colors >> number & 1 != 0).chain(own);
            prop_assert_eq!(numbers, asked.collect::<Vec<u8>>());
            for (found, config, loc) in router.colors.iter().filter(|entry| entry.0.index() < 8) {
                let tx = if found.index() % 2 == 0 { Port::Ramp } else { Port::East };
                prop_assert!(config.route.tx.contains(tx));
                prop_assert_eq!(loc.line, 12 + u32::from(found.index()));
            }
        }
        for (program, values) in &image.placement.slots {
            prop_assert_eq!(values.len(), next.get(&program).copied().unwrap_or(0));
        }
        if is_folded {
            prop_assert!(image.programs.len() <= 2);
        }
    }
}

#[test]
fn the_plan_of_the_bench_has_no_faults() {
    // First column, last column, between.
    assert_eq!(crate::Wafer::new(7, 3, 10).place(), Ok(3));
}

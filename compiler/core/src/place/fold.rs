//! Equal programs become one.
//!
//! Equal means equal in everything, places included, so that a report about the one is true of
//! the other. Instances whose params differ and leave no trace in the code meet here.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use cranelift_entity::PrimaryMap;
use dflow_ir::image::ProgramId;
use dflow_ir::inst::InstData;
use dflow_ir::program::Program;
use dflow_syntax::Span;

use super::pes::Pes;
use crate::plan::ProgramIdx;

/// The programs that are left.
pub(super) struct Folded {
    /// The program that stands for each of the plan's; none for those that no PE runs.
    pub(super) of: Vec<Option<ProgramId>>,
    /// The first of the plan's programs that each stands for.
    pub(super) first: PrimaryMap<ProgramId, ProgramIdx>,
}

/// Folds the programs that some PE runs, in their order.
pub(super) fn fold(
    programs: &PrimaryMap<ProgramId, Program>,
    uses: &[Option<(Pes, Span)>],
) -> Folded {
    let mut folded = Folded { of: vec![None; uses.len()], first: PrimaryMap::new() };
    // Looked up, never iterated: order comes from `programs`.
    let mut known: HashMap<u64, Vec<ProgramId>> = HashMap::new();
    for (id, program) in programs {
        let index = id.as_u32();
        if !matches!(uses.get(index as usize), Some(Some(_))) {
            continue;
        }
        let alike = known.entry(fingerprint(program)).or_default();
        let first = &folded.first;
        let equal =
            alike.iter().find(|&&id| programs[ProgramId::from_u32(first[id].0)] == *program);
        let equal = equal.copied().unwrap_or_else(|| {
            let fresh = folded.first.push(ProgramIdx(index));
            alike.push(fresh);
            fresh
        });
        folded.of[index as usize] = Some(equal);
    }
    folded
}

/// A number that equal programs share and that most others do not: enough to make comparing
/// in full rare.
fn fingerprint(program: &Program) -> u64 {
    let mut hasher = DefaultHasher::new();
    program.name.hash(&mut hasher);
    (program.tasks.len(), program.queues.len(), program.slots.len()).hash(&mut hasher);
    for global in program.globals.values() {
        (&global.name, global.size, &global.init).hash(&mut hasher);
    }
    for color in &program.colors {
        (color.color, &color.config).hash(&mut hasher);
    }
    for func in program.funcs.values() {
        func.name.hash(&mut hasher);
        func.insts.values().for_each(|inst| hash_inst(inst, &mut hasher));
    }
    hasher.finish()
}

fn hash_inst(inst: &InstData, hasher: &mut DefaultHasher) {
    std::mem::discriminant(inst).hash(hasher);
    // Params that differ between instances show as constants.
    if let InstData::Const { dst: _, bits } = inst {
        bits.hash(hasher);
    }
}

//! Which functions may suspend, and what lives across each suspension point.
//!
//! A function may suspend if it holds an instruction for which
//! [`crate::inst::InstData::suspends`] says so, a loop (a block whose terminator leads to itself
//! or an earlier block in reverse post-order: a back edge), or a call of such a function. The
//! result is the same for every engine and both profiles. Invariants: it asks for a program whose
//! indices are in range (a validated one); blocks that nothing reaches hold no points; memory is
//! in proportion to blocks times locals that live across blocks.

use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};

use crate::func::{Block, Func, Inst, Local};
use crate::inst::InstData;
use crate::operands::Access;
use crate::program::{FuncId, Program};

/// What the analysis knows of a program.
#[derive(Clone, Debug)]
pub struct Suspension {
    /// Whether each function may suspend.
    pub may_suspend: SecondaryMap<FuncId, bool>,
    /// Details of those that may; the others have no points.
    pub funcs: PrimaryMap<FuncId, FuncSuspension>,
}

/// Suspension points of one function, in block and instruction order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FuncSuspension {
    /// The points; resume index `i + 1` belongs to point `i` (0 means "from the start").
    pub points: Vec<Point>,
}

/// One suspension point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Where.
    pub at: PointAt,
    /// Locals that live after it, without those it defines, in index order. At a back edge:
    /// those that live before the terminator, which is evaluated (again) on resumption.
    pub live: Vec<Local>,
}

/// Kind and place of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointAt {
    /// At an instruction (a visible act or a call).
    Inst(Inst),
    /// At the end of a block, before control goes along a back edge to its target: the yield
    /// of a long loop. One point per block whose terminator has a back edge.
    BackEdge(Block),
}

impl Suspension {
    /// Analyzes a validated program.
    pub fn analyze(program: &Program) -> Suspension {
        let flows: PrimaryMap<FuncId, Flow> = program.funcs.values().map(Flow::of).collect();
        let may_suspend = fixpoint(program, &flows);
        let funcs = program
            .funcs
            .iter()
            .map(|(id, func)| {
                if may_suspend[id] {
                    points(func, &flows[id], &may_suspend)
                } else {
                    FuncSuspension::default()
                }
            })
            .collect();
        Suspension { may_suspend, funcs }
    }
}

/// Control flow of one function.
struct Flow {
    /// Reached from the entry.
    reached: SecondaryMap<Block, bool>,
    /// Ends in a back edge.
    back_edge: SecondaryMap<Block, bool>,
    /// The reached blocks, each after all it leads to except along back edges.
    post_order: Vec<Block>,
}

impl Flow {
    /// Depth-first from the entry, successors in written order: an edge to a block that is
    /// still open leads back.
    fn of(func: &Func) -> Flow {
        let mut flow = Flow {
            reached: SecondaryMap::new(),
            back_edge: SecondaryMap::new(),
            post_order: Vec::new(),
        };
        if func.blocks.is_empty() {
            return flow;
        }
        let mut open = SecondaryMap::<Block, bool>::new();
        let mut stack = vec![(func.entry(), func.blocks[func.entry()].terminator.successors(), 0)];
        flow.reached[func.entry()] = true;
        open[func.entry()] = true;
        while let Some((block, successors, next)) = stack.last_mut() {
            let block = *block;
            let Some(&target) = successors.get(*next) else {
                open[block] = false;
                flow.post_order.push(block);
                stack.pop();
                continue;
            };
            *next += 1;
            if open[target] {
                flow.back_edge[block] = true;
            } else if !flow.reached[target] {
                flow.reached[target] = true;
                open[target] = true;
                stack.push((target, func.blocks[target].terminator.successors(), 0));
            }
        }
        flow
    }

    /// Reached blocks in index order.
    fn blocks<'a>(&'a self, func: &'a Func) -> impl Iterator<Item = Block> + 'a {
        func.blocks.keys().filter(|&block| self.reached[block])
    }
}

/// The least set of functions that holds those with a suspension of their own and all callers.
fn fixpoint(program: &Program, flows: &PrimaryMap<FuncId, Flow>) -> SecondaryMap<FuncId, bool> {
    let mut callers = SecondaryMap::<FuncId, Vec<FuncId>>::new();
    let mut may_suspend = SecondaryMap::<FuncId, bool>::new();
    let mut work = Vec::new();
    for (id, func) in &program.funcs {
        let mut own = flows[id].blocks(func).any(|block| flows[id].back_edge[block]);
        for inst in flows[id].blocks(func).flat_map(|block| &func.blocks[block].insts) {
            own |= func.insts[*inst].suspends();
            if let InstData::Call { dst: _, func: callee, args: _ } = &func.insts[*inst] {
                callers[*callee].push(id);
            }
        }
        if own {
            may_suspend[id] = true;
            work.push(id);
        }
    }
    while let Some(id) = work.pop() {
        for &caller in &callers[id] {
            if !may_suspend[caller] {
                may_suspend[caller] = true;
                work.push(caller);
            }
        }
    }
    may_suspend
}

fn is_point(inst: &InstData, may_suspend: &SecondaryMap<FuncId, bool>) -> bool {
    match inst {
        InstData::Call { dst: _, func, args: _ } => may_suspend[*func],
        other => other.suspends(),
    }
}

/// Points of one function: per block, backwards, with the set of what is live.
fn points(func: &Func, flow: &Flow, may_suspend: &SecondaryMap<FuncId, bool>) -> FuncSuspension {
    let liveness = Liveness::of(func, flow);
    let mut points = Vec::new();
    let mut live = Bits::new(func.locals.len());
    for block in flow.blocks(func) {
        live.clear();
        liveness.live_out(func, block, |local| live.insert(local.index()));
        let data = &func.blocks[block];
        if let Some(local) = data.terminator.read() {
            live.insert(local.index());
        }
        let first = points.len();
        if flow.back_edge[block] {
            points.push(Point { at: PointAt::BackEdge(block), live: live.locals() });
        }
        for &inst in data.insts.iter().rev() {
            step_back(&func.insts[inst], Access::Write, &mut live);
            if is_point(&func.insts[inst], may_suspend) {
                points.push(Point { at: PointAt::Inst(inst), live: live.locals() });
            }
            step_back(&func.insts[inst], Access::Read, &mut live);
        }
        points[first..].reverse();
    }
    FuncSuspension { points }
}

/// Takes what an instruction writes out of the set, or puts in what it reads.
fn step_back(inst: &InstData, what: Access, live: &mut Bits) {
    inst.visit_locals(|local, access| match (access, what) {
        (Access::Write, Access::Write) => live.remove(local.index()),
        (Access::Read, Access::Read) => live.insert(local.index()),
        (Access::Write, Access::Read) | (Access::Read, Access::Write) => {}
    });
}

/// What is live at the start of each block. Only locals that some block reads before it writes
/// them can be; they alone get a bit.
struct Liveness {
    /// The locals with a bit, in index order.
    crossing: Vec<Local>,
    /// Per block, over `crossing`.
    live_in: SecondaryMap<Block, Bits>,
}

impl Liveness {
    /// The usual backward iteration, in post order until nothing changes.
    fn of(func: &Func, flow: &Flow) -> Liveness {
        let (exposed, written) = exposure(func, flow);
        let mut all = Bits::new(func.locals.len());
        exposed.values().flatten().for_each(|&local| all.insert(local.index()));
        let crossing = all.locals();
        let mut bit = SecondaryMap::<Local, u32>::with_default(u32::MAX);
        crossing.iter().enumerate().for_each(|(index, &local)| bit[local] = index as u32);
        let mut live_in = SecondaryMap::<Block, Bits>::new();
        let mut kill = SecondaryMap::<Block, Bits>::new();
        for &block in &flow.post_order {
            live_in[block] = Bits::new(crossing.len());
            kill[block] = Bits::new(crossing.len());
            exposed[block].iter().for_each(|&local| live_in[block].insert(bit[local] as usize));
            let crossing_writes = written[block].iter().filter(|&&local| bit[local] != u32::MAX);
            crossing_writes.for_each(|&local| kill[block].insert(bit[local] as usize));
        }
        let mut changed = true;
        while changed {
            changed = false;
            for &block in &flow.post_order {
                let mut set = std::mem::take(&mut live_in[block]);
                for successor in func.blocks[block].terminator.successors() {
                    changed |= set.add_without(
                        if successor == block { &EMPTY } else { &live_in[successor] },
                        &kill[block],
                    );
                }
                live_in[block] = set;
            }
        }
        Liveness { crossing, live_in }
    }

    fn live_out(&self, func: &Func, block: Block, mut visit: impl FnMut(Local)) {
        func.blocks[block].terminator.visit_successors(|successor| {
            self.live_in[successor].each(|bit| visit(self.crossing[bit]));
        });
    }
}

type LocalsPerBlock = SecondaryMap<Block, Vec<Local>>;

/// Per block: locals read before they are written in it, and locals written in it.
fn exposure(func: &Func, flow: &Flow) -> (LocalsPerBlock, LocalsPerBlock) {
    let mut exposed = LocalsPerBlock::new();
    let mut written = LocalsPerBlock::new();
    // Number of the last block that wrote a local, plus one: no set to clear between blocks.
    let mut writer = SecondaryMap::<Local, u32>::new();
    for block in flow.blocks(func) {
        let tag = block.as_u32() + 1;
        let data = &func.blocks[block];
        let mut read = |local: Local, writer: &SecondaryMap<Local, u32>| {
            if writer[local] != tag {
                exposed[block].push(local);
            }
        };
        for &inst in &data.insts {
            func.insts[inst].visit_locals(|local, access| {
                if access == Access::Read {
                    read(local, &writer);
                }
            });
            func.insts[inst].visit_locals(|local, access| {
                if access == Access::Write && writer[local] != tag {
                    writer[local] = tag;
                    written[block].push(local);
                }
            });
        }
        if let Some(local) = data.terminator.read() {
            read(local, &writer);
        }
    }
    (exposed, written)
}

/// A set of small numbers.
#[derive(Clone, Debug, Default)]
struct Bits(Vec<u64>);

static EMPTY: Bits = Bits(Vec::new());

impl Bits {
    fn new(len: usize) -> Bits {
        Bits(vec![0; len.div_ceil(64)])
    }

    fn clear(&mut self) {
        self.0.fill(0);
    }

    fn insert(&mut self, bit: usize) {
        self.0[bit / 64] |= 1 << (bit % 64);
    }

    fn remove(&mut self, bit: usize) {
        self.0[bit / 64] &= !(1 << (bit % 64));
    }

    /// Adds `other` without `except`; says whether that changed anything.
    fn add_without(&mut self, other: &Bits, except: &Bits) -> bool {
        let mut changed = false;
        for ((word, other), except) in self.0.iter_mut().zip(&other.0).zip(&except.0) {
            let new = *word | other & !except;
            changed |= new != *word;
            *word = new;
        }
        changed
    }

    fn each(&self, mut visit: impl FnMut(usize)) {
        for (index, &word) in self.0.iter().enumerate() {
            let mut rest = word;
            while rest != 0 {
                visit(index * 64 + rest.trailing_zeros() as usize);
                rest &= rest - 1;
            }
        }
    }

    fn locals(&self) -> Vec<Local> {
        let mut locals = Vec::new();
        self.each(|bit| locals.push(Local::new(bit)));
        locals
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::FuncBuilder;
    use crate::inst::{ClockOp, Terminator};
    use crate::loc::Loc;
    use crate::program::Profile;
    use crate::scalar::BinaryOp;
    use crate::ty::Ty;

    fn program(funcs: Vec<Func>) -> Program {
        let mut program = Program::empty("test".to_owned(), Profile::Pe);
        program.funcs = funcs.into_iter().collect();
        program
    }

    fn wait(builder: &mut FuncBuilder) {
        builder.inst(InstData::Clock { op: ClockOp::Enable, dst: None });
    }

    fn call(builder: &mut FuncBuilder, func: u32) {
        builder.inst(InstData::Call { dst: None, func: FuncId::from_u32(func), args: Vec::new() });
    }

    fn start() -> FuncBuilder {
        FuncBuilder::new("f".to_owned(), &[], None, Loc::default())
    }

    fn done(mut builder: FuncBuilder) -> Func {
        builder.terminate(Terminator::Return(None));
        builder.finish()
    }

    fn blocking() -> Func {
        let mut builder = start();
        wait(&mut builder);
        done(builder)
    }

    /// A loop of `n` turns that calls `fn0` in each and adds to a sum kept across calls.
    fn looping(call_inside: bool) -> Func {
        let mut b = FuncBuilder::new("loop".to_owned(), &[Ty::I16], Some(Ty::I16), Loc::default());
        let n = b.param(0);
        let sum = b.constant(Ty::I16, 0);
        let one = b.constant(Ty::I16, 1);
        let (head, end) = (b.block(), b.block());
        b.terminate(Terminator::Jump(head));
        b.switch_to(head);
        if call_inside {
            call(&mut b, 0);
        }
        b.inst(InstData::Binary { dst: sum, op: BinaryOp::Add, lhs: sum, rhs: n });
        b.inst(InstData::Binary { dst: n, op: BinaryOp::Sub, lhs: n, rhs: one });
        let cond = b.local(Ty::I8);
        b.inst(InstData::Binary { dst: cond, op: BinaryOp::LtU, lhs: one, rhs: n });
        b.terminate(Terminator::Branch { cond, then: head, otherwise: end });
        b.switch_to(end);
        b.terminate(Terminator::Return(Some(sum)));
        b.finish()
    }

    fn locals(indices: &[u32]) -> Vec<Local> {
        indices.iter().copied().map(Local::from_u32).collect()
    }

    #[test]
    fn a_call_of_a_blocking_function_is_a_point_in_every_caller() {
        let mut middle = start();
        call(&mut middle, 0);
        let mut outer = start();
        let kept = outer.constant(Ty::I32, 7);
        let dead = outer.constant(Ty::I32, 8);
        outer.inst(InstData::Copy { dst: dead, src: dead });
        call(&mut outer, 1);
        outer.inst(InstData::Copy { dst: dead, src: kept });
        let pure = done(start());
        let program = program(vec![blocking(), done(middle), done(outer), pure]);
        let suspension = Suspension::analyze(&program);
        let may: Vec<bool> = program.funcs.keys().map(|id| suspension.may_suspend[id]).collect();
        assert_eq!(may, [true, true, true, false]);
        let outer = &suspension.funcs[FuncId::from_u32(2)];
        assert_eq!(
            outer.points,
            [Point { at: PointAt::Inst(Inst::from_u32(3)), live: locals(&[0]) }]
        );
        assert!(suspension.funcs[FuncId::from_u32(3)].points.is_empty());
    }

    #[test]
    fn a_loop_suspends_at_its_back_edge_and_keeps_what_it_counts_with() {
        let suspension = Suspension::analyze(&program(vec![looping(false)]));
        assert_eq!(
            suspension.funcs[FuncId::from_u32(0)].points,
            [Point { at: PointAt::BackEdge(Block::from_u32(1)), live: locals(&[0, 1, 2, 3]) }]
        );
    }

    #[test]
    fn a_blocking_call_in_a_loop_comes_before_the_back_edge() {
        let suspension = Suspension::analyze(&program(vec![blocking(), looping(true)]));
        let points = &suspension.funcs[FuncId::from_u32(1)].points;
        let at: Vec<PointAt> = points.iter().map(|point| point.at).collect();
        assert_eq!(at, [PointAt::Inst(Inst::from_u32(2)), PointAt::BackEdge(Block::from_u32(1))]);
        assert_eq!(points[0].live, locals(&[0, 1, 2]));
    }

    #[test]
    fn recursion_alone_does_not_suspend_and_a_call_does_not_define_its_result_early() {
        let mut recursive = start();
        call(&mut recursive, 0);
        let mut reader = start();
        let time = reader.local(Ty::I64);
        reader.inst(InstData::Clock { op: ClockOp::Read, dst: Some(time) });
        reader.inst(InstData::Copy { dst: time, src: time });
        let suspension = Suspension::analyze(&program(vec![done(recursive), done(reader)]));
        assert!(!suspension.may_suspend[FuncId::from_u32(0)]);
        assert!(suspension.funcs[FuncId::from_u32(1)].points[0].live.is_empty());
    }

    #[test]
    fn a_local_read_only_behind_a_join_lives_across_the_branch() {
        let mut b =
            FuncBuilder::new("f".to_owned(), &[Ty::I8, Ty::I32], Some(Ty::I32), Loc::default());
        let (cond, kept) = (b.param(0), b.param(1));
        let (then, join) = (b.block(), b.block());
        b.terminate(Terminator::Branch { cond, then, otherwise: join });
        b.switch_to(then);
        wait(&mut b);
        b.terminate(Terminator::Jump(join));
        b.switch_to(join);
        b.terminate(Terminator::Return(Some(kept)));
        let suspension = Suspension::analyze(&program(vec![b.finish()]));
        assert_eq!(suspension.funcs[FuncId::from_u32(0)].points[0].live, locals(&[1]));
    }
}

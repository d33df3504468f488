//! Blocks of steps against steps.

use super::*;

/// An operand as [`given`], or of the fabric, or the FIFO.
#[derive(Clone, Debug)]
enum Anywhere {
    Here(Given),
    Fabric,
    Fifo,
}

fn anywhere() -> impl Strategy<Value = Anywhere> {
    prop_oneof![
        5 => given().prop_map(Anywhere::Here),
        4 => Just(Anywhere::Fabric),
        1 => Just(Anywhere::Fifo),
    ]
}

fn any_stream(operand: &Anywhere, ty: dflow_ir::ty::Ty, length: u16, is_dest: bool) -> Stream {
    match operand {
        Anywhere::Here(given) => stream(given, ty.bytes(), length, is_dest),
        Anywhere::Fabric if is_dest => Stream::Output {
            queue: 2,
            color: 5,
            control: false,
            index: 0x1234,
            advance_switch: false,
            transform: false,
        },
        Anywhere::Fabric => Stream::Input { queue: 3, color: 6, transform: false },
        Anywhere::Fifo => Stream::Fifo { fifo: 0 },
    }
}

/// Two same operations: one in steps as [`VectorState::block`] promises them, one in blocks.
fn compare_blocks(
    program: &LoadedProgram,
    begin: &PeState,
    start: &VectorStart,
    words: &[Vec<u32>; 2],
    sizes: &[u32],
) -> Result<(), TestCaseError> {
    let (mut fast, mut slow) = (begin.clone(), begin.clone());
    let mut blocks = VectorState::new(program, start.clone());
    let mut steps = blocks.clone();
    let mut at = 0;
    for &size in sizes {
        if blocks.is_done() || blocks.fifo_check(program, &mut fast) != FifoCheck::Ready {
            break;
        }
        prop_assert_eq!(steps.fifo_check(program, &mut slow), FifoCheck::Ready);
        let mut out = Vec::new();
        let inputs = words.each_ref().map(|words| &words[at..]);
        let block = blocks.block(program, &mut fast, inputs, size, &mut out);
        prop_assert!(block.done <= size);
        prop_assert!(block.done > 0 || size == 0 || block.trap.is_some());
        let (mut expected, mut last) = (Vec::new(), crate::exec::Stepped::default());
        for step in 0..block.done as usize {
            let inputs = words.each_ref().map(|words| words[at + step]);
            prop_assert!(last.activate == [None; 2] && !last.left);
            last = steps.step(program, &mut slow, inputs).unwrap();
            expected.extend(last.output);
        }
        at += block.done as usize;
        prop_assert_eq!((out, block.activate, block.left), (expected, last.activate, last.left));
        if block.trap.is_some() {
            let inputs = words.each_ref().map(|words| words[at]);
            prop_assert_eq!(block.trap, steps.step(program, &mut slow, inputs).err());
            return Ok(());
        }
        let (mut left, mut right) = (blocks.clone(), steps.clone());
        left.slow_down(program);
        right.slow_down(program);
        prop_assert_eq!(left, right);
        prop_assert_eq!(&fast, &slow);
    }
    Ok(())
}

/// An operation that is done at once comes to what its steps and its end come to; if it is not,
/// nothing is done.
fn compare_at_once(
    program: &LoadedProgram,
    begin: &PeState,
    start: &VectorStart,
    words: &[Vec<u32>; 2],
) -> Result<(), TestCaseError> {
    let (mut fast, mut slow, mut out) = (begin.clone(), begin.clone(), Vec::new());
    let all = start.length.map_or(words[0].len(), |length| length as usize);
    let inputs = words.each_ref().map(|words| &words[..all]);
    if !SharedStart::from(start.clone()).all_at_once(program, &mut fast, inputs, &mut out) {
        prop_assert!(out.is_empty());
        prop_assert_eq!(&fast, begin);
        return Ok(());
    }
    let (mut steps, mut expected) = (VectorState::new(program, start.clone()), Vec::new());
    while !steps.is_done() {
        let at = steps.done() as usize;
        let inputs = words.each_ref().map(|words| words[at]);
        let stepped = steps.step(program, &mut slow, inputs).unwrap();
        prop_assert_eq!((stepped.activate, stepped.left), ([None; 2], false));
        expected.extend(stepped.output);
    }
    prop_assert_eq!(steps.finish(program, &mut slow, true), Ok(1));
    prop_assert_eq!(out, expected);
    prop_assert_eq!(fast, slow);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn a_block_equals_as_many_steps(
        op in 0..DsdOp::all().count() as u8,
        dest in anywhere(),
        sources in [anywhere(), anywhere(), anywhere()],
        length in proptest::option::of(prop_oneof![0u16..20, 0u16..300]),
        content in proptest::collection::vec(any::<u8>(), BYTES as usize),
        words in proptest::array::uniform2(proptest::collection::vec(any::<u32>(), 1200)),
        sizes in proptest::collection::vec(prop_oneof![0u32..4, 4u32..40, 40u32..150], 1..8),
        kind in 0u8..8,
        held in 0u16..3,
    ) {
        let program = program();
        let op = DsdOp(op);
        let row = op.row();
        let extent = length.unwrap_or(300);
        let mut streams = [Stream::None; 3];
        for at in 0..row.shape.arity() {
            streams[at] = any_stream(&sources[at], row.sources[at], extent, false);
            if let Stream::Scalar(value) = &mut streams[at] {
                *value = row.sources[at].mask(u64::from(*value)) as u32;
            }
        }
        // There are two ports.
        let is_input = |stream: &Stream| matches!(stream, Stream::Input { .. });
        if streams.iter().all(is_input) {
            streams[2] = Stream::Scalar(0);
        }
        let start = VectorStart {
            op,
            dest: any_stream(&dest, row.dest, extent, true),
            sources: streams,
            length: length.map(u32::from),
            asynchronous: true,
            microthread: 0,
            activate: None,
            unblock: None,
            priority: None,
            packed: kind == 1 && row.dest.bytes() == 2 && row.sources[0].bytes() == 2,
            zero: (kind == 3).then_some(0),
            on_control: dflow_ir::inst::OnControl::Ignore,
            loc: Loc::default(),
        };
        let mut begin = state(&program);
        begin.memory.bytes_mut().copy_from_slice(&content);
        begin.unmasked = if kind == 2 { 0xff } else { 0 };
        begin.fifos[0].len = held;
        compare_blocks(&program, &begin, &start, &words, &sizes)?;
        compare_at_once(&program, &begin, &start, &words)?;
    }
}

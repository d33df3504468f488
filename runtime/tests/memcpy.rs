//! The protocol of `spec/memcpy.md` on real routers: a program written in IR that does on each PE
//! what the library does, and sessions that talk to it, on all engines.

use dflow_ir::image::Image;
use dflow_ir::mesh::{Color, Rect};
use dflow_ir::target::{Target, TargetId};
use dflow_ir::text::parse_image;
use dflow_ir::ty::Ty;
use dflow_runtime::config::{CodeKind, Config, EngineKind, Limits};
use dflow_runtime::exec::LoadedProgram;
use dflow_runtime::exec::interp::Interpreter;
use dflow_runtime::host::{Failure, HostEnv, HostOutcome, Input, Output, Session, run_program};
use dflow_runtime::machine::{Machine, Running};

const WORDS: u32 = 0;
const LONGS: u32 = 1;
const GO: u32 = 2;

/// Functions of the PE program; `CHANNEL` is what holds commands back.
const FUNCS: &str = r#"
func fn0 "on_command" (v0: i32) {
  locals v1..v19: i16, v20..v29: i32, v30..v39: i64, v40..v44: i8, v45: f32
block0:
  v1 = address [g3]
  v2 = load [v1]
  v3 = const 0
  v40 = eq v2, v3
  branch v40, block1, block2
block1:
  v4 = address [g0]
  store [v4], v0
  v20 = const 4
  v21 = shr_u v0, v20
  v22 = const 15
  v21 = and v21, v22
  v2 = truncate v21
  store [v1], v2
  v5 = address [g2]
  store [v5], v3
  jump block3
block2:
  v5 = address [g2]
  v6 = load [v5]
  v7 = const 2
  v8 = shl v6, v7
  v9 = address [g1]
  v9 = add v9, v8
  store [v9], v0
  v7 = const 1
  v6 = add v6, v7
  store [v5], v6
  v2 = sub v2, v7
  store [v1], v2
  jump block3
block3:
  v40 = eq v2, v3
  branch v40, block4, block12
block4:
  v4 = address [g0]
  v20 = load [v4]
  v22 = const 15
  v21 = and v20, v22
  v10 = const CHANNEL
  v11 = slot slot0
  v9 = address [g1]
  switch v21, [4: block5, 5: block6], block7
block5:
  v4 = address [g4]
  v2 = load [v4]
  v7 = const 1
  v2 = sub v2, v7
  store [v4], v2
  v40 = lt_s v2, v3
  branch v40, block13, block14
block6:
  block_channel v10
  v7 = const 1
  v30 = fabout queue=0 color22 indexed extent v7
  v12 = const 0
  vector mov16 fabric v30, scalar v12 async activate=27 index=v11
  jump block12
block7:
  v5 = address [g2]
  v6 = load [v5]
  v40 = eq v6, v3
  branch v40, block8, block15
block8:
  v23 = const 8
  v24 = shr_u v20, v23
  v22 = const 255
  v24 = and v24, v22
  v14 = truncate v24
  v15 = address [g5]
  v15 = load [v15]
  v7 = const 1
  v31 = mem1d v15, v14, v7
  block_channel v10
  switch v21, [1: block9, 2: block10, 7: block9, 8: block10], block11
block9:
  v30 = fabin queue=0 color21 extent v14
  vector mov32 memory v31, fabric v30 async activate=27
  jump block12
block10:
  v30 = fabin queue=0 color21 extent v14
  vector mov16 memory v31, fabric v30 async activate=27
  jump block12
block11:
  v30 = fabout queue=0 color22 indexed extent v14
  vector mov16 fabric v30, memory v31 async activate=27 index=v11
  jump block12
block12:
  return
block13:
  block_channel v10
  jump block14
block14:
  v12 = load [v9]
  v45 = load [v9+4]
  call fn2(v12, v45)
  jump block12
block15:
  v12 = load [v9]
  v13 = load [v9+2]
  v40 = le_u v12, v11
  v41 = le_u v11, v13
  v40 = and v40, v41
  branch v40, block8, block12
}
func fn1 "on_done" () {
  locals v0: i16
block0:
  v0 = const CHANNEL
  unblock_channel v0
  return
}
func fn2 "go" (v0: i16, v1: f32) {
  locals v2..v3: i16
block0:
  v2 = address [g6]
  v3 = load [v2]
  v3 = add v3, v0
  store [v2], v3
  store [v2+4], v1
  call fn3()
  return
}
func fn3 "unblock_cmd_stream" () {
  locals v0..v4: i16, v5: i8
block0:
  v0 = address [g4]
  v1 = load [v0]
  v2 = const 1
  v1 = add v1, v2
  store [v0], v1
  v3 = const 0
  v5 = eq v1, v3
  branch v5, block1, block2
block1:
  v4 = const CHANNEL
  unblock_channel v4
  jump block2
block2:
  return
}
func fn4 "on_stream" (v0: i32) {
  locals v1..v2: i16, v3: i32, v4: i64
block0:
  v1 = slot slot0
  v3 = extend_u v1
  v3 = add v0, v3
  v2 = const 1
  v4 = fabout queue=2 color4 extent v2
  vector mov32 fabric v4, scalar v3
  return
}
"#;

const GLOBALS: &str = r#"
slot slot0: i16
global g0 "header" size=4 align=4
global g1 "args" size=60 align=4
global g2 "have" size=2 align=2
global g3 "missing" size=2 align=2
global g4 "credit" size=2 align=2
global g5 "pointer" size=2 align=2 reloc 0 = g6
global g6 "buffer" size=64 align=4
task local 27 = fn1
queue input 0 = color21
export 0 = g5
export 1 = g5
export 2 = fn2
"#;

const QUEUES_WSE2: &str = "task data 23 = fn0\ntask data 3 = fn4\n";
const QUEUES_WSE3: &str = "queue input 1 = color23\nqueue input 2 = color3\nqueue output 0 = color22\n\
                           queue output 2 = color4\ntask data 1 = fn0\ntask data 2 = fn4\n";
const LINKS: &str = "host_link WEST color3 to_mesh\nhost_link WEST color4 to_host\n\
                     host_link WEST color21 to_mesh\nhost_link WEST color22 to_host\n\
                     host_link WEST color23 to_mesh\n";

/// Routes of a PE, ordered by color.
fn colors(first: bool, last: bool) -> [(u8, String); 5] {
    let next = if last { "RAMP" } else { "EAST" };
    let deal = if first && last {
        "route WEST>RAMP".to_owned()
    } else {
        format!("route WEST>RAMP switch [tx {next}, invalid, invalid] initial=0 pop=never")
    };
    let gather = if last { "route RAMP>WEST" } else { "route RAMP+EAST>WEST" }.to_owned();
    let commands = if last { "route WEST>RAMP" } else { "route WEST>RAMP+EAST" }.to_owned();
    let spread = if first && last {
        "route WEST>RAMP".to_owned()
    } else {
        let onward = if last { "RAMP" } else { "RAMP+EAST" };
        format!("route WEST>{onward} switch [tx RAMP, tx {next}, invalid] initial=0 pop=never")
    };
    [(3, deal), (4, gather.clone()), (21, spread), (22, gather), (23, commands)]
}

/// An image of `width` x `height` PEs: a program and a router per kind of column.
fn image(target: TargetId, width: u16, height: u16) -> Image {
    let last = width - 1;
    let mut kinds = vec![(0, 1)];
    if width > 2 {
        kinds.push((1, last - 1));
    }
    if width > 1 {
        kinds.push((last, 1));
    }
    let (queues, channel) = match target {
        TargetId::Wse2 => (QUEUES_WSE2, "23"),
        TargetId::Wse3 => (QUEUES_WSE3, "1"),
    };
    let [mut programs, mut memory, mut pes, mut slots, mut routers, mut routed] =
        [const { String::new() }; 6];
    for (index, &(x, columns)) in kinds.iter().enumerate() {
        let colors = colors(x == 0, x + columns == width);
        programs += &format!("program \"kind{index}\" pe {{{GLOBALS}{queues}");
        if x == 0 {
            programs += LINKS;
        }
        routers += &format!("router {index} {{\n");
        for (color, config) in colors {
            programs += &format!("color color{color} {config}\n");
            routers += &format!("color{color} {config}\n");
        }
        routers += "}\n";
        programs += &format!("{}}}\n", FUNCS.replace("CHANNEL", channel));
        memory += &format!(
            "memory program{index} data_end=136 stack=1024 code=0 \
             [g0=0, g1=4, g2=64, g3=66, g4=68, g5=70, g6=72]\n"
        );
        pes += &format!("pes {x},0 {columns} by {height} = program{index}\n");
        routed += &format!("routed {x},0 {columns} by {height} = {index}\n");
        slots += &format!("slots program{index}\n");
        for _ in 0..height {
            let row: Vec<String> = (x..x + columns).map(|column| column.to_string()).collect();
            slots += &format!("values {}\n", row.join(", "));
        }
    }
    let text = format!(
        "image {} {{\nexport \"words\" pointer i16 mutable\nexport \"longs\" pointer f32 mutable\n\
         export \"go\" function (i16, f32)\nmemcpy [color3] [color4]\n{programs}{memory}\
         placement 0,0 {width} by {height} {{\n{pes}{slots}{routers}{routed}}}\n}}",
        target.name()
    );
    let image = parse_image(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    dflow_ir::validate::check_image(&image).unwrap_or_else(|error| panic!("{error}"));
    image
}

fn session(image: &Image, config: &Config) -> Session<Machine<Running>> {
    let machine = Machine::load(image, config).expect("the image loads").start();
    Session::new(machine, image, Limits { cycle: 1_000_000, ..Limits::default() })
}

fn rect(x: u16, y: u16, width: u16, height: u16) -> Rect {
    Rect { x, y, width, height }
}

fn numbers(count: usize, from: u32) -> Vec<u8> {
    (from..).take(count).flat_map(|n| n.wrapping_mul(0x0101_0001).to_le_bytes()).collect()
}

/// A long conversation; gives what was seen, cycles included.
fn talk(
    host: &mut Session<Machine<Running>>,
    width: u16,
    height: u16,
) -> Result<Vec<u64>, Failure> {
    let all = host.symbols().all();
    let inner = rect(width / 2, height / 2, width - width / 2, height - height / 2);
    let mut cycles = Vec::new();

    let data = numbers(all.area() * 8, 1);
    host.copy_in(LONGS, all, Ty::F32, &data)?;
    let half = numbers(inner.area(), 9000);
    host.copy_in(WORDS, inner, Ty::I16, &half[..inner.area() * 4])?;
    let back = host.copy_out(LONGS, all, Ty::F32, 8)?;
    cycles.push(host.cycles());
    for (index, at) in all.coords().enumerate() {
        let mut wanted = data[index * 32..][..32].to_vec();
        if let Some(place) = inner.coords().position(|inside| inside == at) {
            wanted[..4].copy_from_slice(&half[place * 4..][..4]);
        }
        assert_eq!(&back[index * 32..][..32], &wanted[..], "PE ({}, {})", at.x, at.y);
    }

    // Launches in a row, with a copy in between that must wait for the first.
    host.copy_in(WORDS, all, Ty::I16, &vec![0; all.area() * 2])?;
    host.launch(GO, &[5, 0x4000_0000])?;
    cycles.push(host.cycles());
    host.launch(GO, &[0xfffe, 0x4080_0000])?;
    cycles.push(host.cycles());
    let back = host.copy_out(LONGS, all, Ty::F32, 2)?;
    for pe in back.chunks_exact(8) {
        assert_eq!(&pe[..2], &[3, 0]);
        assert_eq!(&pe[4..], &0x4080_0000u32.to_le_bytes());
    }

    // Streams of the last column, more than buffers hold.
    let column = rect(width - 1, 0, 1, height);
    let color = |number| Color::new(number).expect("a color");
    let words = numbers(usize::from(height) * 100, 3);
    host.stream_in(color(3), column, Ty::I32, &words)?;
    host.stream_out(color(4), column, Ty::I32, u64::from(height) * 100)?;
    let done = host.wait()?;
    cycles.push(host.cycles());
    let back: Vec<u8> = done[0].rows.concat();
    let wanted = words.chunks_exact(4).flat_map(|word| {
        let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        word.wrapping_add(u32::from(width) - 1).to_le_bytes()
    });
    assert!(wanted.eq(back));
    host.finish()?;
    cycles.push(host.cycles());
    Ok(cycles)
}

#[test]
fn all_engines_see_the_same_conversation() {
    for target in [TargetId::Wse2, TargetId::Wse3] {
        for (width, height) in [(1, 1), (2, 1), (5, 3), (1, 4)] {
            let image = image(target, width, height);
            let mut seen = Vec::new();
            for (engine, threads) in
                [(EngineKind::Step, 1), (EngineKind::Exact, 1), (EngineKind::Exact, 3)]
            {
                let code = CodeKind::Interpreter;
                let config = Config { engine, code, threads, region: 2, ..Config::default() };
                let mut host = session(&image, &config);
                let cycles = talk(&mut host, width, height)
                    .unwrap_or_else(|failure| panic!("{width} x {height}: {failure}"));
                assert!(cycles.is_sorted());
                seen.push(cycles);
            }
            assert!(seen.iter().all(|cycles| *cycles == seen[0]), "{seen:?}");
        }
    }
}

/// Rates: a word per cycle in, two cycles per 32-bit element out (spec/memcpy.md, section 7).
#[test]
fn copies_take_the_cycles_that_the_protocol_says() {
    let image = image(TargetId::Wse2, 4, 1);
    let config = Config { code: CodeKind::Interpreter, ..Config::default() };
    let mut host = session(&image, &config);
    let all = host.symbols().all();
    host.copy_in(LONGS, all, Ty::F32, &numbers(all.area() * 16, 1)).expect("fits");
    host.fence().expect("runs");
    let into = host.cycles();
    assert!((64..400).contains(&into), "{into} cycles for 64 words");
    host.copy_out(LONGS, all, Ty::F32, 16).expect("runs");
    let out = host.cycles() - into;
    assert!((128..500).contains(&out), "{out} cycles for 128 half words");
}

/// A PE that never answers a launch: the report comes instead of a hang.
#[test]
fn a_launch_that_is_not_answered_is_a_deadlock() {
    let mut image = image(TargetId::Wse2, 2, 1);
    for program in image.programs.values_mut() {
        // `go` without its call of `unblock_cmd_stream`.
        let go = program.funcs.values_mut().find(|func| func.name == "go").expect("is there");
        let entry = go.entry();
        go.blocks[entry].insts.pop();
        let last = go.insts.keys().next_back().expect("has instructions");
        go.insts =
            go.insts.iter().filter(|(id, _)| *id != last).map(|(_, inst)| inst.clone()).collect();
    }
    let config = Config { code: CodeKind::Interpreter, ..Config::default() };
    let mut host = session(&image, &config);
    let end = host.launch(GO, &[1, 2]);
    assert!(matches!(end, Err(Failure::Deadlock(_))), "{end:?}");
}

/// Where a host program's words go in the test below.
#[derive(Default)]
struct World {
    lines: Vec<String>,
    outputs: Vec<Output>,
}

impl HostEnv for World {
    fn has_input(&self, _name: &str) -> bool {
        false
    }

    fn input(&mut self, _name: &str) -> Result<Input, String> {
        Err("there is none".to_owned())
    }

    fn setting(&self, _name: &str) -> Option<String> {
        None
    }

    fn output(&mut self, output: Output) -> Result<(), String> {
        self.outputs.push(output);
        Ok(())
    }

    fn print(&mut self, line: &str) {
        self.lines.push(line.to_owned());
    }
}

#[test]
fn a_host_program_works_the_mesh() {
    let text = r#"program "host" host {
entry fn0
func fn0 "host" () {
locals v0..v9: i64, v10: i16, v11: f32, v12: i8
block0:
  v1 = const 3
  v2 = const 2
  v3 = const 12
  v4 = host alloc(v3)
  v10 = const 7
  store [v4+8], v10
  v5 = const 6
  host copy_in 0 i16(v0, v0, v1, v2, v4, v5)
  v10 = const 30
  host launch 2(v10, v11)
  v6 = const 1
  v7, v8 = host copy_out 0 i16(v0, v0, v1, v2, v6)
  host output "words" i16(v7, v8)
  v9 = host cycles()
  v12 = lt_u v9, v0
  v10 = load [v7+8]
  host print ["PE 4 has ", " (", ")"] [signed, bool](v10, v12)
  return
}
}"#;
    let program = dflow_ir::text::parse_program(text).unwrap_or_else(|error| panic!("{error}"));
    let program = LoadedProgram::host(program, Target::get(TargetId::Wse2));
    let image = image(TargetId::Wse2, 3, 2);
    let config = Config { code: CodeKind::Interpreter, ..Config::default() };
    let mut world = World::default();
    let end = run_program(&program, &Interpreter, &mut session(&image, &config), &mut world);
    assert_eq!(end, Ok(HostOutcome::Done));
    assert_eq!(world.lines, ["PE 4 has 37 (false)"]);
    assert_eq!(world.outputs[0].bytes, [30, 0, 30, 0, 30, 0, 30, 0, 37, 0, 30, 0]);
}

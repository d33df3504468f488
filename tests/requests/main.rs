//! What host scripts ask for, on whole programs: sessions with finite queues, on all engines.

use dflow_compiler::Options;
use dflow_ir::image::Image;
use dflow_ir::mesh::{Color, Coord, Rect};
use dflow_ir::target::TargetId;
use dflow_runtime::config::{CodeKind, Config, EngineKind, Limits};
use dflow_runtime::host::{Elements, Failure, Region, Request, Session, Spread};
use dflow_runtime::machine::{Machine, Running};
use dflow_runtime::outcome::HostWait;
use dflow_syntax::diagnostic::render;
use dflow_tests::world::{Folder, repository};

const TARGETS: [TargetId; 2] = [TargetId::Wse2, TargetId::Wse3];
const WORDS: Elements = Elements::Bytes(4);
const HALVES: Elements = Elements::Bytes(2);

type Host = Session<Machine<Running>>;

fn image(file: &str, target: TargetId, params: &[(&str, &str)]) -> Image {
    let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
    let params = params.iter().map(owned).collect();
    let options = Options { target, params, ..Options::default() };
    let world = Folder(repository().join("tests/requests"));
    let compiled = dflow_compiler::compile(&world, file, options);
    compiled.image.unwrap_or_else(|| {
        let lines = compiled.diagnostics.iter().map(|it| render::short(&compiled.sources, it));
        panic!("{}", lines.collect::<Vec<_>>().join("\n"))
    })
}

fn config(engine: EngineKind, threads: usize) -> Config {
    Config { engine, threads, region: 2, code: CodeKind::Interpreter, ..Config::default() }
}

fn configs() -> [Config; 3] {
    [config(EngineKind::Step, 1), config(EngineKind::Exact, 1), config(EngineKind::Exact, 3)]
}

fn host(image: &Image, config: &Config) -> Host {
    let machine = Machine::load(image, config).expect("the image loads").start();
    Session::finite(machine, image, Limits { cycle: 10_000_000, ..Limits::default() })
}

/// Does the same on all engines, and wants the same cycles; of `flow` for any number of threads.
fn everywhere(image: &Image, talk: impl Fn(&mut Host)) {
    let mut cycles = Vec::new();
    for config in configs() {
        let mut host = host(image, &config);
        talk(&mut host);
        cycles.push((host.cycles(), host.mesh().stats().hops));
    }
    assert!(cycles.iter().all(|it| *it == cycles[0]), "{cycles:?}");
    let cycles = [1, 3].map(|threads| {
        let mut host = host(image, &config(EngineKind::Flow, threads));
        talk(&mut host);
        host.cycles()
    });
    assert_eq!(cycles[0], cycles[1], "in `flow`");
}

fn color(number: u8) -> Color {
    Color::new(number).expect("a color")
}

fn rect(x: u16, y: u16, width: u16, height: u16) -> Region {
    Rect { x, y, width, height }.into()
}

fn bytes(words: impl IntoIterator<Item = u32>) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

fn stream_in(number: u8, region: Region, data: Vec<u8>) -> Request {
    let (color, elements, spread) = (color(number), WORDS, Spread::Each);
    Request::StreamIn { color, region, elements, spread, data }
}

fn stream_out(number: u8, region: Region, count: u64) -> Request {
    Request::StreamOut { color: color(number), region, elements: WORDS, count }
}

fn copy_out(
    host: &mut Host,
    name: &str,
    region: Region,
    elements: Elements,
    count: u64,
) -> Vec<u8> {
    let export = host.symbols().find(name).expect("is exported");
    host.copy_out(export, region, elements, count).unwrap_or_else(|failure| panic!("{failure}"))
}

fn echo(
    target: TargetId,
    size: u32,
    stored: bool,
    talk: impl Fn(&mut Host, Result<Vec<u8>, Failure>),
) {
    let size_text = size.to_string();
    let stored = if stored { "true" } else { "false" };
    let image = image("echo.csl", target, &[("size", &size_text), ("stored", stored)]);
    everywhere(&image, |host| {
        let one = rect(0, 0, 1, 1);
        host.submit(stream_in(2, one, bytes(0..size))).expect("fits");
        let ticket = host.submit(stream_out(4, one, size.into())).expect("fits");
        assert!(!host.is_done(ticket));
        let end = host.wait_for(ticket);
        talk(host, end);
    });
}

#[test]
fn an_echo_of_as_many_words_as_the_queues_hold_works() {
    for target in TARGETS {
        for (size, stored) in [(1, false), (14, false), (15, true), (40, true)] {
            echo(target, size, stored, |_, end| {
                let back = end.unwrap_or_else(|failure| panic!("{size} words: {failure}"));
                assert!(words(&back).into_iter().eq(0..size));
            });
        }
    }
}

#[test]
fn an_echo_of_one_word_more_stands_still_and_says_why() {
    for target in TARGETS {
        echo(target, 15, false, |_, end| {
            let Err(Failure::Deadlock(deadlock)) = end else { panic!("{end:?}") };
            let (color, row, words, room) = (color(2), 0, 15, 14);
            let wanted = HostWait::StreamIn { color, row, words, room };
            assert_eq!(deadlock.host_wait, Some(wanted));
            assert!(deadlock.text(&[]).contains("the queues at the edge hold 14"));
        });
    }
}

/// A stream into the mesh is over when its last word is stored, however few of the words the queues hold.
#[test]
fn a_stream_of_any_length_is_over_when_it_is_stored() {
    for target in TARGETS {
        let image = image("store.csl", target, &[("size", "40")]);
        everywhere(&image, |host| {
            let one = rect(0, 0, 1, 1);
            for part in [0..1, 1..15, 15..40] {
                let ticket = host.submit(stream_in(2, one, bytes(part))).expect("fits");
                host.wait_for(ticket).unwrap_or_else(|failure| panic!("{failure}"));
            }
            let stored = copy_out(host, "words", one, WORDS, 40);
            assert!(words(&stored).into_iter().eq(0..40));
        });
    }
}

/// What an echo gave back is room for the next.
#[test]
fn echoes_follow_each_other() {
    let image = image("echo.csl", TargetId::Wse2, &[("size", "28"), ("stored", "false")]);
    everywhere(&image, |host| {
        for round in 0..2 {
            let one = rect(0, 0, 1, 1);
            host.submit(stream_in(2, one, bytes(round..round + 14))).expect("fits");
            let ticket = host.submit(stream_out(4, one, 14)).expect("fits");
            let back = host.wait_for(ticket).unwrap_or_else(|failure| panic!("{failure}"));
            assert!(words(&back).into_iter().eq(round..round + 14));
        }
    });
}

fn columns(target: TargetId, into: &str, out: &str) -> Image {
    let params = [("width", "4"), ("height", "2"), ("into", into), ("out", out)];
    image("columns.csl", target, &params)
}

/// All columns send at once; the host takes them one after the other, in any order of requests.
#[test]
fn words_of_several_columns_belong_to_their_columns() {
    for target in TARGETS {
        let image = columns(target, "5", "6");
        everywhere(&image, several_columns);
    }
}

fn several_columns(host: &mut Host) {
    let send = host.symbols().find("send").expect("is exported");
    host.submit(Request::Launch { export: send, args: Vec::new() }).expect("fits");
    let wanted = |x: u32, y: u32, from: u32| (from..from + 3).map(move |i| 1000 * x + 100 * y + i);
    // A region in the middle, then all for the rest, then what the others still have.
    let middle = host.submit(stream_out(6, rect(1, 0, 2, 2), 3)).expect("fits");
    let all = host.submit(stream_out(6, rect(0, 0, 4, 2), 3)).expect("fits");
    let corner = host.submit(stream_out(6, rect(0, 1, 1, 1), 3)).expect("fits");
    let last = host.submit(stream_out(6, rect(3, 0, 1, 2), 3)).expect("fits");
    let back = words(&host.wait_for(all).unwrap_or_else(|failure| panic!("{failure}")));
    let firsts = |x| if x == 1 || x == 2 { 3 } else { 0 };
    let all = (0..2).flat_map(|y| (0..4).flat_map(move |x| wanted(x, y, firsts(x))));
    assert_eq!(back, all.collect::<Vec<_>>());
    assert!(host.is_done(middle) && !host.is_done(corner));
    let back = words(&host.wait_for(middle).expect("has been carried out"));
    let middle_words = (0..2).flat_map(|y| (1..3).flat_map(move |x| wanted(x, y, 0)));
    assert_eq!(back, middle_words.collect::<Vec<_>>());
    assert!(host.wait_for(middle).is_err());
    let back = words(&host.wait_for(last).unwrap_or_else(|failure| panic!("{failure}")));
    assert_eq!(back, (0..2).flat_map(|y| wanted(3, y, 3)).collect::<Vec<_>>());
    let back = words(&host.wait_for(corner).expect("has been carried out"));
    assert_eq!(back, wanted(0, 1, 3).collect::<Vec<_>>());
    host.finish().unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn streams_into_the_mesh_are_dealt_and_spread() {
    let image = columns(TargetId::Wse2, "5", "6");
    everywhere(&image, |host| {
        let all = rect(0, 0, 4, 2);
        host.submit(stream_in(5, rect(1, 0, 3, 2), bytes(1..=12))).expect("fits");
        let rows = Request::StreamIn {
            color: color(5),
            region: all,
            elements: WORDS,
            spread: Spread::Rows,
            data: bytes([100, 200]),
        };
        host.submit(rows).expect("fits");
        host.flush().unwrap_or_else(|failure| panic!("{failure}"));
        let held = words(&copy_out(host, "held", all, WORDS, 1));
        // Two words each.
        assert_eq!(held, [100, 103, 107, 111, 200, 215, 219, 223]);
    });
}

#[test]
fn a_color_without_switches_reaches_all_columns() {
    let image = columns(TargetId::Wse3, "11", "6");
    everywhere(&image, |host| {
        let all = rect(0, 0, 4, 2);
        let strided = Region { column_step: 2, row_step: 1, ..rect(1, 1, 3, 1) };
        for request in [
            stream_in(11, rect(0, 0, 1, 2), bytes([1, 2])),
            stream_in(11, rect(1, 0, 1, 2), bytes([3, 4])),
            stream_in(11, all, bytes((1..=16).map(|i| 10 * i))),
            stream_in(11, strided, bytes([1000, 2000])),
        ] {
            host.submit(request).expect("fits");
        }
        host.flush().unwrap_or_else(|failure| panic!("{failure}"));
        let held = words(&copy_out(host, "held", all, WORDS, 1));
        assert_eq!(held, [31, 73, 110, 150, 192, 1234, 270, 2310]);
        // Where all have come and gone, the first column comes first again.
        host.submit(stream_in(11, rect(0, 0, 1, 1), bytes([5]))).expect("fits");
        host.flush().unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(words(&copy_out(host, "held", rect(0, 0, 1, 1), WORDS, 1)), [36]);
    });
}

#[test]
fn copies_can_be_spread_and_strided() {
    for target in TARGETS {
        let image = columns(target, "5", "6");
        everywhere(&image, |host| {
            let export = host.symbols().find("held").expect("is exported");
            let halves = host.symbols().find("halves").expect("is exported");
            let all = rect(0, 0, 4, 2);
            let copy = |export, region, elements, spread, data| Request::CopyIn {
                export,
                region,
                elements,
                spread,
                data,
            };
            let strided = Region { column_step: 3, row_step: 1, ..all };
            let inner = rect(1, 0, 2, 2);
            for request in [
                copy(export, all, WORDS, Spread::Rows, bytes([1, 2, 11, 12])),
                copy(export, inner, WORDS, Spread::Columns, bytes([5, 6])),
                copy(export, strided, WORDS, Spread::Each, bytes([21, 22, 23, 24])),
                copy(export, rect(2, 1, 2, 1), WORDS, Spread::Rows, bytes([77])),
                copy(halves, inner, HALVES, Spread::Rows, vec![3, 0, 4, 0]),
            ] {
                host.submit(request).expect("fits");
            }
            host.flush().unwrap_or_else(|failure| panic!("{failure}"));
            let back = words(&copy_out(host, "held", all, WORDS, 2));
            assert_eq!(back, [21, 2, 5, 2, 6, 2, 22, 2, 23, 12, 5, 12, 77, 12, 77, 12]);
            let back = copy_out(host, "halves", all, HALVES, 1);
            assert_eq!(back, [0, 0, 3, 0, 3, 0, 0, 0, 0, 0, 4, 0, 4, 0, 0, 0]);
            let corners = Region { column_step: 3, row_step: 1, ..all };
            assert_eq!(words(&copy_out(host, "held", corners, WORDS, 1)), [21, 22, 23, 77]);
            let variable = host.read_variable(Coord { x: 1, y: 1 }, "held").expect("is there");
            assert_eq!(words(&variable), [5, 12, 0, 0, 0, 0]);
            assert!(host.read_variable(Coord { x: 1, y: 1 }, "hold").is_err());
            assert!(host.read_variable(Coord { x: 4, y: 1 }, "held").is_err());
        });
    }
}

#[test]
fn requests_are_checked_when_they_are_made() {
    let image = columns(TargetId::Wse2, "5", "6");
    let mut host = host(&image, &configs()[1]);
    let all = rect(0, 0, 4, 2);
    let find = |name| host.symbols().find(name).expect("is exported");
    let (held, halves, forget) = (find("held"), find("halves"), find("forget"));
    let copy = |export, region, elements, spread, count| {
        let data = vec![0; count];
        Request::CopyIn { export, region, elements, spread, data }
    };
    let stepless = Region { column_step: 0, ..all };
    let wanted = [
        (
            copy(held, all, HALVES, Spread::Each, 16),
            "`held` points to elements of type i32 (32 bits), the host has 16-bit elements",
        ),
        (
            copy(held, all, WORDS, Spread::Rows, 12),
            "3 elements cannot be shared equally by 2 PEs or rows",
        ),
        (
            copy(held, all, WORDS, Spread::Columns, 4),
            "1 elements cannot be shared equally by 4 PEs or rows",
        ),
        (copy(held, stepless, WORDS, Spread::Each, 32), "0 is no size"),
        (
            copy(halves, all, HALVES, Spread::Rows, 28),
            "`halves` of PE (0, 0) points to 6 elements, the host asks for 7 per PE",
        ),
        (
            Request::Launch { export: forget, args: Vec::new() },
            "`forget` takes 1 arguments, the host gives 0",
        ),
        (
            stream_in(6, all, bytes([1; 8])),
            "color 6 is no stream to the mesh in every row of the region: no link joins it",
        ),
        (
            stream_out(5, all, 1),
            "color 5 is no stream to the host in every row of the region: no link joins it",
        ),
        (stream_in(5, all, bytes([1; 6])), "6 elements cannot be shared equally by 8 PEs or rows"),
    ];
    for (request, message) in wanted {
        let refused = host.submit(request).map(|_| ()).expect_err(message);
        assert_eq!(refused.to_string(), message);
    }
}

#[test]
fn a_launch_without_an_answer_names_function_and_pe() {
    for target in TARGETS {
        let image = columns(target, "5", "6");
        everywhere(&image, |host| {
            let forget = host.symbols().find("forget").expect("is exported");
            let end = host.launch(forget, &[2]);
            let Err(Failure::Deadlock(deadlock)) = end else { panic!("{end:?}") };
            let text = deadlock.text(&image.files);
            let wanted = "launch of `forget` (columns_pe.csl:29) has not been answered: 2 PEs, \
                          first (2, 0), never called unblock_cmd_stream";
            assert!(text.contains(wanted), "{text}");
        });
    }
}

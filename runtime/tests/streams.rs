//! Streams by name: words between the host and routers of PEs that have no program.

use dflow_ir::image::Image;
use dflow_ir::text::parse_image;
use dflow_runtime::config::{Config, EngineKind, Limits};
use dflow_runtime::host::{Failure, HostError, Session};
use dflow_runtime::machine::{Machine, Running};

/// Two columns without programs: `there` comes in from the west, `back` leaves to the east.
fn image(buffer_in: u32, buffer_out: u32) -> Image {
    let text = format!(
        "image wse3 {{\n\
         stream \"there\" 0, 0 WEST color4 to_mesh buffer={buffer_in}\n\
         stream \"back\" 1, 0 EAST color4 to_host buffer={buffer_out}\n\
         placement 0, 0 2 by 1 {{\nrouter 0 {{\ncolor4 route WEST>EAST\n}}\n\
         routed 0,0 2 by 1 = 0\n}}\n}}\n"
    );
    parse_image(&text).expect("the text is an image")
}

fn session(image: &Image, engine: EngineKind) -> Session<Machine<Running>> {
    let config = Config { engine, ..Config::default() };
    let machine = Machine::load(image, &config).expect("the image loads");
    Session::new(machine.start(), image, Limits::default())
}

const ENGINES: [EngineKind; 2] = [EngineKind::Step, EngineKind::Exact];

fn words(rows: &[Vec<u8>]) -> Vec<u32> {
    let all = rows.concat();
    all.chunks_exact(4)
        .map(|word| word.iter().rev().fold(0, |all, &b| all << 8 | u32::from(b)))
        .collect()
}

#[test]
fn words_come_in_order_to_whoever_asked_first() {
    let image = image(1024, 1024);
    let mut cycles = Vec::new();
    for engine in ENGINES {
        let mut session = session(&image, engine);
        let (there, back) =
            (session.named_stream("there").unwrap(), session.named_stream("back").unwrap());
        let first = session.receive_words(back, 3).unwrap();
        let second = session.receive_words(back, 2).unwrap();
        session.send_words(there, &[7, 8, 9, 10, 11]).unwrap();
        assert!(!session.is_complete(first).unwrap());
        assert_eq!(words(&session.complete(second).unwrap()), [10, 11]);
        assert!(session.is_complete(first).unwrap());
        assert_eq!(words(&session.complete(first).unwrap()), [7, 8, 9]);
        assert!(session.complete(first).unwrap().is_empty());
        session.finish().unwrap();
        cycles.push(session.cycles());
    }
    assert_eq!(cycles[0], cycles[1]);
}

/// The buffers and the routers between them hold what nobody asked for; a send of more waits.
#[test]
fn a_send_that_nobody_receives_waits() {
    let image = image(10, 20);
    for engine in ENGINES {
        let mut session = session(&image, engine);
        let (there, back) =
            (session.named_stream("there").unwrap(), session.named_stream("back").unwrap());
        session.send_words(there, &[1; 30]).unwrap();
        session.wait_sent(there).unwrap();
        session.send_words(there, &[2; 30]).unwrap();
        assert!(!session.is_sent(there));
        let failure = session.wait_sent(there).unwrap_err();
        assert!(
            matches!(&failure, Failure::Deadlock(report) if report.text(&[]).contains("color 4")),
            "{failure:?}"
        );
        let Failure::Deadlock(report) = failure else { panic!("{failure:?}") };
        // 20 at the host and its buffer's 10 apart, what the routers hold has entered.
        let waits = report.text(&[]);
        assert!(
            waits.contains("its words for the stream `there` have entered the mesh: "),
            "{waits}"
        );
        assert!(waits.contains(" have not, and its buffer holds 10"), "{waits}");
        let reception = session.receive_words(back, 60).unwrap();
        session.wait_sent(there).unwrap();
        assert!(session.is_sent(there));
        let got = words(&session.complete(reception).unwrap());
        assert_eq!(got, [[1; 30], [2; 30]].concat());
    }
}

#[test]
fn words_that_never_come_are_counted() {
    let image = image(64, 64);
    for engine in ENGINES {
        let mut session = session(&image, engine);
        session.send_words(0, &[1; 16]).unwrap();
        session.receive_words(1, 10).unwrap();
        let second = session.receive_words(1, 7).unwrap();
        let Err(Failure::Deadlock(report)) = session.complete(second) else { panic!("it waits") };
        let waits = report.text(&[]);
        assert!(waits.contains("the host waits for 1 more word of the stream `back`"), "{waits}");
    }
}

#[test]
fn names_and_directions_are_checked() {
    let image = image(1, 1);
    let mut session = session(&image, EngineKind::Exact);
    assert_eq!(session.named_streams().count(), 2);
    let error = session.named_stream("where").unwrap_err();
    assert_eq!(error.to_string(), "there is no stream `where`; there is `there`, `back`");
    let wrong = |failure: Failure| match failure {
        Failure::Host { error, .. } => error.to_string(),
        other => panic!("{other:?}"),
    };
    let sent = wrong(session.send_words(1, &[1]).unwrap_err());
    assert_eq!(sent, "stream `back` leads to the host: the host can only receive from it");
    let received = wrong(session.receive_words(0, 1).unwrap_err());
    assert_eq!(received, "stream `there` leads into the mesh: the host can only send over it");
    let missing = session.send_words(2, &[1]).unwrap_err();
    assert!(matches!(missing, Failure::Host { error: HostError::UnknownStream { .. }, .. }));
}

#[test]
fn streams_of_an_image_are_validated() {
    let text = |from: &str, to: &str| {
        let image = dflow_ir::text::print_image(&image(1, 1), Default::default());
        assert!(image.contains(from), "{image}");
        let image = parse_image(&image.replace(from, to)).expect("the text is an image");
        Image::decode(&image.encode()).err().map(|error| error.to_string())
    };
    let refused = [
        ("1, 0 EAST", "2, 0 EAST", "outside the program's rectangle"),
        ("1, 0 EAST", "1, 0 RAMP", "the ramp leads to no host"),
        ("\"back\"", "\"there\"", "the name is taken"),
        ("1, 0 EAST", "0, 0 WEST", "another stream has its link"),
    ];
    for (from, to, why) in refused {
        let error = text(from, to).unwrap_or_default();
        assert!(error.contains(why), "{error}");
    }
}

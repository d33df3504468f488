use dflow_ir::mesh::Coord;
use dflow_ir::target::TargetId;
use dflow_ir::text::parse_image;

use super::*;

fn image() -> Image {
    let text = "image wse2 {\nparam \"size\" = \"4\"\nprogram \"idle\" pe {\n\
                global g0 \"a\" size=8 align=4\nglobal g1 \"lib.b\" size=4 align=4\n}\n\
                memory program0 data_end=32 stack=64 code=0 [g0=16, g1=24]\n\
                placement 0,0 2 by 1 {\npes 0,0 2 by 1 = program0\nslots program0\n}\n}\n";
    parse_image(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn artifact() -> Artifact {
    Artifact {
        meta: Meta {
            params: vec![("n".into(), "4".into()), ("m".into(), "-1".into())],
            colors: vec![],
            version: "0.1.0".into(),
            build: BUILD.into(),
            target: TargetId::Wse2,
            dialect: Dialect { version: "1.4".into(), marks: vec!["a mark".into()] },
        },
        fabric: Fabric {
            target: TargetId::Wse2,
            dims: (11, 5),
            offsets: (4, 1),
            channels: 1,
            width_west_buf: 0,
            width_east_buf: 0,
            memcpy: true,
        },
        image: image(),
    }
}

fn state() -> State {
    State::new(&image(), (4, 1), 77, |at| {
        let mut bytes = vec![0; 64];
        bytes[24] = 1 + at.x as u8;
        bytes
    })
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

#[test]
fn what_is_written_is_read() {
    let there = folder();
    let out = there.path().join("a b/out");
    assert_eq!(write(&out, &artifact()), Ok(()));
    let mut read = read(&out).expect("it is there");
    read.meta.params.reverse();
    assert_eq!(read, artifact());
    let text = std::fs::read_to_string(out.join("out.json")).expect("the file");
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value["params"]["m"], "-1");
    assert!(value["colors"].as_object().is_some_and(serde_json::Map::is_empty));
    let left = std::fs::read_dir(out.join("bin")).expect("the folder").count();
    assert_eq!(left, 2, "no temporary file is left");
}

#[test]
fn a_new_program_takes_the_old_state_away() {
    let there = folder();
    let path = state_path(there.path());
    assert_eq!(keep_state(there.path(), &state()), Ok(()));
    assert_eq!(read_state(&path), Ok(state()));
    assert_eq!(write(there.path(), &artifact()), Ok(()));
    let gone = read_state(&path).unwrap_err().to_string();
    assert!(gone.ends_with("is missing: it is written when a run is stopped"), "{gone}");
}

#[test]
fn a_state_makes_no_folder() {
    let there = folder();
    let said = write_state(&there.path().join("no/core"), &state()).unwrap_err().to_string();
    assert!(said.ends_with("no/core: its folder does not exist"), "{said}");
    assert!(!there.path().join("no").exists());
}

/// What is no regular file takes the bytes and stays what it is.
#[cfg(unix)]
#[test]
fn links_and_pipes_are_written_to_and_not_replaced() {
    let there = folder();
    let (file, link, pipe) =
        (there.path().join("core"), there.path().join("link"), there.path().join("pipe"));
    std::fs::write(&file, "old").expect("a file");
    std::os::unix::fs::symlink(&file, &link).expect("a link");
    assert_eq!(write_state(&link, &state()), Ok(()));
    assert!(link.is_symlink());
    assert_eq!(read_state(&file), Ok(state()));

    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()));
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read(pipe)
    });
    assert_eq!(write_text(&pipe, "text"), Ok(()));
    assert_eq!(reader.join().expect("it ends").expect("it reads"), b"text");
    assert!(!std::fs::metadata(&pipe).expect("it is there").is_file());
}

#[test]
fn each_fault_of_a_folder_has_its_error() {
    let there = folder();
    let said = |path: &Path| read(path).map(drop).unwrap_err().to_string();
    let missing = there.path().join("no");
    assert!(said(&missing).contains("is not a folder: compile with `cslc -o"));
    assert!(said(there.path()).contains("bin/program.dfi is missing"));
    std::fs::create_dir(there.path().join("bin")).expect("a folder");
    std::fs::write(there.path().join("bin/out_0_0.elf"), "").expect("a file");
    assert!(said(there.path()).contains("another compiler"));

    assert_eq!(write(there.path(), &artifact()), Ok(()));
    let put = |name: &str, bytes: &[u8]| {
        std::fs::write(there.path().join(name), bytes).expect("a file");
        said(there.path())
    };
    assert!(put("out.json", b"{").contains("out.json is damaged"));
    let mut other = artifact();
    other.meta.build = "0123".into();
    assert_eq!(write(there.path(), &other), Ok(()));
    assert!(said(there.path()).contains("another build of dflow"));
    assert_eq!(write(there.path(), &artifact()), Ok(()));
    assert!(put("bin/fabric.json", b"{\"target\": \"wse9\"}").contains("no target"));
    assert!(put("bin/fabric.json", b"\xff").contains("not text"));
    let bytes = image().encode();
    assert!(put("bin/program.dfi", &bytes[..bytes.len() - 1]).contains("damaged"));
    assert!(put("bin/program.dfi", b"\x7fELF").contains("not a dflow image"));
}

#[test]
fn a_folder_that_cannot_have_one_file_keeps_what_it_had() {
    let there = folder();
    assert_eq!(write(there.path(), &artifact()), Ok(()));
    let before = std::fs::read(image_path(there.path())).expect("the image");
    std::fs::remove_file(there.path().join("out.json")).expect("it is there");
    std::fs::create_dir(there.path().join("out.json")).expect("a folder");
    let mut other = artifact();
    other.image.params.clear();
    let said = write(there.path(), &other).unwrap_err().to_string();
    assert!(said.ends_with("out.json: is a directory"), "{said}");
    assert_eq!(std::fs::read(image_path(there.path())).expect("the image"), before);
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let there = folder();
    let file = there.path().join("file");
    std::fs::write(&file, "x").expect("a file");
    let error = write(&file, &artifact()).unwrap_err();
    assert!(error.to_string().contains("file"), "{error}");
    assert_eq!(std::fs::read(&file).expect("still there"), b"x");
}

#[test]
fn a_state_finds_names_and_places() {
    let state = state();
    let at = state.on_fabric(5, 1).expect("inside");
    assert_eq!(at, Coord { x: 1, y: 0 });
    assert_eq!(state.on_fabric(3, 1), None);
    assert_eq!(state.on_fabric(6, 1), None);
    let symbol = state.symbol(at, "b").expect("the module's");
    assert_eq!((symbol.address, symbol.size), (24, 4));
    assert_eq!(state.symbol(at, "lib.b"), Some(symbol));
    assert_eq!(state.symbol(at, "c"), None);
    assert_eq!(state.memory(at, 24, 4), Some(vec![2, 0, 0, 0]));
    assert_eq!(state.memory(at, 40_000, 2), Some(vec![0, 0]));
    assert_eq!(state.memory(Coord { x: 0, y: 1 }, 0, 2), None);
}

#[test]
fn a_name_means_one_variable() {
    let all = ["n", "left.n", "left.m", "right.m", "many.k", "many.k"];
    let meant = |name| only(all.iter().copied().enumerate(), name);
    assert_eq!((meant("n"), meant("left.n"), meant("right.m")), (Some(0), Some(1), Some(3)));
    assert_eq!((meant("m"), meant("many.k"), meant("k"), meant("no")), (None, None, None, None));
}

#[test]
fn each_fault_of_a_state_has_its_error() {
    let bytes = state().encode();
    assert_eq!(State::decode(&bytes), Ok(state()));
    assert_eq!(State::decode(b""), Err(StateError::NotAState));
    let mut other = bytes.clone();
    other[4] = 9;
    assert_eq!(State::decode(&other), Err(StateError::Version { found: 9 }));
    for length in 4..bytes.len() {
        let cut = State::decode(&bytes[..length]);
        assert!(matches!(cut, Err(StateError::Damaged(_))), "{length}: {cut:?}");
    }
    for at in HEADER_START..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 4;
        assert!(State::decode(&changed).is_err(), "byte {at}");
    }
    let mut wrong = state();
    wrong.pes.pop();
    assert!(State::decode(&wrong.encode()).is_err());
    let mut wrong = state();
    wrong.pes[0].0 = Some(7);
    assert!(State::decode(&wrong.encode()).is_err());
}

const HEADER_START: usize = 8;

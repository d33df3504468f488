//! The first lines of an input: what to do with it.

use dflow_ir::target::TargetId;
use dflow_ir::ty::{ElementType, Ty};

/// How a run is expected to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// Well.
    #[default]
    Ok,
    /// An expectation of the host block fails, or the host cannot do what it is asked.
    Failed,
    /// A trap.
    Trap,
    /// A deadlock.
    Deadlock,
    /// A limit.
    Limit,
}

/// An input of a host block: name, type, values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// The name.
    pub name: String,
    /// Name of the element type.
    pub ty: String,
    /// Values, as written.
    pub values: Vec<String>,
}

/// What the first lines say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Names of stages, in the order to run them.
    pub stages: Vec<String>,
    /// Targets to run them on; snapshots are of the first.
    pub targets: Vec<TargetId>,
    /// `--set name=value`.
    pub args: Vec<(String, String)>,
    /// Inputs of the host block.
    pub inputs: Vec<Input>,
    /// How a run ends.
    pub end: End,
    /// No cycle from this one on is run.
    pub max_cycles: u64,
    /// What is odd is a trap.
    pub strict: bool,
    /// The 16-bit float that PEs compute in.
    pub half: Ty,
    /// Reads of what nothing has written are told.
    pub track: bool,
    /// Code of PEs holds indices against the lengths of arrays.
    pub bounds: bool,
    /// Codes of errors that have no place in a source.
    pub errors: Vec<String>,
    /// The mistake that it shows, in half a sentence, for the index of mistakes.
    pub mistake: Option<String>,
}

/// Runs of tests are short; one that is not has gone wrong.
const MAX_CYCLES: u64 = 20_000_000;

/// Reads the header of an input: its leading lines that begin with `//#` (`;#` in IR text).
///
/// # Errors
/// There is none, or a line of it is not understood.
pub fn parse(text: &str) -> Result<Header, String> {
    let mut header = Header {
        stages: Vec::new(),
        targets: vec![TargetId::Wse2],
        args: Vec::new(),
        inputs: Vec::new(),
        end: End::Ok,
        max_cycles: MAX_CYCLES,
        strict: false,
        half: Ty::F16,
        track: false,
        bounds: false,
        errors: Vec::new(),
        mistake: None,
    };
    // IR text has comments of its own.
    let lines = text.lines().map_while(|line| line.strip_prefix("//#").or(line.strip_prefix(";#")));
    for line in lines {
        let (key, value) =
            line.split_once(':').ok_or_else(|| format!("header `{line}`: no `:`"))?;
        apply(&mut header, key.trim(), value.trim())?;
    }
    if header.stages.is_empty() {
        return Err("the file does not begin with `//# stages: …`".into());
    }
    Ok(header)
}

fn is_yes(key: &str, value: &str) -> Result<bool, String> {
    match value {
        "yes" => Ok(true),
        _ => Err(format!("{key} `{value}` is not `yes`")),
    }
}

fn apply(header: &mut Header, key: &str, value: &str) -> Result<(), String> {
    match key {
        "stages" => header.stages = words(value),
        "target" | "targets" => {
            header.targets =
                words(value).iter().map(|name| target(name)).collect::<Result<_, _>>()?;
        }
        "args" => header.args = value.split_whitespace().map(pair).collect::<Result<_, _>>()?,
        "input" => header.inputs.push(input(value)?),
        "end" => header.end = end(value)?,
        "max-cycles" => {
            header.max_cycles =
                value.parse().map_err(|_| format!("max-cycles `{value}` is no number"))?;
        }
        "strict" => header.strict = is_yes(key, value)?,
        "half" => {
            header.half = Ty::from_name(value)
                .filter(|ty| matches!(ty, Ty::F16 | Ty::Bf16))
                .ok_or_else(|| format!("half `{value}` is no 16-bit float"))?;
        }
        "track" => header.track = is_yes(key, value)?,
        "bounds" => header.bounds = is_yes(key, value)?,
        "errors" => header.errors = words(value),
        "mistake" => header.mistake = Some(value.to_owned()),
        _ => return Err(format!("unknown header key `{key}`")),
    }
    Ok(())
}

fn words(value: &str) -> Vec<String> {
    value.split([',', ' ']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn target(name: &str) -> Result<TargetId, String> {
    let all = [TargetId::Wse2, TargetId::Wse3];
    all.into_iter()
        .find(|target| target.name() == name)
        .ok_or_else(|| format!("unknown target `{name}`"))
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("`{text}` is no name=value"))?;
    Ok((name.to_owned(), value.to_owned()))
}

fn input(value: &str) -> Result<Input, String> {
    let mut parts = value.split_whitespace().map(str::to_owned);
    match (parts.next(), parts.next()) {
        (Some(name), Some(ty)) => Ok(Input { name, ty, values: parts.collect() }),
        _ => Err(format!("input `{value}` is not `name type values…`")),
    }
}

fn end(value: &str) -> Result<End, String> {
    match value {
        "ok" => Ok(End::Ok),
        "failed" => Ok(End::Failed),
        "trap" => Ok(End::Trap),
        "deadlock" => Ok(End::Deadlock),
        "limit" => Ok(End::Limit),
        _ => Err(format!("unknown end `{value}`")),
    }
}

impl Input {
    /// The values as little-endian bytes, with the type of the elements.
    ///
    /// # Errors
    /// The type or a value is not understood.
    pub fn bytes(&self) -> Result<(ElementType, Vec<u8>), String> {
        let (ty, signed) = match self.ty.as_str() {
            "f32" => (Ty::F32, true),
            "f64" => (Ty::F64, true),
            "i8" => (Ty::I8, true),
            "u8" => (Ty::I8, false),
            "i16" => (Ty::I16, true),
            "u16" => (Ty::I16, false),
            "i32" => (Ty::I32, true),
            "u32" => (Ty::I32, false),
            "i64" => (Ty::I64, true),
            "u64" => (Ty::I64, false),
            other => return Err(format!("input type `{other}` is not known")),
        };
        let mut bytes = Vec::new();
        for text in &self.values {
            let bad = || format!("`{text}` is no {}", self.ty);
            match ty {
                Ty::F32 => bytes.extend(text.parse::<f32>().map_err(|_| bad())?.to_le_bytes()),
                Ty::F64 => bytes.extend(text.parse::<f64>().map_err(|_| bad())?.to_le_bytes()),
                _ => {
                    let value: i128 = text.parse().map_err(|_| bad())?;
                    bytes.extend(&value.to_le_bytes()[..ty.bytes() as usize]);
                }
            }
        }
        Ok((ElementType::number(ty, signed), bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read() {
        let text = "//# stages: check, run\n//# targets: wse2 wse3\n//# args: a=1 b=x\n\
                    //# input: v i16 1 -2\n//# end: trap\nlayout {}\n//# stages: ignored\n";
        let header = parse(text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(header.stages, ["check", "run"]);
        assert_eq!(header.targets.len(), 2);
        assert_eq!(header.args[1], ("b".into(), "x".into()));
        assert_eq!(header.end, End::Trap);
        let bytes = header.inputs[0].bytes().map(|(_, bytes)| bytes);
        assert_eq!(bytes, Ok(vec![1, 0, 0xfe, 0xff]));
    }

    #[test]
    fn contributors_are_told_each_key() {
        let own = include_str!("header.rs").split("fn apply(").nth(1).unwrap_or_default();
        let arms = own.split("_ => return Err").next().unwrap_or_default().lines();
        let keys: Vec<&str> =
            arms.filter_map(|line| line.strip_prefix("        \"")?.split('"').next()).collect();
        assert!(keys.contains(&"stages") && keys.contains(&"mistake"), "{keys:?}");
        let manual = include_str!("../../CONTRIBUTING.md");
        for key in keys {
            assert!(manual.contains(&format!("//# {key}")), "CONTRIBUTING.md has no `//# {key}`");
        }
    }

    #[test]
    fn nothing_is_skipped_in_silence() {
        assert!(parse("layout {}").is_err());
        assert!(parse("//# stage: run\n").is_err());
        assert!(parse("//# stages: run\n//# target: wse4\n").is_err());
        assert!(parse("//# stages: run\n//# end: happy\n").is_err());
    }
}

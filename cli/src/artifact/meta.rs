//! `out.json`: what the program was compiled with.

use dflow_ir::target::TargetId;
use serde_json::{Map, Value, json};

/// Params and colors as they were given, and who compiled.
///
/// The file: `params` and `colors` (always there; values are strings), and `dflow` with what is
/// ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// `--params`, in order.
    pub params: Vec<(String, String)>,
    /// `--colors`, in order.
    pub colors: Vec<(String, String)>,
    /// Version of the compiler.
    pub version: String,
    /// Its fingerprint: only programs of the same build understand its image.
    pub build: String,
    /// Hardware generation.
    pub target: TargetId,
    /// The dialect that the sources were read in.
    pub dialect: Dialect,
}

/// The dialect of a program, for people: which version of the language, and what told it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dialect {
    /// Such as `1.4`.
    pub version: String,
    /// What decided: an option, or constructs of the sources.
    pub marks: Vec<String>,
}

impl Meta {
    /// As JSON.
    pub(super) fn to_text(&self) -> String {
        let value = json!({
            "params": strings(&self.params),
            "colors": strings(&self.colors),
            "dflow": {
                "version": self.version,
                "build": self.build,
                "target": self.target.name(),
                "dialect": self.dialect.version,
                "marks": self.dialect.marks,
            },
        });
        format!("{value:#}\n")
    }

    /// From JSON.
    pub(super) fn from_text(text: &str) -> Result<Meta, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let own = &value["dflow"];
        let string = |name: &str| own[name].as_str().unwrap_or_default().to_owned();
        let target = TargetId::from_name(&string("target"));
        let marks = own["marks"].as_array().map(Vec::as_slice).unwrap_or_default();
        let marks = marks.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        Ok(Meta {
            params: pairs(&value, "params")?,
            colors: pairs(&value, "colors")?,
            version: string("version"),
            build: string("build"),
            target: target.ok_or("`dflow` names no target that is known")?,
            dialect: Dialect { version: string("dialect"), marks },
        })
    }
}

fn strings(pairs: &[(String, String)]) -> Value {
    let map: Map<String, Value> =
        pairs.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    Value::Object(map)
}

fn pairs(value: &Value, name: &str) -> Result<Vec<(String, String)>, String> {
    let map = value[name].as_object().ok_or_else(|| format!("`{name}` is missing"))?;
    map.iter()
        .map(|(key, value)| match value.as_str() {
            Some(text) => Ok((key.clone(), text.to_owned())),
            None => Err(format!("`{name}` has a value that is no string")),
        })
        .collect()
}

//! `bin/fabric.json`: where on the fabric a program sits.

use dflow_ir::target::TargetId;
use serde_json::{Value, json};

/// The fabric around a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fabric {
    /// Hardware generation.
    pub target: TargetId,
    /// Extent of the fabric in PEs: width and height.
    pub dims: (u32, u32),
    /// Where the north-west corner of the program's rectangle is.
    pub offsets: (u32, u32),
    /// Channels of memcpy, 1 to 16.
    pub channels: u8,
    /// Columns of buffers at the west side.
    pub width_west_buf: u32,
    /// Columns of buffers at the east side.
    pub width_east_buf: u32,
    /// Whether the host reaches the program through memcpy.
    pub memcpy: bool,
}

impl Fabric {
    /// As JSON.
    pub(super) fn to_text(&self) -> String {
        let value = json!({
            "target": self.target.name(),
            "fabric_dims": [self.dims.0, self.dims.1],
            "fabric_offsets": [self.offsets.0, self.offsets.1],
            "channels": self.channels,
            "width_west_buf": self.width_west_buf,
            "width_east_buf": self.width_east_buf,
            "memcpy": self.memcpy,
        });
        format!("{value:#}\n")
    }

    /// From JSON.
    pub(super) fn from_text(text: &str) -> Result<Fabric, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let target = value["target"].as_str().unwrap_or_default();
        let number = |name: &str| number(&value[name], name);
        Ok(Fabric {
            target: TargetId::from_name(target).ok_or("`target` is no target that is known")?,
            dims: pair(&value, "fabric_dims")?,
            offsets: pair(&value, "fabric_offsets")?,
            channels: u8::try_from(number("channels")?).map_err(|_| "`channels` is too large")?,
            width_west_buf: number("width_west_buf")?,
            width_east_buf: number("width_east_buf")?,
            memcpy: value["memcpy"].as_bool().ok_or("`memcpy` is not true or false")?,
        })
    }
}

fn pair(value: &Value, name: &str) -> Result<(u32, u32), String> {
    match value[name].as_array().map(Vec::as_slice) {
        Some([first, second]) => Ok((number(first, name)?, number(second, name)?)),
        Some(_) | None => Err(format!("`{name}` is not a pair of numbers")),
    }
}

fn number(value: &Value, name: &str) -> Result<u32, String> {
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| format!("`{name}` is not a number"))
}

//! Whether a program fits where it is put.

use dflow_ir::image::Image;

use super::given::Given;
use crate::artifact::Fabric;
use crate::exit::Failure;

/// Columns that memcpy needs west of the program, beside buffers.
const WEST: u32 = 4;
/// Columns that memcpy needs east of the program, beside buffers.
const EAST: u32 = 3;
/// Rows that memcpy needs above the program, and below.
const ROWS: u32 = 1;

/// Numbers of the command line are as large as 32 bits allow: their sum is not.
fn sum(numbers: [u32; 3]) -> u64 {
    numbers.into_iter().map(u64::from).sum()
}

/// The fabric of a program. Dimensions and offsets that are not given are the smallest that do.
///
/// # Errors
/// Wrong use: the program, and what memcpy needs around it, does not fit.
pub(super) fn fabric(given: &Given, image: &Image) -> Result<Fabric, Failure> {
    let rect = image.placement.rect;
    let size = (u32::from(rect.width), u32::from(rect.height));
    let memcpy = given.memcpy || image.memcpy.is_some();
    let (west, north, east, south) = match memcpy {
        true => (WEST + given.west, ROWS, EAST + given.east, ROWS),
        false => (0, 0, 0, 0),
    };
    let (x, y) = given.offsets.unwrap_or((west, north));
    let need = (sum([x, size.0, east]), sum([y, size.1, south]));
    let dims = given.dims.map_or(need, |(width, height)| (width.into(), height.into()));
    let (width, height) = size;
    let because = match memcpy {
        true => format!(" (with --memcpy, west {}, east {})", given.west, given.east),
        false => String::new(),
    };
    if x < west || y < north {
        return Err(Failure::usage(format!(
            "--fabric-offsets={x},{y} is too small: at least {west},{north} is needed{because}"
        )));
    }
    if dims.0 < need.0 || dims.1 < need.1 {
        return Err(Failure::usage(format!(
            "--fabric-dims={},{} is too small for {width}x{height} PEs at ({x},{y}): at least \
             {},{} is needed{because}",
            dims.0, dims.1, need.0, need.1
        )));
    }
    let (Ok(columns), Ok(rows)) = (u32::try_from(dims.0), u32::try_from(dims.1)) else {
        return Err(Failure::usage(format!(
            "--fabric-offsets={x},{y} is too large: no fabric has {},{} PEs",
            need.0, need.1
        )));
    };
    Ok(Fabric {
        target: image.target,
        dims: (columns, rows),
        offsets: (x, y),
        channels: given.channels,
        width_west_buf: given.west,
        width_east_buf: given.east,
        memcpy,
    })
}

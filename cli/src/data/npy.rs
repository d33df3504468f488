//! The `.npy` format: a magic, a version, a header in the form of a Python dictionary, values.
//!
//! Read: versions 1 to 3, little-endian values in C order, any number of dimensions. Written:
//! version 1, one dimension or more.

use super::Dtype;

const MAGIC: &[u8] = b"\x93NUMPY";

/// What a header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Element type.
    pub(crate) dtype: Dtype,
    /// Extents, outermost first.
    pub(crate) shape: Vec<u64>,
    /// Where the values begin.
    pub(crate) start: usize,
}

/// Whether these are the first bytes of a `.npy` file.
pub(crate) fn is_npy(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Reads the header and checks that the values are all there.
///
/// # Errors
/// What is wrong with the file, or what of the format is not supported.
pub(crate) fn parse(bytes: &[u8]) -> Result<Header, String> {
    let (text, start) = header_text(bytes)?;
    let descr = quoted(value_of(text, "descr")?)?;
    let dtype = parse_descr(descr)?;
    let shape = parse_shape(value_of(text, "shape")?)?;
    let order = value_of(text, "fortran_order")?;
    if order.starts_with("True") && shape.len() > 1 {
        return Err("its values are in Fortran order: save np.ascontiguousarray(a)".into());
    }
    let values = shape.iter().try_fold(dtype.bytes(), |size, &extent| size.checked_mul(extent));
    let found = (bytes.len() - start) as u64;
    match values {
        Some(size) if size == found => Ok(Header { dtype, shape, start }),
        Some(size) => Err(format!("its header promises {size} bytes of values, {found} are there")),
        None => Err("its header promises more values than a file can hold".into()),
    }
}

/// A file's bytes: header and values.
pub(crate) fn write_header(dtype: Dtype, shape: &[u64]) -> Vec<u8> {
    let mut extents = String::new();
    for extent in shape {
        extents.push_str(&format!("{extent}, "));
    }
    let shape = extents.trim_end();
    let mut text =
        format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({shape}), }}", dtype.npy());
    // Magic, version and length take ten bytes; the whole is a multiple of 64 and ends a line.
    while (10 + text.len() + 1) % 64 != 0 {
        text.push(' ');
    }
    text.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.into_bytes());
    bytes
}

fn header_text(bytes: &[u8]) -> Result<(&str, usize), String> {
    let damaged = || "its header is damaged".to_owned();
    let version = *bytes.get(MAGIC.len()).ok_or_else(damaged)?;
    let length_at = MAGIC.len() + 2;
    let (length, start) = match version {
        1 => {
            let field = bytes.get(length_at..length_at + 2).ok_or_else(damaged)?;
            (usize::from(u16::from_le_bytes([field[0], field[1]])), length_at + 2)
        }
        2 | 3 => {
            let field = bytes.get(length_at..length_at + 4).ok_or_else(damaged)?;
            (u32::from_le_bytes([field[0], field[1], field[2], field[3]]) as usize, length_at + 4)
        }
        other => return Err(format!("it has .npy version {other}, which is not supported")),
    };
    let end = start.checked_add(length).ok_or_else(damaged)?;
    let text = bytes.get(start..end).ok_or_else(damaged)?;
    Ok((std::str::from_utf8(text).map_err(|_| damaged())?, end))
}

/// The text after `'key':`, without leading blanks.
fn value_of<'a>(text: &'a str, key: &str) -> Result<&'a str, String> {
    ['\'', '"']
        .iter()
        .find_map(|quote| text.split_once(&format!("{quote}{key}{quote}")))
        .and_then(|(_, rest)| rest.trim_start().strip_prefix(':'))
        .map(str::trim_start)
        .ok_or_else(|| format!("its header has no `{key}`"))
}

fn quoted(text: &str) -> Result<&str, String> {
    let inside = text.strip_prefix(['\'', '"']).and_then(|rest| rest.split(['\'', '"']).next());
    inside.ok_or_else(|| "it holds records, not plain numbers".into())
}

fn parse_descr(descr: &str) -> Result<Dtype, String> {
    if let Some(rest) = descr.strip_prefix('>') {
        return Err(format!(
            "its values are big-endian (`>{rest}`): save a.astype('<{rest}') instead"
        ));
    }
    let known = Dtype::from_npy(descr);
    known.ok_or_else(|| format!("its element type `{descr}` is not supported"))
}

fn parse_shape(text: &str) -> Result<Vec<u64>, String> {
    let inside = text.strip_prefix('(').and_then(|rest| rest.split_once(')')).map(|pair| pair.0);
    let inside = inside.ok_or("its shape is damaged")?;
    let extents = inside.split(',').map(str::trim).filter(|extent| !extent.is_empty());
    extents
        .map(|extent| {
            extent.trim_end_matches('L').parse().map_err(|_| "its shape is damaged".into())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, values: usize) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0]);
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.bytes());
        bytes.resize(bytes.len() + values, 0);
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        for shape in [vec![6], vec![2, 3], vec![1, 2, 3]] {
            let mut bytes = write_header(Dtype::F32, &shape);
            assert_eq!(bytes.len() % 64, 0);
            let start = bytes.len();
            bytes.resize(start + 24, 0);
            assert_eq!(parse(&bytes), Ok(Header { dtype: Dtype::F32, shape, start }));
        }
    }

    #[test]
    fn a_scalar_has_no_extent() {
        let bytes = file("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", 8);
        assert_eq!(parse(&bytes).map(|header| header.shape), Ok(vec![]));
    }

    #[test]
    fn refusals_say_why() {
        let refused = |header: &str, values| parse(&file(header, values)).unwrap_err();
        let big = refused("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", 8);
        assert!(big.contains("big-endian"), "{big}");
        let order = refused("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", 16);
        assert!(order.contains("Fortran"), "{order}");
        let short = refused("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 7);
        assert!(short.contains("promises 8 bytes"), "{short}");
        let kind = refused("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", 8);
        assert!(kind.contains("`<c8`"), "{kind}");
        let huge = refused(
            "{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 9999999999), }",
            8,
        );
        assert!(huge.contains("more values"), "{huge}");
        let records =
            refused("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", 4);
        assert!(records.contains("records"), "{records}");
    }

    #[test]
    fn damaged_headers_do_not_panic() {
        let whole = file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 8);
        for length in 0..whole.len() {
            assert!(parse(&whole[..length]).is_err());
        }
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut damaged = whole.clone();
                damaged[at] ^= 1 << bit;
                let _ = parse(&damaged);
            }
        }
    }
}

//! Binary files of the project: a header that says what they are, and a body in postcard form.
//!
//! The header is a magic, the version of the format (`u32`), the length of the body and its checksum (`u64` each), all
//! little endian. Nothing follows the body. Reading never panics; what the body says is for its owner to check.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bytes of magic, version, length and checksum.
pub const HEADER: usize = 4 + 4 + 8 + 8;

/// A kind of file.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// The first bytes.
    pub magic: [u8; 4],
    /// Files of another version are refused.
    pub version: u32,
}

/// Why bytes are no file of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsealed {
    /// They begin with something else.
    Foreign,
    /// They are of this version.
    Version(u32),
    /// Some are missing or changed; how that shows.
    Damaged(String),
}

impl Format {
    /// The bytes of a file with this content.
    pub fn write(&self, content: &impl Serialize) -> Vec<u8> {
        let body = postcard::to_stdvec(content).expect("memory takes all data of known length");
        let mut bytes = Vec::with_capacity(HEADER + body.len());
        bytes.extend(self.magic);
        bytes.extend(self.version.to_le_bytes());
        bytes.extend([0; 16]);
        bytes.extend(body);
        seal(&mut bytes);
        bytes
    }

    /// The content of a file with these bytes.
    ///
    /// # Errors
    /// It is of another kind or version, or damaged.
    pub fn read<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T, Unsealed> {
        let (content, left) = postcard::take_from_bytes(self.body(bytes)?)
            .map_err(|error| Unsealed::Damaged(error.to_string()))?;
        if !left.is_empty() {
            return Err(Unsealed::Damaged("bytes are left over".to_owned()));
        }
        Ok(content)
    }

    fn body<'b>(&self, bytes: &'b [u8]) -> Result<&'b [u8], Unsealed> {
        let short = || Unsealed::Damaged("cut short".to_owned());
        let rest = bytes.strip_prefix(&self.magic).ok_or(Unsealed::Foreign)?;
        let (version, rest) = rest.split_first_chunk().ok_or_else(short)?;
        let version = u32::from_le_bytes(*version);
        if version != self.version {
            return Err(Unsealed::Version(version));
        }
        let (length, rest) = rest.split_first_chunk().ok_or_else(short)?;
        let (sum, body) = rest.split_first_chunk().ok_or_else(short)?;
        let (expected, found) = (u64::from_le_bytes(*length), body.len());
        if found as u64 != expected {
            return Err(Unsealed::Damaged(format!("{found} bytes where {expected} should be")));
        }
        if checksum(body) != u64::from_le_bytes(*sum) {
            return Err(Unsealed::Damaged("the checksum differs".to_owned()));
        }
        Ok(body)
    }
}

/// Puts length and checksum of its body into the header of a file; bytes without one stay what they are.
pub fn seal(bytes: &mut [u8]) {
    if bytes.len() < HEADER {
        return;
    }
    let (header, body) = bytes.split_at_mut(HEADER);
    header[8..16].copy_from_slice(&(body.len() as u64).to_le_bytes());
    header[16..].copy_from_slice(&checksum(body).to_le_bytes());
}

/// A hash over words of 64 bits, as FNV-1a has it over bytes, turned by 29 bits after each, since a product leaves
/// its low bits to low bits alone: finds accidents, not attackers. The last word is filled up with zeros.
fn checksum(bytes: &[u8]) -> u64 {
    let chunks = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    chunks.fold(0xcbf2_9ce4_8422_2325, |hash, word| {
        (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: Format = Format { magic: *b"TEST", version: 3 };

    #[test]
    fn a_file_is_what_the_manual_says() {
        let bytes = FORMAT.write(&(7_u8, "abc".to_owned()));
        assert_eq!(bytes[..16], *b"TEST\x03\0\0\0\x05\0\0\0\0\0\0\0");
        assert_eq!(bytes[16..HEADER], checksum(b"\x07\x03abc").to_le_bytes());
        assert_eq!(bytes[HEADER..], *b"\x07\x03abc");
        assert_eq!(FORMAT.read(&bytes), Ok((7_u8, "abc".to_owned())));
    }

    #[test]
    fn each_fault_is_told_from_the_others() {
        let read = |bytes: &[u8]| FORMAT.read::<(u8, u8)>(bytes).unwrap_err();
        let damaged = |how: &str| Unsealed::Damaged(how.to_owned());
        let good = FORMAT.write(&(1_u8, 2_u8));
        assert_eq!(read(b"TES"), Unsealed::Foreign);
        assert_eq!(read(&good[..HEADER - 1]), damaged("cut short"));
        assert_eq!(read(&good[..HEADER + 1]), damaged("1 bytes where 2 should be"));
        assert_eq!(read(&[&good[..], b"x"].concat()), damaged("3 bytes where 2 should be"));
        assert_eq!(read(&FORMAT.write(&(1_u8, 2_u8, 3_u8))), damaged("bytes are left over"));
        let other = Format { version: 4, ..FORMAT };
        assert_eq!(read(&other.write(&(1_u8, 2_u8))), Unsealed::Version(4));
        let mut changed = good;
        changed[HEADER] ^= 1;
        assert_eq!(read(&changed), damaged("the checksum differs"));
        seal(&mut changed);
        assert_eq!(FORMAT.read(&changed), Ok((0_u8, 2_u8)));
    }
}

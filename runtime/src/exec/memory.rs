//! A PE's (or the host program's) memory: a slab of the linked size that grows on demand.
//!
//! Invariants: no access leaves `limit`; bytes never touched read as zero; the slab's length
//! never exceeds `limit`.

use super::CodeTrapKind;

/// Byte-addressed memory, little endian.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Memory {
    bytes: Vec<u8>,
    limit: u64,
    /// Bytes that nothing has written, where that is tracked.
    unwritten: Option<Box<Unwritten>>,
}

impl Clone for Memory {
    fn clone(&self) -> Memory {
        let Memory { bytes, limit, unwritten } = self;
        Memory { bytes: bytes.clone(), limit: *limit, unwritten: unwritten.clone() }
    }

    fn clone_from(&mut self, from: &Memory) {
        let Memory { bytes, limit, unwritten } = self;
        bytes.clone_from(&from.bytes);
        *limit = from.limit;
        unwritten.clone_from(&from.unwritten);
    }
}

/// Bytes of variables without initial value that nothing has written yet, as bits, and the first
/// of them that was read since somebody asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unwritten {
    bits: Vec<u64>,
    read: Option<u32>,
}

impl Unwritten {
    /// Nothing has written these bytes.
    pub(crate) fn add(&mut self, start: u32, end: u32) {
        let words = (end as usize).div_ceil(64);
        if self.bits.len() < words {
            self.bits.resize(words, 0);
        }
        (start..end).for_each(|byte| self.bits[byte as usize / 64] |= 1 << (byte % 64));
    }

    fn has(&self, byte: u64) -> bool {
        let word = usize::try_from(byte / 64).ok().and_then(|word| self.bits.get(word));
        word.is_some_and(|word| word >> (byte % 64) & 1 != 0)
    }

    fn write(&mut self, start: u64, bytes: u64) {
        for byte in start..start + bytes {
            if self.has(byte) {
                self.bits[byte as usize / 64] &= !(1 << (byte % 64));
            }
        }
    }

    fn read(&mut self, start: u64, bytes: u64) {
        if self.read.is_none() {
            self.read = (start..start + bytes).find(|&byte| self.has(byte)).map(|byte| byte as u32);
        }
    }

    /// What is copied unwritten stays so.
    fn copy(&mut self, dst: u64, src: u64, bytes: u64) {
        let bits: Vec<bool> = (src..src + bytes).map(|byte| self.has(byte)).collect();
        self.write(dst, bytes);
        for (byte, _) in (dst as u32..).zip(bits).filter(|(_, unwritten)| *unwritten) {
            self.add(byte, byte + 1);
        }
    }
}

impl Memory {
    /// Bytes that a started memory has at least, so that no access is wider than it.
    pub const LEAST: usize = 64;

    /// Memory of `limit` bytes at most (at least [`Memory::LEAST`]); nothing is allocated yet.
    pub fn new(limit: u64) -> Memory {
        Memory { bytes: Vec::new(), limit: limit.max(Memory::LEAST as u64), unwritten: None }
    }

    /// The allocated slab.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The allocated slab.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Size in bytes that the slab may grow to.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Lets the slab grow to `limit` bytes, no less than it has.
    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.limit = limit.max(self.bytes.len() as u64);
    }

    /// Tracks which bytes nothing has written.
    pub(crate) fn track(&mut self, unwritten: Unwritten) {
        self.unwritten = Some(Box::new(unwritten));
    }

    /// Whether it is tracked which bytes nothing has written.
    pub(crate) fn is_tracked(&self) -> bool {
        self.unwritten.is_some()
    }

    /// The first byte that was read and that nothing has written, since the last call.
    pub(crate) fn take_unwritten(&mut self) -> Option<u32> {
        self.unwritten.as_mut()?.read.take()
    }

    /// Takes `image` as the slab's first bytes and makes it `len` bytes long (at most the limit).
    pub(crate) fn start(&mut self, image: &[u8], len: usize) {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let len = len.max(Memory::LEAST).min(limit);
        self.bytes = Vec::with_capacity(len);
        self.bytes.extend_from_slice(&image[..image.len().min(len)]);
        self.bytes.resize(len, 0);
    }

    /// Makes `addr..addr + bytes` part of the slab.
    ///
    /// # Errors
    /// The range leaves the memory.
    pub fn ensure(&mut self, addr: u64, bytes: u64) -> Result<(), CodeTrapKind> {
        let end = addr.checked_add(bytes).filter(|&end| end <= self.limit);
        let Some(end) = end.and_then(|end| usize::try_from(end).ok()) else {
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            return Err(CodeTrapKind::OutsideMemory { address: addr, bytes });
        };
        if end > self.bytes.len() {
            self.bytes.resize(end, 0);
        }
        Ok(())
    }

    /// A range of bytes, allocated if need be.
    ///
    /// # Errors
    /// The range leaves the memory.
    pub fn range(&mut self, addr: u64, bytes: u64) -> Result<&mut [u8], CodeTrapKind> {
        self.ensure(addr, bytes)?;
        Ok(&mut self.bytes[addr as usize..(addr + bytes) as usize])
    }

    /// Reads `bytes` (1, 2, 4 or 8) as an integer.
    ///
    /// # Errors
    /// The range leaves the memory.
    pub fn load(&mut self, addr: u64, bytes: u32) -> Result<u64, CodeTrapKind> {
        self.ensure(addr, u64::from(bytes))?;
        if let Some(unwritten) = &mut self.unwritten {
            unwritten.read(addr, bytes.into());
        }
        // Fixed sizes are single instructions.
        let found = &self.bytes[addr as usize..];
        Ok(match (bytes, found.first_chunk(), found.first_chunk()) {
            (4, Some(raw), _) => u64::from(u32::from_le_bytes(*raw)),
            (2, _, Some(raw)) => u64::from(u16::from_le_bytes(*raw)),
            _ => {
                let mut raw = [0; 8];
                raw[..bytes as usize].copy_from_slice(&found[..bytes as usize]);
                u64::from_le_bytes(raw)
            }
        })
    }

    /// Writes the low `bytes` (1, 2, 4 or 8) of `value`.
    ///
    /// # Errors
    /// The range leaves the memory.
    pub fn store(&mut self, addr: u64, bytes: u32, value: u64) -> Result<(), CodeTrapKind> {
        let range = self.range(addr, u64::from(bytes))?;
        match bytes {
            4 => range[..4].copy_from_slice(&(value as u32).to_le_bytes()),
            2 => range[..2].copy_from_slice(&(value as u16).to_le_bytes()),
            _ => range.copy_from_slice(&value.to_le_bytes()[..bytes as usize]),
        }
        if let Some(unwritten) = &mut self.unwritten {
            unwritten.write(addr, bytes.into());
        }
        Ok(())
    }

    /// Loads two bytes, or four if it is `wide`.
    ///
    /// # Errors
    /// They lie outside.
    #[inline(always)]
    pub(crate) fn load_word(&mut self, addr: u64, wide: bool) -> Result<u32, CodeTrapKind> {
        let at = addr as usize;
        let word = match self.bytes.get(at..at + if wide { 4 } else { 2 }) {
            Some(&[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]),
            Some(&[a, b]) => u16::from_le_bytes([a, b]).into(),
            Some(_) | None => return self.load(addr, if wide { 4 } else { 2 }).map(|it| it as u32),
        };
        if let Some(unwritten) = &mut self.unwritten {
            unwritten.read(addr, if wide { 4 } else { 2 });
        }
        Ok(word)
    }

    /// Stores two bytes, or four if it is `wide`.
    ///
    /// # Errors
    /// They lie outside.
    #[inline]
    pub(crate) fn store_word(
        &mut self,
        addr: u64,
        wide: bool,
        value: u32,
    ) -> Result<(), CodeTrapKind> {
        let (at, bytes) = (addr as usize, value.to_le_bytes());
        let tracked = self.unwritten.is_some();
        match self.bytes.get_mut(at..at + if wide { 4 } else { 2 }) {
            Some([a, b, c, d]) if !tracked => [*a, *b, *c, *d] = bytes,
            Some([a, b]) if !tracked => [*a, *b] = [bytes[0], bytes[1]],
            Some(_) | None => return self.store(addr, if wide { 4 } else { 2 }, value.into()),
        }
        Ok(())
    }

    /// Copies bytes; the ranges may overlap. Nothing happens for zero bytes.
    ///
    /// # Errors
    /// A range leaves the memory (the source is looked at first).
    pub fn copy(&mut self, dst: u64, src: u64, bytes: u64) -> Result<(), CodeTrapKind> {
        if bytes == 0 {
            return Ok(());
        }
        self.ensure(src, bytes)?;
        self.ensure(dst, bytes)?;
        self.bytes.copy_within(src as usize..(src + bytes) as usize, dst as usize);
        if let Some(unwritten) = &mut self.unwritten {
            unwritten.copy(dst, src, bytes);
        }
        Ok(())
    }

    /// Stores the low `size` bytes of `value` `count` times.
    ///
    /// # Errors
    /// The range leaves the memory.
    pub fn fill(
        &mut self,
        dst: u64,
        size: u32,
        value: u64,
        count: u32,
    ) -> Result<(), CodeTrapKind> {
        if count == 0 {
            return Ok(());
        }
        let raw = value.to_le_bytes();
        let range = self.range(dst, u64::from(size) * u64::from(count))?;
        for chunk in range.chunks_exact_mut(size as usize) {
            chunk.copy_from_slice(&raw[..size as usize]);
        }
        if let Some(unwritten) = &mut self.unwritten {
            unwritten.write(dst, u64::from(size) * u64::from(count));
        }
        Ok(())
    }
}

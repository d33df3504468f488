//! Copies to and from the memory behind exported pointers.

use dflow_ir::mesh::{Rect, Wavelet};
use dflow_ir::ty::Ty;

use super::session::{Session, waiting_for};
use super::wire::{self, Operation, TO_HOST, TO_MESH, reserved};
use super::{Elements, Failure, HostError, Mesh, Region, Spread};
use crate::machine::Goal;
use crate::outcome::HostWait;

/// Most 16-bit words of a copy per PE: one more would mean "without end" to a descriptor.
const MAX_EXTENT: u64 = dflow_ir::dsd::INFINITE as u64 - 1;

impl<M: Mesh> Session<M> {
    /// Copies elements into the memory behind an exported pointer: `data` holds the same number
    /// of elements for each PE of the region, row by row. Does not wait.
    ///
    /// # Errors
    /// The request does not fit the symbol, the region or the mesh.
    pub fn copy_in(&mut self, export: u32, rect: Rect, ty: Ty, data: &[u8]) -> Result<(), Failure> {
        self.copy_spread(export, rect.into(), ty.into(), Spread::Each, data)
    }

    /// Copies elements as [`Session::copy_in`] does, a block for each PE, for each row or for each column; a block
    /// for a row moves once. Does not wait.
    ///
    /// # Errors
    /// The request does not fit the symbol, the region or the mesh.
    pub fn copy_spread(
        &mut self,
        export: u32,
        region: Region,
        elements: Elements,
        spread: Spread,
        data: &[u8],
    ) -> Result<(), Failure> {
        let per_pe = self.check_copy_in(export, region, elements, spread, data.len())?;
        let links = self.links(region, |row| row.commands.zip(row.to_mesh), TO_MESH)?;
        if per_pe == 0 {
            return Ok(());
        }
        self.foresee(region)?;
        let word = wire::bytes_per_word(elements)?;
        // One PE's block needs no spreading.
        let once = spread == Spread::Rows && region.columns() > 1;
        let operation = match (word, once) {
            (2, false) => Operation::CopyIn16,
            (2, true) => Operation::SpreadIn16,
            (_, false) => Operation::CopyIn32,
            (_, true) => Operation::SpreadIn32,
        };
        let (columns, width) = (region.dealt(), self.symbols.columns());
        let count = (per_pe / word) as u32;
        let command = wire::column_command(operation, export, columns, width, count);
        let block = |index: usize| &data[index * per_pe..][..per_pe];
        for (row, (commands, to_mesh)) in links.into_iter().enumerate() {
            self.send(commands, &mut command.iter().copied())?;
            if once {
                self.send(to_mesh, &mut wire::words(block(row), word))?;
            } else {
                let of = |column| block(spread.block(region, row, column));
                self.send(to_mesh, &mut wire::deal_copies(columns, width, of, word))?;
            }
        }
        self.open = Some(self.open.map_or(region, |open| open.with(region)));
        Ok(())
    }

    /// Bytes per PE of a copy that fits.
    pub(super) fn check_copy_in(
        &self,
        export: u32,
        region: Region,
        elements: Elements,
        spread: Spread,
        bytes: usize,
    ) -> Result<usize, HostError> {
        self.symbols.check_copy(export, region, elements, true)?;
        let word = wire::bytes_per_word(elements)?;
        let per_pe = share(bytes, spread.blocks(region), elements)?;
        let count = per_pe as u64 / u64::from(elements.bytes());
        if per_pe as u64 / word as u64 > MAX_EXTENT {
            return Err(HostError::TooMany { elements: count });
        }
        self.symbols.check_room(export, region, elements, count)?;
        Ok(per_pe)
    }

    /// Copies `count` elements per PE of a region out of the memory behind an exported pointer,
    /// row by row. Waits for them.
    ///
    /// # Errors
    /// The request does not fit the symbol, the region or the mesh; or the run fails.
    pub fn copy_out(
        &mut self,
        export: u32,
        region: impl Into<Region>,
        elements: impl Into<Elements>,
        count: u64,
    ) -> Result<Vec<u8>, Failure> {
        let (region, elements) = (region.into(), elements.into());
        let halves = self.check_copy_out(export, region, elements, count)?;
        let links = self.links(region, |row| row.commands.zip(row.to_host), TO_HOST)?;
        if halves == 0 {
            return Ok(Vec::new());
        }
        self.foresee(region)?;
        let (columns, width) = (region.dealt(), self.symbols.columns());
        let operation = Operation::CopyOut;
        let command = wire::column_command(operation, export, columns, width, halves as u32);
        for (commands, _) in links {
            self.send(commands, &mut command.iter().copied())?;
        }
        let bytes = self.gather(region, halves as usize, |name| HostWait::Copy { name }, export)?;
        // What was read says that earlier commands are executed there, and there alone.
        self.open = self.open.filter(|&open| !region.covers(open));
        self.launched = None;
        Ok(bytes)
    }

    /// Why a copy out of so many elements per PE reads more than the array behind the pointer, if
    /// it does and no code can change the pointer. It is no fault: what lies behind is read.
    pub fn excess(
        &self,
        export: u32,
        region: impl Into<Region>,
        elements: impl Into<Elements>,
        count: u64,
    ) -> Option<HostError> {
        self.symbols.check_room(export, region.into(), elements.into(), count).err()
    }

    /// 16-bit words per PE of a copy that fits.
    pub(super) fn check_copy_out(
        &self,
        export: u32,
        region: Region,
        elements: Elements,
        count: u64,
    ) -> Result<u64, HostError> {
        self.symbols.check_copy(export, region, elements, false)?;
        let halves = count.saturating_mul(u64::from(elements.bytes() / 2));
        if halves > MAX_EXTENT {
            return Err(HostError::TooMany { elements: count });
        }
        Ok(halves)
    }

    /// Waits for so many 16-bit words of every PE of a region on the color to the host, and sorts
    /// them by row and column. `wait` names what is waited for, if no launch is.
    pub(super) fn gather(
        &mut self,
        region: Region,
        per_pe: usize,
        wait: impl FnOnce(String) -> HostWait,
        export: u32,
    ) -> Result<Vec<u8>, Failure> {
        let links = self.links(region, |row| row.to_host, TO_HOST)?;
        let columns = usize::from(region.columns());
        let mut goals = Vec::with_capacity(links.len());
        for (row, &link) in region.row_numbers().zip(&links) {
            let row = &mut self.rows[usize::from(row)];
            row.come += (per_pe * columns) as u64;
            goals.push(Goal::Words(link, row.come));
        }
        let mut bytes = vec![0; 2 * per_pe * region.area()];
        let end = self.run(&goals);
        let failed = end.is_err();
        let mut missing = Vec::new();
        let rows = bytes.chunks_exact_mut(2 * per_pe * columns);
        for ((row, &link), number) in rows.zip(&links).zip(region.row_numbers()) {
            let words = self.mesh.received(link);
            let come = sort_row(row, words, region, per_pe);
            let unexpected = HostError::Unexpected { row: number, color: reserved(TO_HOST) };
            let come = come.ok_or(unexpected)?;
            if failed {
                let silent = (0..).zip(come).filter(|(_, come)| *come < per_pe);
                missing.extend(silent.map(|(column, _)| region.place(column, number)));
            }
        }
        end.map_err(|failure| waiting_for(failure, || self.unanswered(&missing, wait, export)))?;
        Ok(bytes)
    }
}

/// Bytes per block when `bytes` are shared equally.
pub(super) fn share(
    bytes: usize,
    blocks: usize,
    elements: impl Into<Elements>,
) -> Result<usize, HostError> {
    let size = elements.into().bytes().max(1) as usize;
    if blocks > 0 && bytes.is_multiple_of(size * blocks) {
        Ok(bytes / blocks)
    } else {
        Err(HostError::Count { elements: (bytes / size) as u64, pes: blocks as u64 })
    }
}

/// Puts the words of a row at their columns' places, and gives how many came per column; `None`
/// if a word is not for any of them.
fn sort_row(
    row: &mut [u8],
    words: Vec<(u64, Wavelet)>,
    region: Region,
    per_pe: usize,
) -> Option<Vec<usize>> {
    let mut come = vec![0; usize::from(region.columns())];
    let step = usize::from(region.column_step.max(1));
    for (_, word) in words {
        let distance = usize::from(word.index().checked_sub(region.rect.x)?);
        let column = distance / step;
        let index = come.get_mut(column).filter(|index| **index < per_pe && !word.control)?;
        if distance % step != 0 {
            return None;
        }
        let at = 2 * (column * per_pe + *index);
        row.get_mut(at..at + 2)?.copy_from_slice(&word.data().to_le_bytes());
        *index += 1;
    }
    Some(come)
}

//! Launches and fences, and who has not answered them.

use dflow_ir::mesh::Coord;

use super::session::{Session, whole};
use super::wire::{self, COMMANDS, Operation};
use super::{Failure, Mesh};
use crate::outcome::HostWait;

/// An export id that names none.
const NONE: u32 = u32::MAX;

impl<M: Mesh> Session<M> {
    /// Calls an exported function on all PEs, with raw argument values (the bits of their types, zeros above), and
    /// waits until all have answered.
    ///
    /// # Errors
    /// The request does not fit the symbol or the mesh; or the run fails.
    pub fn launch(&mut self, export: u32, args: &[u64]) -> Result<(), Failure> {
        self.symbols.check_launch(export, args)?;
        let all = whole(self.symbols.all());
        let links = self.links(all, |row| row.commands.zip(row.to_host), COMMANDS)?;
        self.foresee(all)?;
        let words: Vec<u32> = args.iter().map(|&arg| arg as u32).collect();
        for (commands, _) in links {
            self.send(commands, &mut wire::command(Operation::Launch, export, &words).into_iter())?;
        }
        self.launched = Some(export);
        self.fence()
    }

    /// Waits until every PE has executed all commands so far.
    ///
    /// # Errors
    /// The mesh has no links to the host; or the run fails.
    pub fn fence(&mut self) -> Result<(), Failure> {
        let all = whole(self.symbols.all());
        let links = self.links(all, |row| row.commands.zip(row.to_host), COMMANDS)?;
        self.foresee(all)?;
        for (commands, _) in links {
            self.send(commands, &mut wire::command(Operation::Fence, 0, &[]).into_iter())?;
        }
        self.open = None;
        self.gather(all, 1, |_| HostWait::Commands, NONE)?;
        self.launched = None;
        Ok(())
    }

    /// What the host waits for, some PEs being silent.
    pub(super) fn unanswered(
        &self,
        silent: &[Coord],
        wait: impl FnOnce(String) -> HostWait,
        export: u32,
    ) -> Option<HostWait> {
        let &first = silent.first()?;
        let name = |id| self.symbols.name(id).unwrap_or_default().to_owned();
        Some(match self.launched {
            Some(id) => HostWait::Launch {
                name: name(id),
                loc: self.symbols.function_place(id, first),
                first,
                count: silent.len(),
            },
            None => wait(name(export)),
        })
    }
}

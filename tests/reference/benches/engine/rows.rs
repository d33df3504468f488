//! What is measured: a row per rate, and the program that it runs.

use dflow_compiler::{MemoryWorld, Options, compile};
use dflow_ir::image::Image;
use dflow_runtime::stats::Stats;

/// The programs, by file name.
const PROGRAMS: &[(&str, &str)] = &[
    ("allreduce.dfl", include_str!("programs/allreduce.dfl")),
    ("cg.dfl", include_str!("programs/cg.dfl")),
    ("chain.dfl", include_str!("programs/chain.dfl")),
    ("cores.dfl", include_str!("programs/cores.dfl")),
    ("halo.dfl", include_str!("programs/halo.dfl")),
    ("hops.dfl", include_str!("programs/hops.dfl")),
    ("multicast.dfl", include_str!("programs/multicast.dfl")),
    ("reduce.csl", include_str!("programs/reduce.csl")),
    ("streams.dfl", include_str!("programs/streams.dfl")),
    ("traffic.dfl", include_str!("programs/traffic.dfl")),
    ("words.dfl", include_str!("programs/words.dfl")),
];

/// What a rate counts.
#[derive(Clone, Copy)]
enum Count {
    /// Words taken over links.
    Hops,
    /// Words that reached a core.
    Delivered,
    /// Issue slots of all cores.
    Slots,
    /// Tasks started.
    Tasks,
    /// The product of these params.
    Product(&'static [&'static str]),
}

/// Params of a program: name and value.
type Params = &'static [(&'static str, u64)];

/// A program, its sizes, and what counts.
pub(crate) struct Row {
    /// Name of the bench group.
    pub(crate) name: &'static str,
    /// File of the program.
    pub(crate) program: &'static str,
    /// Params of every size.
    common: Params,
    small: Params,
    full: Params,
    count: Count,
}

impl Row {
    /// The params of a size.
    fn params(&self, full: bool) -> Vec<(&'static str, u64)> {
        let size = if full { self.full } else { self.small };
        self.common.iter().chain(size).copied().collect()
    }

    /// The value of a param that is set.
    fn param(&self, full: bool, name: &str) -> u64 {
        let params = self.params(full);
        let found = params.iter().find(|(known, _)| *known == name);
        found.map_or(1, |(_, value)| *value)
    }

    /// The program in one of the two sizes.
    ///
    /// # Panics
    ///
    /// If it is not listed, or does not compile.
    pub(crate) fn image(&self, full: bool) -> Image {
        let with = |world: MemoryWorld, (path, text): &(&str, &str)| world.with(path, *text);
        let world = PROGRAMS.iter().fold(MemoryWorld::new(), with);
        let params = self.params(full);
        let params = params.iter().map(|(name, value)| ((*name).to_owned(), value.to_string()));
        let options = Options { params: params.collect(), ..Options::default() };
        let compiled = compile(&world, self.program, options);
        compiled.image.unwrap_or_else(|| panic!("{}: {:?}", self.program, compiled.diagnostics))
    }

    /// How many of what the row counts a run had.
    pub(crate) fn count(&self, full: bool, stats: &Stats) -> u64 {
        match self.count {
            Count::Hops => stats.hops,
            Count::Delivered => stats.delivered,
            Count::Slots => stats.slots,
            Count::Tasks => stats.tasks,
            Count::Product(names) => names.iter().map(|name| self.param(full, name)).product(),
        }
    }
}

const CELLS: Count = Count::Product(&["width", "height", "n", "rounds"]);

/// All rows, in the order of the table.
pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "routers alone (hops)",
        program: "streams.dfl",
        common: &[],
        small: &[("width", 32), ("height", 32), ("n", 256)],
        full: &[("width", 128), ("height", 128), ("n", 1024)],
        count: Count::Hops,
    },
    Row {
        name: "dense traffic (hops)",
        program: "traffic.dfl",
        common: &[("side", 7), ("n", 512)],
        small: &[("width", 21), ("height", 21)],
        full: &[("width", 63), ("height", 63)],
        count: Count::Hops,
    },
    Row {
        name: "dense traffic, larger mesh (hops)",
        program: "traffic.dfl",
        common: &[("n", 256)],
        small: &[("width", 20), ("height", 20)],
        full: &[("width", 100), ("height", 100)],
        count: Count::Hops,
    },
    Row {
        name: "data tasks (tasks)",
        program: "traffic.dfl",
        common: &[("side", 7), ("n", 512)],
        small: &[("width", 21), ("height", 21)],
        full: &[("width", 63), ("height", 63)],
        count: Count::Tasks,
    },
    Row {
        name: "data tasks, larger mesh (tasks)",
        program: "traffic.dfl",
        common: &[("n", 256)],
        small: &[("width", 20), ("height", 20)],
        full: &[("width", 100), ("height", 100)],
        count: Count::Tasks,
    },
    Row {
        name: "data tasks of streams (tasks)",
        program: "words.dfl",
        common: &[("n", 256), ("rounds", 4)],
        small: &[("width", 32), ("height", 32)],
        full: &[("width", 128), ("height", 128)],
        count: Count::Tasks,
    },
    Row {
        name: "halo exchange (words)",
        program: "halo.dfl",
        common: &[],
        small: &[("width", 32), ("height", 32), ("n", 64), ("rounds", 2)],
        full: &[("width", 64), ("height", 64), ("n", 128), ("rounds", 8)],
        count: Count::Delivered,
    },
    Row {
        name: "halo exchange, larger mesh (words)",
        program: "halo.dfl",
        common: &[],
        small: &[("width", 64), ("height", 64), ("n", 32), ("rounds", 1)],
        full: &[("width", 256), ("height", 256), ("n", 128), ("rounds", 2)],
        count: Count::Delivered,
    },
    Row {
        name: "chains (words)",
        program: "chain.dfl",
        common: &[("n", 512)],
        small: &[("width", 32), ("height", 32), ("rounds", 1)],
        full: &[("width", 64), ("height", 64), ("rounds", 16)],
        count: Count::Delivered,
    },
    Row {
        name: "multicasts along rows (words)",
        program: "multicast.dfl",
        common: &[],
        small: &[("width", 32), ("height", 32), ("rounds", 8)],
        full: &[("width", 64), ("height", 64), ("rounds", 100)],
        count: Count::Delivered,
    },
    Row {
        name: "16 words over 1 hop (hops)",
        program: "hops.dfl",
        common: &[("n", 16), ("hops", 1)],
        small: &[("width", 32), ("height", 32), ("rounds", 64)],
        full: &[("width", 128), ("height", 128), ("rounds", 1280)],
        count: Count::Hops,
    },
    Row {
        name: "512 words over 8 hops (hops)",
        program: "hops.dfl",
        common: &[("n", 512), ("hops", 8)],
        small: &[("width", 36), ("height", 16), ("rounds", 4)],
        full: &[("width", 126), ("height", 128), ("rounds", 32)],
        count: Count::Hops,
    },
    Row {
        name: "scalar code (PE-cycles)",
        program: "cores.dfl",
        common: &[("what", 0)],
        small: &[("width", 32), ("height", 32), ("turns", 10_000)],
        full: &[("width", 128), ("height", 128), ("turns", 100_000)],
        count: Count::Slots,
    },
    Row {
        name: "local tasks (tasks)",
        program: "cores.dfl",
        common: &[("what", 1)],
        small: &[("width", 32), ("height", 32), ("turns", 1000)],
        full: &[("width", 128), ("height", 128), ("turns", 5000)],
        count: Count::Tasks,
    },
    Row {
        name: "vector operations of length 1 (operations)",
        program: "cores.dfl",
        common: &[("what", 2)],
        small: &[("width", 32), ("height", 32), ("turns", 2000)],
        full: &[("width", 128), ("height", 128), ("turns", 2000)],
        count: Count::Product(&["width", "height", "turns"]),
    },
    Row {
        name: "conjugate gradient (cells and iterations)",
        program: "cg.dfl",
        common: &[("n", 900)],
        small: &[("width", 8), ("height", 8), ("rounds", 2)],
        full: &[("width", 64), ("height", 64), ("rounds", 100)],
        count: CELLS,
    },
    Row {
        name: "finite volumes (cells and iterations)",
        program: "cg.dfl",
        common: &[("n", 900), ("faces", 1), ("solve", 0)],
        small: &[("width", 8), ("height", 8), ("rounds", 2)],
        full: &[("width", 64), ("height", 64), ("rounds", 10)],
        count: CELLS,
    },
    Row {
        name: "finite volumes, together (cells and iterations)",
        program: "cg.dfl",
        common: &[("n", 900), ("faces", 1), ("solve", 0), ("joint", 1)],
        small: &[("width", 8), ("height", 8), ("rounds", 10)],
        full: &[("width", 64), ("height", 64), ("rounds", 100)],
        count: CELLS,
    },
    Row {
        name: "scalar all-reduce (words)",
        program: "allreduce.dfl",
        common: &[("rounds", 1)],
        small: &[("width", 75), ("height", 99)],
        full: &[("width", 750), ("height", 994)],
        count: Count::Delivered,
    },
];

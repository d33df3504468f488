//! A model of the mesh's side of the protocol, without time: what `spec/memcpy.md` says PEs and
//! routers do, in the fewest words. Columns answer in an order that is not theirs.

use std::collections::{BTreeMap, VecDeque};

use dflow_ir::mesh::wavelet::{Command, Control};
use dflow_ir::mesh::{Color, Coord, Port, Wavelet};

use crate::config::Limits;
use crate::host::Mesh;
use crate::machine::{Goal, HostLinkInfo, LinkId};
use crate::outcome::{ConsoleLine, Deadlock, RunEnd};
use crate::stats::Stats;

pub(super) const STREAM_IN: u8 = 3;
pub(super) const STREAM_OUT: u8 = 4;
/// Exports of the model: 16-bit elements, 32-bit elements, a function of two.
pub(super) const WORDS: u32 = 0;
pub(super) const LONGS: u32 = 1;
pub(super) const FUNCTION: u32 = 2;
pub(super) const SAY: u32 = 6;

#[derive(Clone, Default)]
pub(super) struct Pe {
    /// Memory behind exports 0 and 1.
    pub(super) memory: [Vec<u8>; 2],
    pub(super) launches: Vec<(u32, Vec<u32>)>,
    position: usize,
    stream_position: usize,
    inbox: VecDeque<u32>,
}

/// What a column does with the words that are streamed to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Echo {
    /// Sends them back, plus one, column by column; then a mark.
    Marked,
    /// The last column alone sends them back, nothing after them.
    LastColumn,
    /// Nothing comes back.
    Silent,
}

pub(super) struct Model {
    width: usize,
    height: u16,
    echo: Echo,
    links: Vec<HostLinkInfo>,
    sources: Vec<VecDeque<Wavelet>>,
    arrived: Vec<Vec<(u64, Wavelet)>>,
    come: Vec<[u64; 2]>,
    pub(super) pes: Vec<Vec<Pe>>,
    pub(super) sent_at: Vec<u64>,
    /// Links to the host that take a limited number of words.
    pub(super) allowed: BTreeMap<LinkId, u64>,
    cycle: u64,
}

impl Model {
    pub(super) fn new(width: u16, height: u16, echo: Echo) -> Model {
        let mut links = Vec::new();
        for y in 0..height {
            let colors =
                [(STREAM_IN, true), (STREAM_OUT, false), (21, true), (22, false), (23, true)];
            for (color, to_mesh) in colors {
                let color = Color::new(color).expect("a color");
                let at = Coord { x: 0, y };
                links.push(HostLinkInfo { at, port: Port::West, color, to_mesh });
            }
        }
        Model {
            width: width.into(),
            height,
            allowed: BTreeMap::new(),
            echo,
            sources: vec![VecDeque::new(); links.len()],
            arrived: vec![Vec::new(); links.len()],
            come: vec![[0; 2]; links.len()],
            links,
            pes: vec![vec![Pe::default(); width.into()]; height.into()],
            sent_at: Vec::new(),
            cycle: 0,
        }
    }

    fn link(&self, row: usize, color: u8) -> usize {
        let found =
            |link: &HostLinkInfo| usize::from(link.at.y) == row && link.color.index() == color;
        self.links.iter().position(found).expect("the model has this link")
    }

    fn answer(&mut self, link: usize, word: Wavelet) {
        self.cycle += 1;
        self.come[link][0] += 1;
        self.come[link][1] += u64::from(word.control);
        self.arrived[link].push((self.cycle, word));
    }

    /// Deals the words of a row's link out to inboxes; gives whether any came.
    fn deal(&mut self, row: usize, color: u8) -> bool {
        let link = self.link(row, color);
        let words: Vec<Wavelet> = self.sources[link].drain(..).collect();
        for &word in &words {
            for (column, pe) in self.pes[row].iter_mut().enumerate() {
                let last = column + 1 == self.width;
                let position =
                    if color == STREAM_IN { &mut pe.stream_position } else { &mut pe.position };
                let ways: &[(bool, bool)] = match color {
                    STREAM_IN => &[(true, false), (false, true)],
                    _ => &[(true, true), (true, false), (false, true)],
                };
                let (core, east) = ways[*position];
                assert!(core || !last, "a word left the mesh to the east");
                if word.control {
                    *position = match Control(word.payload).command(0).command {
                        Command::Advance => (*position + 1).min(ways.len() - 1),
                        Command::Reset => 0,
                        other => panic!("{other:?} was sent"),
                    };
                } else if core {
                    pe.inbox.push_back(word.payload);
                }
                if !east {
                    break;
                }
            }
        }
        !words.is_empty()
    }

    fn run_row(&mut self, row: usize) {
        if self.deal(row, STREAM_IN) {
            self.echo(row);
        }
        let link = self.link(row, 23);
        let mut commands: VecDeque<u32> =
            self.sources[link].drain(..).map(|word| word.payload).collect();
        while let Some(header) = commands.pop_front() {
            let args = commands.drain(..(header >> 4 & 0xf) as usize).collect();
            self.execute(row, header & 0xf, header >> 16, header >> 8 & 0xff, args);
        }
    }

    fn execute(&mut self, row: usize, operation: u32, export: u32, amount: u32, args: Vec<u32>) {
        let out = self.link(row, 22);
        let (region, amount) = self.region(amount, &args);
        match operation {
            1 | 2 | 7 | 8 => {
                self.deal(row, 21);
                let bytes = if operation % 6 == 1 { 4 } else { 2 };
                for column in (0..self.width).filter(|_| operation > 2) {
                    if !region.contains(&column) {
                        self.pes[row][column].inbox.drain(..amount);
                    }
                }
                for column in region {
                    let pe = &mut self.pes[row][column];
                    let words: Vec<u32> = pe.inbox.drain(..amount).collect();
                    let raw = words.iter().flat_map(|word| word.to_le_bytes()[..bytes].to_vec());
                    pe.memory[export as usize] = raw.collect();
                }
            }
            3 => {
                // Round robin from the last column on.
                for half in 0..amount {
                    for &column in region.iter().rev() {
                        let memory = &self.pes[row][column].memory[export as usize];
                        let byte = |at: usize| memory.get(at).copied().unwrap_or(0);
                        let data = u16::from_le_bytes([byte(2 * half), byte(2 * half + 1)]);
                        self.answer(out, Wavelet::indexed(column as u16, data));
                    }
                }
            }
            4 => {
                for pe in &mut self.pes[row] {
                    pe.launches.push((export, args.clone()));
                }
            }
            5 => {
                for column in (0..self.width).rev() {
                    self.answer(out, Wavelet::indexed(column as u16, 0));
                }
            }
            other => panic!("operation {other}"),
        }
    }

    /// The columns that a command concerns, and its amount.
    fn region(&self, amount: u32, args: &[u32]) -> (Vec<usize>, usize) {
        let (amount, args) = match args.split_last() {
            Some((&last, rest)) if amount == 255 => (last, rest),
            _ => (amount, args),
        };
        let from_to = |span: u32| (span & 0xffff) as usize..=(span >> 16) as usize;
        let columns = match *args {
            [] => (0..self.width).collect(),
            [span] => from_to(span).collect(),
            [span, step, ..] => from_to(span).step_by(step.max(1) as usize).collect(),
        };
        (columns, amount as usize)
    }

    fn echo(&mut self, row: usize) {
        let out = self.link(row, STREAM_OUT);
        for column in 0..self.width {
            let words: Vec<u32> = self.pes[row][column].inbox.drain(..).collect();
            let speaks = match self.echo {
                Echo::Marked => true,
                Echo::LastColumn => column + 1 == self.width,
                Echo::Silent => false,
            };
            if speaks {
                for word in words {
                    self.answer(out, Wavelet::data_word(word + 1));
                }
            }
        }
        if self.echo == Echo::Marked {
            let mark = Wavelet { payload: Control::new(None, &[]).0, control: true };
            self.answer(out, mark);
        }
    }
}

impl Mesh for Model {
    fn now(&self) -> u64 {
        self.cycle
    }

    fn links(&self) -> &[HostLinkInfo] {
        &self.links
    }

    fn send(&mut self, link: LinkId, cycle: u64, words: &mut dyn Iterator<Item = Wavelet>) -> bool {
        let link = link.0 as usize;
        self.sources[link].extend(words);
        self.sent_at.push(cycle);
        self.links[link].to_mesh
    }

    fn make_room(&mut self, _: LinkId, _: u64, _: u64) {}

    fn entered(&self, _: LinkId) -> u64 {
        0
    }

    fn queued(&self) -> u64 {
        self.sources.iter().map(|words| words.len() as u64).sum()
    }

    fn allow(&mut self, link: LinkId, _cycle: u64, words: Option<u64>) -> bool {
        self.allowed.insert(link, words.unwrap_or(u64::MAX));
        !self.links[link.0 as usize].to_mesh
    }

    fn watch(&mut self, _color: Color, _to_mesh: bool) {}

    fn rested(&self, _link: LinkId) -> u64 {
        0
    }

    fn read(&mut self, at: Coord, address: u32, bytes: u32) -> Option<Vec<u8>> {
        let inside = usize::from(at.x) < self.width && at.y < self.height;
        inside.then(|| (address..address + bytes).map(|byte| byte as u8).collect())
    }

    fn foresee_row(&mut self, _: u16, _: u64) -> bool {
        true
    }

    fn run(&mut self, goals: &[Goal], _limits: &Limits) -> RunEnd {
        self.cycle += 10;
        for row in 0..self.pes.len() {
            self.run_row(row);
        }
        let holds = |goal: &Goal| match *goal {
            Goal::Words(link, words) => self.come[link.0 as usize][0] >= words,
            Goal::Controls(link, controls) => self.come[link.0 as usize][1] >= controls,
        };
        if goals.iter().all(holds) {
            RunEnd::Reached { cycle: self.cycle }
        } else {
            RunEnd::Deadlock(Box::new(Deadlock { cycle: self.cycle, ..Deadlock::default() }))
        }
    }

    fn received(&mut self, link: LinkId) -> Vec<(u64, Wavelet)> {
        std::mem::take(&mut self.arrived[link.0 as usize])
    }

    fn printed(&mut self) -> Vec<ConsoleLine> {
        Vec::new()
    }

    fn stats(&self) -> Stats {
        Stats { delivered: self.come.iter().map(|[words, _]| words).sum(), ..Stats::default() }
    }
}

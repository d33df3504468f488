//! How a run ends, and why a machine stands still.
//!
//! Invariant: a deadlock is a result; its report names who waits where for what, folded over
//! equal PEs.

use dflow_ir::loc::Loc;
use dflow_ir::mesh::{Color, Coord, Port};

use crate::config::Limit;
use crate::trap::Trap;

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEnd {
    /// All goals hold; the cycle at which the last of them came true.
    Reached {
        /// That cycle.
        cycle: u64,
    },
    /// No goal was open and nothing can move any more.
    Idle {
        /// The cycle after the last act.
        cycle: u64,
    },
    /// The program did something forbidden.
    Trap(Trap),
    /// A goal is open and nothing can move any more.
    Deadlock(Box<Deadlock>),
    /// A limit ended the run.
    Limit(Limit),
    /// The emulator itself failed; what it said. The machine cannot go on.
    Broken(String),
}

/// A line that a PE has written to its console register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleLine {
    /// When its last character was written.
    pub cycle: u64,
    /// The PE.
    pub at: Coord,
    /// The line, without its end; bytes that are no UTF-8 are replaced.
    pub text: String,
}

/// Why nothing moves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deadlock {
    /// The cycle after the last act.
    pub cycle: u64,
    /// Who waits, equal ones folded, most PEs first.
    pub waiters: Vec<Waiter>,
    /// Words that stand in routers and queues, folded by color and place.
    pub stuck: Vec<StuckWords>,
    /// Host links with words that cannot enter.
    pub host_waiting: Vec<(Coord, Color, u64)>,
    /// Where the host program waits (line 0: not known).
    pub host: Loc,
    /// What the host waits for, if it knows.
    pub host_wait: Option<HostWait>,
}

/// What the host waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostWait {
    /// Answers to a launch.
    Launch {
        /// The function.
        name: String,
        /// Where it stands (line 0: not known).
        loc: Loc,
        /// The first PE, in row order, that has not answered.
        first: Coord,
        /// How many have not.
        count: usize,
    },
    /// Words of a copy to the host.
    Copy {
        /// The export.
        name: String,
    },
    /// That commands are executed.
    Commands,
    /// Room in the queues of a stream into the mesh.
    StreamIn {
        /// The color.
        color: Color,
        /// First row whose words do not all fit.
        row: u16,
        /// Words of the row that are neither at rest in the mesh nor back at the host.
        words: u64,
        /// How many fit.
        room: u64,
    },
    /// Words of a stream to the host.
    StreamOut {
        /// The color.
        color: Color,
        /// The PE whose words are missing (the column is that of the link, for streams that do
        /// not take turns).
        at: Coord,
        /// How many are missing.
        words: u64,
    },
    /// That words of a stream with a name have entered the mesh.
    Send {
        /// The stream.
        name: String,
        /// How many have not.
        words: u64,
        /// How many of these its buffer holds, which need not enter.
        buffer: u32,
    },
    /// Words from a stream with a name.
    Receive {
        /// The stream.
        name: String,
        /// How many are missing.
        words: u64,
    },
}

/// PEs that wait for the same thing at the same place of the same program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// How many PEs.
    pub count: usize,
    /// The first of them in row order; the details below are its own.
    pub first: Coord,
    /// The last of them in row order.
    pub last: Coord,
    /// Program.
    pub program: String,
    /// Task that started the operation.
    pub task: Option<String>,
    /// Source place of the operation.
    pub loc: Loc,
    /// For what.
    pub wait: Wait,
}

/// What an operation waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A word on a color.
    Receive {
        /// The color.
        color: Color,
        /// Input queue.
        queue: u8,
        /// Cycle at which the last data word came, if any did.
        last: Option<u64>,
        /// PEs that inject this color on the way here (at most four), as far as routes tell.
        senders: Vec<Coord>,
        /// A router on the way where a word of the color stands, and the port it came from.
        stands: Option<(Coord, Port)>,
        /// Words of the color that the first of the senders has sent, if it has a program.
        sent: Option<u64>,
        /// Elements done, and elements to do (`None`: without end).
        done: u32,
        length: Option<u32>,
        /// Words of the color that its filter has kept from the PE.
        filtered: u64,
        /// Who else waits for whom, from sender to sender. [`Chain::Open`] while something can move.
        chain: Chain,
    },
    /// Room for a word on a color.
    Send {
        /// The color.
        color: Color,
        /// Output queue.
        queue: u8,
    },
    /// Elements in, or room in, a FIFO.
    Fifo {
        /// Name of its buffer, if it is known.
        name: Option<String>,
        /// It is full, not empty.
        full: bool,
        /// The operation is without end.
        endless: bool,
    },
    /// A microthread that another operation occupies.
    Microthread {
        /// Its number.
        id: u8,
        /// Source place of the operation that has it.
        holder: Option<Loc>,
        /// Where both operations have the number from, if it is that of a queue of each.
        from: Option<NumberFrom>,
    },
    /// Somebody to unblock its microthread.
    BlockedMicrothread(u8),
    /// Somebody to unblock the task: it is activated, or words of this color wait for it.
    Blocked {
        /// Color of the words, of a data task.
        color: Option<Color>,
    },
}

/// Where the number of a microthread comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberFrom {
    /// From the queue.
    Queue,
    /// From the queue, where no `.ut_id` names it.
    QueueUnlessNamed,
}

/// Where the waits for words lead, from sender to sender.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Chain {
    /// Nowhere that one can tell.
    #[default]
    Open,
    /// To a PE that waits for nothing and sends nothing.
    Idle(Coord),
    /// Around: these PEs wait for each other (the first eight), so many in all.
    Cycle(Vec<Coord>, usize),
}

/// Words of one color that stand in one kind of place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StuckWords {
    /// The color.
    pub color: Color,
    /// Where.
    pub place: StuckPlace,
    /// How many words in all.
    pub words: u64,
    /// On how many PEs.
    pub count: usize,
    /// The first of them.
    pub first: Coord,
}

/// Where words can stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StuckPlace {
    /// In a router, having come in through this port.
    Router(Port),
    /// In routers, as above; the color is in teardown there.
    Torn(Port),
    /// In a router, as above; the color's switch is at this position, which takes nothing from
    /// there.
    Switched(Port, u8),
    /// In a router, as above; its route of the color receives nothing from there.
    NotReceived(Port),
    /// In a router, as above; they go to the core, where no queue takes the color.
    NoQueue(Port),
    /// In an input queue.
    Input,
    /// In an input queue that no task is bound to and no operation reads.
    Unread,
    /// Likewise, behind a control wavelet that waits until its channel is not blocked.
    Blocked,
    /// In an output queue.
    Output,
}

impl StuckPlace {
    /// Words in input queues.
    pub(crate) fn is_input(self) -> bool {
        matches!(self, StuckPlace::Input | StuckPlace::Unread | StuckPlace::Blocked)
    }

    /// Why they stand there is known.
    pub(crate) fn is_explained(self) -> bool {
        match self {
            StuckPlace::Torn(_)
            | StuckPlace::Switched(..)
            | StuckPlace::NotReceived(_)
            | StuckPlace::NoQueue(_)
            | StuckPlace::Unread
            | StuckPlace::Blocked => true,
            StuckPlace::Router(_) | StuckPlace::Input | StuckPlace::Output => false,
        }
    }

    /// Words that have not been sent yet.
    pub(crate) fn is_output(self) -> bool {
        self == StuckPlace::Output
    }
}

const LINES: usize = 5;

/// That so many groups of PEs are not listed.
pub(crate) fn more_groups(count: usize) -> String {
    let groups = if count == 1 { "group" } else { "groups" };
    format!("; and {count} more {groups} of PEs")
}

impl Deadlock {
    /// The report, a few lines; `files` are the names that source places refer to. Without them,
    /// places are lines alone.
    pub fn text(&self, files: &[String]) -> String {
        let mut text = format!("nothing can move any more from cycle {} on", self.cycle);
        if self.host.line != 0 {
            text.push_str(&format!("; the host waits at {}", place(self.host, files)));
        }
        if let Some(wait) = &self.host_wait {
            text.push_str(&format!("\n  {}", wait.text(files, !self.waiters.is_empty())));
        }
        let shown = LINES - usize::from(!self.stuck.is_empty());
        for waiter in self.waiters.iter().take(shown) {
            text.push_str(&format!("\n  {}", waiter.text(files)));
        }
        if self.waiters.len() > shown {
            text.push_str(&more_groups(self.waiters.len() - shown));
        }
        if let Some(stuck) = self.stuck.first() {
            text.push_str(&format!("\n  {stuck}"));
        }
        text
    }
}

impl HostWait {
    /// `stuck`: some operation waits, so that a PE may have had no chance to answer.
    fn text(&self, files: &[String], stuck: bool) -> String {
        match self {
            HostWait::Launch { name, loc, first, count } => {
                let mut text = format!("launch of `{name}`");
                if loc.line != 0 {
                    text.push_str(&format!(" ({})", place(*loc, files)));
                }
                let Coord { x, y } = first;
                text.push_str(&match count {
                    1 => format!(" has not been answered: PE ({x}, {y})"),
                    _ => format!(" has not been answered: {count} PEs, first ({x}, {y}),"),
                });
                let never = if stuck { "has not called" } else { "never called" };
                let never = if *count > 1 && stuck { "have not called" } else { never };
                format!("{text} {never} unblock_cmd_stream")
            }
            HostWait::Copy { name } => format!("the host waits for the elements of `{name}`"),
            HostWait::Commands => "the host waits until all commands are executed".to_owned(),
            HostWait::StreamIn { color, row, words, room } => format!(
                "the host cannot finish its stream into the mesh on color {}: {words} words of row {row} \
                 are neither stored nor taken, and the queues at the edge hold {room}; words to the \
                 host are not taken before",
                color.index()
            ),
            HostWait::StreamOut { color, at: Coord { x, y }, words } => format!(
                "the host waits for {words} more words of PE ({x}, {y}) on color {}",
                color.index()
            ),
            HostWait::Send { name, words, buffer } => format!(
                "the host waits until its words for the stream `{name}` have entered the mesh: \
                 {words} have not, and its buffer holds {buffer}"
            ),
            HostWait::Receive { name, words } => {
                let more = if *words == 1 { "1 more word" } else { &format!("{words} more words") };
                format!("the host waits for {more} of the stream `{name}`")
            }
        }
    }
}

impl Waiter {
    pub(crate) fn text(&self, files: &[String]) -> String {
        let Waiter { count, first, last, program, task, loc, wait } = self;
        let mut text = match count {
            1 => format!("PE ({}, {})", first.x, first.y),
            _ => format!("{count} PEs, ({}, {}) to ({}, {}),", first.x, first.y, last.x, last.y),
        };
        text.push_str(&format!(" of `{program}`"));
        if let Some(task) = task {
            text.push_str(&format!(" in `{task}`"));
        }
        if loc.line != 0 {
            text.push_str(&format!(" {}", place(*loc, files)));
        }
        text.push_str(&format!(": {wait}"));
        if let Wait::Microthread { id, holder: Some(holder), from } = wait {
            text.push_str(&format!(", which the operation at {} has", place(*holder, files)));
            text.push_str(&match from {
                None => String::new(),
                Some(NumberFrom::Queue) => {
                    format!(": both have the number of their queue; give one of them a queue other than {id}")
                }
                Some(NumberFrom::QueueUnlessNamed) => format!(
                    ": both have the number of a queue of theirs; give one of them another `.ut_id`, \
                     or a queue other than {id} if it has none"
                ),
            });
        }
        text
    }
}

/// `file:line`, or `line N` if the file has no name here.
pub(crate) fn place(loc: Loc, files: &[String]) -> String {
    match files.get(loc.file as usize) {
        Some(file) => format!("{file}:{}", loc.line),
        None => format!("line {}", loc.line),
    }
}

impl std::fmt::Display for Deadlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text(&[]))
    }
}

impl std::fmt::Display for Wait {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Wait::Receive { .. } => self.receive(f),
            Wait::Send { color, queue } => {
                write!(f, "waits for room to send on color {} (queue {queue})", color.index())
            }
            Wait::Blocked { color: Some(color) } => {
                write!(f, "is blocked, and words on color {} wait for it", color.index())
            }
            Wait::Blocked { color: None } => f.write_str("is blocked, and activated"),
            Wait::Fifo { name, full, endless: _ } => {
                let what = if *full { "room in" } else { "elements in" };
                match name {
                    Some(name) => write!(f, "waits for {what} the FIFO of `{name}`"),
                    None => write!(f, "waits for {what} a FIFO"),
                }
            }
            Wait::BlockedMicrothread(id) => {
                write!(f, "waits until microthread {id}, which is blocked, is unblocked")
            }
            Wait::Microthread { id, .. } => write!(f, "waits for microthread {id}"),
        }
    }
}

impl Wait {
    /// Of one that waits for a word.
    fn receive(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Wait::Receive { color, queue, last, done, length, filtered, stands, .. } = self else {
            return Ok(());
        };
        write!(f, "waits for a word on color {} (queue {queue})", color.index())?;
        match (last, done, length) {
            (None, ..) => f.write_str("; none ever came")?,
            (Some(cycle), 0, _) => write!(f, "; the last came at cycle {cycle}")?,
            (Some(cycle), _, Some(length)) => {
                write!(f, "; has {done} of {length}, the last came at cycle {cycle}")?;
            }
            (Some(cycle), _, None) => {
                write!(f, "; has {done}, the last came at cycle {cycle}")?;
            }
        }
        if *filtered != 0 {
            write!(f, "; its filter has kept {filtered} from it")?;
        }
        if let Some((at, port)) = stands {
            write!(f, "; one stands at ({}, {}) from {}", at.x, at.y, port.name())?;
        }
        self.senders(f)
    }

    /// From whom it waits for words.
    fn senders(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Wait::Receive { senders, sent, chain, .. } = self else { return Ok(()) };
        for (index, at) in senders.iter().enumerate() {
            f.write_str(if index == 0 { "; should come from " } else { " or " })?;
            write!(f, "({}, {})", at.x, at.y)?;
        }
        if let (Some(sent @ 1..), [_]) = (sent, &senders[..]) {
            write!(f, ", which has sent {sent}")?;
        }
        match chain {
            Chain::Open => Ok(()),
            Chain::Idle(at) if senders.contains(at) && sent.is_some_and(|sent| sent > 0) => {
                f.write_str(" and does nothing")
            }
            Chain::Idle(at) if senders.contains(at) => f.write_str(", which does nothing"),
            Chain::Idle(at) => write!(f, "; in the end ({}, {}) does nothing", at.x, at.y),
            Chain::Cycle(around, count) => {
                write!(f, "; {count} PEs wait for each other: ")?;
                for at in around {
                    write!(f, "({}, {}) for ", at.x, at.y)?;
                }
                match around.first() {
                    Some(at) if around.len() == *count => write!(f, "({}, {})", at.x, at.y),
                    Some(_) | None => f.write_str("…"),
                }
            }
        }
    }
}

impl std::fmt::Display for StuckWords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let StuckWords { color, place, words, count, first } = self;
        match words {
            1 => write!(f, "1 word of color {} stands in ", color.index())?,
            _ => write!(f, "{words} words of color {} stand in ", color.index())?,
        }
        match place {
            StuckPlace::Router(port)
            | StuckPlace::Torn(port)
            | StuckPlace::Switched(port, _)
            | StuckPlace::NotReceived(port)
            | StuckPlace::NoQueue(port) => {
                write!(f, "routers (from {})", port.name())?;
            }
            StuckPlace::Input | StuckPlace::Unread | StuckPlace::Blocked => {
                f.write_str("input queues")?;
            }
            StuckPlace::Output => f.write_str("output queues")?,
        }
        match count {
            1 => write!(f, " of PE ({}, {})", first.x, first.y)?,
            _ => write!(f, " of {count} PEs, first ({}, {})", first.x, first.y)?,
        }
        match place {
            StuckPlace::Router(_) | StuckPlace::Input | StuckPlace::Output => Ok(()),
            StuckPlace::Torn(_) => f.write_str(", where the color is in teardown"),
            StuckPlace::Switched(_, position) => write!(
                f,
                ", where the switch is at position {position}, which takes nothing from there"
            ),
            StuckPlace::NotReceived(port) => {
                write!(f, ", where the color's route does not receive from {}", port.name())
            }
            StuckPlace::NoQueue(_) => {
                f.write_str(", which would give them to the core, where no queue takes the color")
            }
            StuckPlace::Blocked => f.write_str(
                ", where no operation reads them and their channel is blocked: `@unblock` lets control \
                 wavelets start tasks",
            ),
            StuckPlace::Unread => {
                f.write_str(", where no task is bound to them and no operation reads them")
            }
        }
    }
}

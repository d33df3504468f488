//! The loss account: what became of every word until now, and what was odd.
//!
//! Invariant: each word counts once. What PEs and the host sent, and what routers copied, is
//! what was taken, filtered, dropped or is left ([`Account::is_balanced`]).

use dflow_ir::loc::Loc;
use dflow_ir::mesh::{Color, Coord};

use crate::outcome::{StuckWords, Wait, Waiter, place};

/// What became of the words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The cycle after the last act.
    pub cycle: u64,
    /// Words that went up the ramp of a PE.
    pub sent: u64,
    /// Words of the host that entered the mesh.
    pub entered: u64,
    /// Words that routers made in addition, where a route branches.
    pub copies: u64,
    /// Words that tasks and operations took.
    pub taken: u64,
    /// Words that reached the host.
    pub to_host: u64,
    /// Words that a filter kept from a core.
    pub filtered: u64,
    /// Control wavelets that were meant for routers alone and have ended there.
    pub hidden: u64,
    /// Control wavelets that reached a core where nothing waited for them.
    pub dropped: u64,
    /// Words that left the rectangle where nobody takes them.
    pub gone: u64,
    /// Words that stand in routers and queues, most first.
    pub left: Vec<StuckWords>,
    /// Words of the host that have not entered the mesh: where, color, how many.
    pub outside: Vec<(Coord, Color, u64)>,
    /// Operations that wait, and blocked tasks with something to do; equal ones folded.
    pub waiters: Vec<Waiter>,
    /// The mesh still worked when the host stopped looking.
    pub busy: bool,
    /// What was odd, by program and place.
    pub remarks: Vec<Remark>,
}

/// Something legal and odd, told once per place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// What, as a sentence without a full stop.
    pub text: String,
    /// The program that did it, if a program did.
    pub program: Option<String>,
    /// The task that ran, if one did.
    pub task: Option<String>,
    /// Source place (line 0: not known).
    pub loc: Loc,
    /// The first that did it, by cycle and PE.
    pub pe: Coord,
    /// When.
    pub cycle: u64,
    /// How often it has been done.
    pub count: u64,
}

/// Most lines of a kind.
const LINES: usize = 6;

impl Account {
    /// Words that are somewhere on the way; those in output queues were not sent yet.
    fn left_in(&self, counts: impl Fn(&StuckWords) -> bool) -> u64 {
        self.left.iter().filter(|left| counts(left)).map(|left| left.words).sum()
    }

    /// Whether every word is somewhere.
    pub fn is_balanced(&self) -> bool {
        let left = self.left_in(|left| !left.place.is_output());
        let came = self.sent + self.entered + self.copies;
        let went =
            self.taken + self.to_host + self.filtered + self.hidden + self.dropped + self.gone;
        came == went + left
    }

    /// Whether no word came from the host or went to it.
    pub(crate) fn is_without_host(&self) -> bool {
        self.entered == 0 && self.to_host == 0 && self.outside.is_empty()
    }

    /// What is not as expected, a sentence each: words that are left and operations that wait.
    /// `files` are the names that source places refer to.
    pub fn notes(&self, files: &[String]) -> Vec<String> {
        let mut notes: Vec<String> =
            self.left.iter().take(LINES).map(|left| format!("at the end, {left}")).collect();
        if let Some(rest @ 1..) = self.left.len().checked_sub(LINES) {
            let (groups, are) = if rest == 1 { ("group", "is") } else { ("groups", "are") };
            notes.push(format!("at the end, {rest} more {groups} of words {are} left"));
        }
        let outside = self.outside.iter().take(LINES).map(|(at, color, words)| {
            let color = color.index();
            format!(
                "at the end, {words} words that the host sent on color {color} have not entered the mesh at PE ({}, {})",
                at.x, at.y
            )
        });
        notes.extend(outside);
        let waiters: Vec<&Waiter> = self.waiters.iter().filter(|it| !rests(&it.wait)).collect();
        notes
            .extend(waiters.iter().take(LINES).map(|it| format!("at the end, {}", it.text(files))));
        if waiters.len() > LINES {
            let rest = waiters.len() - LINES;
            let (groups, wait) = if rest == 1 { ("group", "waits") } else { ("groups", "wait") };
            notes.push(format!("at the end, {rest} more {groups} of PEs {wait}"));
        }
        if self.busy {
            notes.push(format!(
                "the program still worked when the run was ended, at cycle {}",
                self.cycle
            ));
        }
        notes
    }

    /// The balance, for people: lines without a line break at the end.
    pub fn text(&self) -> String {
        let mut lines = vec![
            format!("  sent      {} by PEs, {} by the host", self.sent, self.entered),
            format!("  copied    {} where routes branch", self.copies),
            format!(
                "  taken     {} by tasks and operations, {} by the host",
                self.taken, self.to_host
            ),
        ];
        let mut line = |words: u64, text: &str| {
            if words != 0 {
                lines.push(text.replace("{}", &words.to_string()));
            }
        };
        line(self.filtered, "  filtered  {} kept from their core by a filter");
        line(self.hidden, "  commands  {} control wavelets for routers alone");
        line(
            self.dropped,
            "  dropped   {} control wavelets that reached a core where no task is bound to them",
        );
        line(self.gone, "  gone      {} out of the rectangle, where nobody takes them");
        line(
            self.left_in(|left| !left.place.is_output()),
            "  left      {} in routers and input queues",
        );
        line(self.left_in(|left| left.place.is_output()), "  unsent    {} in output queues");
        line(
            self.outside.iter().map(|(.., words)| words).sum(),
            "  outside   {} of the host before the mesh",
        );
        lines.join("\n")
    }
}

/// Whether a wait is what a program comes to rest in: an operation without end waits for more by
/// its nature, of the fabric or a FIFO, and one that has had whole batches waits for the next.
fn rests(wait: &Wait) -> bool {
    matches!(
        wait,
        Wait::Receive { length: None, .. }
            | Wait::Receive { done: 0, last: Some(_), .. }
            | Wait::Fifo { full: false, endless: true, .. }
    )
}

impl Remark {
    /// One line; `files` are the names that source places refer to.
    pub fn line(&self, files: &[String]) -> String {
        let Remark { text, program, task, loc, pe, cycle, count } = self;
        let mut line = String::new();
        if loc.line != 0 {
            line.push_str(&format!("{}: ", place(*loc, files)));
        }
        line.push_str(&format!("{text} (PE ({}, {})", pe.x, pe.y));
        if let Some(program) = program {
            line.push_str(&format!(" of `{program}`"));
        }
        if let Some(task) = task {
            line.push_str(&format!(" in `{task}`"));
        }
        line.push_str(&format!(", cycle {cycle}"));
        match count {
            1 => line.push(')'),
            _ => line.push_str(&format!("; {count} times in all)")),
        }
        line
    }
}

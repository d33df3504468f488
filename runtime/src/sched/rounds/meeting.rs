//! Where parts of a machine in rounds wait for each other.
//!
//! Invariants: between two calls of [`Meeting::agree`] by all parts nobody waits; words that were posted
//! before one of them are there after it.

use std::sync::{Condvar, Mutex};

use crate::sched::run::lock;

/// Words for another part: into which queues, and how many into each.
#[derive(Debug, Default)]
pub(super) struct Mail {
    pub(super) words: Vec<u32>,
    pub(super) into: Vec<(u32, u32)>,
    /// The part's queues: the first, and the one behind the last.
    queues: (u32, u32),
}

impl Mail {
    /// None yet, for a part with these queues.
    pub(super) fn to(queues: (u32, u32)) -> Mail {
        Mail { queues, ..Mail::default() }
    }

    /// Whether a queue is one of the part's.
    pub(super) fn holds(&self, queue: u32) -> bool {
        (self.queues.0..self.queues.1).contains(&queue)
    }

    /// There are no words.
    pub(super) fn clear(&mut self) {
        self.words.clear();
        self.into.clear();
    }

    /// Words for a queue.
    pub(super) fn add(&mut self, queue: u32, words: &[u32]) {
        self.words.extend_from_slice(words);
        self.into.push((queue, words.len() as u32));
    }
}

/// What a part that has nothing to do waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Words have come.
    Mail,
    /// Nobody has anything to do: operations are to take words as they come.
    ByWords,
    /// The round is over.
    Leave,
}

/// Where parts meet.
#[derive(Debug)]
pub(super) struct Meeting {
    parts: usize,
    state: Mutex<State>,
    changed: Condvar,
    mail: Vec<Mutex<Mail>>,
}

#[derive(Debug, Default)]
struct State {
    /// How often all have agreed, who waits for that now, whether all of these said yes, and what came of it
    /// last.
    turn: u64,
    arrived: usize,
    all: bool,
    agreed: bool,
    /// By part: whether it waits for words, and whether there are some.
    waits: Vec<bool>,
    has_mail: Vec<bool>,
    by_words: bool,
    /// A part has left the round, or all for ever.
    is_over: bool,
    is_left: bool,
}

impl Meeting {
    /// Of so many parts.
    pub(super) fn new(parts: usize) -> Meeting {
        let none = || vec![false; parts];
        let state = State { all: true, waits: none(), has_mail: none(), ..State::default() };
        let mail = (0..parts).map(|_| Mutex::default()).collect();
        Meeting { parts, state: Mutex::new(state), changed: Condvar::new(), mail }
    }

    /// Waits until all parts have come here; whether all said yes.
    pub(super) fn agree(&self, yes: bool) -> bool {
        let mut state = lock(&self.state);
        if state.is_left {
            return false;
        }
        state.all &= yes;
        state.arrived += 1;
        if state.arrived == self.parts {
            state.agreed = std::mem::replace(&mut state.all, true);
            (state.arrived, state.is_over) = (0, false);
            state.turn += 1;
            self.changed.notify_all();
            return state.agreed;
        }
        self.look_for_words(&mut state);
        let turn = state.turn;
        while state.turn == turn && !state.is_left {
            state = wait(&self.changed, state);
        }
        state.agreed && !state.is_left
    }

    /// A part has nothing to do; what it waited for.
    pub(super) fn wait(&self, part: usize, by_words: bool) -> Wait {
        let mut state = lock(&self.state);
        state.waits[part] = true;
        let came = loop {
            if state.is_over || state.is_left {
                break Wait::Leave;
            }
            if std::mem::take(&mut state.has_mail[part]) {
                break Wait::Mail;
            }
            if state.by_words && !by_words {
                break Wait::ByWords;
            }
            if !self.look_for_words(&mut state) {
                state = wait(&self.changed, state);
            }
        };
        state.waits[part] = false;
        came
    }

    /// If nobody has anything to do operations take words as they come; if they do that already the round is
    /// left. Whether so.
    fn look_for_words(&self, state: &mut State) -> bool {
        let State { waits, has_mail, .. } = &state;
        let waiting = waits.iter().filter(|waits| **waits).count();
        let has_mail = waits.iter().zip(has_mail).any(|(waits, mail)| *waits && *mail);
        if waiting == 0 || waiting + state.arrived != self.parts || has_mail || state.is_over {
            return false;
        }
        if state.by_words {
            state.is_over = true;
        }
        state.by_words = true;
        // They are about to go on, as soon as they hear of it.
        state.waits.fill(false);
        self.changed.notify_all();
        true
    }

    /// The round is not to be gone on with.
    pub(super) fn leave_round(&self) {
        lock(&self.state).is_over = true;
        self.changed.notify_all();
    }

    /// Nobody is to wait any more, ever: a part is not there.
    pub(super) fn leave(&self) {
        lock(&self.state).is_left = true;
        self.changed.notify_all();
    }

    /// Whether a part has left for ever.
    pub(super) fn is_left(&self) -> bool {
        lock(&self.state).is_left
    }

    /// Sends words to other parts.
    pub(super) fn post(&self, out: &mut [Mail]) {
        for (part, mail) in out.iter_mut().enumerate().filter(|(_, mail)| !mail.into.is_empty()) {
            let mut box_of = lock(&self.mail[part]);
            box_of.words.append(&mut mail.words);
            box_of.into.append(&mut mail.into);
            drop(box_of);
            lock(&self.state).has_mail[part] = true;
            self.changed.notify_all();
        }
    }

    /// Takes the words for a part.
    pub(super) fn take(&self, part: usize) -> Mail {
        lock(&self.state).has_mail[part] = false;
        std::mem::take(&mut *lock(&self.mail[part]))
    }
}

/// Waits for a change.
fn wait<'a>(
    changed: &Condvar,
    state: std::sync::MutexGuard<'a, State>,
) -> std::sync::MutexGuard<'a, State> {
    changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What two parts come to that both wait for words, after one has sent some or not.
    fn both_wait(words: u32, by_words: bool) -> [Wait; 2] {
        let meeting = Meeting::new(2);
        let mut out = [Mail::to((0, 1)), Mail::to((1, 2))];
        for word in 0..words {
            out[1].add(1, &[word]);
        }
        meeting.post(&mut out);
        std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                let came = meeting.wait(0, by_words);
                meeting.agree(true);
                came
            });
            let second = meeting.wait(1, by_words);
            assert_eq!(meeting.take(1).words.len(), words as usize);
            meeting.agree(true);
            [first.join().unwrap_or(Wait::Leave), second]
        })
    }

    #[test]
    fn who_has_words_does_not_wait_for_others() {
        assert_eq!(both_wait(3, false)[1], Wait::Mail);
    }

    #[test]
    fn parts_that_wait_for_each_other_take_words_as_they_come() {
        assert_eq!(both_wait(0, false), [Wait::ByWords; 2]);
    }

    #[test]
    fn a_part_that_is_not_there_ends_all() {
        let meeting = Meeting::new(2);
        meeting.leave();
        assert_eq!((meeting.wait(0, true), meeting.agree(true)), (Wait::Leave, false));
    }

    #[test]
    fn all_have_to_agree() {
        let meeting = Meeting::new(3);
        let agreed = std::thread::scope(|scope| {
            let parts: Vec<_> = [true, false, true]
                .map(|yes| {
                    let meeting = &meeting;
                    scope.spawn(move || meeting.agree(yes))
                })
                .into();
            parts.into_iter().map(|part| part.join().unwrap_or(true)).collect::<Vec<_>>()
        });
        assert_eq!(agreed, [false; 3]);
    }
}

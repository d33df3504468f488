//! Sources that wait for places in a pipe, and when they are told.

use super::Pipe;

/// What the source of a pipe waits for.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(super) enum Wanted {
    #[default]
    Nothing,
    /// So many places that are free, or that any word has been taken.
    Room(u32),
    /// A place for the last word that was sent.
    Last,
}

impl Pipe {
    /// The source waits until so many places are free; for any word that is taken, if none.
    pub(crate) fn want(&mut self, places: u32) {
        self.wanted = match self.wanted {
            Wanted::Nothing => Wanted::Room(places),
            Wanted::Room(before) => Wanted::Room(before.min(places)),
            Wanted::Last => Wanted::Room(0),
        };
    }

    /// The source waits until the word before `number` has a place, if it has none.
    pub(crate) fn want_place(&mut self, number: u64) {
        if self.place_from(number).is_some() {
            return;
        }
        self.wanted = match self.wanted {
            Wanted::Nothing | Wanted::Last if number == self.sent.end() => Wanted::Last,
            Wanted::Nothing | Wanted::Room(_) | Wanted::Last => Wanted::Room(0),
        };
    }

    /// Other words are about to be the last.
    pub(super) fn follow_last(&mut self) {
        if matches!(self.wanted, Wanted::Last) {
            self.wanted = Wanted::Room(0);
        }
    }

    /// Words that it takes now, if these are so many at least; if not the source waits for that.
    pub(crate) fn room_for(&mut self, least: u32) -> u32 {
        let room = self.room();
        if room < least {
            self.want(least);
            return 0;
        }
        room
    }

    /// The source waits for places, and has as many as it waits for: from how many cycles on it may use
    /// one that becomes free.
    pub(crate) fn credit(&mut self) -> Option<u64> {
        // A word that stands before a ramp climbs as soon as there is a place.
        let (has, later) = match self.wanted {
            Wanted::Nothing => (false, 0),
            Wanted::Room(0) => (true, 0),
            Wanted::Room(places) => (self.room() >= places, self.later()),
            Wanted::Last => (self.place_from(self.sent.end()).is_some(), self.later()),
        };
        if has {
            self.wanted = Wanted::Nothing;
        }
        has.then(|| u64::from(self.credit) + later)
    }

    /// Of `count` words that are taken, the one with which the source has what it waits for; the last, if it has not.
    pub(super) fn told_with(&self, count: u32) -> u32 {
        let room = |left: u32| {
            let places = self.places + self.open.saturating_sub(left);
            places.saturating_sub(self.standing().saturating_sub(left))
        };
        match self.wanted {
            // Another region is told of the first.
            _ if self.comes_from().is_some() => 1,
            Wanted::Nothing => 1,
            Wanted::Room(places) => (1..count).find(|&left| room(left) >= places).unwrap_or(count),
            Wanted::Last => self.without_place().clamp(1, count),
        }
    }
}

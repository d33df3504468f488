//! Filters: which wavelets a router keeps from its own core (spec/mesh.md).
//!
//! Invariant: a filter's state changes only when a word that it judges is granted.

use dflow_ir::mesh::Filter;

/// A filter's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilterState {
    /// Its color.
    pub(crate) color: u8,
    rule: Filter,
    /// Words counted since the last wrap.
    pub(crate) counter: u16,
    /// Value after which the counter starts from 0 again; the least index of a range.
    pub(crate) limit: u16,
    /// Greatest counter with which a word passes; the greatest index of a range.
    pub(crate) max: u16,
    /// Limit to come (sparse filters).
    second: Option<u16>,
    /// Everything passes.
    pub(crate) open: bool,
    /// Nothing that is counted passes.
    pub(crate) closed: bool,
    /// Words kept from the core so far.
    pub(crate) kept: u64,
}

/// What a counting filter looks at.
#[derive(Clone, Copy)]
struct Counted {
    data: bool,
    control: bool,
    filter_control: bool,
}

impl FilterState {
    /// The state at the start.
    pub(crate) fn new(color: u8, rule: Filter) -> FilterState {
        let (counter, limit, max, second) = match rule {
            Filter::Range { min, max } => (0, min, max, None),
            Filter::Counter { initial, limit, max, data: _, control: _, filter_control: _ } => {
                (initial, limit, max, None)
            }
            Filter::Sparse {
                initial,
                limit,
                limit2,
                max,
                data: _,
                control: _,
                filter_control: _,
            } => (initial, limit, max, limit2),
        };
        FilterState {
            color,
            rule,
            counter,
            limit,
            max,
            second,
            open: false,
            closed: false,
            kept: 0,
        }
    }

    fn counted(&self) -> Option<Counted> {
        match self.rule {
            Filter::Range { .. } => None,
            Filter::Counter { data, control, filter_control, initial: _, limit: _, max: _ }
            | Filter::Sparse {
                data,
                control,
                filter_control,
                initial: _,
                limit: _,
                limit2: _,
                max: _,
            } => Some(Counted { data, control, filter_control }),
        }
    }

    /// Whether a word may go down the ramp.
    pub(crate) fn passes(&self, payload: u32, control: bool) -> bool {
        if self.open {
            return true;
        }
        let Some(counted) = self.counted() else {
            let index = (payload >> 16) as u16;
            return control || (self.limit..=self.max).contains(&index);
        };
        let below = !self.closed && self.counter <= self.max;
        match (control, counted) {
            (true, Counted { filter_control: true, .. }) => self.counter == self.max,
            (true, Counted { control: false, .. }) => true,
            (true, _) | (false, _) => below,
        }
    }

    /// Whether all words pass, and change nothing here, until a register is written.
    pub(crate) fn lets_all_pass(&self) -> bool {
        if let Filter::Range { .. } = self.rule {
            return self.open;
        }
        [false, true].into_iter().all(|control| {
            let mut after = *self;
            after.count(control);
            after == *self && self.passes(0, control)
        })
    }

    /// A word was judged.
    pub(crate) fn count(&mut self, control: bool) {
        let Some(counted) = self.counted() else { return };
        if self.open || !(if control { counted.control } else { counted.data }) {
            return;
        }
        if self.counter != self.limit {
            self.counter = self.counter.wrapping_add(1);
            return;
        }
        self.counter = 0;
        if let Filter::Sparse { .. } = self.rule {
            match self.second.take() {
                Some(second) => self.limit = second,
                None => self.open = true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(rule: Filter, words: &[(u32, bool)]) -> Vec<bool> {
        let mut state = FilterState::new(0, rule);
        let mut passed = Vec::new();
        for &(payload, control) in words {
            passed.push(state.passes(payload, control));
            state.count(control);
        }
        passed
    }

    #[test]
    fn the_first_words_of_each_round_pass() {
        let (data, control, filter_control) = (true, false, false);
        let rule = Filter::Counter { data, control, initial: 2, limit: 3, max: 1, filter_control };
        let words = [(0, false); 8];
        let expected = [false, false, true, true, false, false, true, true];
        assert_eq!(passed(rule, &words), expected);
    }

    #[test]
    fn control_wavelets_count_if_asked_for() {
        let rule = |control, filter_control| Filter::Counter {
            data: true,
            control,
            initial: 0,
            limit: 2,
            max: 0,
            filter_control,
        };
        let words = [(0, false), (0, true), (0, false), (0, true), (0, false)];
        // Not counted: they pass, and the counter stands at 1 when the first comes.
        assert_eq!(passed(rule(false, false), &words), [true, true, false, true, false]);
        // Counted: 0 passes, 1 and 2 do not, 0 again.
        assert_eq!(passed(rule(true, false), &words), [true, false, false, true, false]);
        // Only when the counter is at its maximum.
        assert_eq!(passed(rule(true, true), &words), [true, false, false, true, false]);
        assert_eq!(passed(rule(false, true), &words), [true, false, false, false, false]);
    }

    #[test]
    fn a_filter_has_no_say_where_all_words_pass() {
        let counter = |limit, max, filter_control| {
            let (data, control, initial) = (true, false, 0);
            Filter::Counter { data, control, initial, limit, max, filter_control }
        };
        let no_say = |rule| FilterState::new(0, rule).lets_all_pass();
        assert!(no_say(counter(0, 0, false)) && no_say(counter(0, 3, false)));
        assert!(no_say(counter(0, 0, true)) && !no_say(counter(0, 3, true)));
        assert!(!no_say(counter(1, 1, false)));
        let range = FilterState::new(0, Filter::Range { min: 0, max: u16::MAX });
        assert!(!range.lets_all_pass() && FilterState { open: true, ..range }.lets_all_pass());
        let closed = FilterState { closed: true, ..FilterState::new(0, counter(0, 0, false)) };
        assert!(!closed.lets_all_pass());
    }

    #[test]
    fn a_range_looks_at_the_index() {
        let rule = Filter::Range { min: 3, max: 4 };
        let words =
            [(2 << 16, false), (3 << 16, false), (4 << 16 | 9, false), (5 << 16, false), (0, true)];
        assert_eq!(passed(rule, &words), [false, true, true, false, true]);
    }

    #[test]
    fn a_sparse_filter_opens_in_the_end() {
        let rule = |limit2| Filter::Sparse {
            data: true,
            control: false,
            initial: 0,
            limit: 2,
            limit2,
            max: 0,
            filter_control: false,
        };
        let words = [(0, false); 7];
        assert_eq!(passed(rule(Some(1)), &words), [true, false, false, true, false, true, true]);
        assert_eq!(passed(rule(None), &words), [true, false, false, true, true, true, true]);
    }
}

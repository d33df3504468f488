//! Stretches as `sched::rounds` sees them.

use super::{Load, Stretch, WAITS};
use crate::sched::rounds::Noter;

impl Stretch {
    /// Notes how it stands.
    pub(in crate::pe) fn note(&self, noter: &mut Noter<'_>) {
        let Stretch { is_on, until, mark, left, rate, floor, goes_on, tail, inputs, output } = self;
        noter.value(is_on);
        if !is_on {
            return;
        }
        noter.value((left, rate, goes_on, tail, *until == WAITS, output.is_some()));
        if *until != WAITS {
            noter.stamp(*until);
        }
        if *left != 0 {
            noter.cycle(*mark);
        }
        noter.stamp(*floor);
        for words in inputs.iter().chain([output]).flatten() {
            let id = words.pipe();
            noter.stamp(words.at);
            let Some(pipe) = noter.pipes.get(id as usize) else { continue };
            noter.value((id, pipe.since(words.end)));
            if *until == WAITS {
                // When it ends they are spaced anew from their first.
                pipe.begun().into_iter().for_each(|cycle| noter.cycle(cycle));
            }
        }
    }

    /// All is as it is, so many cycles later.
    pub(in crate::pe) fn put_off(&mut self, by: u64) {
        let Stretch { until, mark, floor, inputs, output, .. } = self;
        let at = inputs.iter_mut().chain([output]).flatten().map(|words| &mut words.at);
        let cycles = at.chain([mark, floor, until]);
        cycles.filter(|cycle| **cycle != WAITS).for_each(|cycle| *cycle += by);
    }
}

impl Load {
    /// Notes what is on a link.
    pub(crate) fn note(&self, noter: &mut Noter<'_>) {
        let Load { pipe, until, rate, slowed } = self;
        // A stretch may have begun some cycles ago.
        if !noter.is_old(*until) {
            noter.value((pipe, rate));
            noter.cycle(*until);
        }
        if !noter.is_old(slowed.until) {
            noter.value(slowed.rate);
            noter.cycle(slowed.until);
        }
    }

    /// It is there as many cycles later.
    pub(crate) fn put_off(&mut self, by: u64) {
        self.until += by;
        self.slowed.until += by;
    }
}

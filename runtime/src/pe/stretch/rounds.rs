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
        noter.stamp(*mark);
        noter.stamp(*floor);
        for words in inputs.iter().chain([output]).flatten() {
            let id = words.pipe();
            let since = noter.pipes.get(id as usize).map(|pipe| pipe.since(words.end));
            noter.value((id, since));
            noter.stamp(words.at);
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
        let Load { pipe, until, rate } = self;
        if *until >= noter.now() {
            noter.value((pipe, rate));
            noter.cycle(*until);
        }
    }

    /// It is there as many cycles later.
    pub(crate) fn put_off(&mut self, by: u64) {
        self.until += by;
    }
}

//! Counters of a run. They are the same for every engine, code engine and number of threads.

use dflow_ir::target::Target;

/// What has happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Words that reached an input queue or the host.
    pub delivered: u64,
    /// Words taken over a link between routers.
    pub hops: u64,
    /// Issue slots used by threads of cores.
    pub slots: u64,
    /// Of these: slots that rest on constants of the target which nobody has published. They count
    /// where their segment begins.
    pub assumed: u64,
    /// Tasks started.
    pub tasks: u64,
    /// Control wavelets whose entry point no task is bound to, dropped.
    pub dropped_controls: u64,
    /// Words that a filter kept from the core.
    pub filtered: u64,
    /// Words that went up the ramp of a PE.
    pub sent: u64,
    /// Words of the host that entered the mesh.
    pub entered: u64,
    /// Words that routers made in addition, where a route branches.
    pub copies: u64,
    /// Of those delivered: words that reached the host.
    pub to_host: u64,
    /// Control wavelets that say themselves that the core shall not see them.
    pub hidden: u64,
    /// Words that left the rectangle where nothing is joined to the host.
    pub gone: u64,
    /// PEs that had any state made.
    pub touched: u64,
}

impl Stats {
    /// Counts so many times more what was counted between two looks.
    pub(crate) fn repeat(&mut self, before: &Stats, after: &Stats, times: u64) {
        let grown = |count: fn(&Stats) -> u64| (count(after) - count(before)) * times;
        self.add(&Stats {
            delivered: grown(|it| it.delivered),
            hops: grown(|it| it.hops),
            slots: grown(|it| it.slots),
            assumed: grown(|it| it.assumed),
            tasks: grown(|it| it.tasks),
            dropped_controls: grown(|it| it.dropped_controls),
            filtered: grown(|it| it.filtered),
            sent: grown(|it| it.sent),
            entered: grown(|it| it.entered),
            copies: grown(|it| it.copies),
            to_host: grown(|it| it.to_host),
            hidden: grown(|it| it.hidden),
            gone: grown(|it| it.gone),
            touched: 0,
        });
    }

    /// Adds the counters of another part of the machine.
    pub(crate) fn add(&mut self, other: &Stats) {
        let Stats {
            delivered,
            hops,
            slots,
            assumed,
            tasks,
            dropped_controls,
            filtered,
            sent,
            entered,
            copies,
            to_host,
            hidden,
            gone,
            touched,
        } = other;
        self.delivered += delivered;
        self.hops += hops;
        self.slots += slots;
        self.assumed += assumed;
        self.tasks += tasks;
        self.dropped_controls += dropped_controls;
        self.filtered += filtered;
        self.sent += sent;
        self.entered += entered;
        self.copies += copies;
        self.to_host += to_host;
        self.hidden += hidden;
        self.gone += gone;
        self.touched += touched;
    }
}

/// What seconds of a report rest on: the clock, and the constants through which cores were charged. Whoever tells of
/// seconds, rates or shares takes them from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charges {
    /// The clock of the target, in Hz, as the machine was given it.
    pub clock_hz: u64,
    /// Whether it is assumed: nobody has published it, nor the user given it.
    pub clock_assumed: bool,
    /// Cycles charged to cores: issue slots, and the starts of tasks.
    pub charged: u64,
    /// Of these: what rests on constants that nobody has published.
    pub assumed: u64,
}

impl Charges {
    /// Of a machine with the constants of `target`, which counted so much.
    pub fn new(target: &Target, stats: &Stats) -> Charges {
        let starts = |cycles: u32| stats.tasks * u64::from(cycles);
        let charged = stats.slots + starts(target.timing.task_start);
        // Assumed slots count where their segment begins, which may be before all of it was charged.
        let assumed = stats.assumed + starts(target.assumed.timing.task_start);
        Charges {
            clock_hz: target.clock_hz,
            clock_assumed: target.assumed.clock,
            charged,
            assumed: assumed.min(charged),
        }
    }

    /// So many cycles in seconds.
    pub fn seconds(&self, cycles: u64) -> f64 {
        cycles as f64 / self.clock_hz.max(1) as f64
    }

    /// Part of the charged cycles that rests on constants that nobody has published; 0 if none were charged.
    pub fn assumed_share(&self) -> f64 {
        self.assumed as f64 / self.charged.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use dflow_ir::target::TargetId;

    use super::*;

    #[test]
    fn starts_of_tasks_are_charged_and_the_clock_is_the_given_one() {
        let change = |name: &str, value| (name.to_owned(), value);
        let changes = [change("task_start", 3), change("clock_hz", 1_000_000_000)];
        let target = Target::custom(TargetId::Wse2, &changes).expect("constants with bounds");
        let stats = Stats { slots: 60, assumed: 20, tasks: 10, ..Stats::default() };
        let charges = Charges::new(target, &stats);
        assert_eq!((charges.charged, charges.assumed, charges.clock_hz), (90, 50, 1_000_000_000));
        assert!((charges.assumed_share() - 50.0 / 90.0).abs() < 1e-12);
        assert!((charges.seconds(5) - 5e-9).abs() < 1e-20);
        // On wse3 somebody has measured them.
        let measured = Charges::new(Target::get(TargetId::Wse3), &stats);
        assert_eq!((measured.charged, measured.assumed), (80, 20));
        // A segment has begun of which little was charged so far.
        let begun = Stats { slots: 1, assumed: 9, ..Stats::default() };
        assert_eq!(Charges::new(target, &begun).assumed, 1);
        assert!(Charges::new(target, &Stats::default()).assumed_share() == 0.0);
    }
}

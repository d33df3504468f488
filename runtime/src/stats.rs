//! Counters of a run. They are the same for every engine, code engine and number of threads.

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

//! A thread's share of the regions.
//!
//! Invariant: a region runs cycle `t` only when everything stamped `<= t` for it is in: from
//! regions of its own thread because all of them run in order of cycles, from others because
//! `t` is before their promises.

use std::time::{Duration, Instant};

use super::super::region::{Message, Region};
use super::super::run::{Run, Told, VISITS};
use super::pace::Gauge;
use super::share::Share;
use super::sync::{FOREVER, Sync};
use crate::pe::code::Code;
use crate::profile::Work;

/// How often limits are looked at: the work of so many visits, where a turn counts for some.
const CHECK: usize = 1 << 16;
const TURN: usize = 64;

/// A thread.
pub(crate) struct Worker<'r, 'a, C: Code> {
    run: &'r Run<'a, C>,
    sync: &'r Sync,
    owners: &'r [usize],
    /// Owners where all threads work.
    bands: &'r [usize],
    gauge: Gauge,
    /// What it does of its time, where others work too.
    share: Option<Share>,
    id: usize,
    regions: Vec<&'r mut Region<C>>,
    /// Place in `regions` by region number.
    place: Vec<u32>,
    /// Next event of each region.
    next: Vec<u64>,
    mail: Vec<Message>,
    /// By thread.
    outbox: Vec<Vec<Message>>,
    told: Told,
    visits: u64,
    /// Bytes of new state since limits were looked at, and after how many they are at the latest.
    grown: u64,
    growth: u64,
}

/// The region that a message is for.
pub(crate) fn region_of(message: &Message) -> u32 {
    match message {
        Message::Word { region, .. } | Message::Credit { region, .. } => *region,
        Message::News(news) => news.region,
    }
}

impl<'r, 'a, C: Code> Worker<'r, 'a, C> {
    /// A thread without regions.
    pub(crate) fn new(
        run: &'r Run<'a, C>,
        sync: &'r Sync,
        (owners, bands): (&'r [usize], &'r [usize]),
        id: usize,
        gauge: Gauge,
    ) -> Worker<'r, 'a, C> {
        Worker {
            run,
            sync,
            owners,
            bands,
            gauge,
            share: None,
            id,
            regions: Vec::new(),
            place: vec![u32::MAX; owners.len()],
            next: Vec::new(),
            mail: Vec::new(),
            outbox: vec![Vec::new(); sync.threads()],
            told: Told::default(),
            visits: 0,
            grown: 0,
            growth: (run.growth() / sync.threads().max(1) as u64).max(1),
        }
    }

    /// Gives it a region.
    pub(crate) fn add(&mut self, region: &'r mut Region<C>) {
        self.place[region.id as usize] = self.regions.len() as u32;
        self.next.push(region.next());
        // That much the run knows.
        let held = Told::of([&*region]);
        self.told.bytes += held.bytes;
        self.told.touched += held.touched;
        self.regions.push(region);
    }

    /// Whether working together has gone on for a while.
    pub(super) fn has_paid(&self) -> bool {
        self.gauge.has_paid()
    }

    /// Runs up to the run's stop, or until the stint is over.
    pub(crate) fn run(&mut self) {
        // The first look comes before the first cycle: the state may be too large already.
        let mut work = CHECK;
        let _leave = Leave(self.sync, self.id);
        let _entered = self.run.phases.map(|phases| phases.enter(self.id));
        self.share = self.gauge.is_shared().then(Share::begin);
        loop {
            let (bound, acted) = self.sync.bound(self.id);
            self.collect();
            let now = self.least();
            let stop = self.run.stop().min(FOREVER);
            work += TURN;
            if work >= CHECK || self.grown >= self.growth {
                work = 0;
                self.check(now);
            }
            // Who leaves promises what it does not keep: that is looked at after the bound.
            if self.run.aborted() || self.sync.is_over() {
                break;
            }
            if now < bound.min(stop) {
                work += self.cycle(now);
                self.promise(self.least(), bound, true);
                if self.gauge.cycle() {
                    self.sync.end_stint();
                }
            } else if bound >= stop {
                break;
            } else {
                if acted {
                    self.promise(now, bound, false);
                }
                self.run.at(Work::Waiting);
                let slept = self.sync.wait(self.id, bound, now);
                if let (Some(share), Some(time)) = (&mut self.share, slept) {
                    share.slept(time);
                }
                if self.gauge.waited(slept.is_some(), now.saturating_sub(bound)) {
                    self.sync.end_stint();
                }
                self.run.at(Work::Cores);
                work = CHECK;
            }
            self.tell_share();
        }
        self.check(0);
    }

    /// Tells the others what it does of its time, now and then; if all together do less than one alone would, the stint
    /// is over.
    fn tell_share(&mut self) {
        let Some(share) = self.share.as_mut().and_then(Share::take) else { return };
        let all = self.sync.tell_share(self.id, share);
        if self.gauge.note_shares(all) {
            self.sync.end_slow_stint();
        }
    }

    /// Nothing comes to pass here before cycle `next`, but for what others do from `bound` on.
    fn promise(&self, next: u64, bound: u64, acted: bool) {
        let lead = self.regions.iter().map(|region| region.least_lead()).min();
        let own = next.saturating_add(lead.unwrap_or(FOREVER));
        let passed_on = bound.saturating_add(self.run.plan.timing.lead());
        self.sync.promise(self.id, own.min(passed_on), acted);
    }

    fn least(&self) -> u64 {
        self.next.iter().copied().min().unwrap_or(FOREVER).min(FOREVER)
    }

    /// Takes mail of other threads.
    fn collect(&mut self) {
        let mut mail = std::mem::take(&mut self.mail);
        self.sync.collect(self.id, &mut mail);
        for message in mail.drain(..) {
            self.accept(message);
        }
        self.mail = mail;
    }

    fn accept(&mut self, message: Message) {
        let place = self.place[region_of(&message) as usize] as usize;
        let region = &mut self.regions[place];
        region.accept(self.run.plan, self.run.code, message);
        self.next[place] = region.next();
    }

    /// Runs cycle `t` in the regions that have an event in it; the number of visits.
    fn cycle(&mut self, t: u64) -> usize {
        let mut visits = 0;
        for place in 0..self.regions.len() {
            if self.next[place] != t {
                continue;
            }
            if self.run.aborted() {
                break;
            }
            let region = &mut *self.regions[place];
            let bytes = region.bytes;
            let begun = self.gauge.is_read().then(Instant::now);
            let visited = region.cycle(self.run, t, (visits, self.grown));
            self.visits += visited as u64;
            visits += visited;
            // Visits are of all sizes.
            let work = begun.map_or(Duration::ZERO, |begun| begun.elapsed());
            self.gauge.worked(self.bands[region.id as usize], work.as_nanos() as u64);
            self.share.iter_mut().for_each(|share| share.worked(work));
            self.grown += region.bytes - bytes;
            self.run.after_cycle(region);
            self.next[place] = region.next();
            let mut messages = std::mem::take(&mut region.messages);
            for message in messages.drain(..) {
                let owner = self.owners[region_of(&message) as usize];
                if owner == self.id {
                    self.accept(message);
                } else {
                    debug_assert!(self.sync.has_promised(self.id) <= message.stamp());
                    self.outbox[owner].push(message);
                }
            }
            self.regions[place].messages = messages;
        }
        for (to, messages) in self.outbox.iter_mut().enumerate() {
            self.sync.send(to, messages);
        }
        visits
    }

    fn check(&mut self, cycle: u64) {
        self.grown = 0;
        let now = self.now();
        self.run.check(cycle, now.since(&mut self.told));
    }

    fn now(&self) -> Told {
        Told { visits: self.visits, ..Told::of(self.regions.iter().map(|region| &**region)) }
    }
}

/// Ends a thread's part even if a bug of ours unwinds it: nobody waits for it then.
struct Leave<'a>(&'a Sync, usize);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.leave(self.1);
    }
}

impl<C: Code> Region<C> {
    /// Visits all that was woken for cycle `t`, unless the run ends meanwhile; how many that were. `before`:
    /// visits of the thread's other regions in this cycle, and by how many bytes they have grown since it last told.
    fn cycle(&mut self, run: &Run<'_, C>, t: u64, before: (usize, u64)) -> usize {
        let (plan, code) = (run.plan, run.code);
        (self.now, self.end) = (t, run.stop());
        if !self.news.is_empty() {
            self.take_in_news(plan, t);
        }
        let mut visits = std::mem::take(&mut self.visits);
        self.wakes.take(t, &mut visits);
        if !self.late.is_empty() {
            self.send_late(plan, t);
        }
        let (count, bytes) = (visits.len(), self.bytes);
        // Those behind are fetched only.
        self.foresee_visits(&mut visits);
        for (at, &visit) in visits[..count].iter().enumerate() {
            let looks = (before.0 + at) % VISITS == VISITS - 1;
            if looks && run.ends_within(before.1 + self.bytes - bytes) {
                break;
            }
            if self.flow {
                self.fetch(code, &visits[at + 1..]);
            }
            self.fetch_words(&visits[at + 1..]);
            if visit % 2 == 0 {
                run.at(Work::Fabric);
                self.visit_router(plan, code, visit / 2, t);
            } else {
                run.at(Work::Cores);
                self.visit_core(plan, code, visit / 2, t);
            }
        }
        // Their routers have been visited before, if at all.
        while let Some(pe) = self.woken.pop() {
            self.visit_core(plan, code, pe, t);
        }
        if !self.cuts.is_empty() {
            self.cut_marked(plan, code, t + 1);
        }
        if self.merges.are_asked() {
            self.begin_merges(plan, t + 1);
        }
        if !self.disturbed.is_empty() {
            self.disturb(plan, code, t + 1);
        }
        if self.next_forks <= t {
            self.look_at_all_forks(t);
        }
        if !self.taken_abroad.is_empty() {
            self.tell_taken();
        }
        visits.clear();
        self.visits = visits;
        count
    }
}

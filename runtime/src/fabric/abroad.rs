//! Pipes that lead from one region into another, in the `flow` engine.
//!
//! Each of the two regions has an end of such a pipe. The sender's counts words and places, that of the
//! taker holds the words; what one of them does the other is told, and knows some cycles later, by the
//! number of borders on the way (`Latencies::lead_of_pipes`). That is before it could matter: a word takes
//! longer to arrive, and a place as long to come back. (Words that have waited for more places in vain are said to
//! have left before: whoever takes them had others until then.) So what a region does in a cycle depends on cycles before
//! alone, whichever region is run first.
//!
//! Invariants: news of a cycle are in before it is run, and are taken in at its start, in the order of the
//! cycles in which they are known and of the regions that sent them; a way that has ever gone through
//! routers is no such pipe, as nobody sees the routers of another region.

use dflow_ir::mesh::Port;

use super::channel::Route;
use super::pipe::{End, Pipe, Taken};
use super::ring::NEVER;
use super::router::RAMP;
use crate::pe::code::Code;
use crate::sched::plan::Plan;
use crate::sched::region::{Message, Region};
use crate::ways::Why;

/// Marks a link of another region.
const ABROAD: u32 = 1 << 31;

/// What the other end of a pipe has done, for a region.
#[derive(Clone, Debug)]
pub(crate) struct News {
    pub(crate) region: u32,
    /// The cycle at whose start it is known.
    pub(crate) at: u64,
    /// The region that tells it.
    from: u32,
    /// Number of the pipe, in the region of the sender of its words.
    pipe: u32,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    /// There is one, and output and input queue have so many places together.
    Opened { route: Route, queues: u32 },
    /// Words leave in a span of cycles.
    Sent { span: (u64, u64), words: Vec<u32> },
    /// As [`Pipe::retime`]; the taker is to look at it if they come sooner, or much later.
    Retimed { number: u64, end: u64, looks: bool },
    /// As [`Pipe::bend`].
    Bent { number: u64, left: u64, t: u64, then: u64 },
    /// So much has been taken; `free` is the cycle from which the first place came free.
    Taken { taken: Taken, free: Option<u64> },
}

impl<C: Code> Region<C> {
    /// The rest of a way that leaves the region by a port of its last router here.
    pub(super) fn route_abroad(&self, plan: &Plan, here: &Route, port: u8) -> Result<Route, Why> {
        let (mut at, mut region, mut port) = (self.place(here.dest), self.id, port);
        let Route { color, mut hops, mut borders, .. } = *here;
        loop {
            at = plan.neighbor(at.0, at.1, Port::ALL[usize::from(port)]).ok_or(Why::Outside)?;
            let (next, pe) = plan.locate(at.0, at.1);
            borders += u32::from(next != region);
            (region, hops) = (next, hops + 1);
            let (number, from) = (plan.number(at.0, at.1), port ^ 1);
            let program = plan.program(number);
            let linked =
                |port: u8| plan.link(number, Port::ALL[usize::from(port)], color).is_some();
            let table = &plan.routers[plan.router_of[number] as usize];
            (port, _) = table.hands_on(color, from)?;
            if plan.has_links(number) && (linked(from) || linked(port)) {
                return Err(Why::HostLink);
            }
            if port == RAMP {
                let queue = program.ok_or(Why::Outside)?.queue_of(color).map(|queue| queue as u8);
                let (dest, number) = (pe, number as u32);
                return Ok(Route {
                    dest,
                    region,
                    borders,
                    number,
                    port: from,
                    hops,
                    queue,
                    ..*here
                });
            }
        }
    }

    /// Links of a way beyond the border that other colors may use too, by [`ABROAD`] and four times the
    /// number of the PE and the port: what is on them is known as far as it comes from this region.
    pub(super) fn links_abroad(
        &self,
        plan: &Plan,
        here: &Route,
        (last, from): (u32, u8),
    ) -> Vec<u32> {
        let (mut at, mut from, mut links) = (self.place(last), from, Vec::new());
        loop {
            let number = plan.number(at.0, at.1);
            let table = &plan.routers[plan.router_of[number] as usize];
            let Ok((port, shared)) = table.hands_on(here.color, from) else { return links };
            if shared && plan.locate(at.0, at.1).0 != self.id {
                links.push(ABROAD | (4 * number as u32 + u32::from(port)));
            }
            let next = plan.neighbor(at.0, at.1, Port::ALL[usize::from(port)]);
            let Some(next) = next.filter(|_| port != RAMP) else { return links };
            (at, from) = (next, port ^ 1);
        }
    }

    /// A pipe to another region has been made.
    pub(crate) fn tell_opened(&mut self, id: u32, queues: u32) {
        let route = self.pipes[id as usize].route();
        self.tell(id, What::Opened { route, queues });
    }

    /// Words leave for another region; the number of the one after them.
    pub(crate) fn send_abroad(&mut self, id: u32, span: (u64, u64), words: Vec<u32>) -> u64 {
        let end = self.pipes[id as usize].send(words.len());
        self.tell(id, What::Sent { span, words });
        end
    }

    /// The stretch that ended before word `number` ends in cycle `end`, at which its taker is to look
    /// or not; false if both ends of the pipe are here.
    #[inline]
    pub(crate) fn retime_abroad(&mut self, id: u32, number: u64, end: u64, looks: bool) -> bool {
        let is_abroad = self.pipes[id as usize].leads_abroad();
        if is_abroad {
            self.tell(id, What::Retimed { number, end, looks });
        }
        is_abroad
    }

    /// As [`Pipe::bend`], if the words are taken abroad; false if not.
    #[inline]
    pub(crate) fn bend_abroad(
        &mut self,
        id: u32,
        (number, left): (u64, u64),
        (t, then): (u64, u64),
    ) -> bool {
        let is_abroad = self.pipes[id as usize].leads_abroad();
        if is_abroad && left != 0 {
            self.tell(id, What::Bent { number, left, t, then });
        }
        is_abroad
    }

    /// Tells the taker of a pipe's words.
    #[inline(never)]
    fn tell(&mut self, id: u32, what: What) {
        let Route { region, borders, .. } = self.pipes[id as usize].route();
        self.post((region, borders), id, what);
    }

    /// Tells a region behind so many borders of a pipe.
    fn post(&mut self, (region, borders): (u32, u32), pipe: u32, what: What) {
        let (at, from) = (self.now + self.timing.lead_of_pipes(borders), self.id);
        self.messages.push(Message::News(News { region, at, from, pipe, what }));
    }

    /// What has been taken from a pipe has changed, or its places have: its sender is told when the
    /// cycle is over, if it is abroad. `free`: from then on a place is free.
    #[inline]
    pub(crate) fn tell_sender(&mut self, id: u32, free: Option<u64>) -> bool {
        self.pipes[id as usize].end.is_some() && self.tell_taken_of(id, free)
    }

    #[inline(never)]
    fn tell_taken_of(&mut self, id: u32, free: Option<u64>) -> bool {
        let taker = match self.pipes[id as usize].end.as_deref_mut() {
            Some(End::Taker(taker)) => taker,
            Some(End::Multicast(_)) => {
                self.look_at_forks(id, free.unwrap_or(0));
                return false;
            }
            Some(End::Sender) | None => return false,
        };
        taker.free = taker.free.into_iter().chain(free).min();
        if !std::mem::replace(&mut taker.noted, true) {
            self.taken_abroad.push(id);
        }
        true
    }

    /// The cycle is over: senders in other regions are told what has been taken.
    pub(crate) fn tell_taken(&mut self) {
        let mut ids = std::mem::take(&mut self.taken_abroad);
        for id in ids.drain(..) {
            let pipe = &mut self.pipes[id as usize];
            let (taken, borders) = (pipe.taken(), pipe.route().borders);
            let Some(End::Taker(taker)) = pipe.end.as_deref_mut() else { continue };
            taker.noted = false;
            let (region, pipe, free) = (taker.region, taker.pipe, taker.free.take());
            self.post((region, borders), pipe, What::Taken { taken, free });
        }
        self.taken_abroad = ids;
    }

    /// News from another region.
    pub(crate) fn add_news(&mut self, news: News) {
        self.next_news = self.next_news.min(news.at);
        self.news.push(news);
    }

    /// Takes in what is known from cycle `t` on.
    pub(crate) fn take_in_news(&mut self, plan: &Plan, t: u64) {
        if self.next_news > t {
            return;
        }
        let all = std::mem::take(&mut self.news).into_iter();
        let (mut due, later) = all.partition::<Vec<_>, _>(|it| it.at <= t);
        self.next_news = later.iter().map(|news| news.at).min().unwrap_or(NEVER);
        self.news = later;
        due.sort_by_key(|news| (news.at, news.from));
        for news in due {
            self.take_in(plan, news);
        }
    }

    fn take_in(&mut self, plan: &Plan, News { from, pipe, what, .. }: News) {
        #[cfg(test)]
        note(&what);
        let taker = self.taker_of(from, pipe);
        match (what, taker) {
            (What::Opened { route, queues }, _) => {
                let end = Some(End::taker(from, pipe));
                let id =
                    self.add_pipe(Pipe::new(&plan.timing, route, (queues, 0), end, Box::default()));
                self.from_abroad.insert((from, pipe), id);
            }
            (What::Taken { taken, free }, _) => {
                let sender = &mut self.pipes[pipe as usize];
                // A pipe that is no more has nothing to be told.
                if sender.leads_abroad() {
                    sender.know(taken);
                    if let Some(t) = free {
                        self.wake_sender(pipe, t);
                    }
                }
            }
            (What::Sent { span, words }, Some(id)) => {
                self.send_words(plan, id, span, words);
            }
            (What::Retimed { number, end, looks }, Some(id)) => {
                self.retime_each(id, |pipe| pipe.retime(number, end));
                if looks {
                    let dest = self.pipes[id as usize].route().dest;
                    self.wakes.core(dest, self.now);
                }
            }
            (What::Bent { number, left, t, then }, Some(id)) => {
                self.retime_each(id, |pipe| pipe.bend(number, left, t, then));
            }
            (What::Sent { .. } | What::Retimed { .. } | What::Bent { .. }, None) => {}
        }
    }

    /// Words in pipes that are taken here, with those that have been sent but not told of: the region
    /// that sent them, their way, and how many.
    pub(crate) fn in_pipes<'a>(
        &'a self,
        regions: &'a [Region<C>],
    ) -> impl Iterator<Item = (&'a Region<C>, Route, u64)> {
        let held = self.pipes.iter().filter(|pipe| pipe.held() != 0 && !pipe.leads_abroad());
        let held = held.map(move |pipe| {
            let from = pipe.comes_from().map_or(self, |region| &regions[region as usize]);
            (from, pipe.route(), u64::from(pipe.held()))
        });
        let told = self.news.iter().filter_map(move |news| {
            let What::Sent { words, .. } = &news.what else { return None };
            let from = &regions[news.from as usize];
            Some((from, from.pipes[news.pipe as usize].route(), words.len() as u64))
        });
        held.chain(told)
    }

    /// The end here of a pipe that another region sends words by.
    pub(super) fn taker_of(&self, from: u32, pipe: u32) -> Option<u32> {
        self.from_abroad.get(&(from, pipe)).copied()
    }
}

/// For tests: what is told.
#[cfg(test)]
fn note(what: &What) {
    use crate::sched::reached::{Reached, note};
    note(match what {
        What::Opened { .. } | What::Sent { .. } => Reached::Abroad,
        What::Retimed { .. } => Reached::Retimed,
        What::Bent { .. } => Reached::Bent,
        What::Taken { .. } => Reached::Taken,
    });
}

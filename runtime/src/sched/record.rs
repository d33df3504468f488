//! What the comparison of engines looks at, kept only on request.

/// One observed event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// A word comes into view in an input queue.
    Arrival {
        /// First cycle in which the core may see it.
        cycle: u64,
        /// Number of the PE.
        pe: u32,
        /// Queue.
        queue: u8,
        /// Payload.
        payload: u32,
        /// Control wavelet.
        control: bool,
    },
    /// A task is picked.
    Task {
        /// Cycle of the pick.
        cycle: u64,
        /// Number of the PE.
        pe: u32,
        /// Index of its binding.
        task: u16,
    },
    /// A thread has issue slots.
    Slots {
        /// First slot.
        cycle: u64,
        /// Number of the PE.
        pe: u32,
        /// Microthread, or 255 for the main thread.
        thread: u8,
        /// Slots in a row.
        count: u64,
    },
}

/// The main thread in [`Event::Slots`].
pub(crate) const MAIN: u8 = u8::MAX;

/// Sorts events and joins slots in a row, so that lists of different engines can be compared.
pub(crate) fn normalize(events: Vec<Event>) -> Vec<Event> {
    let key = |event: &Event| match *event {
        Event::Arrival { cycle, pe, queue, .. } => (pe, 0, u64::from(queue), cycle),
        Event::Task { cycle, pe, .. } => (pe, 1, 0, cycle),
        Event::Slots { cycle, pe, .. } => (pe, 2, 0, cycle),
    };
    let mut events = events;
    events.sort_by_key(key);
    let mut joined: Vec<Event> = Vec::new();
    for event in events {
        if let (
            Some(Event::Slots { cycle, pe, thread, count }),
            Event::Slots { cycle: next, pe: same, thread: one, count: more },
        ) = (joined.last_mut(), event)
            && (*pe, *thread, *cycle + *count) == (same, one, next)
        {
            *count += more;
            continue;
        }
        joined.push(event);
    }
    joined
}

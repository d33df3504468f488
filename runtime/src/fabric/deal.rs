//! Dealt words: what the host sends into the mesh for one PE after another, in the `flow` engine. (`exact` has
//! flights in their place, over the same routers.)
//!
//! Routers in a row whose switches decide who gets a word, and to which words come from one side only, are a
//! *line* ([`mod@line`]): what a word meets in each of them is decided by the words before it, so it is
//! found out when the word enters ([`walk`]). A word that at most one core takes goes there at
//! once, and is there when it would be; a word that a core has no place for holds up those behind it, and as many
//! enter as the routers up to that core have places for ([`visit`]).
//! Where many words for one core wait to enter, they go as a packet, in a pipe to it ([`packet`]).
//! Others go through routers, and so do those behind them until the routers are empty. Routers that hand each word to
//! their core and on are a *fan* ([`mod@fan`]).
//!
//! Invariants: the positions of a line's switches are those behind its last word, as nobody but its words looks
//! at them (colors and programs for which that is not so have no line); where they would be seen, the
//! words are put into the routers where they are, and positions are what these have seen ([`cut`]).

mod cut;
pub(crate) mod fan;
pub(crate) mod line;
mod packet;
mod spread;
mod visit;
mod walk;

//! What a PE that takes part keeps: at wafer scale a page of memory that is touched for the first time
//! costs as much as thousands of instructions.

use crate::exec::VectorState;
use crate::fabric::pipe::Pipe;
use crate::fabric::router::{Lane, Router};
use crate::pe::core::{Core, Input};
use crate::pe::exec::Programs;
use crate::pe::op::Op;

#[test]
fn what_a_pe_keeps_stays_small() {
    // Blocks are rounded up to one of four sizes between two powers of two; pipes lie in a row.
    let most = [
        ("core", size_of::<Core<Programs>>(), 1024),
        ("operation", size_of::<Op<VectorState>>(), 320),
        ("router", size_of::<Router>(), 320),
        ("lane of a router", size_of::<Lane>(), 128),
        ("input queue", size_of::<Input>(), 64),
        ("pipe", size_of::<Pipe>(), 240),
    ];
    for (what, bytes, most) in most {
        assert!(bytes <= most, "{what}: {bytes} bytes");
    }
}

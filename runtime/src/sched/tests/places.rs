//! Places behind operations that send, in the `flow` engine.

use dflow_ir::loc::Loc;
use dflow_ir::mesh::{Color, Port};
use dflow_ir::program::QueueBinding;
use dflow_ir::target::TargetId;

use super::abroad::{cycle, ended, way};
use super::script::{Act, Spec, input, output, vector};
use crate::config::EngineKind;
use crate::exec::Stream;

/// A place in the taker's queue is one in the sender's when all routers between them have seen it.
#[test]
fn an_operation_that_waits_for_places_ends_as_in_exact() {
    for target in [TargetId::Wse2, TargetId::Wse3] {
        for (hops, slow, words) in [(1, false, 40), (1, true, 40), (4, false, 70), (4, true, 70)] {
            let mut spec = Spec::new(target, 1, hops as u16 + 1);
            spec.slow = slow;
            let south = (0..hops).map(|pe| (pe, Port::South));
            way(&mut spec, 3, &south.chain([(hops, Port::Ramp)]).collect::<Vec<_>>());
            for (pe, is_input) in [(0, false), (hops, true)] {
                let id = Color::new(3).unwrap();
                spec.programs[pe].queues.push(QueueBinding::new(is_input, 3, id, Loc::default()));
            }
            // Long after all has been taken: the sender's last act.
            let send = vector(output(3, 3), Stream::Scalar(7), words);
            spec.begins(0, vec![Act::Vector(Box::new(send)), Act::Work(2000)]);
            let take = vector(Stream::Pointer { address: 0 }, input(3, 3), words);
            spec.begins(hops, vec![Act::Work(300), Act::Vector(Box::new(take))]);
            let end = |kind| cycle(&ended(&mut spec.engine(kind, 1, 0)));
            assert_eq!(end(EngineKind::Exact), end(EngineKind::Flow), "{target:?} {hops} {slow}");
        }
    }
}

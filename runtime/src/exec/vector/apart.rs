//! Whether operations that run side by side have anything to do with each other in memory.

use super::plan::Span;
use super::running::VectorState;

/// Bytes that an operation has yet to read or to write.
struct Use {
    operation: usize,
    span: Span,
    writes: bool,
}

impl VectorState {
    /// Whether none of these operations, if all are plain, writes in memory what another reads or writes: then
    /// their elements may be done in any order that keeps those of each.
    pub(crate) fn are_apart(operations: &[&VectorState]) -> bool {
        let mut uses = Vec::new();
        for (operation, it) in operations.iter().enumerate() {
            let Some(length) = it.start.length.filter(|_| it.is_plain()) else { return false };
            for operand in 0..=it.start.sources.len() {
                // A plain operation has nothing but lines in memory.
                let Some(line) = it.line(operand, 0) else { continue };
                let Some(span) = Span::of(&line, length.saturating_sub(it.done)) else {
                    return false;
                };
                uses.push(Use { operation, span, writes: operand == 0 });
            }
        }
        let meets = |one: &Use, other: &Use| {
            one.operation != other.operation && !one.span.is_apart_from(&other.span)
        };
        let mut writes = uses.iter().filter(|it| it.writes);
        !writes.any(|write| uses.iter().any(|other| meets(write, other)))
    }
}

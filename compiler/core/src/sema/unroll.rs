//! Loops that run at compile time, with or without code to emit.

use dflow_syntax::ast::StmtId;
use dflow_syntax::{Diagnostic, Span, Symbol, codes};

use super::control::Wish;
use super::loops::Captures;
use super::place::Place;
use super::types::{Type, TypeId};
use super::value::{Data, RangeValue, Value};
use super::vars::Behind;
use super::{Cell, Flow, Label, Operand, R, Sema, TraceStep};
use crate::resolve::NO_SLOT;
use crate::typed::StmtKind;

/// Steps of comptime work that an iteration counts as which becomes code: more of them than memory of a PE has words
/// are of no use, and each takes memory here.
const EMITTED: u64 = 1 << 9;

impl Sema<'_, '_> {
    /// Runs a loop over a known range now.
    pub(crate) fn unroll_range(
        &mut self,
        name: Option<Symbol>,
        range: &RangeValue,
        elem: TypeId,
        captures: Captures,
        body: StmtId,
        span: Span,
    ) -> R<Flow> {
        let start = self.fix_int(&range.start).unwrap_or(0);
        let stop = self.fix_int(&range.stop).unwrap_or(0);
        let step = self.fix_int(&range.step).unwrap_or(1);
        let mut unrolling = self.open_unrolled(name, captures, body, span);
        let mut current = start;
        while (step > 0 && current < stop) || (step < 0 && current > stop) {
            if let Some(flow) = self.iteration(&mut unrolling, Value::int(elem, current))? {
                return Ok(flow);
            }
            // No end lies behind the greatest number.
            let Some(next) = current.checked_add(step) else { break };
            current = next;
        }
        self.close_unrolled(unrolling)
    }

    pub(crate) fn unroll_array(
        &mut self,
        name: Option<Symbol>,
        place: Place,
        captures: Captures,
        body: StmtId,
        span: Span,
    ) -> R<Flow> {
        let ty = self.place_type(&place);
        let count = match self.types.get(ty) {
            Type::Struct(info) => info.fields.len(),
            _ => self.types.element_count(ty) as usize,
        };
        if captures.by_pointer {
            return self.fail(
                codes::NOT_SUPPORTED,
                "elements are captured by pointer in run-time loops only",
                span,
                "this loop runs at compile time: use its index",
            );
        }
        let mut unrolling = self.open_unrolled(name, captures, body, span);
        for index in 0..count {
            let (elem, offset) = self.part(ty, index);
            let value = if captures.elem == NO_SLOT {
                self.void_value()
            } else {
                let element = self.element_place(place.clone(), index, elem, offset, span)?;
                match self.load(element, span)? {
                    Operand::Const(value) => value,
                    other => {
                        let value = self.need_const(other, span);
                        self.close_unrolled(unrolling)?;
                        return value.map(|_| Flow::Next);
                    }
                }
            };
            if let Some(flow) = self.iteration(&mut unrolling, value)? {
                return Ok(flow);
            }
        }
        self.close_unrolled(unrolling)
    }

    pub(crate) fn open_unrolled(
        &mut self,
        name: Option<Symbol>,
        captures: Captures,
        body: StmtId,
        span: Span,
    ) -> Unrolling {
        let depth = self.frame().depth;
        let at = self.frame().labels.len();
        self.frame_mut().labels.push(Label {
            name,
            is_loop: true,
            on_break: None,
            on_continue: None,
            loop_continue: false,
            result: None,
            wish: Wish::NONE,
            given: Vec::new(),
            marker: None,
            behind_break: Behind::default(),
            behind_continue: Behind::default(),
            depth,
        });
        if self.is_runtime() {
            self.open_list();
        }
        Unrolling { at, captures, body, span, count: 0 }
    }

    /// One iteration now; gives the flow that ends the loop, if something does.
    pub(crate) fn iteration(&mut self, unrolling: &mut Unrolling, value: Value) -> R<Option<Flow>> {
        let result = self.iteration_inner(unrolling, value);
        match result {
            Ok(None) => Ok(None),
            Ok(Some(flow)) => {
                let rest = self.finish_unrolled(unrolling)?;
                Ok(Some(match (flow, rest) {
                    (Flow::Break(at, None), _) if at == unrolling.at => Flow::Next,
                    (_, true) => Flow::Next,
                    (flow, false) => flow,
                }))
            }
            Err(reported) => {
                self.finish_unrolled(unrolling)?;
                Err(reported)
            }
        }
    }

    fn iteration_inner(&mut self, unrolling: &mut Unrolling, value: Value) -> R<Option<Flow>> {
        let emits = self.is_runtime();
        self.charge(if emits { EMITTED } else { 1 }, unrolling.span)?;
        if emits {
            self.check_inlined(unrolling)?;
        }
        let captures = unrolling.captures;
        if captures.index != NO_SLOT {
            let index = Value::int(captures.index_ty, unrolling.count);
            self.frame_mut().slots[captures.index as usize] = Cell::Const(index);
        }
        let shown = match value.data {
            Data::Int(int) => int,
            _ => unrolling.count,
        };
        if captures.elem != NO_SLOT {
            self.frame_mut().slots[captures.elem as usize] = Cell::Const(value);
        }
        unrolling.count += 1;
        if emits {
            self.open_list();
        }
        self.trace.push(TraceStep::Loop {
            slot: captures.elem,
            value: shown,
            span: unrolling.span,
        });
        let flow = self.body(unrolling.body);
        self.trace.pop();
        let behind = &mut self.frame_mut().labels[unrolling.at].behind_continue;
        let behind = std::mem::take(behind);
        self.jumps_end(behind);
        let mut flow = flow;
        if emits {
            let body = self.close_list();
            match self.frame_mut().labels[unrolling.at].on_continue.take() {
                Some(label) => {
                    self.emit(StmtKind::Block { label, body }, unrolling.span);
                    if matches!(flow, Ok(Flow::Diverges)) {
                        flow = Ok(Flow::Next);
                    }
                }
                None => self.append(body),
            }
        }
        Ok(match flow? {
            Flow::Next => None,
            Flow::Continue(at) if at == unrolling.at => None,
            other => Some(other),
        })
    }

    /// A loop whose iterations all become code has a limit, if the caller wants one.
    fn check_inlined(&mut self, unrolling: &Unrolling) -> R<()> {
        match self.cx.options.max_inlined {
            Some(limit) if unrolling.count >= i128::from(limit) => {
                let message = format!("this loop has more than {limit} inlined iterations");
                let reported = Diagnostic::new(codes::COMPTIME_LIMIT, message, unrolling.span)
                    .label("each iteration becomes code")
                    .help("give a greater --max-inlined-iterations, or leave the limit out");
                Err(self.report(reported))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Ends an unrolled loop's emission; tells whether emitted code can leave it.
    fn finish_unrolled(&mut self, unrolling: &Unrolling) -> R<bool> {
        let label = self.frame_mut().labels.pop().and_then(|label| {
            self.jumps_end(label.behind_break);
            label.on_break
        });
        if !self.is_runtime() {
            return Ok(false);
        }
        let body = self.close_list();
        match label {
            Some(label) => {
                self.emit(StmtKind::Block { label, body }, unrolling.span);
                Ok(true)
            }
            None => {
                self.append(body);
                Ok(false)
            }
        }
    }

    pub(crate) fn close_unrolled(&mut self, unrolling: Unrolling) -> R<Flow> {
        self.finish_unrolled(&unrolling)?;
        Ok(Flow::Next)
    }
}

/// A loop that runs now.
pub(crate) struct Unrolling {
    at: usize,
    captures: Captures,
    body: StmtId,
    span: Span,
    count: i128,
}

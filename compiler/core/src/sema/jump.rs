//! Labeled blocks, and the ways out of them: `break`, `continue`, `return`.

use dflow_syntax::ast::{Block, Ident};
use dflow_syntax::{Span, codes};

use super::address::{Address, typed};
use super::types::{Repr, TypeId};
use super::{BodyKind, Flow, Inlined, Label, Operand, R, Sema};
use crate::typed::{ExprKind, LabelIdx, StmtKind};

impl Sema<'_, '_> {
    /// A block as an expression: void, or the value that a `break` gives it.
    pub(crate) fn block_expr(
        &mut self,
        label: Option<Ident>,
        block: &Block,
        hint: Option<TypeId>,
        span: Span,
    ) -> R<Operand> {
        let Some(label) = label else {
            // Branches written as a block of one jump: the value is never used.
            return match self.block(block)? {
                Flow::Next => Ok(self.void_operand()),
                Flow::Diverges => Ok(Operand::Void),
                Flow::Break(..) | Flow::Continue(_) | Flow::Return(_) => self.fail(
                    codes::MISPLACED_JUMP,
                    "control leaves an expression here",
                    span,
                    "use a statement instead",
                ),
            };
        };
        let (flow, label) = self.labeled(label, block, hint, span)?;
        match flow {
            Flow::Break(_, value) => Ok(value.unwrap_or_else(|| self.void_operand())),
            Flow::Next | Flow::Diverges => match label.result {
                Some(result) => self.read_result(result, span),
                None => Ok(self.void_operand()),
            },
            Flow::Continue(_) | Flow::Return(_) => self.fail(
                codes::MISPLACED_JUMP,
                "control leaves an expression here",
                span,
                "use a statement instead",
            ),
        }
    }

    pub(crate) fn labeled_stmt(&mut self, label: Ident, block: &Block, span: Span) -> R<Flow> {
        let depth = self.frame().labels.len();
        let (flow, label) = self.labeled(label, block, None, span)?;
        Ok(match flow {
            Flow::Break(at, _) if at == depth => Flow::Next,
            Flow::Diverges if label.on_break.is_some() => Flow::Next,
            other => other,
        })
    }

    /// Runs a labeled block. A break decided now is still in the flow; breaks in emitted code
    /// have made a run-time block.
    fn labeled(
        &mut self,
        label: Ident,
        block: &Block,
        hint: Option<TypeId>,
        span: Span,
    ) -> R<(Flow, Label)> {
        self.unique_label(label)?;
        let at = self.frame().labels.len();
        let depth = self.frame().depth;
        let emits = self.is_runtime();
        self.frame_mut().labels.push(Label {
            name: Some(label.name),
            is_loop: false,
            on_break: None,
            on_continue: None,
            loop_continue: false,
            result: None,
            hint,
            depth,
        });
        if emits {
            self.open_list();
        }
        let flow = self.block(block);
        let label = self.frame_mut().labels.pop().unwrap_or_else(|| unreachable!("just pushed"));
        let mut flow = match flow {
            Ok(flow) => flow,
            Err(reported) => {
                if emits {
                    self.close_list();
                }
                return Err(reported);
            }
        };
        if let (Some(result), Flow::Next) = (label.result, &flow)
            && result.ty != self.types.common.void
        {
            self.close_list();
            let message = "this block can end without the value that a `break` gives it";
            return self.fail(
                codes::MISSING_RETURN,
                message,
                span,
                "its end is reached without one",
            );
        }
        if emits {
            if let (Some(result), Flow::Break(index, value)) = (label.result, &mut flow)
                && *index == at
            {
                if let Some(value) = value.take() {
                    self.write_result(result, value, span)?;
                }
                flow = Flow::Next;
            }
            let body = self.close_list();
            match label.on_break {
                Some(on_break) => self.emit(StmtKind::Block { label: on_break, body }, span),
                None => self.append(body),
            }
        }
        Ok((flow, label))
    }

    pub(crate) fn unique_label(&mut self, label: Ident) -> R<()> {
        if !self.frame().labels.iter().any(|known| known.name == Some(label.name)) {
            return Ok(());
        }
        let name = self.spell(label.name);
        let message = format!("the label `{name}` is inside another of the same name");
        self.fail(codes::DUPLICATE_LABEL, message, label.span, "this label")
    }

    /// The label that a jump names, or the innermost loop.
    pub(crate) fn find_label(&mut self, label: Option<Ident>, span: Span) -> R<usize> {
        let labels = &self.frame().labels;
        let at = match label {
            Some(label) => labels.iter().rposition(|known| known.name == Some(label.name)),
            None => labels.iter().rposition(|known| known.is_loop),
        };
        match (at, label) {
            (Some(at), _) => Ok(at),
            (None, Some(label)) => {
                let name = self.spell(label.name);
                let message = format!("no loop or block around this has the label `{name}`");
                self.fail(codes::UNKNOWN_LABEL, message, label.span, "this label")
            }
            (None, None) => {
                self.fail(codes::MISPLACED_JUMP, "no loop is around this", span, "nothing to leave")
            }
        }
    }

    /// `break`: decided now, or emitted if a run-time condition stands between.
    pub(crate) fn leave(&mut self, at: usize, value: Option<Operand>, span: Span) -> R<Flow> {
        let frame = self.frame();
        let label = &frame.labels[at];
        if label.depth == frame.depth {
            return Ok(Flow::Break(at, value));
        }
        if !self.is_runtime() {
            return Ok(Flow::Break(at, value));
        }
        let (hint, known) = (label.hint, label.result);
        if let Some(value) = value {
            let result = match known {
                Some(result) => result,
                None => {
                    let ty = hint.unwrap_or(self.operand_type(&value));
                    let result = self.result_place(ty, span)?;
                    self.frame_mut().labels[at].result = Some(result);
                    result
                }
            };
            self.write_result(result, value, span)?;
        }
        let target = self.break_label(at);
        self.emit(StmtKind::Break(target), span);
        Ok(Flow::Diverges)
    }

    fn break_label(&mut self, at: usize) -> LabelIdx {
        if let Some(label) = self.frame().labels[at].on_break {
            return label;
        }
        let label = self.new_label();
        self.frame_mut().labels[at].on_break = Some(label);
        label
    }

    /// `continue`, likewise.
    pub(crate) fn next_iteration(&mut self, at: usize, span: Span) -> R<Flow> {
        let frame = self.frame();
        let label = &frame.labels[at];
        if !label.is_loop {
            return self.fail(
                codes::MISPLACED_JUMP,
                "`continue` names a block, only loops go on",
                span,
                "this jump",
            );
        }
        if label.depth == frame.depth || !self.is_runtime() {
            return Ok(Flow::Continue(at));
        }
        let loop_continue = label.loop_continue;
        let target = match label.on_continue {
            Some(target) => target,
            None => {
                let target = self.new_label();
                self.frame_mut().labels[at].on_continue = Some(target);
                target
            }
        };
        let jump = if loop_continue { StmtKind::Continue(target) } else { StmtKind::Break(target) };
        self.emit(jump, span);
        Ok(Flow::Diverges)
    }

    /// `return` in run-time code: out of the function, or of an inlined one.
    pub(crate) fn runtime_return(&mut self, value: Option<Operand>, span: Span) -> R<Flow> {
        match self.frame().kind.clone() {
            BodyKind::Code { result } => {
                let value = match (value, result) {
                    (None | Some(Operand::Void), _) => None,
                    (Some(value), Some(result)) => {
                        let ty = self.operand_type(&value);
                        let pointer = self.profile().pointer();
                        let address = typed(ExprKind::Local(result), pointer, span);
                        self.store_memory(&Address::of_expr(address), ty, value, span)?;
                        None
                    }
                    (Some(value), None) => {
                        let ty = self.operand_type(&value);
                        match self.types.repr(ty, self.profile()) {
                            Repr::Void => None,
                            Repr::Scalar(_) | Repr::Memory { .. } | Repr::Comptime => {
                                Some(self.scalar_of(value, span)?)
                            }
                        }
                    }
                };
                self.emit(StmtKind::Return(value), span);
                Ok(Flow::Diverges)
            }
            BodyKind::Inline(inlined) => self.inline_return(inlined, value, span),
            BodyKind::Layout | BodyKind::TopLevel | BodyKind::Value => Ok(Flow::Return(value)),
        }
    }

    fn inline_return(
        &mut self,
        mut inlined: Inlined,
        value: Option<Operand>,
        span: Span,
    ) -> R<Flow> {
        if self.frame().depth == 0 {
            return Ok(Flow::Return(value));
        }
        if let Some(value) = value.filter(|value| !matches!(value, Operand::Void)) {
            let ret = self.frame().ret;
            let ty = ret.unwrap_or(self.operand_type(&value));
            if ty != self.types.common.void {
                let result = match inlined.result {
                    Some(result) => result,
                    None => self.result_place(ty, span)?,
                };
                inlined.result = Some(result);
                self.write_result(result, value, span)?;
            }
        }
        let label = match inlined.label {
            Some(label) => label,
            None => self.new_label(),
        };
        inlined.label = Some(label);
        self.frame_mut().kind = BodyKind::Inline(inlined);
        self.emit(StmtKind::Break(label), span);
        Ok(Flow::Diverges)
    }
}

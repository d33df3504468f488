//! Labeled blocks, and the ways out of them: `break`, `continue`, `return`.

use dflow_ir::ty::Ty;
use dflow_syntax::ast::{Block, Ident};
use dflow_syntax::{Span, codes};

use super::address::{Address, typed};
use super::control::Wish;
use super::types::{Repr, TypeId};
use super::vars::Behind;
use super::{BodyKind, Flow, Inlined, Label, Operand, R, Sema};
use crate::typed::{ExprKind, LabelIdx, LocalIdx, Stmt, StmtKind};

impl Sema<'_, '_> {
    /// A block as an expression: void, or the value that a `break` gives it.
    pub(crate) fn block_expr(
        &mut self,
        label: Option<Ident>,
        block: &Block,
        wish: Wish,
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
        let before = self.frame().looks.state();
        let (flow, label) = self.labeled(label, block, wish, span)?;
        self.frame_mut().looks.block_ends(before);
        match flow {
            Flow::Break(_, None) => Ok(self.void_operand()),
            Flow::Break(_, Some((value, span))) => match wish.hint {
                Some(ty) => self.coerce(value, ty, span),
                None => Ok(value),
            },
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
        let (flow, label) = self.labeled(label, block, Wish::NONE, span)?;
        Ok(match flow {
            Flow::Break(at, _) if at == depth => Flow::Next,
            Flow::Diverges if label.on_break.is_some() => Flow::Next,
            other => other,
        })
    }

    /// Runs a labeled block. A break decided now is still in the flow; breaks in emitted code
    /// have made a run-time block.
    fn labeled(&mut self, label: Ident, block: &Block, wish: Wish, span: Span) -> R<(Flow, Label)> {
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
            wish,
            given: Vec::new(),
            marker: None,
            behind_break: Behind::default(),
            behind_continue: Behind::default(),
            depth,
        });
        if emits {
            self.open_list();
        }
        let flow = self.block(block).and_then(|flow| self.last_value(at, flow, span));
        let mut label =
            self.frame_mut().labels.pop().unwrap_or_else(|| unreachable!("just pushed"));
        if emits {
            let mut body = self.close_list();
            if flow.is_ok() {
                self.write_given(&mut label, &mut body, span)?;
            }
            match label.on_break {
                Some(on_break) => self.emit(StmtKind::Block { label: on_break, body }, span),
                None => self.append(body),
            }
        }
        self.jumps_end(std::mem::take(&mut label.behind_break));
        Ok((flow?, label))
    }

    /// The value at the end of a block that other breaks have left with one.
    fn last_value(&mut self, at: usize, flow: Flow, span: Span) -> R<Flow> {
        let label = &self.frame().labels[at];
        let (result, gives) = (label.result, !label.given.is_empty());
        let void = self.types.common.void;
        match flow {
            Flow::Next if gives || result.is_some_and(|result| result.ty != void) => {
                let message = "this block can end without the value that a `break` gives it";
                let label = "its end is reached without one";
                self.fail(codes::MISSING_RETURN, message, span, label)
            }
            Flow::Break(index, value) if index == at && (gives || result.is_some()) => {
                if let Some((value, span)) = value {
                    self.give(at, value, span)?;
                }
                Ok(Flow::Next)
            }
            flow => Ok(flow),
        }
    }

    /// Gives a block its value where a run-time jump leaves it. If the surroundings do not need a
    /// certain type, that of all values together is known at the end of the block only: until then
    /// a marker holds the place of the write.
    fn give(&mut self, at: usize, value: Operand, span: Span) -> R<()> {
        let label = &self.frame().labels[at];
        if let Some(ty) = label.wish.hint {
            let result = match label.result {
                Some(result) => result,
                None => self.result_place(ty, span)?,
            };
            self.frame_mut().labels[at].result = Some(result);
            return self.write_result(result, value, span);
        }
        let number = label.given.len() as u64;
        let marker = match label.marker {
            Some(marker) => marker,
            None => self.new_scalar(None, Ty::I32),
        };
        let label = &mut self.frame_mut().labels[at];
        label.marker = Some(marker);
        label.given.push((value, span));
        let number = typed(ExprKind::Const(number), Ty::I32, span);
        self.emit(StmtKind::Set(marker, number), span);
        Ok(())
    }

    /// Puts writes of a common type in the places of the markers.
    fn write_given(&mut self, label: &mut Label, body: &mut Vec<Stmt>, span: Span) -> R<()> {
        let Some(marker) = label.marker else { return Ok(()) };
        let given = std::mem::take(&mut label.given);
        let types: Vec<(TypeId, Span)> =
            given.iter().map(|(value, span)| (self.operand_type(value), *span)).collect();
        let result = match self.peer_type(&types, label.wish, span)? {
            Some(ty) => Some(self.result_place(ty, span)?),
            None => None,
        };
        label.result = result;
        let mut writes = Vec::with_capacity(given.len());
        for (value, span) in given {
            self.open_list();
            let written = result.map_or(Ok(()), |result| self.write_result(result, value, span));
            writes.push(self.close_list());
            written?;
        }
        replace_markers(body, marker, &mut writes);
        Ok(())
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

    /// `break`, with a value and where that stands: decided now, or emitted if a run-time condition
    /// stands between.
    pub(crate) fn leave(
        &mut self,
        at: usize,
        value: Option<(Operand, Span)>,
        span: Span,
    ) -> R<Flow> {
        let frame = self.frame();
        let label = &frame.labels[at];
        if label.depth == frame.depth {
            return Ok(Flow::Break(at, value));
        }
        if !self.is_runtime() {
            return Ok(Flow::Break(at, value));
        }
        self.frame_mut().labels[at].behind_break.jump(span);
        if let Some((value, span)) = value {
            self.give(at, value, span)?;
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
        self.frame_mut().labels[at].behind_continue.jump(span);
        let label = &self.frame().labels[at];
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

/// Replaces each statement that sets a marker by the statements of its number.
fn replace_markers(stmts: &mut Vec<Stmt>, marker: LocalIdx, writes: &mut [Vec<Stmt>]) {
    for mut stmt in std::mem::take(stmts) {
        if let StmtKind::Set(local, value) = &stmt.kind
            && *local == marker
            && let ExprKind::Const(number) = *value.kind
        {
            stmts.append(&mut writes[number as usize]);
            continue;
        }
        stmt.change_bodies(&mut |body| replace_markers(body, marker, writes));
        stmts.push(stmt);
    }
}

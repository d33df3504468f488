//! Vector operations and register loads.

use dflow_ir::dsd::DsrRef;
use dflow_ir::func::Local;
use dflow_ir::inst::{InstData, Operand, VectorInst, VectorOptions};
use dflow_ir::program::FifoId;
use dflow_syntax::Span;

use super::func::Lower;
use crate::typed;

/// Settings in IR form, with the local that holds the index.
pub(super) fn options(options: &typed::Options, index: Option<Local>) -> VectorOptions {
    let typed::Options {
        asynchronous,
        activate,
        unblock,
        microthread,
        priority,
        index: _,
        on_control,
        save_address: _,
        single_step: _,
        xdsr: _,
    } = options;
    VectorOptions {
        asynchronous: *asynchronous,
        activate: *activate,
        unblock: *unblock,
        microthread: *microthread,
        priority: *priority,
        index,
        on_control: *on_control,
    }
}

impl Lower<'_> {
    /// A vector operation; `result` receives whether it ran to its end.
    pub(super) fn vector(&mut self, vector: &typed::Vector, result: Option<Local>, span: Span) {
        let typed::Vector { op, dest, sources, options } = vector;
        let dest = self.operand(dest);
        let sources = sources.iter().map(|source| self.operand(source)).collect();
        let options = self.options(options);
        let inst = VectorInst { op: *op, dest, sources, options, result };
        self.emit(span, InstData::Vector(Box::new(inst)));
    }

    /// Loads a register.
    pub(super) fn load_dsr(
        &mut self,
        dsr: DsrRef,
        dsd: &typed::Expr,
        settings: &typed::Options,
        span: Span,
    ) {
        let dsd = self.value(dsd);
        let options = self.options(settings);
        let typed::Options { save_address, single_step, xdsr, .. } = *settings;
        self.emit(span, InstData::LoadDsr { dsr, dsd, options, save_address, single_step, xdsr });
    }

    fn options(&mut self, settings: &typed::Options) -> VectorOptions {
        let index = settings.index.as_ref().map(|index| self.value(index));
        options(settings, index)
    }

    fn operand(&mut self, operand: &typed::Operand) -> Operand {
        match operand {
            typed::Operand::Memory(dsd) => Operand::Memory(self.value(dsd)),
            typed::Operand::Fabric(dsd) => Operand::Fabric(self.value(dsd)),
            typed::Operand::Dsr(dsr) => Operand::Dsr(*dsr),
            typed::Operand::Fifo(fifo) => Operand::Fifo(FifoId::from_u32(*fifo)),
            typed::Operand::Scalar(value) => Operand::Scalar(self.value(value)),
            typed::Operand::Pointer(address) => Operand::Pointer(self.value(address)),
        }
    }
}

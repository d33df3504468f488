//! Host and test blocks become programs of the host.

use dflow_ir::program::Profile;

use crate::resolve::Body;
use crate::sema::program::{Emitter, ProgramCx};
use crate::sema::value::ModuleId;
use crate::sema::{BodyKind, R, Sema};
use crate::typed;

/// Makes the program of a host or test block.
pub(super) fn host_program(
    sema: &mut Sema<'_, '_>,
    module: ModuleId,
    name: &str,
    body: &Body,
) -> R<typed::Program> {
    sema.layout.owners += 1;
    let outer = std::mem::replace(&mut sema.layout.current_owner, sema.layout.owners);
    let mut program = ProgramCx::new(name.to_owned(), Profile::Host);
    program.emitter = Some(Emitter::default());
    program.typed.entry = Some(typed::FuncIdx(0));
    program.typed.funcs.push(typed::Func {
        name: name.to_owned(),
        params: 0,
        ret: None,
        locals: Vec::new(),
        labels: 0,
        passing: typed::Passing::default(),
        body: Vec::new(),
        span: body.block.span,
    });
    sema.program = Some(program);
    let result = host_body(sema, module, body);
    sema.layout.current_owner = outer;
    let built = sema.program.take();
    result?;
    match built {
        Some(mut built) => {
            crate::hold::settle(&mut built.typed);
            Ok(built.typed)
        }
        None => unreachable!("the program was put in place"),
    }
}

fn host_body(sema: &mut Sema<'_, '_>, module: ModuleId, body: &Body) -> R<()> {
    sema.open_list();
    sema.push_frame(module, body.frame, false, BodyKind::Code { result: None })?;
    sema.frame_mut().ret = Some(sema.types.common.void);
    let flow = sema.block(&body.block);
    sema.frames.pop();
    let stmts = sema.close_list();
    let emitter = sema.program_mut().emitter.take().unwrap_or_default();
    flow?;
    let func = &mut sema.program_mut().typed.funcs[0];
    func.locals = emitter.locals;
    func.labels = emitter.labels;
    func.passing.holds = emitter.holds;
    func.body = stmts;
    sema.analyze_pending()
}

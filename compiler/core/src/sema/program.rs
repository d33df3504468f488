//! The program being built: functions on demand, globals on demand, statements as they come.

use std::collections::{HashMap, HashSet, VecDeque};

use dflow_ir::dsd::DsrRef;
use dflow_ir::mesh::Color;
use dflow_ir::program::Profile;
use dflow_ir::ty::Ty;
use dflow_syntax::{Diagnostic, Span, Symbol as Name, codes};

use super::address::{Address, AddressBase};
use super::module::DeclView;
use super::types::{Repr, Type, TypeId};
use super::value::{FuncRef, ModuleId, PointerBase, Provenance, Value};
use super::{R, Sema, TraceStep};
use crate::builtins::Registers;
use crate::typed::{
    self, Expr, FuncIdx, Global, GlobalIdx, HoldIdx, LabelIdx, Local, LocalIdx, LocalKind, Stmt,
    StmtKind,
};

/// State of one tile, host or test program.
pub(crate) struct ProgramCx {
    pub(crate) typed: typed::Program,
    pub(crate) provenance: Provenance,
    pub(crate) globals: HashMap<PointerBase, GlobalIdx>,
    /// Constants without a name, and the alignments of those that have one declared.
    pub(crate) constants: Vec<(Value, Option<u32>)>,
    /// Constants that stand for a comptime variable: where its address was taken.
    pub(crate) of_vars: HashMap<u32, Span>,
    /// Constants of the layout that this program has a copy of.
    pub(crate) copies: HashMap<(ModuleId, u32), u32>,
    pub(crate) funcs: HashMap<FuncKey, FuncIdx>,
    pub(crate) pending: VecDeque<(FuncIdx, FuncKey)>,
    /// How the first call of a generic function was reached.
    pub(crate) ways: HashMap<FuncIdx, Vec<TraceStep>>,
    /// How many versions of a function there are.
    versions: HashMap<FuncRef, u32>,
    /// Exports bound so far: name, type, mutability, symbol.
    pub(crate) exports: Vec<BoundExport>,
    pub(crate) fifos: HashMap<PointerBase, u32>,
    /// FIFOs that lie in registers of the program's choice.
    pub(crate) fifo_registers: HashMap<DsrRef, u32>,
    /// Queues that operations use, where they are known: input or output, queue, color if it is named.
    pub(crate) used_queues: Vec<(bool, u8, Option<Color>, Span)>,
    /// Registers that may be destinations.
    pub(crate) registers: Registers,
    /// Queues are bound at run time.
    pub(crate) rebinds: bool,
    /// Tasks are bound as before SDK 1.0.
    pub(crate) binds_old_tasks: bool,
    /// What the teardown task calls for flushed queues: input or output, queue, function.
    pub(crate) queue_handlers: Vec<(bool, u8, FuncIdx, Span)>,
    /// The task that the machine starts for flushed queues and colors in teardown, once it is made.
    pub(crate) teardown: Option<FuncIdx>,
    /// Data tasks that take turns: input queue, limit, first count, the other task.
    pub(crate) turns: Vec<Turn>,
    /// Colors that descriptors send to without naming a queue, in order of first mention.
    pub(crate) without_queue: Vec<Color>,
    /// What the teardown task calls for which color.
    pub(crate) color_handlers: Vec<(Color, FuncIdx, Span)>,
    /// Tasks that comptime blocks named before they were bound to an id, until all blocks have run.
    pub(crate) named_early: Vec<NamedEarly>,
    pub(crate) emitter: Option<Emitter>,
}

/// A task that is named in place of its id; the id is known later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedEarly {
    pub(crate) task: FuncRef,
    /// A data task will do as well: what is unblocked.
    pub(crate) or_data: bool,
    pub(crate) span: Span,
}

/// A data task that takes turns with another, as asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) id: u8,
    pub(crate) other: FuncIdx,
    pub(crate) limit: u16,
    pub(crate) initial: u16,
    pub(crate) span: Span,
}

/// Versions that a program may have of one function.
const MAX_VERSIONS: u32 = 4_096;

/// A function specialized for its comptime arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FuncKey {
    pub(crate) func: FuncRef,
    /// Spelling of comptime arguments (empty for run-time ones).
    pub(crate) comptime: Vec<String>,
    /// Types of all arguments.
    pub(crate) types: Vec<TypeId>,
    /// Comptime arguments themselves, parallel to `comptime`.
    pub(crate) values: KeyValues,
}

/// Values that ride along with a key; not part of its identity.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyValues(pub(crate) Vec<Option<Value>>);

impl PartialEq for KeyValues {
    fn eq(&self, _: &KeyValues) -> bool {
        true
    }
}

impl Eq for KeyValues {}

impl std::hash::Hash for KeyValues {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

/// A symbol bound to an export's name.
pub(crate) struct BoundExport {
    pub(crate) name: String,
    pub(crate) ty: TypeId,
    pub(crate) mutable: bool,
    pub(crate) symbol: typed::Symbol,
    pub(crate) span: Span,
}

/// Code of one function as it is emitted.
#[derive(Default)]
pub(crate) struct Emitter {
    pub(crate) locals: Vec<Local>,
    pub(crate) labels: u32,
    pub(crate) holds: u32,
    /// Locals that hold descriptors of constants, or slices of them, and never something else.
    pub(crate) constant_views: HashSet<LocalIdx>,
    /// Open statement lists, innermost last.
    pub(crate) stmts: Vec<Vec<Stmt>>,
}

/// How many locals, labels and holds there are.
#[derive(Clone, Copy)]
pub(crate) struct Made {
    locals: usize,
    labels: u32,
    holds: u32,
}

impl Emitter {
    pub(crate) fn made(&self) -> Made {
        Made { locals: self.locals.len(), labels: self.labels, holds: self.holds }
    }

    /// Forgets what was made since, after the statements that use it.
    pub(crate) fn forget(&mut self, since: Made) {
        let Made { locals, labels, holds } = since;
        self.locals.truncate(locals);
        (self.labels, self.holds) = (labels, holds);
        self.constant_views.retain(|local| (local.0 as usize) < locals);
    }
}

impl ProgramCx {
    pub(crate) fn new(name: String, profile: Profile) -> ProgramCx {
        ProgramCx {
            typed: typed::Program::empty(name, profile),
            provenance: Provenance::default(),
            globals: HashMap::new(),
            constants: Vec::new(),
            of_vars: HashMap::new(),
            copies: HashMap::new(),
            funcs: HashMap::new(),
            pending: VecDeque::new(),
            ways: HashMap::new(),
            versions: HashMap::new(),
            exports: Vec::new(),
            fifos: HashMap::new(),
            fifo_registers: HashMap::new(),
            used_queues: Vec::new(),
            registers: Registers::default(),
            rebinds: false,
            binds_old_tasks: false,
            queue_handlers: Vec::new(),
            teardown: None,
            turns: Vec::new(),
            without_queue: Vec::new(),
            color_handlers: Vec::new(),
            named_early: Vec::new(),
            emitter: None,
        }
    }
}

impl Sema<'_, '_> {
    /// Reports what only a program can have, where none is built: in the layout.
    pub(crate) fn need_program(&mut self, span: Span) -> R<()> {
        if self.program.is_some() {
            return Ok(());
        }
        Err(self.report(
            Diagnostic::new(
                codes::BUILTIN_CONTEXT,
                "this belongs to the code of a PE, and the layout is none",
                span,
            )
            .label("reached from the layout")
            .help("import the module that says this in the tile's code, not in the layout's file"),
        ))
    }

    /// The program being built. Only called where a program is known to be there.
    pub(crate) fn program_mut(&mut self) -> &mut ProgramCx {
        self.program.as_mut().unwrap_or_else(|| unreachable!("code belongs to a program"))
    }

    pub(crate) fn emitter(&mut self) -> &mut Emitter {
        let emitter = self.program_mut().emitter.as_mut();
        emitter.unwrap_or_else(|| unreachable!("run-time frames have an emitter"))
    }

    /// A local that never changes holds a descriptor.
    pub(crate) fn note_dsd(&mut self, local: LocalIdx, dsd: &Expr) {
        if self.is_constant_dsd(dsd) {
            self.emitter().constant_views.insert(local);
        }
    }

    /// A local that never changes holds a slice of what nobody writes.
    pub(crate) fn note_slice(&mut self, slice: &Address) {
        if let AddressBase::Local(local) = slice.base {
            self.emitter().constant_views.insert(local);
        }
    }

    /// Whether a slice is known to be of what nobody writes.
    pub(crate) fn is_constant_slice(&mut self, slice: &Address) -> bool {
        matches!(slice.base, AddressBase::Local(local) if self.is_constant_view(local))
    }

    /// Whether a local is a descriptor or slice of a constant, from its declaration on.
    pub(crate) fn is_constant_view(&mut self, local: LocalIdx) -> bool {
        self.emitter().constant_views.contains(&local)
    }

    /// Appends a statement to the innermost open list.
    pub(crate) fn emit(&mut self, kind: StmtKind, span: Span) {
        if let Some(list) = self.emitter().stmts.last_mut() {
            list.push(Stmt { kind, span });
        }
    }

    pub(crate) fn open_list(&mut self) {
        self.emitter().stmts.push(Vec::new());
    }

    pub(crate) fn close_list(&mut self) -> Vec<Stmt> {
        self.emitter().stmts.pop().unwrap_or_default()
    }

    /// Puts a closed list's statements behind the innermost open one.
    pub(crate) fn append(&mut self, mut stmts: Vec<Stmt>) {
        if let Some(list) = self.emitter().stmts.last_mut() {
            list.append(&mut stmts);
        }
    }

    pub(crate) fn new_label(&mut self) -> LabelIdx {
        let emitter = self.emitter();
        emitter.labels += 1;
        LabelIdx(emitter.labels - 1)
    }

    pub(crate) fn new_hold(&mut self) -> HoldIdx {
        let emitter = self.emitter();
        emitter.holds += 1;
        HoldIdx(emitter.holds - 1)
    }

    pub(crate) fn new_local(&mut self, name: Option<String>, kind: LocalKind) -> LocalIdx {
        let emitter = self.emitter();
        emitter.locals.push(Local { name, kind });
        LocalIdx((emitter.locals.len() - 1) as u32)
    }

    pub(crate) fn new_scalar(&mut self, name: Option<String>, ty: Ty) -> LocalIdx {
        self.new_local(name, LocalKind::Scalar(ty))
    }

    /// A memory local for a type; fails for types without bits or too large ones.
    pub(crate) fn new_memory(
        &mut self,
        name: Option<String>,
        ty: TypeId,
        span: Span,
    ) -> R<LocalIdx> {
        let (size, align) = self.runtime_size(ty, span)?;
        Ok(self.new_local(name, LocalKind::Memory { size: size.max(1), align }))
    }

    /// Puts a memory local on an alignment, unless its type's is larger.
    pub(crate) fn align_local(&mut self, address: &Address, least: u32) {
        let AddressBase::Local(LocalIdx(local)) = address.base else { return };
        if let LocalKind::Memory { align, .. } = &mut self.emitter().locals[local as usize].kind {
            *align = least.max(*align);
        }
    }

    /// Size and alignment of a type that must exist at run time and fit the memory.
    pub(crate) fn runtime_size(&mut self, ty: TypeId, span: Span) -> R<(u32, u32)> {
        let limit = if self.is_host() { 1 << 30 } else { u64::from(self.target.memory) };
        match self.types.size_align(ty, self.profile()) {
            Some((size, align)) if size <= limit => Ok((size as u32, align)),
            Some((size, _)) => {
                let name = self.type_name(ty);
                let message = format!("`{name}` has {size} bytes, the memory has {limit}");
                self.fail(codes::ARRAY_TOO_LARGE, message, span, "too large for the memory")
            }
            None => {
                let name = self.type_name(ty);
                self.fail(
                    codes::NOT_COMPTIME,
                    format!("a value of type `{name}` exists at compile time only"),
                    span,
                    "needed at run time here",
                )
            }
        }
    }

    /// The program's global of a variable, constant or anonymous constant.
    pub(crate) fn program_global(&mut self, base: PointerBase, span: Span) -> R<GlobalIdx> {
        self.need_program(span)?;
        if let Some(&known) = self.program_mut().globals.get(&base) {
            return Ok(known);
        }
        let (name, ty, value, align, exported, span) = match base {
            PointerBase::Global { module, decl } => self.global_parts(module, decl, span)?,
            PointerBase::Constant(idx) => {
                let (value, align) = self.program_mut().constants[idx as usize].clone();
                (format!("constant.{idx}"), value.ty, Some(value), align, false, span)
            }
            PointerBase::Func(_) | PointerBase::Address => {
                unreachable!("functions and plain addresses are no globals")
            }
        };
        let (size, natural) = self.runtime_size(ty, span)?;
        let section = match base {
            PointerBase::Global { module, decl } => self.section(module, decl)?,
            PointerBase::Constant(_) | PointerBase::Func(_) | PointerBase::Address => None,
        };
        // Entered before its value is written: a variable may hold its own address.
        let idx = GlobalIdx(self.program_mut().typed.globals.len() as u32);
        self.program_mut().globals.insert(base, idx);
        let align = align.unwrap_or(natural).max(natural);
        self.program_mut().typed.globals.push(Global {
            name,
            size,
            align,
            init: Vec::new(),
            relocs: Vec::new(),
            slots: Vec::new(),
            exported,
            section,
            span,
        });
        if let Some(value) = value {
            let image = self.image_of(&value, ty, span)?;
            let global = &mut self.program_mut().typed.globals[idx.0 as usize];
            // Empty says that there is no initial value; what has no bytes needs none.
            let is_zero = image.bytes.is_empty() && global.size > 0;
            global.init = if is_zero { vec![0] } else { image.bytes };
            global.relocs = image.relocs;
            global.slots = image.slots;
        }
        Ok(idx)
    }

    #[expect(clippy::type_complexity, reason = "parts of one record, used once")]
    fn global_parts(
        &mut self,
        module: ModuleId,
        decl: u32,
        span: Span,
    ) -> R<(String, TypeId, Option<Value>, Option<u32>, bool, Span)> {
        if self.is_foreign(module) {
            let name = self.decl_name(module, decl);
            return self.fail(
                codes::PRIVATE_STATE,
                format!("`{name}` belongs to the layout and has no place on this side"),
                span,
                "not visible at run time here",
            );
        }
        let name = self.symbol_name(module, decl)?;
        let (align, exported, place) = self.global_attributes(module, decl)?;
        match self.decl(module, decl, span)? {
            DeclView::Const(value) => Ok((name, value.ty, Some(value), align, exported, place)),
            DeclView::Var { ty, init } => Ok((name, ty, init, align, exported, place)),
            DeclView::Func => unreachable!("functions are no globals"),
        }
    }

    /// The function of the program for a plain (not generic) function.
    pub(crate) fn program_func(&mut self, func: FuncRef, span: Span) -> R<FuncIdx> {
        self.need_program(span)?;
        let ty = self.func_type(func, span)?;
        let Type::Fn { params, .. } = self.types.shared(ty).as_ref().clone() else {
            unreachable!("functions have function types")
        };
        let key = FuncKey {
            func,
            comptime: vec![String::new(); params.len()],
            types: params.to_vec(),
            values: KeyValues(vec![None; params.len()]),
        };
        Ok(self.specialized(key))
    }

    /// The function of the program for a key; its body is analyzed later.
    pub(crate) fn specialized(&mut self, key: FuncKey) -> FuncIdx {
        let program = self.program_mut();
        if let Some(&known) = program.funcs.get(&key) {
            return known;
        }
        let idx = FuncIdx(program.typed.funcs.len() as u32);
        program.typed.funcs.push(typed::Func {
            name: String::new(),
            params: 0,
            ret: None,
            locals: Vec::new(),
            labels: 0,
            passing: typed::Passing::default(),
            body: Vec::new(),
            span: Span::new(dflow_syntax::FileId(0), 0, 0),
        });
        program.funcs.insert(key.clone(), idx);
        *program.versions.entry(key.func).or_default() += 1;
        program.pending.push_back((idx, key));
        idx
    }

    /// Ends functions that make versions of themselves without end.
    pub(crate) fn check_versions(&mut self, func: FuncRef, name: &str, span: Span) -> R<()> {
        if self.program_mut().versions.get(&func).is_none_or(|&count| count < MAX_VERSIONS) {
            return Ok(());
        }
        Err(self.report(
            Diagnostic::new(
                codes::RECURSION_LIMIT,
                format!("`{name}` is needed in more than {MAX_VERSIONS} versions"),
                span,
            )
            .label("one more for this call")
            .help("each set of comptime arguments makes a version: pass what changes at run time"),
        ))
    }

    /// The machine type of a scalar type, or an error that the value cannot be a scalar.
    pub(crate) fn machine_ty(&mut self, ty: TypeId, span: Span) -> R<Ty> {
        match self.types.repr(ty, self.profile()) {
            Repr::Scalar(machine) => self.allowed(machine, ty, span),
            Repr::Void | Repr::Memory { .. } | Repr::Comptime => {
                let name = self.type_name(ty);
                let message = format!("a value of type `{name}` is no run-time scalar");
                self.fail(codes::NOT_COMPTIME, message, span, "needed as a scalar here")
            }
        }
    }

    fn allowed(&mut self, machine: Ty, ty: TypeId, span: Span) -> R<Ty> {
        if machine == Ty::F64 && !self.is_host() {
            let name = self.type_name(ty);
            return Err(self.report(
                Diagnostic::new(
                    codes::INVALID_TYPE,
                    format!("`{name}` values exist on the host only"),
                    span,
                )
                .label("needed on a PE here")
                .help("use `f32`"),
            ));
        }
        if matches!(machine, Ty::F16 | Ty::Bf16)
            && machine != self.cx.options.half
            && !self.is_host()
        {
            let (name, other) = (self.type_name(ty), self.cx.options.half.name());
            let message =
                format!("`{name}` values exist only while compiling: PEs compute in `{other}`");
            return Err(self.report(
                Diagnostic::new(codes::INVALID_TYPE, message, span)
                    .label("needed on a PE here")
                    .help("`@fp16()` is the type that was chosen; `cslc --fp16-format` chooses another"),
            ));
        }
        Ok(machine)
    }

    /// Spelling of a name for reports.
    pub(crate) fn qualified(&self, module: ModuleId, name: Name) -> String {
        let prefix = &self.modules[module.0 as usize].prefix;
        let name = self.cx.names.resolve(name);
        if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
    }
}

//! Walks bodies with a stack of scopes and gives every variable its slot.

use dflow_syntax::ast::{
    self, Block, Capture, Expr, ExprId, FnDecl, Ident, Item, ItemKind, ParamTy, Stmt, StmtId,
    VarDecl,
};
use dflow_syntax::{Diagnostic, Span, Symbol, codes};

use super::near::nearest;
use super::{
    Body, NO_SLOT, PRELUDE_TYPES, PRELUDE_VALUES, RESERVED_TYPES, Res, ResolvedFile, check_name,
};
use crate::session::Session;

/// So many misspelt names of a file are compared with those that there are; nobody reads more.
const ADVISED: usize = 100;

/// One walk over a file.
pub(super) struct Walker<'a, 'w> {
    cx: &'a mut Session<'w>,
    file: &'a ast::File,
    out: &'a mut ResolvedFile,
    /// Scope whose names are visible, beside the file's.
    scope: u32,
    /// Local names: (name, slot, place), innermost last.
    locals: Vec<(Symbol, u32, Span)>,
    /// Where each open block begins in `locals`.
    blocks: Vec<usize>,
    /// Names of blocks that have ended, for reports.
    ended: Vec<(Symbol, Span)>,
    next_slot: u32,
    max_slot: u32,
    imports: bool,
    allocates: bool,
}

impl<'a, 'w> Walker<'a, 'w> {
    pub(super) fn new(
        cx: &'a mut Session<'w>,
        file: &'a ast::File,
        out: &'a mut ResolvedFile,
    ) -> Walker<'a, 'w> {
        Walker {
            cx,
            file,
            out,
            scope: 0,
            locals: Vec::new(),
            blocks: Vec::new(),
            ended: Vec::new(),
            next_slot: 0,
            max_slot: 0,
            imports: false,
            allocates: false,
        }
    }

    /// Resolves the items of a scope; `decl` counts as [`super::declare`] did.
    pub(super) fn items(&mut self, scope: u32, items: &[Item]) {
        self.scope = scope;
        let mut decl = 0;
        for item in items {
            match &item.kind {
                ItemKind::Var(var) => {
                    self.begin();
                    self.var_parts(var);
                    self.finish_decl(scope, &mut decl);
                }
                ItemKind::Fn(func) => {
                    self.begin();
                    self.func(func);
                    self.finish_decl(scope, &mut decl);
                }
                ItemKind::Tile(tile) => {
                    let super::DeclKind::Tile(inner) =
                        self.out.scopes[scope as usize].decls[decl].kind
                    else {
                        continue;
                    };
                    self.items(inner, &tile.items);
                    self.scope = scope;
                    decl += 1;
                }
                ItemKind::Comptime(block) => {
                    let body = self.body(block);
                    self.out.scopes[scope as usize].comptime.push(body);
                }
                ItemKind::Layout(block) => self.layout(block, item.span),
                ItemKind::Host(block) => self.host(block, item.span),
                ItemKind::Test(test) => {
                    let body = self.body(&test.body);
                    if self.out.tests.iter().any(|(name, _)| *name == test.name) {
                        let message = format!("two tests are named `{}`", test.name);
                        self.cx.emit(
                            Diagnostic::new(codes::TEST_DUPLICATE, message, test.name_span)
                                .label("second test of this name"),
                        );
                    }
                    self.out.tests.push((test.name.clone(), body));
                }
                ItemKind::Error => {}
            }
        }
    }

    fn layout(&mut self, block: &Block, span: Span) {
        let body = self.body(block);
        if let Some(first) = &self.out.layout {
            let first = first.block.span;
            self.cx.emit(
                Diagnostic::new(codes::LAYOUT_DUPLICATE, "a file has one layout block", span)
                    .label("second layout block")
                    .secondary(first, "first layout block"),
            );
        } else {
            self.out.layout = Some(body);
        }
    }

    fn host(&mut self, block: &Block, span: Span) {
        let body = self.body(block);
        if let Some(first) = &self.out.host {
            let first = first.block.span;
            self.cx.emit(
                Diagnostic::new(codes::HOST_DUPLICATE, "a program has one host block", span)
                    .label("second host block")
                    .secondary(first, "first host block"),
            );
        } else {
            self.out.host = Some(body);
        }
    }

    fn begin(&mut self) {
        self.locals.clear();
        self.blocks.clear();
        self.ended.clear();
        self.next_slot = 0;
        self.max_slot = 0;
        self.imports = false;
        self.allocates = false;
    }

    fn finish_decl(&mut self, scope: u32, decl: &mut usize) {
        let entry = &mut self.out.scopes[scope as usize].decls[*decl];
        entry.frame = self.max_slot;
        entry.imports = self.imports;
        entry.allocates = self.allocates;
        *decl += 1;
    }

    fn body(&mut self, block: &Block) -> Body {
        self.begin();
        self.block(block);
        Body { block: block.clone(), frame: self.max_slot }
    }

    fn func(&mut self, func: &FnDecl) {
        self.blocks.push(0);
        for param in &func.params {
            if let ParamTy::Expr(ty) = param.ty {
                self.expr(ty);
            }
            match param.name {
                Some(name) => {
                    self.declare(name);
                }
                None => {
                    self.slot();
                }
            }
        }
        self.expr(func.ret);
        self.opt(func.linkname);
        self.opt(func.linksection);
        if let Some(body) = &func.body {
            self.block(body);
        }
        self.blocks.pop();
    }

    fn var_parts(&mut self, var: &VarDecl) {
        for part in [var.ty, var.align, var.linksection, var.linkname, var.init] {
            self.opt(part);
        }
    }

    /// A local has no symbol, and lies on the stack.
    fn has_no_symbol(&mut self, var: &VarDecl) {
        for (part, word) in [(var.linksection, "linksection"), (var.linkname, "linkname")] {
            let Some(part) = part else { continue };
            let message = format!("a local variable has no `{word}`");
            self.cx.emit(
                Diagnostic::new(codes::INVALID_DECLARATION, message, self.file.expr_span(part))
                    .label("given here")
                    .help("leave it out, or declare the variable at file scope"),
            );
        }
    }

    fn slot(&mut self) -> u32 {
        let slot = self.next_slot;
        self.next_slot += 1;
        self.max_slot = self.max_slot.max(self.next_slot);
        slot
    }

    fn declare(&mut self, name: Ident) -> u32 {
        check_name(self.cx, name);
        let begin = self.blocks.last().copied().unwrap_or(0);
        if let Some(&(_, _, first)) =
            self.locals[begin..].iter().find(|(known, _, _)| *known == name.name)
        {
            let text = self.cx.names.resolve(name.name).to_owned();
            self.cx.emit(
                Diagnostic::new(
                    codes::DUPLICATE_NAME,
                    format!("`{text}` is declared twice in this block"),
                    name.span,
                )
                .label("second declaration")
                .secondary(first, "first declaration")
                .help("to give the first one a new value, assign to it without `var`"),
            );
        }
        let slot = self.slot();
        self.locals.push((name.name, slot, name.span));
        slot
    }

    fn capture(&mut self, capture: &Capture) -> u32 {
        capture.name.map_or(NO_SLOT, |name| self.declare(name))
    }

    fn block(&mut self, block: &Block) {
        let mark = self.locals.len();
        self.blocks.push(mark);
        for &stmt in &block.stmts {
            self.stmt(stmt);
        }
        self.unreachable(block);
        self.end_block(mark);
    }

    /// Warns of statements behind one that always leaves the block.
    fn unreachable(&mut self, block: &Block) {
        let leaves = |&stmt: &StmtId| {
            matches!(
                self.file.stmt(stmt),
                Stmt::Return(_) | Stmt::Break { .. } | Stmt::Continue { .. }
            )
        };
        let Some(at) = block.stmts.iter().position(leaves) else { return };
        let mut behind = block.stmts[at + 1..].iter();
        let next = behind.find(|&&stmt| !matches!(self.file.stmt(stmt), Stmt::Empty | Stmt::Error));
        let Some(&next) = next else { return };
        let way = self.file.stmt_span(block.stmts[at]);
        self.cx.emit(
            Diagnostic::new(
                codes::UNREACHABLE_CODE,
                "nothing reaches this statement",
                self.file.stmt_span(next),
            )
            .label("never executed")
            .secondary(way, "the block is always left here")
            .help("remove it, or put a condition on what leaves the block"),
        );
    }

    /// Takes the names since `mark` out of sight.
    fn end_block(&mut self, mark: usize) {
        self.blocks.pop();
        self.ended.extend(self.locals.drain(mark..).map(|(name, _, span)| (name, span)));
    }

    fn stmt(&mut self, id: StmtId) {
        let file = self.file;
        match file.stmt(id) {
            Stmt::Error | Stmt::Empty | Stmt::Continue { .. } => {}
            Stmt::Var(var) => {
                self.has_no_symbol(var);
                self.var_parts(var);
                let slot = self.declare(var.name);
                self.out.stmt_slots[id.0 as usize][0] = slot;
            }
            Stmt::Expr(expr) => self.expr(*expr),
            Stmt::Assign { op: _, target, value } => {
                self.expr(*target);
                self.expr(*value);
            }
            Stmt::Return(value) | Stmt::Break { label: _, value } => self.opt(*value),
            Stmt::For { label: _, inline: _, iter, elem, index, body } => {
                self.expr(*iter);
                let mark = self.locals.len();
                self.blocks.push(mark);
                let elem = self.capture(elem);
                let index = index.as_ref().map_or(NO_SLOT, |index| self.capture(index));
                self.out.stmt_slots[id.0 as usize] = [elem, index];
                self.stmt(*body);
                self.end_block(mark);
            }
            Stmt::While { label: _, inline: _, cond, step, body } => {
                self.expr(*cond);
                if let Some(step) = step {
                    self.stmt(*step);
                }
                let mark = self.locals.len();
                self.blocks.push(mark);
                self.stmt(*body);
                self.end_block(mark);
            }
            Stmt::Comptime(block) => self.block(block),
        }
    }

    fn opt(&mut self, expr: Option<ExprId>) {
        if let Some(expr) = expr {
            self.expr(expr);
        }
    }

    fn all(&mut self, exprs: &[ExprId]) {
        for &expr in exprs {
            self.expr(expr);
        }
    }

    fn expr(&mut self, id: ExprId) {
        let file = self.file;
        match file.expr(id) {
            Expr::Error
            | Expr::Int(_)
            | Expr::Float(_)
            | Expr::Str(_)
            | Expr::Bool(_)
            | Expr::Asm => {}
            Expr::Name(name) => self.name(id, *name),
            Expr::Builtin { name, name_span: _, args } => {
                self.imports |= self.cx.names.resolve(*name) == "import_module";
                self.allocates |= self.cx.names.resolve(*name) == "allocate_fifo";
                self.all(args);
            }
            Expr::Call { callee, args } => {
                self.expr(*callee);
                self.all(args);
            }
            Expr::Field { base, name: _ } | Expr::Deref(base) => self.expr(*base),
            Expr::Index { base, indices } => {
                self.expr(*base);
                self.all(indices);
            }
            Expr::Unary { op, operand } => {
                if *op == ast::UnaryOp::AddressOf {
                    self.addressed(*operand);
                }
                self.expr(*operand);
            }
            Expr::Comptime(operand) => self.expr(*operand),
            Expr::Binary { op: _, lhs, rhs } => {
                self.expr(*lhs);
                self.expr(*rhs);
            }
            Expr::Block { label: _, block } => self.block(block),
            Expr::If { cond, then, otherwise } => {
                self.expr(*cond);
                self.expr(*then);
                self.opt(*otherwise);
            }
            Expr::Switch { subject, prongs } => {
                self.expr(*subject);
                for prong in prongs {
                    self.all(&prong.cases);
                    self.expr(prong.body);
                }
            }
            Expr::StructLiteral { fields } => {
                for field in fields {
                    self.expr(field.value);
                }
            }
            Expr::TupleLiteral { elems } => self.all(elems),
            Expr::TypedStruct { ty, fields } => {
                self.expr(*ty);
                for field in fields {
                    self.expr(field.value);
                }
            }
            Expr::TypedArray { ty, elems } => {
                self.expr(*ty);
                self.all(elems);
            }
            Expr::ArrayType { dims, elem } => {
                self.all(dims);
                self.expr(*elem);
            }
            Expr::PointerType { many: _, constant: _, pointee } => self.expr(*pointee),
            Expr::FnType { .. } | Expr::StructType { .. } | Expr::EnumType { .. } => {
                self.type_parts(id)
            }
            Expr::TensorAccess { vars, extents, base, indices } => {
                self.tensor(id, vars, extents, *base, indices);
            }
        }
    }

    /// The parts of a type written out.
    fn type_parts(&mut self, id: ExprId) {
        let file = self.file;
        match file.expr(id) {
            Expr::FnType { is_task: _, params, ret } => {
                for param in params {
                    if let ParamTy::Expr(ty) = param.ty {
                        self.expr(ty);
                    }
                }
                self.expr(*ret);
            }
            Expr::StructType { kind: _, is_union: _, fields } => {
                for field in fields {
                    self.expr(field.ty);
                }
            }
            Expr::EnumType { backing, elems } => {
                self.opt(*backing);
                for elem in elems {
                    self.opt(elem.value);
                }
            }
            _ => {}
        }
    }

    fn tensor(
        &mut self,
        id: ExprId,
        vars: &[Ident],
        extents: &[ExprId],
        base: ExprId,
        indices: &[ExprId],
    ) {
        self.all(extents);
        self.addressed(base);
        self.expr(base);
        let mark = self.locals.len();
        self.blocks.push(mark);
        let first = self.next_slot;
        for &var in vars {
            self.declare(var);
        }
        self.out.tensor_slots[id.0 as usize] = first;
        self.all(indices);
        self.end_block(mark);
    }

    /// Notes the variable at the root of a place whose address is taken.
    fn addressed(&mut self, mut id: ExprId) {
        loop {
            match self.file.expr(id) {
                Expr::Field { base, .. } | Expr::Index { base, .. } => id = *base,
                Expr::Name(name) => {
                    self.out.addressed.insert(*name);
                    return;
                }
                _ => return,
            }
        }
    }

    fn name(&mut self, id: ExprId, name: Symbol) {
        let res = self.lookup(name);
        let foreign = matches!(self.cx.names.resolve(name), "undefined" | "null");
        // Of these the parser has told.
        let told = foreign || self.file.unread.contains(&name);
        if res == Res::None && !told {
            let span = self.file.expr_span(id);
            let text = self.cx.names.resolve(name).to_owned();
            let mut diagnostic =
                Diagnostic::new(codes::UNKNOWN_NAME, format!("`{text}` is not declared"), span)
                    .label("nothing of this name is visible here");
            let ended = self.ended.iter().rev().find(|(known, _)| *known == name);
            if text == "_" {
                diagnostic = diagnostic.help("a call may stand alone: its value is dropped");
            } else if let Some(&(_, declared)) = ended {
                diagnostic = diagnostic
                    .secondary(declared, "declared here, in a block that has ended")
                    .help("declare it in front of that block");
            } else if let Some(help) = foreign_name(&text) {
                diagnostic = diagnostic.help(help);
            } else if self.is_member_asked(span) && dflow_stdlib::library(&text).is_some() {
                diagnostic = diagnostic.help(format!(
                    "import the library: `const {text} = @import_module(\"<{text}>\");`"
                ));
            } else if let Some(near) = self.similar(&text) {
                diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
            }
            self.out.undeclared.push((id, diagnostic));
        }
        self.out.names[id.0 as usize] = res;
    }

    fn lookup(&self, name: Symbol) -> Res {
        if let Some(&(_, slot, _)) = self.locals.iter().rev().find(|(known, _, _)| *known == name) {
            return Res::Local(slot);
        }
        for scope in [self.scope, 0] {
            if let Some(&decl) = self.out.scopes[scope as usize].by_name.get(&name) {
                return Res::Decl { scope, decl };
            }
        }
        let text = self.cx.names.resolve(name);
        let prelude: [&[&str]; 3] = [&RESERVED_TYPES, &PRELUDE_TYPES, &PRELUDE_VALUES];
        if prelude.iter().any(|names| names.contains(&text)) || is_int_type(text) {
            return Res::Prelude(name);
        }
        Res::None
    }

    /// Whether a member is asked for of what a name stands for.
    fn is_member_asked(&self, name: Span) -> bool {
        let behind = Span { start: name.end, end: name.end + 1, ..name };
        self.cx.sources.slice(behind) == "."
    }

    /// The visible name nearest to a misspelt one, at most two edits away. Only the first
    /// [`ADVISED`] names of a file get one: each is compared with all that there are.
    fn similar(&self, text: &str) -> Option<String> {
        if self.out.undeclared.len() >= ADVISED {
            return None;
        }
        let scopes = [self.scope, 0];
        let decls = scopes.iter().flat_map(|&s| self.out.scopes[s as usize].decls.iter());
        let locals = self.locals.iter().map(|&(name, _, _)| name);
        let names =
            locals.chain(decls.map(|decl| decl.name.name)).map(|s| self.cx.names.resolve(s));
        let known = names.chain(RESERVED_TYPES).chain(PRELUDE_TYPES).chain(PRELUDE_VALUES);
        nearest(text, known).map(str::to_owned)
    }
}

/// `iN` or `uN` of any width.
fn is_int_type(text: &str) -> bool {
    let digits = text.strip_prefix(['i', 'u']).unwrap_or("");
    !digits.is_empty() && digits.len() <= 8 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// What to write in place of a word of another language.
fn foreign_name(text: &str) -> Option<&'static str> {
    Some(match text {
        "usize" | "size_t" => "write `u16`: addresses and sizes of a PE have 16 bits",
        "isize" | "ptrdiff_t" => "write `i16`",
        "int" | "long" | "int32_t" => "write `i32`, or `i16`, which is faster",
        "short" | "int16_t" => "write `i16`",
        "unsigned" | "uint" | "uint32_t" => "write `u32`, or `u16`, which is faster",
        "uint16_t" => "write `u16`",
        "char" | "byte" | "uint8_t" => "write `u8`",
        "int8_t" => "write `i8`",
        "float" => "write `f32`",
        "double" | "f64" => "write `f32`: a PE has no wider floats",
        "half" | "float16" => "write `f16`",
        "string" | "str" => "write `comptime_string`: strings exist while compiling only",
        "True" => "write `true`",
        "False" => "write `false`",
        "None" | "nullptr" | "NULL" => {
            "there are no optional values; use a flag, or a number that means none"
        }
        "unreachable" => "leave it out",
        "elif" | "elseif" | "elsif" => "write `else if`",
        "print" | "printf" | "println" => {
            "a PE has no terminal: the library `<simprint>` writes to the simulator's log"
        }
        "range" => "write `@range(i16, n)`",
        "len" | "sizeof" => "the number of elements of an array type is `@element_count(T)`",
        "north" | "south" | "east" | "west" | "ramp" => {
            "directions are written `NORTH SOUTH EAST WEST RAMP`"
        }
        _ => return None,
    })
}

//! Types as the language sees them, interned.
//!
//! Invariants: equal types have equal ids; named structs and enums are equal only if made at the
//! same place with the same parts, whichever instance makes them.
//! Machine representation is [`Repr`], asked for per profile.

mod repr;

use std::rc::Rc;

use dflow_ir::ty::Ty;
use dflow_syntax::{Interner, Symbol};
use rustc_hash::{FxHashMap, FxHashSet};

/// An interned type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TypeId(u32);

impl TypeId {
    /// A number that only this type has.
    pub(crate) fn number(self) -> i128 {
        i128::from(self.0)
    }
}

/// What a type is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Type {
    Void,
    Bool,
    /// Of 0 to [`MAX_BITS`] bits; up to 64 exist at run time.
    Int {
        signed: bool,
        bits: u16,
    },
    Float(Float),
    ComptimeInt,
    ComptimeFloat,
    ComptimeString,
    /// Any anonymous struct: `comptime_struct`.
    ComptimeStruct,
    /// Types themselves: `type`.
    Meta,
    Module,
    /// `type` of a tile block's name.
    Tile,
    Range(TypeId),
    Direction,
    Color,
    DataTaskId,
    LocalTaskId,
    ControlTaskId,
    InputQueue,
    OutputQueue,
    UtId,
    Mem1dDsd,
    Mem4dDsd,
    CircbufDsd,
    FabinDsd,
    FaboutDsd,
    DsrDest,
    DsrSrc0,
    DsrSrc1,
    DsrFifoDest,
    DsrFifoSrc1,
    Xdsr,
    Sr,
    Fifo,
    AnyOpaque,
    /// A rectangle of PEs, for host code.
    Rect,
    Array {
        dims: Rc<[u64]>,
        elem: TypeId,
    },
    Pointer {
        many: bool,
        constant: bool,
        pointee: TypeId,
    },
    Slice {
        elem: TypeId,
    },
    Fn {
        is_task: bool,
        params: Rc<[TypeId]>,
        ret: TypeId,
    },
    Struct(Rc<StructType>),
    Enum(Rc<EnumType>),
    /// A struct that is being declared and stands behind a pointer in its own fields.
    Pending(u32),
}

/// The widest sized integer.
pub(crate) const MAX_BITS: u16 = 126;

/// Floating-point formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Float {
    F16,
    F32,
    F64,
    Bf16,
}

impl Float {
    pub(crate) fn ty(self) -> Ty {
        match self {
            Float::F16 => Ty::F16,
            Float::Bf16 => Ty::Bf16,
            Float::F32 => Ty::F32,
            Float::F64 => Ty::F64,
        }
    }
}

/// How the fields of a struct lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Layout {
    /// One after the other, each aligned (`extern` too).
    InOrder,
    /// All at the same place.
    Union,
    /// Bit after bit, the first lowest, in one integer.
    Packed,
    /// All from the lowest bit of one integer on.
    PackedUnion,
}

/// A struct or tuple type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StructType {
    /// Site of the declaration, for named structs: file and expression.
    pub(crate) nominal: Option<(u32, u32)>,
    /// Fields have no names.
    pub(crate) tuple: bool,
    pub(crate) layout: Layout,
    /// Declared with `extern`: it lies as others expect it.
    pub(crate) is_extern: bool,
    /// Names and types; tuples repeat one symbol.
    pub(crate) fields: Vec<(Symbol, TypeId)>,
}

impl StructType {
    /// Only one field has a value at a time.
    pub(crate) fn is_union(&self) -> bool {
        matches!(self.layout, Layout::Union | Layout::PackedUnion)
    }

    /// The fields are bits of one integer.
    pub(crate) fn is_packed(&self) -> bool {
        matches!(self.layout, Layout::Packed | Layout::PackedUnion)
    }
}

/// An enum type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EnumType {
    /// Site of the declaration: file and expression.
    pub(crate) nominal: (u32, u32),
    pub(crate) backing: TypeId,
    pub(crate) elems: Vec<(Symbol, i128)>,
}

/// How a type is held by the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repr {
    /// No bits.
    Void,
    /// In a local.
    Scalar(Ty),
    /// In memory: bytes and alignment.
    Memory { size: u64, align: u32 },
    /// Not at all: known at compile time only.
    Comptime,
}

macro_rules! common_types {
    ($($field:ident = $ty:expr, $name:expr;)*) => {
        /// Ids of the types without parameters.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct Common { $(pub(crate) $field: TypeId),* }

        impl TypePool {
            pub(crate) fn new() -> TypePool {
                let mut pool = Interning::default();
                let common = Common { $($field: pool.intern($ty)),* };
                TypePool {
                    pool,
                    common,
                    recursive: FxHashSet::default(),
                    declared: FxHashMap::default(),
                }
            }

            /// The type that a prelude name means.
            pub(crate) fn by_name(&self, name: &str) -> Option<TypeId> {
                $(if $name == Some(name) { return Some(self.common.$field); })*
                None
            }

            fn common_name(&self, id: TypeId) -> Option<&'static str> {
                $(if id == self.common.$field { return $name; })*
                None
            }
        }
    };
}

common_types! {
    void = Type::Void, Some("void");
    bool = Type::Bool, Some("bool");
    i8 = Type::Int { signed: true, bits: 8 }, Some("i8");
    i16 = Type::Int { signed: true, bits: 16 }, Some("i16");
    i32 = Type::Int { signed: true, bits: 32 }, Some("i32");
    i64 = Type::Int { signed: true, bits: 64 }, Some("i64");
    u8 = Type::Int { signed: false, bits: 8 }, Some("u8");
    u16 = Type::Int { signed: false, bits: 16 }, Some("u16");
    u32 = Type::Int { signed: false, bits: 32 }, Some("u32");
    u64 = Type::Int { signed: false, bits: 64 }, Some("u64");
    f16 = Type::Float(Float::F16), Some("f16");
    bf16 = Type::Float(Float::Bf16), Some("bf16");
    f32 = Type::Float(Float::F32), Some("f32");
    f64 = Type::Float(Float::F64), Some("f64");
    comptime_int = Type::ComptimeInt, Some("comptime_int");
    comptime_float = Type::ComptimeFloat, Some("comptime_float");
    comptime_string = Type::ComptimeString, Some("comptime_string");
    comptime_struct = Type::ComptimeStruct, Some("comptime_struct");
    type_ = Type::Meta, Some("type");
    module = Type::Module, Some("imported_module");
    tile = Type::Tile, None::<&'static str>;
    direction = Type::Direction, Some("direction");
    color = Type::Color, Some("color");
    data_task_id = Type::DataTaskId, Some("data_task_id");
    local_task_id = Type::LocalTaskId, Some("local_task_id");
    control_task_id = Type::ControlTaskId, Some("control_task_id");
    input_queue = Type::InputQueue, Some("input_queue");
    output_queue = Type::OutputQueue, Some("output_queue");
    ut_id = Type::UtId, Some("ut_id");
    mem1d_dsd = Type::Mem1dDsd, Some("mem1d_dsd");
    mem4d_dsd = Type::Mem4dDsd, Some("mem4d_dsd");
    circbuf_dsd = Type::CircbufDsd, Some("circbuf_dsd");
    fabin_dsd = Type::FabinDsd, Some("fabin_dsd");
    fabout_dsd = Type::FaboutDsd, Some("fabout_dsd");
    dsr_dest = Type::DsrDest, Some("dsr_dest");
    dsr_src0 = Type::DsrSrc0, Some("dsr_src0");
    dsr_src1 = Type::DsrSrc1, Some("dsr_src1");
    dsr_fifo_dest = Type::DsrFifoDest, Some("dsr_fifo_dest");
    dsr_fifo_src1 = Type::DsrFifoSrc1, Some("dsr_fifo_src1");
    xdsr = Type::Xdsr, Some("xdsr");
    sr = Type::Sr, Some("sr");
    fifo = Type::Fifo, None::<&'static str>;
    anyopaque = Type::AnyOpaque, Some("anyopaque");
    rect = Type::Rect, None::<&'static str>;
}

/// All types of a compilation.
pub(crate) struct TypePool {
    pool: Interning,
    pub(crate) common: Common,
    /// Structs that have pointers to themselves.
    recursive: FxHashSet<TypeId>,
    /// Names of declared structs, unions and enums.
    declared: FxHashMap<TypeId, Symbol>,
}

#[derive(Default)]
struct Interning {
    types: Vec<Rc<Type>>,
    /// How deep each is nested and how many parts it has, parallel to `types`.
    extents: Vec<(u32, u32)>,
    ids: FxHashMap<Rc<Type>, TypeId>,
}

impl Interning {
    fn intern(&mut self, ty: Type) -> TypeId {
        if let Some(&id) = self.ids.get(&ty) {
            return id;
        }
        let id = TypeId(self.types.len() as u32);
        self.extents.push(self.extent_of(&ty));
        let ty = Rc::new(ty);
        self.types.push(Rc::clone(&ty));
        self.ids.insert(ty, id);
        id
    }

    /// Depth and parts of what a walk over the type meets; nothing walks function types.
    fn extent_of(&self, ty: &Type) -> (u32, u32) {
        let inside = |id: &TypeId| {
            let (depth, parts) = self.extents[id.0 as usize];
            (depth + 1, parts.saturating_add(1))
        };
        match ty {
            Type::Pointer { pointee, .. } => inside(pointee),
            Type::Array { elem, .. } => inside(elem),
            Type::Struct(info) => info.fields.iter().fold((0, 0), |(depth, parts), (_, field)| {
                let (below, more) = inside(field);
                (depth.max(below), more.saturating_add(parts))
            }),
            _ => (0, 0),
        }
    }
}

impl TypePool {
    pub(crate) fn intern(&mut self, ty: Type) -> TypeId {
        self.pool.intern(ty)
    }

    pub(crate) fn get(&self, id: TypeId) -> &Type {
        &self.pool.types[id.0 as usize]
    }

    /// How deep a type is nested, and how many parts it has.
    pub(crate) fn extent(&self, id: TypeId) -> (u32, u32) {
        self.pool.extents[id.0 as usize]
    }

    /// The same, shared, for those who change the pool meanwhile.
    pub(crate) fn shared(&self, id: TypeId) -> Rc<Type> {
        Rc::clone(&self.pool.types[id.0 as usize])
    }

    pub(crate) fn pointer(&mut self, many: bool, constant: bool, pointee: TypeId) -> TypeId {
        self.intern(Type::Pointer { many, constant, pointee })
    }

    pub(crate) fn array(&mut self, dims: &[u64], elem: TypeId) -> TypeId {
        self.intern(Type::Array { dims: dims.into(), elem })
    }

    pub(crate) fn anonymous(&mut self, fields: Vec<(Symbol, TypeId)>, tuple: bool) -> TypeId {
        self.intern(Type::Struct(Rc::new(StructType {
            nominal: None,
            tuple,
            layout: Layout::InOrder,
            is_extern: false,
            fields,
        })))
    }

    pub(crate) fn int(&mut self, signed: bool, bits: u16) -> TypeId {
        self.intern(Type::Int { signed, bits })
    }

    /// Whether values are integers, sized or not.
    pub(crate) fn is_int(&self, id: TypeId) -> bool {
        matches!(self.get(id), Type::Int { .. } | Type::ComptimeInt)
    }

    /// Whether values are floats, sized or not.
    pub(crate) fn is_float(&self, id: TypeId) -> bool {
        matches!(self.get(id), Type::Float(_) | Type::ComptimeFloat)
    }

    /// Whether values are small numbers under another name: colors, ids, queues, directions.
    pub(crate) fn is_id(&self, id: TypeId) -> bool {
        matches!(
            self.get(id),
            Type::Color
                | Type::DataTaskId
                | Type::LocalTaskId
                | Type::ControlTaskId
                | Type::InputQueue
                | Type::OutputQueue
                | Type::UtId
                | Type::Xdsr
                | Type::Sr
                | Type::Direction
        )
    }

    /// Descriptor of a vector.
    pub(crate) fn is_dsd(&self, id: TypeId) -> bool {
        matches!(
            self.get(id),
            Type::Mem1dDsd | Type::Mem4dDsd | Type::FabinDsd | Type::FaboutDsd | Type::CircbufDsd
        )
    }

    /// Signed integer (floats and the rest count as unsigned).
    pub(crate) fn is_signed(&self, id: TypeId) -> bool {
        match self.get(id) {
            Type::Int { signed, .. } => *signed,
            Type::Enum(info) => self.is_signed(info.backing),
            Type::ComptimeInt => true,
            _ => false,
        }
    }

    /// Number of elements of an array type (1 for others).
    pub(crate) fn element_count(&self, id: TypeId) -> u64 {
        match self.get(id) {
            Type::Array { dims, .. } => {
                dims.iter().fold(1u64, |count, &dim| count.saturating_mul(dim))
            }
            _ => 1,
        }
    }

    /// A type that stands for one whose declaration is under way.
    pub(crate) fn pending(&mut self) -> TypeId {
        let number = self.pool.types.len() as u32;
        self.intern(Type::Pending(number))
    }

    /// The declaration has ended: what stood for it is the type.
    pub(crate) fn complete(&mut self, pending: TypeId, ty: Type) -> TypeId {
        self.pool.extents[pending.0 as usize] = self.pool.extent_of(&ty);
        let ty = Rc::new(ty);
        self.pool.types[pending.0 as usize] = Rc::clone(&ty);
        self.pool.ids.insert(ty, pending);
        self.recursive.insert(pending);
        pending
    }

    /// Remembers the name that a struct, union or enum is declared with.
    pub(crate) fn declare(&mut self, id: TypeId, name: Symbol) {
        let nominal = match self.get(id) {
            Type::Struct(info) => info.nominal.is_some(),
            Type::Enum(_) => true,
            _ => false,
        };
        if nominal {
            self.declared.entry(id).or_insert(name);
        }
    }

    /// The type as the user writes it.
    pub(crate) fn name(&self, id: TypeId, names: &Interner) -> String {
        if let Some(name) = self.common_name(id) {
            return name.to_owned();
        }
        if let Some(&name) = self.declared.get(&id) {
            return names.resolve(name).to_owned();
        }
        match self.get(id) {
            Type::Int { signed, bits } => format!("{}{bits}", if *signed { 'i' } else { 'u' }),
            Type::Range(elem) => format!("range of {}", self.name(*elem, names)),
            Type::Array { dims, elem } => {
                let dims: Vec<String> = dims.iter().map(u64::to_string).collect();
                format!("[{}]{}", dims.join(", "), self.name(*elem, names))
            }
            Type::Pointer { many, constant, pointee } => {
                let star = if *many { "[*]" } else { "*" };
                let constant = if *constant { "const " } else { "" };
                format!("{star}{constant}{}", self.name(*pointee, names))
            }
            Type::Slice { elem } => format!("[]{}", self.name(*elem, names)),
            Type::Fn { is_task, params, ret } => {
                let word = if *is_task { "task" } else { "fn" };
                let params: Vec<String> = params.iter().map(|&p| self.name(p, names)).collect();
                format!("{word}({}) {}", params.join(", "), self.name(*ret, names))
            }
            Type::Struct(_) if self.recursive.contains(&id) => "struct { … }".to_owned(),
            Type::Struct(info) => {
                let word = match info.layout {
                    Layout::InOrder => "struct",
                    Layout::Union => "union",
                    Layout::Packed => "packed struct",
                    Layout::PackedUnion => "packed union",
                };
                let fields: Vec<String> = info
                    .fields
                    .iter()
                    .map(|&(name, ty)| {
                        let ty = self.name(ty, names);
                        if info.tuple { ty } else { format!("{}: {ty}", names.resolve(name)) }
                    })
                    .collect();
                format!("{word} {{ {} }}", fields.join(", "))
            }
            Type::Enum(info) => {
                let elems: Vec<&str> =
                    info.elems.iter().map(|&(name, _)| names.resolve(name)).collect();
                format!("enum {{ {} }}", elems.join(", "))
            }
            Type::Tile => "tile".to_owned(),
            Type::Fifo => "fifo".to_owned(),
            Type::Rect => "rectangle".to_owned(),
            _ => "unknown".to_owned(),
        }
    }
}

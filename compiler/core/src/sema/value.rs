//! Comptime values, and where scalars came from.
//!
//! A scalar that depends on an instance's params carries a provenance: a node of the instance's
//! [`Provenance`] table. Whoever lets such a scalar decide anything (a branch, a size, a type, an
//! id) must go through [`crate::sema::Sema::fix`], which records a guard; whoever merely passes
//! it on keeps the node. Invariant: `prov == 0` means the value is the same on every PE.

use std::rc::Rc;

use dflow_ir::dsd::{DsrRef, FabricDsd};
use dflow_syntax::ast::BinaryOp;

use super::types::TypeId;

/// A typed comptime value.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) ty: TypeId,
    pub(crate) data: Data,
    /// Provenance node plus one, 0 for none.
    pub(crate) prov: u32,
}

/// The value itself.
#[derive(Clone, Debug)]
pub(crate) enum Data {
    /// Never written.
    Undef,
    Void,
    /// Integers of every kind, bool (0, 1), enum elements, directions, colors, ids, queues.
    Int(i128),
    /// Floats; narrower formats hold values that they can represent.
    Float(f64),
    Str(Rc<[u8]>),
    Type(TypeId),
    Func(FuncRef),
    Module(ModuleId),
    /// A tile block of a module: its scope.
    Tile(ModuleId, u32),
    /// Struct, tuple or array elements.
    Fields(Rc<Vec<Value>>),
    /// The field of a union that has a value, and that value.
    Union(Rc<(usize, Value)>),
    /// An array of one value.
    Splat(Rc<Value>),
    Range(Rc<RangeValue>),
    Pointer(Rc<Pointer>),
    Dsd(Rc<DsdValue>),
    Dsr(DsrRef),
    Fifo(u32),
}

/// A module instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ModuleId(pub(crate) u32);

/// A function or task of a module instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FuncRef {
    pub(crate) module: ModuleId,
    pub(crate) decl: u32,
}

/// A range with its element values.
#[derive(Clone, Debug)]
pub(crate) struct RangeValue {
    pub(crate) start: Value,
    pub(crate) stop: Value,
    pub(crate) step: Value,
}

/// A pointer known at compile time up to the linked address.
#[derive(Clone, Debug)]
pub(crate) struct Pointer {
    pub(crate) base: PointerBase,
    /// Bytes from the base.
    pub(crate) offset: i64,
}

impl Pointer {
    /// The same pointer some bytes further; as at run time, addresses wrap.
    #[must_use]
    pub(crate) fn plus(self, bytes: i64) -> Pointer {
        Pointer { offset: self.offset.wrapping_add(bytes), ..self }
    }
}

/// What a comptime pointer points into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PointerBase {
    /// A variable or constant of a module.
    Global { module: ModuleId, decl: u32 },
    /// A constant without a name: index into the program's constants.
    Constant(u32),
    /// A function.
    Func(FuncRef),
    /// A plain address.
    Address,
}

/// A descriptor known at compile time. Nobody writes through one that is `constant`.
#[derive(Clone, Debug)]
pub(crate) enum DsdValue {
    Mem1d { base: Pointer, extent: Value, stride: Value, indexed: bool, constant: bool },
    Mem4d { base: Pointer, dims: Vec<(u16, i16)>, indexed: bool, constant: bool },
    Fabric { desc: FabricDsd, extent: Value },
    Ring { base: Pointer, extent: Value, wrap: Value, constant: bool },
}

impl Value {
    pub(crate) fn new(ty: TypeId, data: Data) -> Value {
        Value { ty, data, prov: 0 }
    }

    pub(crate) fn int(ty: TypeId, value: i128) -> Value {
        Value::new(ty, Data::Int(value))
    }

    /// Element `index` of a struct, tuple or array.
    pub(crate) fn element(&self, index: usize) -> Option<Value> {
        match &self.data {
            Data::Fields(fields) => fields.get(index).cloned(),
            Data::Union(active) if active.0 == index => Some(active.1.clone()),
            Data::Splat(value) => Some((**value).clone()),
            _ => None,
        }
    }
}

/// How a scalar follows from an instance's params.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// A scalar leaf of the params.
    Leaf(u32),
    Binary {
        op: BinaryOp,
        ty: TypeId,
        lhs: Arg,
        rhs: Arg,
    },
    Unary {
        op: dflow_syntax::ast::UnaryOp,
        ty: TypeId,
        arg: Arg,
    },
    /// `@as`, or an implicit conversion (which must fit).
    Convert {
        from: TypeId,
        to: TypeId,
        implicit: bool,
        arg: Arg,
    },
    /// Reinterpreted bits.
    Bitcast {
        from: TypeId,
        to: TypeId,
        arg: Arg,
    },
}

/// An operand of a node.
#[derive(Clone, Debug)]
pub(crate) enum Arg {
    Node(u32),
    Const(Scalar),
}

/// A scalar without type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scalar {
    Int(i128),
    Float(f64),
}

impl Scalar {
    /// Bit-for-bit equality (NaN equals itself).
    pub(crate) fn same(self, other: Scalar) -> bool {
        match (self, other) {
            (Scalar::Int(a), Scalar::Int(b)) => a == b,
            (Scalar::Float(a), Scalar::Float(b)) => a.to_bits() == b.to_bits(),
            (Scalar::Int(_), Scalar::Float(_)) | (Scalar::Float(_), Scalar::Int(_)) => false,
        }
    }

    pub(crate) fn data(self) -> Data {
        match self {
            Scalar::Int(value) => Data::Int(value),
            Scalar::Float(value) => Data::Float(value),
        }
    }
}

/// The provenance table of one instance under analysis.
#[derive(Clone, Debug, Default)]
pub(crate) struct Provenance {
    pub(crate) nodes: Vec<Node>,
    /// Nodes that decided something, with the value they had.
    pub(crate) guards: Vec<(u32, Scalar)>,
    /// Nodes that reached code or data, with their type: the program's slots.
    pub(crate) slots: Vec<(u32, TypeId)>,
    /// Machine types of the slots, once the program is finished.
    pub(crate) slot_types: Vec<dflow_ir::ty::Ty>,
}

//! The table of diagnostic codes.
//!
//! A row makes a constant of type [`Code`], gives it its id, its severity and one line for lists. The page
//! `spec/diagnostics/<id>.md` explains it; a test holds table, pages and test files together.

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The program is refused.
    Error,
    /// Legal and odd.
    Warning,
    /// Worth knowing.
    Note,
}

impl Severity {
    /// As printed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// A row of the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(u16);

struct Row {
    id: &'static str,
    severity: Severity,
    summary: &'static str,
}

impl Code {
    /// The kebab-case name that users see and search for.
    #[must_use]
    pub fn id(self) -> &'static str {
        ROWS[usize::from(self.0)].id
    }

    /// Whether it refuses the program.
    #[must_use]
    pub fn severity(self) -> Severity {
        ROWS[usize::from(self.0)].severity
    }

    /// One line for lists of codes.
    #[must_use]
    pub fn summary(self) -> &'static str {
        ROWS[usize::from(self.0)].summary
    }

    /// The page that explains it, from the root of the repository.
    #[must_use]
    pub fn page(self) -> String {
        format!("spec/diagnostics/{}.md", self.id())
    }

    /// The code of this id.
    #[must_use]
    pub fn from_id(id: &str) -> Option<Self> {
        Self::all().find(|code| code.id() == id)
    }

    /// Every code, in the order of the table.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..u16::try_from(ROWS.len()).unwrap_or(u16::MAX)).map(Code)
    }
}

impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id())
    }
}

macro_rules! codes {
    ($($name:ident $id:literal $severity:ident $summary:literal;)*) => {
        #[expect(non_camel_case_types, clippy::upper_case_acronyms, reason = "named as the constants")]
        #[repr(u16)]
        enum Index { $($name),* }

        $(#[doc = $summary] pub const $name: Code = Code(Index::$name as u16);)*

        const ROWS: &[Row] =
            &[$(Row { id: $id, severity: Severity::$severity, summary: $summary }),*];
    };
}

codes! {
    // Reading files.
    FILE_NOT_FOUND "file-not-found" Error "a file that the program names cannot be read";
    INVALID_UTF8 "invalid-utf8" Error "a source file is not UTF-8 text";
    SOURCE_TOO_LARGE "source-too-large" Error "a source file is larger than the compiler reads";

    // Words.
    UNEXPECTED_CHARACTER "unexpected-character" Error "a character that begins no word of the language";
    UNCLOSED_STRING "unclosed-string" Error "a string or character literal that does not end on its line";
    INVALID_ESCAPE "invalid-escape" Error "an escape sequence that the language does not have";
    INVALID_CHARACTER_LITERAL "invalid-character-literal" Error "a character literal that does not hold one character";
    INVALID_NUMBER "invalid-number" Error "a number with digits or a suffix that it cannot have";
    INTEGER_TOO_LARGE "integer-too-large" Error "an integer literal of more than 128 bits";
    INVALID_FLOAT "invalid-float" Error "a floating-point literal that is malformed or out of range";
    NESTING_TOO_DEEP "nesting-too-deep" Error "brackets or expressions nested deeper than the compiler follows";
    TOO_MANY_ERRORS "too-many-errors" Error "a file with so many faults that the rest is not read";

    // Grammar.
    UNEXPECTED_TOKEN "unexpected-token" Error "a word that cannot stand where it stands";
    MISSING_SEMICOLON "missing-semicolon" Error "a statement or declaration that does not end with a semicolon";
    UNCLOSED_BRACKET "unclosed-bracket" Error "a bracket without its partner";
    DFL_ONLY "dfl-only" Error "a construct of .dfl files in a .csl file";
    ZIG_HABIT "zig-habit" Error "a form of Zig or C that the language does not have";
    CHAINED_COMPARISON "chained-comparison" Error "a comparison of a comparison";

    // Names.
    UNKNOWN_NAME "unknown-name" Error "a name that nothing declares";
    UNKNOWN_NAME_UNREACHED "unknown-name-unreached" Warning "a name that nothing declares, in code that nothing reaches";
    DUPLICATE_NAME "duplicate-name" Error "a name declared twice in one scope";
    RESERVED_NAME "reserved-name" Error "a declaration with the name of a type";
    UNKNOWN_LABEL "unknown-label" Error "a break or continue whose label is not around it";
    DUPLICATE_LABEL "duplicate-label" Error "a label inside a block or loop of the same label";
    UNKNOWN_BUILTIN "unknown-builtin" Error "a builtin that does not exist";
    UNKNOWN_FIELD "unknown-field" Error "a field or member that the value does not have";
    DUPLICATE_FIELD "duplicate-field" Error "a field named twice";
    MISSING_FIELD "missing-field" Error "a field that the value must have";
    UNKNOWN_TYPE "unknown-type" Error "a name used as a type that is none";
    IMPORT_CYCLE "import-cycle" Error "modules that import one another";
    PRIVATE_STATE "private-state" Error "a tile, host or test block that names state it cannot see";

    // Types.
    TYPE_MISMATCH "type-mismatch" Error "a value of one type where another is needed";
    INVALID_OPERANDS "invalid-operands" Error "an operator that does not take values of these types";
    VALUE_OUT_OF_RANGE "value-out-of-range" Error "a value that its type cannot hold";
    WRONG_ARGUMENT_COUNT "wrong-argument-count" Error "a call with too many or too few arguments";
    NOT_CALLABLE "not-callable" Error "a call of something that is no function";
    TASK_CALLED "task-called" Error "a task called like a function";
    NOT_ASSIGNABLE "not-assignable" Error "an assignment to something that cannot change";
    NOT_INDEXABLE "not-indexable" Error "an index into something that is no array";
    NOT_A_POINTER "not-a-pointer" Error "a dereference of something that is no pointer";
    NO_ADDRESS "no-address" Error "the address of something that has no place in memory";
    INVALID_TYPE "invalid-type" Error "a type that cannot exist or cannot stand here";
    INVALID_SIGNATURE "invalid-signature" Error "a function or task whose parameters or result are not allowed";
    INVALID_DECLARATION "invalid-declaration" Error "a declaration whose words do not go together";
    MISSING_RETURN "missing-return" Error "a function that can end without its value";
    MISSING_TYPE "missing-type" Error "a declaration with neither a type nor a value";
    MISSING_INITIALIZER "missing-initializer" Error "a constant without a value";
    MISPLACED_JUMP "misplaced-jump" Error "a break, continue or return with nothing around it to leave";
    MISSING_CASE "missing-case" Error "a switch that does not cover every value";
    DUPLICATE_CASE "duplicate-case" Error "a switch with the same value twice";
    UNUSED_VALUE "unused-value" Warning "a value that a statement computes and drops";
    SHIFT_COUNT "shift-count" Warning "a shift by a number that may be negative";
    UNUSED_COMPTIME "unused-comptime" Warning "a top-level comptime block of a file that is only a layout";
    UNREACHABLE_CODE "unreachable-code" Warning "statements that nothing can reach";

    // Comptime.
    NOT_COMPTIME "not-comptime" Error "a value needed at compile time that is known only at run time";
    COMPTIME_LIMIT "comptime-limit" Error "compile-time evaluation that does not end";
    DEPENDS_ON_ITSELF "depends-on-itself" Error "declarations that need one another's values";
    COMPTIME_OVERFLOW "comptime-overflow" Error "compile-time arithmetic that leaves its type";
    DIVIDE_BY_ZERO "divide-by-zero" Error "compile-time division by zero";
    RECURSION_LIMIT "recursion-limit" Error "calls nested deeper than the compiler follows";
    INDEX_OUT_OF_RANGE "index-out-of-range" Error "an index outside its array";
    ARRAY_TOO_LARGE "array-too-large" Error "an array larger than any memory it could be in";
    ASSERTION_FAILED "assertion-failed" Error "a compile-time assertion that does not hold";
    UNINITIALIZED_VALUE "uninitialized-value" Error "a compile-time value read before it is written";
    MISSING_PARAM "missing-param" Error "a module parameter that is used and was never given";
    PARAM_VALUE "param-value" Error "a value on the command line that the param's type does not take";
    UNKNOWN_PARAM "unknown-param" Warning "a parameter that the module does not have";
    COMPTIME_OUTPUT "comptime-output" Note "text printed by @comptime_print";

    // Use of builtins.
    BUILTIN_CONTEXT "builtin-context" Error "a builtin where it cannot be used";
    INVALID_ARGUMENT "invalid-argument" Error "an argument that the builtin does not take";
    UNKNOWN_OPTION "unknown-option" Error "a field of a builtin's options that it does not have";
    NOT_SUPPORTED "not-supported" Error "something the language has and this compiler does not do yet";
    WRONG_QUEUE "wrong-queue" Error "an input queue where an output queue is needed, or the reverse";
    INVALID_DSD "invalid-dsd" Error "a descriptor that cannot be made or used this way";
    WIDE_STRIDE "wide-stride" Warning "a stride that the SDK has no room for";
    ASYNC_RESULT "async-result" Warning "the result of an asynchronous operation, read before it is there";
    ASYNC_LOCAL "async-local" Warning "an asynchronous operation on a variable that is gone before it ends";
    SHARED_WORDS "shared-words" Warning "a data task and a descriptor that take words of one color";
    ELEMENT_TYPE "element-type" Warning "float arithmetic on an array whose elements have another size";
    ENDLESS_OPERATION "endless-operation" Warning "an operation on memory alone whose length is without end";
    INDEX_UNUSED "index-unused" Warning "an index that no operand of the operation takes";
    FILTER_IDLE "filter-idle" Warning "a filter that does the same with all words";
    CONTROL_UNUSED "control-unused" Warning "an `.on_control` where no control wavelet can come in";
    SETTINGS_UNUSED "settings-unused" Warning "settings of an operation that the load of its register decides";
    REGISTER_PAIR "register-pair" Warning "a destination and a first source in registers of different numbers";
    INVALID_TASK "invalid-task" Error "a function bound as a task, or a task of the wrong kind";
    WRONG_TARGET "wrong-target" Error "something that the chosen target does not have";
    SDK_VERSION "sdk-version" Warning "a program whose parts are of different releases of the SDK";
    DEPRECATED "deprecated" Note "an old spelling that is still understood";

    // Layout.
    LAYOUT_MISSING "layout-missing" Error "a program without a layout block";
    LAYOUT_DUPLICATE "layout-duplicate" Error "a file with two layout blocks";
    RECTANGLE_MISSING "rectangle-missing" Error "a layout that never sets its rectangle";
    RECTANGLE_DUPLICATE "rectangle-duplicate" Error "a layout that sets its rectangle twice";
    RECTANGLE_TOO_LARGE "rectangle-too-large" Error "a rectangle that is larger than the mesh";
    OUTSIDE_RECTANGLE "outside-rectangle" Error "a PE outside the layout's rectangle";
    TILE_MISSING "tile-missing" Error "a PE of the rectangle without code";
    TILE_DUPLICATE "tile-duplicate" Error "a PE that is given code twice";
    UNKNOWN_TILE "unknown-tile" Error "a tile name that nothing declares";
    ROUTE_CONFLICT "route-conflict" Error "a color configured twice on one PE";
    INVALID_ROUTE "invalid-route" Error "a route or switch that the router cannot hold";
    NO_PATH "no-path" Error "a connection that no way is left for";
    ROUTE_LEAVES_RECTANGLE "route-leaves-rectangle" Note "a route out of the rectangle";
    ROUTE_NOT_RECEIVED "route-not-received" Warning "a route into a neighbor that does not receive it";
    COLOR_OUT_OF_RANGE "color-out-of-range" Error "a color that the target does not have";
    QUEUE_OUT_OF_RANGE "queue-out-of-range" Error "a queue or microthread that the target does not have";
    TASK_ID_OUT_OF_RANGE "task-id-out-of-range" Error "a task id that the target does not have";
    TASK_ID_CLASH "task-id-clash" Error "a task id bound twice";
    QUEUE_CLASH "queue-clash" Error "a queue claimed twice";
    QUEUE_COLOR "queue-color" Warning "a descriptor that names another color than its queue carries";
    QUEUE_UNBOUND "queue-unbound" Warning "an operation on a queue that no color is bound to";
    QUEUE_SHARED "queue-shared" Note "an output queue that a library sends through, too";
    RESOURCE_EXHAUSTED "resource-exhausted" Error "no free color, queue, task id or register is left";
    UNBOUND_TASK "unbound-task" Warning "an activation of a task id that no task is bound to";
    TASK_NEVER_STARTS "task-never-starts" Warning "a task bound to an id that nothing can start";

    // Memory, exports, linking.
    OUT_OF_MEMORY "out-of-memory" Error "a program that does not fit into the memory of a PE";
    SECTION_ADDRESS "section-address" Error "a section with an address where it cannot be";
    SECTION_UNUSED "section-unused" Warning "an address for a section that no variable is in";
    INVALID_ALIGNMENT "invalid-alignment" Error "an alignment that is no power of two or too large";
    EXPORT_MISMATCH "export-mismatch" Error "an export whose type or kind differs from its declaration";
    EXPORT_DUPLICATE "export-duplicate" Error "a symbol name exported twice";
    UNRESOLVED_EXPORT "unresolved-export" Error "an export that the layout does not declare";
    EXPORT_UNDEFINED "export-undefined" Warning "a name for the host that no program has";
    UNRESOLVED_EXTERN "unresolved-extern" Error "an external declaration that no program defines";

    // Host and test blocks.
    HOST_DUPLICATE "host-duplicate" Error "a program with two host blocks";
    HOST_TYPE "host-type" Error "a host value whose element type or shape does not fit";
    HOST_SYMBOL "host-symbol" Error "a symbol that the host names and the program does not export";
    TEST_DUPLICATE "test-duplicate" Error "two tests of one name";

    // Ours.
    INTERNAL_ERROR "internal-error" Error "a fault of the compiler";
    NO_THREAD "no-thread" Error "a computer that has no thread left for the compiler";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_kebab_case_and_unique() {
        let mut seen = std::collections::BTreeSet::new();
        for code in Code::all() {
            assert!(
                code.id()
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            );
            assert!(seen.insert(code.id()), "{code:?} twice");
            assert_eq!(Code::from_id(code.id()), Some(code));
            assert!(!code.summary().ends_with('.'));
        }
    }
}

//! What a command line of `cslc` says.

use dflow_ir::target::TargetId;
use dflow_ir::ty::Ty;

/// The options as given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Given {
    /// The layout file.
    pub(super) file: String,
    /// `-o`
    pub(super) output: String,
    /// `--arch`
    pub(super) target: TargetId,
    /// `--params`, of all times it is given; of a name given by two of them the last.
    pub(super) params: Vec<(String, String)>,
    /// `--colors`, likewise.
    pub(super) colors: Vec<(String, String)>,
    /// `--fabric-dims`
    pub(super) dims: Option<(u32, u32)>,
    /// `--fabric-offsets`
    pub(super) offsets: Option<(u32, u32)>,
    /// `--memcpy`
    pub(super) memcpy: bool,
    /// `--channels`
    pub(super) channels: u8,
    /// `--width-west-buf`
    pub(super) west: u32,
    /// `--width-east-buf`
    pub(super) east: u32,
    /// `--import-path`
    pub(super) import_paths: Vec<String>,
    /// `--max-inlined-iterations`
    pub(super) max_inlined: Option<u32>,
    /// `--comptime-func-depth-limit`
    pub(super) comptime_depth: Option<u32>,
    /// `--fp16-format`.
    pub(super) half: Ty,
    /// `--link-section-start-address-bytes`
    pub(super) sections: Vec<(String, u32)>,
    /// `--lomem-reservation-end`
    pub(super) first_address: u32,
    /// `--warnings-as-errors`
    pub(super) warnings_as_errors: bool,
    /// `--verbose`
    pub(super) verbose: bool,
    /// `--out-routes`
    pub(super) out_routes: bool,
    /// `--output-json`; empty for the default name.
    pub(super) output_json: Option<String>,
    /// `--sdk-version`
    pub(super) sdk_version: Option<String>,
}

impl Default for Given {
    fn default() -> Given {
        Given {
            file: String::new(),
            output: "out".to_owned(),
            target: TargetId::Wse2,
            params: Vec::new(),
            colors: Vec::new(),
            dims: None,
            offsets: None,
            memcpy: false,
            channels: 1,
            west: 0,
            east: 0,
            import_paths: Vec::new(),
            max_inlined: None,
            comptime_depth: None,
            half: Ty::F16,
            sections: Vec::new(),
            first_address: 0,
            warnings_as_errors: false,
            verbose: false,
            out_routes: false,
            output_json: None,
            sdk_version: None,
        }
    }
}

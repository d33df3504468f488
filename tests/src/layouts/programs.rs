//! Code of regions.

/// Adds a number to each word and sends it on.
pub(super) const RELAY: &str = r#"
param n: u16;
param plus: f32;
param rx: u16;
param tx: u16;
const in_q = @get_input_queue(2);
const out_q = @get_output_queue(3);
const from = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = @get_color(rx), .input_queue = in_q });
const to = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = @get_color(tx), .output_queue = out_q });
task go() void { @fadds(to, from, plus, .{ .async = true }); }
comptime {
  @bind_local_task(go, @get_local_task_id(9));
  @activate(@get_local_task_id(9));
  @initialize_queue(in_q, .{ .color = @get_color(rx) });
  if (@is_arch("wse3")) { @initialize_queue(out_q, .{ .color = @get_color(tx) }); }
}
"#;

/// Keeps the words that come.
pub(super) const TAKE: &str = r#"
param n: u16;
param rx: color;
export var got = @zeros([n]f32);
export var done: bool = false;
const in_q = @get_input_queue(0);
const from = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = rx, .input_queue = in_q });
const into = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> got[i] });
const end = @get_local_task_id(10);
task go() void { @fmovs(into, from, .{ .async = true, .activate = end }); }
task finish() void { done = true; }
comptime {
  @bind_local_task(go, @get_local_task_id(9));
  @bind_local_task(finish, end);
  @activate(@get_local_task_id(9));
  @initialize_queue(in_q, .{ .color = rx });
}
"#;

/// Sends the words that it has.
pub(super) const GIVE: &str = r#"
param n: u16;
param tx: u16;
param twice: bool = false;
export var have = @constants([n]f32, 0.5);
export var halves = [3]i16{ 1, 2, 3 };
const out_q = @get_output_queue(1);
const from = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> have[i] });
const to = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = @get_color(tx), .output_queue = out_q });
task go() void {
  @fmovs(to, from);
  if (twice) { @fmovs(to, from); }
}
comptime {
  @bind_local_task(go, @get_local_task_id(9));
  @activate(@get_local_task_id(9));
  if (@is_arch("wse3")) { @initialize_queue(out_q, .{ .color = @get_color(tx) }); }
}
"#;

/// Sends words on in groups, a switch command after each but the last.
pub(super) const DEAL: &str = r#"
param n: u16;
param groups: u16;
param rx: u16;
param tx: u16;
const control = @import_module("<control>");
const in_q = @get_input_queue(2);
const out_q = @get_output_queue(3);
const from = @get_dsd(fabin_dsd, .{ .extent = n, .fabric_color = @get_color(rx), .input_queue = in_q });
const to = @get_dsd(fabout_dsd, .{ .extent = n, .fabric_color = @get_color(tx), .output_queue = out_q });
const turn = @get_dsd(fabout_dsd, .{
  .extent = 1, .fabric_color = @get_color(tx), .output_queue = out_q, .control = true,
});
var left: u16 = groups;
task go() void {
  @mov32(to, from);
  left -= 1;
  if (left != 0) {
    @mov32(turn, control.encode_single_payload(control.opcode.SWITCH_ADV, true, {}, 0));
    @activate(@get_local_task_id(9));
  }
}
comptime {
  @bind_local_task(go, @get_local_task_id(9));
  @activate(@get_local_task_id(9));
  @initialize_queue(in_q, .{ .color = @get_color(rx) });
  if (@is_arch("wse3")) { @initialize_queue(out_q, .{ .color = @get_color(tx) }); }
}
"#;

/// Tiles of one file.
pub(super) const TILES: &str = r#"
const first: u16 = 40;
tile seven { export var x: u16 = first + 7; }
tile nine { param more: u16; export var x: u16 = first + 9 + more; }
"#;

//! Text of the compiler's data, for eyes, diffs and snapshots.
//!
//! Absences first: no addresses of the host, no hashes, no timings; the order is that of the
//! data. The IR prints itself (`dflow_ir::text`), the mesh is drawn by `place::dump`.

mod expr;
mod plan;
mod stmt;
mod typed;

#[cfg(test)]
mod tests;

pub(crate) use plan::plan;
pub(crate) use typed::typed;

use dflow_ir::mesh::{ColorConfig, Filter, PopMode, PortSet, Rect, Route, Switch, SwitchEntry};

/// A number with commas between groups of three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `(3,0)`, or `(0..2,0..1)` with both ends included.
pub(crate) fn rect(rect: Rect) -> String {
    let range = |first: u16, n: u16| match n {
        0 | 1 => first.to_string(),
        _ => format!("{first}..{}", u32::from(first) + u32::from(n) - 1),
    };
    format!("({},{})", range(rect.x, rect.width), range(rect.y, rect.height))
}

/// `WEST>RAMP+EAST`, then what differs from a plain route.
pub(crate) fn config(config: &ColorConfig) -> String {
    let ColorConfig { route: Route { rx, tx }, switch, filter, teardown, swap_x, swap_y } = config;
    let mut text = format!("{}>{}", ports(*rx), ports(*tx));
    if let Some(switch) = switch {
        text.push_str(&switch_text(switch));
    }
    if let Some(filter) = filter {
        text.push_str(&filter_text(filter));
    }
    for (flag, name) in [(teardown, " teardown"), (swap_x, " swap_x"), (swap_y, " swap_y")] {
        if *flag {
            text.push_str(name);
        }
    }
    text
}

fn ports(ports: PortSet) -> String {
    if ports.is_empty() {
        return "none".to_owned();
    }
    ports.iter().map(|port| port.name()).collect::<Vec<_>>().join("+")
}

fn switch_text(switch: &Switch) -> String {
    let Switch { positions, initial, ring, pop } = switch;
    let mut text = String::new();
    for (entry, position) in positions.iter().zip(1..) {
        let entry = match entry {
            None => continue,
            Some(SwitchEntry::Rx(rx)) => format!("{}>", ports(*rx)),
            Some(SwitchEntry::Tx(tx)) => format!(">{}", ports(*tx)),
            Some(SwitchEntry::Both(route)) => format!("{}>{}", ports(route.rx), ports(route.tx)),
        };
        text.push_str(&format!(" pos{position} {entry}"));
    }
    if *initial != 0 {
        text.push_str(&format!(" start={initial}"));
    }
    if *ring {
        text.push_str(" ring");
    }
    text.push_str(match pop {
        PopMode::None => "",
        PopMode::Always => " pop=always",
        PopMode::OnAdvance => " pop=on_advance",
        PopMode::OnAdvanceOrNop => " pop=on_advance_nop",
    });
    text
}

fn filter_text(filter: &Filter) -> String {
    match filter {
        Filter::Range { min, max } => format!(" filter=range({min}..{max})"),
        Filter::Counter { data, control, initial, limit, max, filter_control } => format!(
            " filter=counter(data={data} control={control} initial={initial} limit={limit} max={max} filter_control={filter_control})"
        ),
        Filter::Sparse { data, control, initial, limit, limit2, max, filter_control } => {
            let limit2 = limit2.map_or("none".to_owned(), |limit| limit.to_string());
            format!(
                " filter=sparse(data={data} control={control} initial={initial} limit={limit} limit2={limit2} max={max} filter_control={filter_control})"
            )
        }
    }
}

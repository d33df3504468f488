//! Random machines that talk to the host: words that are dealt out to rows, and merged on their way to it.

use dflow_ir::loc::Loc;
use dflow_ir::mesh::wavelet::{Command, Control, ControlCommand};
use dflow_ir::mesh::{
    Color, ColorConfig, Coord, Port, PortSet, Route, Switch, SwitchEntry, Wavelet,
};
use dflow_ir::program::HostLink;
use dflow_ir::target::TargetId;

use super::{Build, Machine, Rng, Style};
use crate::machine::HostLinkInfo;
use crate::sched::tests::script::Spec;

/// A random machine in which the host deals words out, or many PEs send a color to one of its links, or both; and
/// little else happens.
pub(in crate::sched::tests) fn hosted(seed: u64) -> Machine {
    let rng = &mut Rng::new(seed ^ 0x6d65_7267);
    let target = if rng.chance(50) { TargetId::Wse2 } else { TargetId::Wse3 };
    let (width, height) = (1 + rng.below(8), 1 + rng.below(4));
    let mut spec = Spec::new(target, width as u16, height as u16);
    spec.slow = rng.chance(20);
    spec.spare = rng.spare();
    let none = vec![Vec::new(); width * height];
    let style = Style { words: rng.pick(&[3, 12, 60]), wild: 0, plain: rng.chance(60) };
    let mut build = Build { rng, style, spec, down: none.clone(), up: none };
    for color in 0..build.rng.below(3) as u8 {
        build.color(color * 2 + 1);
    }
    let (deals, merges) = (build.rng.chance(60), build.rng.chance(60));
    let sent = if deals || !merges { build.deals(14) } else { Vec::new() };
    let row = merges.then(|| build.merge(15));
    for pe in 0..width * height {
        build.program(pe);
    }
    // Links are ordered by PE and color.
    let number = |at: u32| at + u32::from(row.is_some_and(|row| row < at));
    let host = (0..).map(number).zip(sent).map(|(link, (cycle, words))| (link, cycle, words));
    let before = |row| if deals { row + 1 } else { 0 };
    Machine { host: host.collect(), merged: row.map(before), spec: build.spec }
}

impl Build<'_> {
    /// Rows whose switches deal a color of the host out, and what it sends them.
    fn deals(&mut self, color: u8) -> Vec<(u64, Vec<Wavelet>)> {
        let (width, height) = (usize::from(self.spec.width), usize::from(self.spec.height));
        let of = Color::new(color).unwrap();
        let (to_all, odd) = (self.rng.chance(60), self.rng.chance(20));
        for pe in 0..width * height {
            let last = pe % width + 1 == width;
            let both = PortSet::one(Port::Ramp).with(Port::East);
            let (core, onward) = (PortSet::one(Port::Ramp), PortSet::one(Port::East));
            let ways = if last { [core, core, core] } else { [both, core, onward] };
            let first = usize::from(!to_all);
            let mut positions = [None; 3];
            for (entry, &way) in positions.iter_mut().zip(&ways[first + 1..]) {
                *entry = Some(SwitchEntry::Tx(way));
            }
            let switch = Switch { positions, ..Switch::default() };
            let route = Route { rx: PortSet::one(Port::West), tx: ways[first] };
            let has_switch = !last || self.rng.chance(50);
            let mut config = ColorConfig {
                route,
                switch: has_switch.then_some(switch),
                ..ColorConfig::default()
            };
            if odd && self.rng.chance(10) {
                self.vary(pe, color, &mut config);
            }
            self.spec.routers[pe].colors.push((of, config, Loc::default()));
            self.down[pe].push(color);
        }
        let mut sent = Vec::new();
        for row in 0..height {
            let (at, port, to_mesh) = (Coord { x: 0, y: row as u16 }, Port::West, true);
            self.spec.links.push(HostLinkInfo { at, port, color: of, to_mesh });
            let link = HostLink { port, color: of, to_mesh };
            self.spec.programs[row * width].host_links.push(link);
            sent.push((self.rng.below(300) as u64, self.dealt(width, to_all)));
        }
        sent
    }

    /// Some words for the PEs of a row, one after the other, some times.
    fn dealt(&mut self, width: usize, to_all: bool) -> Vec<Wavelet> {
        let mut words = Vec::new();
        let most = self.rng.pick(&[1, 2, 5, 12]);
        let hidden = |command| {
            let payload = Control::new(None, &[ControlCommand { command, ce_ignore: true }]).0;
            Wavelet { payload, control: true }
        };
        for time in 0..1 + self.rng.below(4) as u32 {
            words.extend(to_all.then(|| hidden(Command::Advance)));
            for column in 0..width {
                let count = self.rng.below(most + 1) as u32;
                words.extend((0..count).map(|word| Wavelet::data_word(time << 8 | word)));
                if column + 1 < width {
                    words.push(hidden(Command::Advance));
                }
                if self.rng.chance(1) {
                    words.push(hidden(self.rng.pick(&[Command::Nop, Command::Teardown])));
                }
            }
            words.push(hidden(Command::Reset));
        }
        words
    }

    /// A tree of routes of one color that leads to a link of the host, in a row.
    fn merge(&mut self, color: u8) -> u32 {
        let (width, count) = (usize::from(self.spec.width), self.down.len());
        let row = self.rng.below(count / width);
        let mut routes: Vec<Option<Route>> = vec![None; count];
        let root = row * width;
        routes[root] = Some(Route { rx: PortSet::EMPTY, tx: PortSet::one(Port::West) });
        let mut tips = vec![root];
        for _ in 0..3 * count {
            let at = self.rng.pick(&tips);
            let port =
                self.rng.pick(&[Port::East, Port::East, Port::West, Port::South, Port::North]);
            let Some(next) = self.neighbor(at, port).filter(|&it| routes[it].is_none()) else {
                continue;
            };
            let tx = PortSet::one(port.opposite());
            routes[next] = Some(Route { rx: PortSet::EMPTY, tx });
            let route = routes[at].as_mut().unwrap();
            route.rx = route.rx.with(port);
            tips.push(next);
        }
        let odd = self.rng.chance(20);
        for (pe, route) in routes.into_iter().enumerate() {
            let Some(mut route) = route else { continue };
            if route.rx.is_empty() || self.rng.chance(80) {
                route.rx = route.rx.with(Port::Ramp);
                let times = if self.style.plain { 1 + self.rng.below(4) } else { 4 };
                self.up[pe].extend(vec![color; times]);
            }
            let mut config = ColorConfig { route, ..ColorConfig::default() };
            if odd && self.rng.chance(10) {
                self.vary(pe, color, &mut config);
            }
            self.spec.routers[pe].colors.push((Color::new(color).unwrap(), config, Loc::default()));
        }
        let color = Color::new(color).unwrap();
        let (at, port, to_mesh) = (Coord { x: 0, y: row as u16 }, Port::West, false);
        self.spec.links.push(HostLinkInfo { at, port, color, to_mesh });
        self.spec.programs[root].host_links.push(HostLink { port, color, to_mesh });
        if self.spec.links.len() == 1 && self.rng.chance(15) {
            self.spec.rooms.push(Some(self.rng.below(40) as u64));
        }
        row as u32
    }
}

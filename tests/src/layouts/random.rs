//! Chains of relays anywhere on the mesh: what goes in comes out, in order, changed by each.

use super::*;

/// Numbers without a pattern, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn edge(&mut self, but: Option<Edge>) -> Edge {
        let edges = [Edge::Top, Edge::Bottom, Edge::Left, Edge::Right];
        loop {
            let edge = edges[self.below(4) as usize];
            if Some(edge) != but {
                return edge;
            }
        }
    }
}

/// Chains of two to five relays; all chains run at the same time.
fn layout(seed: u64) -> (LayoutBuilder, Vec<(String, String, f32)>) {
    let mut random = Random(seed);
    let target = TARGETS[random.below(2) as usize];
    let mut layout = LayoutBuilder::new(target);
    let (mut taken, mut chains) = (Vec::new(), Vec::new());
    for chain in 0..1 + random.below(3) {
        let (mut before, mut sum, mut from) = (None, 0.0, String::new());
        for link in 0..2 + random.below(4) {
            let at = loop {
                let at = (1 + random.below(12) as i64, 1 + random.below(12) as i64);
                if taken.iter().all(|&(x, y): &(i64, i64)| (x - at.0).abs() + (y - at.1).abs() > 1)
                {
                    break at;
                }
            };
            taken.push(at);
            let first = random.edge(None);
            let edges = (first, random.edge(Some(first)));
            let plus = random.below(9);
            sum += plus as f32;
            let name = format!("c{chain}_{link}");
            let (_, input, output) = relay(&mut layout, &name, at, edges, 8, plus as f64);
            match before {
                Some(before) => layout.connect(before, input).unwrap(),
                None => from = layout.stream(input, Flow::In, None, 3).unwrap(),
            }
            before = Some(output);
        }
        let last = before.expect("a chain has relays");
        let to = layout.stream(last, Flow::Out, None, 0).unwrap();
        chains.push((from, to, sum));
    }
    (layout, chains)
}

#[test]
fn every_chain_delivers() {
    for seed in 0..40 {
        let (layout, chains) = layout(seed);
        let image = image(&layout);
        let got = on_all(&image, |mut session| {
            let receptions: Vec<_> = chains
                .iter()
                .map(|(from, to, _)| {
                    let (from, to) =
                        (session.named_stream(from).unwrap(), session.named_stream(to).unwrap());
                    let words: Vec<u32> = (0..8).map(|n| (n as f32).to_bits()).collect();
                    session.send_words(from, &words).unwrap();
                    session.receive_words(to, 8).unwrap()
                })
                .collect();
            let got: Vec<Vec<f32>> = receptions
                .into_iter()
                .map(|id| floats(&session.complete(id).unwrap().concat()))
                .collect();
            session.finish().unwrap();
            (got, session.cycles())
        });
        for (words, (_, _, sum)) in got.0.iter().zip(&chains) {
            let wanted: Vec<f32> = (0..8).map(|n| n as f32 + sum).collect();
            assert_eq!(*words, wanted, "seed {seed}\n{}", layout.text());
        }
    }
}

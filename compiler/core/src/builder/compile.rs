//! From requests to a plan, and on through the phases that a layout block takes too.

use dflow_ir::mesh::{Color, Rect};
use dflow_syntax::{Diagnostic, Reported, codes};

use super::geometry::{Ground, Painted};
use super::notes::{NAME, Places};
use super::{LayoutBuilder, code, symbol, wires};
use crate::dialect;
use crate::driver::{self, Compiled, Stage};
use crate::elaborate::Elaborated;
use crate::plan::ColorUse;
use crate::sema::Sema;
use crate::session::{Options, STEPS_PER_PE, Session};
use crate::world::World;

/// What a layout was compiled to.
pub struct Built {
    /// The image and what there is to say.
    pub compiled: Compiled,
    /// The number of each color, by [`super::ColorId::index`]; none if there is no image.
    pub colors: Vec<Color>,
}

/// The caller's files, and the text of the requests among them.
struct WithText<'a> {
    world: &'a dyn World,
    text: String,
}

impl World for WithText<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        if path == NAME { Ok(self.text.clone().into_bytes()) } else { self.world.read(path) }
    }

    fn locate(&self, path: &str) -> Option<String> {
        if path == NAME { Some(NAME.to_owned()) } else { self.world.locate(path) }
    }
}

impl LayoutBuilder {
    /// Compiles the layout; sources of regions are looked for in `world`. The target is the
    /// layout's, whatever the options say.
    #[must_use]
    pub fn compile(&self, world: &dyn World, options: Options) -> Built {
        let world = WithText { world, text: self.text() };
        let options = Options { target: self.target, ..options };
        let (colors, compiled) = driver::compile_with(&world, options, |cx| elaborate(cx, self));
        Built { compiled, colors: colors.unwrap_or_default() }
    }

    /// The text of a stage; empty if an earlier one failed. Tokens and tree are those of the text
    /// of the requests.
    #[must_use]
    pub fn dump(&self, world: &dyn World, options: Options, stage: Stage) -> (String, Compiled) {
        let world = WithText { world, text: self.text() };
        let options = Options { target: self.target, ..options };
        driver::dump_with(&world, NAME, options, stage, |cx| Ok(elaborate(cx, self)?.0))
    }
}

/// The plan and its programs, and the number of each color. If code turns out to use a number itself
/// that was chosen for something else on its PEs, all is done again without that choice.
fn elaborate(
    cx: &mut Session<'_>,
    builder: &LayoutBuilder,
) -> Result<(Elaborated, Vec<Color>), Reported> {
    let marks = code::marks(cx, builder);
    cx.options.marks.extend(marks);
    let chosen = dialect::choose(cx, NAME);
    cx.dialect = chosen.dialect.clone();
    let (sources, sink) = (cx.sources.clone(), cx.sink.clone());
    let mut avoid: Vec<u32> = Vec::new();
    for _ in 0..Color::COUNT {
        let mut sema = Sema::new(cx);
        let elaborated = elaborated(&mut sema, builder, &mut avoid);
        if let Ok(None) = elaborated {
            (cx.sources, cx.sink) = (sources.clone(), sink.clone());
            continue;
        }
        sema.files.report_unreached(sema.cx);
        chosen.report(cx, NAME);
        if let Some(made) = elaborated.transpose() {
            return made;
        }
    }
    let message = "no numbers were found for the colors of this layout";
    Err(cx.emit(
        Diagnostic::without_place(codes::RESOURCE_EXHAUSTED, message)
            .help("give code its colors as params, or give colors their numbers"),
    ))
}

/// Nothing if it must be done again, with more to avoid: per net, a set of numbers.
fn elaborated(
    sema: &mut Sema<'_, '_>,
    builder: &LayoutBuilder,
    avoid: &mut Vec<u32>,
) -> Result<Option<(Elaborated, Vec<Color>)>, Reported> {
    let root = sema.files.root(sema.cx, NAME)?;
    let own = sema.files.get(root).file.id;
    sema.instantiate(root, 0, None, String::new(), Vec::new());
    let places = Places::new(sema.cx, &builder.notes, own);
    let ground = Ground::new(sema.cx, builder, &places)?;
    let painted = Painted::new(sema.cx, builder, &ground, &places)?;
    let routed = wires::route(sema.cx, builder, &ground, &painted, &places, avoid)?;
    let (width, height) = ground.size;
    let plan = &mut sema.layout.plan;
    plan.rect = Rect { x: 0, y: 0, width, height };
    plan.rect_span = Some(dflow_syntax::Span::new(own, 0, 0));
    plan.tiles = vec![None; plan.rect.area()];
    plan.sparse = true;
    plan.streams = routed.streams.clone();
    sema.step_limit += sema.layout.plan.rect.area() as u64 * STEPS_PER_PE;
    code::place(sema, builder, root, &ground, &routed.colors, &places)?;
    sema.cx.sink.ok()?;
    avoid.resize(routed.nets.len(), 0);
    let mut again = false;
    for taken in code::taken(sema, &ground, &routed) {
        if routed.nets[taken.net].0 {
            code::report_taken(sema, builder, &ground, &places, &taken)?;
        } else {
            avoid[taken.net] |= 1 << taken.color.index();
            again = true;
        }
    }
    if again {
        return Ok(None);
    }
    symbol::set(sema, builder, &ground, &places)?;
    for (at, color, config, mark) in &routed.configs {
        let plan = &mut sema.layout.plan;
        let request = (*color, config.clone(), places.span(*mark));
        let (index, _) = plan.color_uses.insert_full(request);
        plan.colors.push((plan.index(*at), ColorUse(index as u32)));
    }
    Ok(Some((sema.layout.take_without_exports(), routed.colors)))
}

//! Requests about regions and colors.

use dflow_ir::mesh::{Color, Coord, PortSet, Rect};
use dflow_ir::target::Target;

use super::LayoutBuilder;
use super::requests::{
    Axis, BuildError, ColorDef, ColorId, Edge, Paint, Param, ParamValue, Region, RegionId,
    RoutingPosition, Symbol, SymbolData,
};

type Built<T> = Result<T, BuildError>;

impl LayoutBuilder {
    /// A region of `width` x `height` PEs that run a source file.
    ///
    /// # Errors
    /// The name is taken, or the mesh has no room for so many PEs.
    pub fn region(&mut self, name: &str, source: &str, width: u32, height: u32) -> Built<RegionId> {
        self.new_region(name, source, None, width, height)
    }

    /// A region whose PEs run a tile block of a source file.
    ///
    /// # Errors
    /// As [`LayoutBuilder::region`].
    pub fn tile_region(
        &mut self,
        name: &str,
        source: &str,
        tile: &str,
        width: u32,
        height: u32,
    ) -> Built<RegionId> {
        self.new_region(name, source, Some(tile), width, height)
    }

    fn new_region(
        &mut self,
        name: &str,
        source: &str,
        tile: Option<&str>,
        width: u32,
        height: u32,
    ) -> Built<RegionId> {
        if self.regions.iter().any(|region| region.name == name) {
            return Err(BuildError::new(format!("a region `{name}` exists already"))
                .help("give each region a name of its own"));
        }
        let target = Target::get(self.target);
        let (columns, rows) = target.max_rect;
        let fits = |side: u32, most: u16| u16::try_from(side).is_ok_and(|n| 0 < n && n <= most);
        if !fits(width, columns) || !fits(height, rows) {
            let name = target.id.name();
            return Err(BuildError::new(format!(
                "a region of {width} x {height} PEs: {name} has room for 1 x 1 to {columns} x {rows}"
            )));
        }
        let id = self.regions.len();
        let of = tile.map(|tile| format!(", tile {tile}")).unwrap_or_default();
        let path = source.replace('\\', "\\\\").replace('"', "\\\"");
        let line =
            format!("const source{id} = \"{path}\"; // region {name}: {width} x {height} PEs{of}");
        let mark = self.notes.add(line);
        self.regions.push(Region {
            name: name.to_owned(),
            source: source.to_owned(),
            tile: tile.map(str::to_owned),
            size: (width as u16, height as u16),
            at: None,
            params: Vec::new(),
            paints: Vec::new(),
            symbols: Vec::new(),
            mark,
        });
        Ok(RegionId(id as u32))
    }

    /// The region of a name.
    #[must_use]
    pub fn region_named(&self, name: &str) -> Option<RegionId> {
        let index = self.regions.iter().position(|region| region.name == name)?;
        Some(RegionId(index as u32))
    }

    /// Columns and rows of a region.
    #[must_use]
    pub fn region_size(&self, region: RegionId) -> (u16, u16) {
        self.get(region).size
    }

    /// Puts the north-west corner of a region on a PE; a later call moves it.
    ///
    /// # Errors
    /// The mesh does not have the PE.
    pub fn place(&mut self, region: RegionId, x: i64, y: i64) -> Built<()> {
        let at = self.corner(region, x, y)?;
        let name = &self.regions[region.0 as usize].name;
        self.notes.add(format!("// place {name} at ({x}, {y})"));
        self.regions[region.0 as usize].at = Some(at);
        Ok(())
    }

    fn corner(&self, region: RegionId, x: i64, y: i64) -> Built<Coord> {
        let Region { name, size: (width, height), .. } = self.get(region);
        let (columns, rows) = Target::get(self.target).max_rect;
        let fits = |first: i64, side: u16, end: u16| {
            first >= 0 && first.checked_add(side.into()).is_some_and(|last| last <= end.into())
        };
        if fits(x, *width, columns) && fits(y, *height, rows) {
            return Ok(Coord { x: x as u16, y: y as u16 });
        }
        Err(BuildError::new(format!(
            "region `{name}` of {width} x {height} PEs at ({x}, {y}) leaves the mesh of {columns} x {rows} PEs"
        )))
    }

    /// Puts regions side by side, or one below the other, from the first one's place or from
    /// `origin` on; gives the extent of all of them along the axis.
    ///
    /// # Errors
    /// There is no region, or the mesh has no room for them.
    pub fn stack(
        &mut self,
        regions: &[RegionId],
        axis: Axis,
        origin: Option<(i64, i64)>,
    ) -> Built<u32> {
        let Some(&first) = regions.first() else {
            return Err(BuildError::new("no regions to put in a row: give at least one"));
        };
        let own = self.get(first).at.unwrap_or_default();
        let (mut x, mut y) = origin.unwrap_or((own.x.into(), own.y.into()));
        let mut extent = 0;
        for &region in regions {
            self.place(region, x, y)?;
            let (width, height) = self.region_size(region);
            match axis {
                Axis::Horizontal => x += i64::from(width),
                Axis::Vertical => y += i64::from(height),
            }
            extent += match axis {
                Axis::Horizontal => u32::from(width),
                Axis::Vertical => u32::from(height),
            };
        }
        Ok(extent)
    }

    /// A color by its name: one of a region, or one of the whole layout. The same name gives the
    /// same color. Without a number it gets one when the layout is compiled.
    ///
    /// # Errors
    /// The number does not exist, or the color has another one already.
    pub fn color(
        &mut self,
        region: Option<RegionId>,
        name: &str,
        number: Option<i64>,
    ) -> Built<ColorId> {
        let fixed = match number {
            None => None,
            Some(number) => {
                let color = u8::try_from(number).ok().and_then(Color::new);
                Some(color.ok_or_else(|| {
                    BuildError::new(format!(
                        "color `{name}` is given number {number}: colors are 0 to 23"
                    ))
                })?)
            }
        };
        let known = self.colors.iter().position(|def| def.name == name && def.region == region);
        if let Some(known) = known {
            let def = &mut self.colors[known];
            return match (def.fixed, fixed) {
                (Some(old), Some(new)) if old != new => Err(BuildError::new(format!(
                    "color `{name}` has number {} already, and is given {}",
                    old.index(),
                    new.index()
                ))
                .help("give one of them another name")),
                (None, Some(_)) => {
                    def.fixed = fixed;
                    Ok(ColorId(known as u32))
                }
                (_, _) => Ok(ColorId(known as u32)),
            };
        }
        let of = region.map(|region| format!(" of {}", self.get(region).name)).unwrap_or_default();
        let number = fixed.map(|color| format!(": {}", color.index())).unwrap_or_default();
        let mark = self.notes.add(format!("// color {name}{of}{number}"));
        self.colors.push(ColorDef { name: name.to_owned(), region, fixed, mark });
        Ok(ColorId((self.colors.len() - 1) as u32))
    }

    /// The name that is unique in the layout: with the region's before it, if it has one.
    #[must_use]
    pub fn color_name(&self, color: ColorId) -> String {
        let ColorDef { name, region, .. } = &self.colors[color.index()];
        match region {
            Some(region) => format!("{}_{name}", self.get(*region).name),
            None => name.clone(),
        }
    }

    /// Sets a param of the code on some PEs of a region; the last value holds.
    ///
    /// # Errors
    /// The area leaves the region.
    pub fn set_param(
        &mut self,
        region: RegionId,
        area: Rect,
        name: &str,
        value: ParamValue,
    ) -> Built<()> {
        self.check_area(region, area)?;
        let shown = match value {
            ParamValue::Int(int) => int.to_string(),
            ParamValue::Float(float) => float.to_string(),
            ParamValue::Color(color) => format!("color {}", self.color_name(color)),
        };
        let on = self.on(region, area);
        let mark = self.notes.add(format!("// param {name} = {shown} on {on}"));
        let param = Param { area, name: name.to_owned(), value, mark };
        self.regions[region.0 as usize].params.push(param);
        Ok(())
    }

    /// Sets the route of a color on some PEs of a region: the first position, then those that a
    /// switch goes through. The last setting holds, except that ports come before all of them.
    ///
    /// # Errors
    /// The area leaves the region, or there is no position, or more than four.
    pub fn paint(
        &mut self,
        region: RegionId,
        area: Rect,
        color: ColorId,
        positions: &[RoutingPosition],
    ) -> Built<()> {
        self.check_area(region, area)?;
        check_positions(positions)?;
        let routes: Vec<String> = positions.iter().map(RoutingPosition::text).collect();
        let (name, on) = (self.color_name(color), self.on(region, area));
        let mark = self.notes.add(format!("// paint {name} on {on}: {}", routes.join(", then ")));
        let paint = Paint { area, color, positions: positions.to_vec(), mark };
        self.regions[region.0 as usize].paints.push(paint);
        Ok(())
    }

    /// As [`LayoutBuilder::paint`], on the PEs of an edge.
    ///
    /// # Errors
    /// There is no position, or more than four.
    pub fn paint_edge(
        &mut self,
        region: RegionId,
        edge: Edge,
        color: ColorId,
        positions: &[RoutingPosition],
    ) -> Built<()> {
        let area = edge.of(self.region_size(region));
        self.paint(region, area, color, positions)
    }

    /// Gives an array of the code its first values, a block of a matrix for each PE.
    ///
    /// # Errors
    /// The data are not as many as the matrix has elements, or the matrix does not divide into the
    /// PEs of the region.
    pub fn set_symbol(&mut self, region: RegionId, symbol: &Symbol<'_>) -> Built<()> {
        let Symbol { name, element, data, columns, rows } = *symbol;
        let Region { name: of, size: (width, height), .. } = self.get(region);
        let (width, height) = (usize::from(*width), usize::from(*height));
        let wanted = columns.checked_mul(rows).and_then(|n| n.checked_mul(element as usize));
        if !matches!(element, 2 | 4) {
            return Err(BuildError::new(format!("`{name}` is given elements of {element} bytes"))
                .help("16- and 32-bit elements can be set"));
        }
        if wanted != Some(data.len()) {
            let given = data.len() / element as usize;
            return Err(BuildError::new(format!(
                "`{name}` is given {given} elements, a matrix of {columns} x {rows} has {}",
                columns.saturating_mul(rows)
            )));
        }
        if columns == 0
            || rows == 0
            || !columns.is_multiple_of(width)
            || !rows.is_multiple_of(height)
        {
            return Err(BuildError::new(format!(
                "`{name}` is given a matrix of {columns} x {rows}, and region `{of}` has {width} x {height} PEs"
            ))
            .help("each side must be a multiple of the region's"));
        }
        let bytes = blocks(symbol, width, height);
        let line = format!("// symbol {name} of {of}: {columns} x {rows} elements");
        let mark = self.notes.add(line);
        let symbol = SymbolData { name: name.to_owned(), element, bytes, mark };
        self.regions[region.0 as usize].symbols.push(symbol);
        Ok(())
    }

    pub(super) fn get(&self, region: RegionId) -> &Region {
        &self.regions[region.0 as usize]
    }

    /// All PEs of a region, in its own coordinates.
    #[must_use]
    pub fn all_of(&self, region: RegionId) -> Rect {
        let (width, height) = self.region_size(region);
        Rect { x: 0, y: 0, width, height }
    }

    fn check_area(&self, region: RegionId, area: Rect) -> Built<()> {
        let (width, height) = self.region_size(region);
        let fits = |first: u16, side: u16, end: u16| {
            side > 0 && u32::from(first) + u32::from(side) <= u32::from(end)
        };
        if fits(area.x, area.width, width) && fits(area.y, area.height, height) {
            return Ok(());
        }
        let name = &self.get(region).name;
        let Rect { x, y, width: columns, height: rows } = area;
        let what = match (columns, rows) {
            (1, 1) => format!("PE ({x}, {y})"),
            _ => format!("({x}, {y}) with {columns} x {rows} PEs"),
        };
        Err(BuildError::new(format!("{what} is not in region `{name}` of {width} x {height} PEs")))
    }

    fn on(&self, region: RegionId, area: Rect) -> String {
        let name = &self.get(region).name;
        if area == self.all_of(region) {
            return format!("all PEs of {name}");
        }
        let Rect { x, y, width, height } = area;
        match (width, height) {
            (1, 1) => format!("({x}, {y}) of {name}"),
            _ => format!("({x}, {y}) to ({}, {}) of {name}", x + (width - 1), y + (height - 1)),
        }
    }
}

/// The bytes of each PE, row by row.
fn blocks(symbol: &Symbol<'_>, width: usize, height: usize) -> Vec<Vec<u8>> {
    let size = symbol.element as usize;
    let row_bytes = symbol.columns * size;
    let (columns, rows) = (symbol.columns / width * size, symbol.rows / height);
    let mut blocks = Vec::with_capacity(width * height);
    for y in 0..height {
        for x in 0..width {
            let mut block = Vec::with_capacity(columns * rows);
            for row in y * rows..(y + 1) * rows {
                let start = row * row_bytes + x * columns;
                block.extend_from_slice(&symbol.data[start..start + columns]);
            }
            blocks.push(block);
        }
    }
    blocks
}

/// One to four positions.
pub(super) fn check_positions(positions: &[RoutingPosition]) -> Built<()> {
    match positions.len() {
        1..=4 => Ok(()),
        0 => Err(BuildError::new("a color is routed by no position: give at least one")),
        count => Err(BuildError::new(format!("{count} positions: a switch has four at most"))),
    }
}

impl RoutingPosition {
    /// As `WEST>RAMP+EAST`.
    pub(super) fn text(&self) -> String {
        let ports = |set: PortSet| {
            let names: Vec<&str> = set.iter().map(|port| port.name()).collect();
            if names.is_empty() { "nothing".to_owned() } else { names.join("+") }
        };
        format!("{}>{}", ports(self.input), ports(self.output))
    }
}

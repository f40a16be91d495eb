//! What lies behind the subjects, from far to near, and what hangs before them.

use super::mask::{Mask, circle, oval, rect};
use super::palette::{Palette, Rgb, mix};
use super::{Backdrop, Chance, Ground, Light, Sheet, Weather};

/// A place being laid: lengths are shares of the frame's height, from its top left corner.
struct Place<'a> {
    sheet: &'a mut Sheet,
    chance: Chance,
    papers: &'a Palette,
    light: Light,
    /// Width of the frame.
    wide: f32,
}

impl Place<'_> {
    fn mask(&self, polygons: &[Vec<(f32, f32)>]) -> Mask {
        let unit = self.sheet.height_px as f32;
        let scaled: Vec<Vec<(f32, f32)>> = polygons
            .iter()
            .map(|points| points.iter().map(|(x, y)| (x * unit, y * unit)).collect())
            .collect();
        Mask::of(&scaled, (self.sheet.width_px, self.sheet.height_px))
    }

    fn lay(&mut self, polygons: &[Vec<(f32, f32)>], paper: Rgb, depth: f32) {
        let mask = self.mask(polygons);
        self.sheet.lay(&mask, paper, depth);
    }

    fn glow(&mut self, polygons: &[Vec<(f32, f32)>], paper: Rgb, share: f32) {
        let mask = self.mask(polygons);
        self.sheet.glow(&mask, paper, share);
    }

    /// Everything below a line.
    fn below(&self, line: impl Fn(f32) -> f32) -> Vec<(f32, f32)> {
        let steps = 160;
        let x = |at: i32| at as f32 / steps as f32 * (self.wide + 0.1) - 0.05;
        let mut points: Vec<_> = (0..=steps).map(|at| (x(at), line(x(at)))).collect();
        points.extend([(self.wide + 0.05, 1.05), (-0.05, 1.05)]);
        points
    }

    /// A rolling line about `base`.
    fn rolling(&mut self, base: f32, rise: f32, waves: f32) -> Vec<(f32, f32)> {
        let (a, b) = (self.chance.next() * 6.3, self.chance.next() * 6.3);
        let bend = 1.0 + 0.4 * self.chance.next();
        self.below(|x| {
            base - rise * (x * waves + a).sin() - rise * 0.45 * (x * waves * 2.1 * bend + b).sin()
        })
    }

    /// Bands of paper for the sky down to `horizon`.
    fn sky(&mut self, horizon: f32) {
        for (at, paper) in self.papers.sky.into_iter().enumerate() {
            let top = at as f32 / 4.0 * horizon - if at == 0 { 0.2 } else { 0.02 };
            let band = self.rolling(top, if at == 0 { 0.0 } else { 0.02 }, 2.2);
            self.lay(&[band], paper, 0.012);
        }
    }

    /// Sun, or moon and stars.
    fn lights(&mut self, horizon: f32, weather: Weather) {
        let x = self.wide * self.chance.between(0.62, 0.86);
        if self.light == Light::Night {
            for _ in 0..34 {
                let size = self.chance.between(0.002, 0.005);
                let (x, y) = (
                    self.chance.next() * self.wide,
                    self.chance.next() * horizon * 0.85,
                );
                self.glow(&[circle(x, y, size)], [1.0, 0.97, 0.86], 0.9);
            }
        }
        if matches!(weather, Weather::Rain | Weather::Storm) {
            return;
        }
        let y = match self.light {
            Light::Day => 0.16,
            Light::Night => 0.18,
            Light::Dawn | Light::Dusk => horizon - 0.1,
        };
        let radius = if self.light == Light::Day {
            0.07
        } else {
            0.085
        };
        let sun = self.papers.sun;
        for (wider, share) in [(2.6, 0.14), (1.9, 0.18), (1.4, 0.25)] {
            self.glow(&[circle(x, y, radius * wider)], sun, share);
        }
        let mut disc = self.mask(&[circle(x, y, radius)]);
        if self.light == Light::Night {
            let bite = self.mask(&[circle(x + radius * 0.5, y - radius * 0.25, radius * 0.86)]);
            disc = disc.without(&bite);
        }
        self.sheet.lay(&disc, sun, 0.008);
    }

    fn cloud(&mut self, x: f32, y: f32, size: f32, paper: Rgb) {
        let puff = |dx: f32, dy: f32, r: f32| circle(x + dx * size, y + dy * size, r * size);
        let parts = [
            puff(0.0, 0.0, 0.52),
            puff(-0.62, 0.14, 0.38),
            puff(0.6, 0.12, 0.42),
            puff(1.08, 0.26, 0.25),
            puff(-1.05, 0.27, 0.23),
            rect(x - 1.05 * size, y + 0.22 * size, 2.13 * size, 0.28 * size),
        ];
        self.lay(&parts, paper, 0.011);
    }

    fn clouds(&mut self, count: usize, low: f32, weather: Weather) {
        let heavy = matches!(weather, Weather::Rain | Weather::Storm);
        let count = if heavy { count + 3 } else { count };
        for at in 0..count {
            let x = self.wide * (at as f32 + self.chance.between(0.15, 0.85)) / count as f32;
            let y = self.chance.between(0.06, low);
            let size = self.chance.between(0.05, 0.09) * if heavy { 1.7 } else { 1.0 };
            let night = if self.light == Light::Night {
                0.5
            } else {
                0.12
            };
            let paper = mix(
                self.papers.cloud,
                self.papers.sky[1],
                if heavy { 0.45 } else { night },
            );
            self.cloud(x, y * if heavy { 0.6 } else { 1.0 }, size, paper);
        }
    }

    fn pine(&mut self, x: f32, base: f32, high: f32, paper: Rgb) {
        let trunk = self.papers.trunk;
        self.lay(
            &[rect(
                x - high * 0.04,
                base - high * 0.2,
                high * 0.08,
                high * 0.22,
            )],
            trunk,
            0.006,
        );
        let tier = |top: f32, bottom: f32, half: f32| {
            vec![
                (x, base - high * top),
                (x + high * half, base - high * bottom),
                (x - high * half, base - high * bottom),
            ]
        };
        for (top, bottom, half) in [(0.62, 0.12, 0.27), (0.83, 0.36, 0.22), (1.0, 0.6, 0.16)] {
            self.lay(&[tier(top, bottom, half)], paper, 0.007);
        }
    }

    fn round_tree(&mut self, x: f32, base: f32, high: f32, paper: Rgb) {
        let trunk = self.papers.trunk;
        self.lay(
            &[rect(
                x - high * 0.05,
                base - high * 0.45,
                high * 0.1,
                high * 0.47,
            )],
            trunk,
            0.006,
        );
        let leaf = |dx: f32, dy: f32, r: f32| circle(x + dx * high, base - dy * high, r * high);
        let crown = [
            leaf(-0.17, 0.55, 0.2),
            leaf(0.17, 0.55, 0.2),
            leaf(0.0, 0.76, 0.23),
        ];
        self.lay(&crown, paper, 0.009);
        self.lay(&[leaf(0.03, 0.66, 0.13)], mix(paper, [1.0; 3], 0.12), 0.004);
    }

    /// A house whose middle is at `x`; gives nothing back.
    fn house(&mut self, x: f32, base: f32, wide: f32, wall: Rgb) {
        let high = wide * self.chance.between(0.7, 1.0);
        let (roof, trunk, pane) = (self.papers.roof, self.papers.trunk, self.papers.pane);
        let chimney = rect(
            x + wide * 0.2,
            base - high - wide * 0.5,
            wide * 0.13,
            wide * 0.4,
        );
        self.lay(&[chimney], mix(wall, roof, 0.5), 0.006);
        self.lay(
            &[rect(x - wide / 2.0, base - high, wide, high + 0.01)],
            wall,
            0.01,
        );
        let gable = vec![
            (x - wide * 0.6, base - high),
            (x, base - high - wide * 0.55),
            (x + wide * 0.6, base - high),
        ];
        self.lay(&[gable], roof, 0.009);
        self.lay(
            &[rect(
                x - wide * 0.1,
                base - high * 0.5,
                wide * 0.2,
                high * 0.5,
            )],
            trunk,
            0.003,
        );
        for side in [-0.38, 0.18] {
            let window = rect(x + wide * side, base - high * 0.75, wide * 0.2, wide * 0.22);
            self.lay(&[window], pane, 0.003);
        }
    }

    fn tower(&mut self, x: f32, base: f32, wide: f32, high: f32, wall: Rgb) {
        self.lay(&[rect(x, base - high, wide, high + 0.05)], wall, 0.012);
        let (columns, rows) = ((wide / 0.042) as i32, (high / 0.062) as i32);
        let mut windows = Vec::new();
        for row in 0..rows {
            for column in 0..columns {
                if self.chance.next()
                    < if self.light == Light::Night {
                        0.62
                    } else {
                        0.92
                    }
                {
                    let step = wide / columns as f32;
                    let left = x + step * (column as f32 + 0.28);
                    windows.push(rect(
                        left,
                        base - high + 0.03 + row as f32 * 0.062,
                        step * 0.44,
                        0.03,
                    ));
                }
            }
        }
        let pane = self.papers.pane;
        self.lay(&windows, pane, 0.002);
    }

    fn lighthouse(&mut self, x: f32, base: f32, high: f32) {
        let (white, red) = (
            mix(self.papers.cloud, self.papers.wall[0], 0.2),
            self.papers.roof,
        );
        let half = |share: f32| high * (0.12 - 0.045 * share);
        let slice = |from: f32, to: f32| {
            vec![
                (x - half(from), base - high * from),
                (x + half(from), base - high * from),
                (x + half(to), base - high * to),
                (x - half(to), base - high * to),
            ]
        };
        if self.light != Light::Day {
            let beam = vec![
                (x, base - high * 1.06),
                (x - self.wide, base - high * 1.06 - 0.24),
                (x - self.wide, base - high * 1.06 + 0.14),
            ];
            self.glow(&[beam], [1.0, 0.93, 0.66], 0.32);
        }
        self.lay(&[slice(0.0, 1.0)], white, 0.014);
        for from in [0.12, 0.44, 0.76] {
            self.lay(&[slice(from, from + 0.16)], red, 0.0);
        }
        let (lamp, dark) = (self.papers.sun, self.papers.trunk);
        self.lay(
            &[rect(
                x - high * 0.1,
                base - high * 1.02,
                high * 0.2,
                high * 0.035,
            )],
            dark,
            0.004,
        );
        self.lay(
            &[rect(
                x - high * 0.055,
                base - high * 1.13,
                high * 0.11,
                high * 0.11,
            )],
            lamp,
            0.003,
        );
        let cap = vec![
            (x - high * 0.09, base - high * 1.13),
            (x, base - high * 1.24),
            (x + high * 0.09, base - high * 1.13),
        ];
        self.lay(&[cap], red, 0.005);
    }

    /// Water with scalloped edges from `top` down.
    fn water(&mut self, top: f32) {
        for at in 0..4_u16 {
            let base = top + (1.0 - top) * f32::from(at) / 4.0;
            let across = 0.1 + 0.045 * f32::from(at);
            let rise = if at == 0 {
                0.0
            } else {
                0.012 + 0.006 * f32::from(at)
            };
            let start = self.chance.next();
            let edge =
                self.below(|x| base - rise * ((x / across + start).fract() - 0.5).abs() * 2.0);
            let paper = self.papers.water[usize::from(at)];
            self.lay(&[edge], paper, 0.011);
        }
    }

    fn peaks(&mut self, base: f32, high: f32, paper: Rgb, snow: bool) {
        let mut x = -0.1 + 0.2 * self.chance.next();
        while x < self.wide + 0.2 {
            let (top, half) = (
                high * self.chance.between(0.6, 1.0),
                high * self.chance.between(0.6, 0.85),
            );
            let peak = vec![(x - half, base), (x, base - top), (x + half, base)];
            self.lay(std::slice::from_ref(&peak), paper, 0.011);
            if snow {
                let (low, part) = (base - top * 0.62, half * 0.38);
                let cap = vec![
                    (x, base - top),
                    (x + part, low),
                    (x + part * 0.45, low - top * 0.08),
                    (x + part * 0.1, low + top * 0.05),
                    (x - part * 0.4, low - top * 0.07),
                    (x - part, low),
                ];
                let white = self.papers.cloud;
                self.lay(&[cap], white, 0.0);
            }
            x += half * self.chance.between(0.9, 1.4);
        }
    }

    fn room(&mut self, papers: &Palette) {
        self.lay(&[rect(-0.1, -0.1, self.wide + 0.2, 1.2)], papers.room, 0.0);
        let stripe = mix(papers.room, papers.accent, 0.08);
        let stripes: Vec<_> = (0..24)
            .map(|at| rect(at as f32 * 0.11, -0.05, 0.045, 0.8))
            .collect();
        self.lay(&stripes, stripe, 0.0);
        let x = self.wide * if self.chance.next() < 0.5 { 0.12 } else { 0.62 };
        let frame = mix(papers.trunk, [1.0; 3], 0.25);
        self.lay(&[rect(x, 0.1, 0.46, 0.42)], frame, 0.012);
        let view = self.mask(&[rect(x + 0.025, 0.125, 0.41, 0.37)]);
        self.sheet.lay(&view, papers.sky[2], 0.0);
        let far = self.mask(&[oval(x + 0.14, 0.56, 0.26, 0.16)]).within(&view);
        self.sheet.lay(&far, papers.land[1], 0.006);
        let near = self.mask(&[oval(x + 0.36, 0.58, 0.24, 0.15)]).within(&view);
        self.sheet.lay(&near, papers.land[2], 0.006);
        let light = self.mask(&[circle(x + 0.33, 0.2, 0.034)]).within(&view);
        self.sheet.lay(&light, papers.sun, 0.0);
        self.lay(
            &[
                rect(x + 0.22, 0.125, 0.016, 0.37),
                rect(x + 0.025, 0.3, 0.41, 0.016),
            ],
            frame,
            0.003,
        );
        let curtain = mix(papers.accent, papers.room, 0.25);
        for side in [x - 0.07, x + 0.42] {
            let drop = vec![
                (side, 0.07),
                (side + 0.12, 0.07),
                (side + 0.105, 0.34),
                (side + 0.125, 0.58),
                (side - 0.005, 0.58),
                (side + 0.015, 0.34),
            ];
            self.lay(&[drop], curtain, 0.01);
        }
        let other = if x < self.wide / 2.0 {
            self.wide * 0.66
        } else {
            self.wide * 0.2
        };
        self.lay(&[rect(other, 0.14, 0.2, 0.16)], papers.trunk, 0.007);
        self.lay(
            &[rect(other + 0.016, 0.156, 0.168, 0.128)],
            papers.land[1],
            0.0,
        );
        self.lay(&[circle(other + 0.12, 0.21, 0.026)], papers.sun, 0.0);
        self.lay(
            &[rect(other - 0.08, 0.42, 0.36, 0.026)],
            papers.trunk,
            0.009,
        );
        for (at, high) in [0.1, 0.13, 0.085, 0.12].into_iter().enumerate() {
            let book = [papers.roof, papers.wall[3], papers.accent, papers.tree[1]];
            let left = other - 0.05 + at as f32 * 0.034;
            self.lay(&[rect(left, 0.42 - high, 0.03, high)], book[at % 4], 0.004);
        }
        self.lay(
            &[rect(-0.1, 0.72, self.wide + 0.2, 0.4)],
            papers.floor,
            0.01,
        );
        self.lay(&[rect(-0.1, 0.7, self.wide + 0.2, 0.026)], frame, 0.004);
        let rug = oval(self.wide / 2.0, 0.89, 0.58, 0.09);
        self.lay(&[rug], mix(papers.accent, papers.floor, 0.35), 0.004);
        self.lay(
            &[oval(self.wide / 2.0, 0.89, 0.47, 0.07)],
            mix(papers.accent, papers.room, 0.45),
            0.0,
        );
    }

    fn space(&mut self, papers: &Palette) {
        for (at, paper) in [[0.06, 0.07, 0.17], [0.09, 0.09, 0.23], [0.13, 0.11, 0.29]]
            .into_iter()
            .enumerate()
        {
            let band = self.rolling(at as f32 * 0.3 - 0.2, 0.04, 2.0);
            self.lay(&[band], paper, 0.014);
        }
        for _ in 0..70 {
            let (x, y) = (self.chance.next() * self.wide, self.chance.next());
            let size = self.chance.between(0.0018, 0.005);
            self.glow(&[circle(x, y, size)], [1.0, 0.97, 0.88], 0.9);
        }
        let (x, y) = (
            self.wide * self.chance.between(0.68, 0.84),
            self.chance.between(0.2, 0.32),
        );
        self.lay(&[oval(x, y, 0.22, 0.045)], papers.sand, 0.008);
        self.lay(&[circle(x, y, 0.12)], papers.accent, 0.014);
        let half = self.mask(&[oval(x, y + 0.006, 0.22, 0.045)]);
        let front = self.mask(&[rect(x - 0.3, y + 0.006, 0.6, 0.1)]);
        self.sheet.lay(&half.within(&front), papers.sand, 0.0);
        let globe = oval(self.wide * 0.4, 1.5, 1.1, 0.72);
        self.lay(&[globe], papers.water[1], 0.02);
        for (dx, across) in [(-0.3, 0.28), (0.25, 0.36)] {
            self.lay(
                &[oval(self.wide * 0.4 + dx, 0.93, across, 0.06)],
                papers.land[1],
                0.006,
            );
        }
    }

    fn underwater(&mut self, papers: &Palette) {
        for at in 0..4_u16 {
            let band = self.rolling(f32::from(at) * 0.22 - 0.1, 0.03, 3.0);
            let paper = mix(papers.water[usize::from(at)], papers.sky[0], 0.25);
            self.lay(&[band], paper, 0.012);
        }
        let bed = self.rolling(0.86, 0.03, 3.0);
        for at in 0..11 {
            let x = self.wide * (at as f32 + self.chance.next()) / 11.0;
            let (high, sway) = (self.chance.between(0.16, 0.4), self.chance.next() * 6.0);
            let side = |at: i32, half: f32| {
                let share = at as f32 / 14.0;
                let bend = 0.02 * (share * 7.0 + sway).sin();
                (x + bend + half * (1.0 - share), 0.92 - high * share)
            };
            let mut weed: Vec<_> = (0..=14).map(|at| side(at, 0.016)).collect();
            weed.extend((0..=14).rev().map(|at| side(at, -0.016)));
            let paper = papers.tree[at % 2];
            self.lay(&[weed], paper, 0.008);
        }
        self.lay(&[bed], papers.sand, 0.012);
        for _ in 0..16 {
            let (x, y) = (
                self.chance.next() * self.wide,
                self.chance.between(0.08, 0.8),
            );
            let size = self.chance.between(0.005, 0.014);
            self.glow(&[circle(x, y, size)], [0.9, 0.97, 1.0], 0.5);
        }
    }

    fn open_air(&mut self, backdrop: &Backdrop, papers: &Palette) {
        let horizon = match backdrop.ground {
            Ground::City => 0.74,
            Ground::Sky => 1.0,
            Ground::Sea | Ground::Beach => 0.56,
            _ => 0.64,
        };
        self.sky(horizon);
        self.lights(horizon, backdrop.weather);
        self.clouds(4, 0.3, backdrop.weather);
        match backdrop.ground {
            Ground::Sea | Ground::Beach => self.coast(backdrop, papers, horizon),
            Ground::Mountains => {
                self.peaks(0.72, 0.46, papers.stone, true);
                self.peaks(0.76, 0.3, mix(papers.stone, papers.land[2], 0.5), false);
            }
            Ground::Desert => {
                for (at, base) in [0.62, 0.72, 0.84].into_iter().enumerate() {
                    let dune = self.rolling(base, 0.035, 2.4);
                    self.lay(
                        &[dune],
                        mix(papers.sand, papers.trunk, 0.24 - 0.1 * at as f32),
                        0.013,
                    );
                }
            }
            Ground::City => self.city(papers, horizon),
            Ground::Sky => {
                for at in 0..6 {
                    let x = self.wide * (at as f32 + self.chance.next()) / 6.0;
                    let (y, size) = (
                        self.chance.between(0.88, 1.0),
                        self.chance.between(0.13, 0.2),
                    );
                    self.cloud(x, y, size, papers.cloud);
                }
            }
            _ => {}
        }
        if !matches!(
            backdrop.ground,
            Ground::Forest | Ground::Meadow | Ground::Village | Ground::Mountains
        ) {
            return;
        }
        for (at, base) in [0.66, 0.72, 0.8, 0.89].into_iter().enumerate() {
            let hill = self.rolling(base, 0.03, 2.6 + at as f32 * 0.3);
            self.lay(&[hill], papers.land[at], 0.013);
            match (backdrop.ground, at) {
                (Ground::Forest, 0..=2) => {
                    for tree in 0..9 {
                        let x = self.wide * (tree as f32 + self.chance.between(0.1, 0.9)) / 9.0;
                        let high = self.chance.between(0.26, 0.36) + 0.1 * at as f32;
                        let paper =
                            mix(papers.tree[tree % 2], papers.sky[2], 0.4 - 0.18 * at as f32);
                        self.pine(x, base + 0.03, high, paper);
                    }
                }
                (Ground::Village, 1 | 2) => {
                    for house in 0..5 {
                        let x = self.wide * (house as f32 + self.chance.between(0.25, 0.75)) / 5.0;
                        let wall = papers.wall[(house + at) % 4];
                        let wide = self.chance.between(0.1, 0.13) + 0.04 * at as f32;
                        self.house(x, base + 0.02, wide, wall);
                    }
                }
                (Ground::Meadow, 0..=2) => {
                    for tree in 0..3 {
                        let x = self.wide * (tree as f32 + self.chance.next()) / 3.0;
                        let high = self.chance.between(0.14, 0.2) + 0.05 * at as f32;
                        self.round_tree(x, base + 0.02, high, papers.tree[tree % 2]);
                    }
                }
                _ => {}
            }
        }
    }

    fn coast(&mut self, backdrop: &Backdrop, papers: &Palette, horizon: f32) {
        let far = self.rolling(horizon - 0.01, 0.03, 1.7);
        self.lay(&[far], papers.land[0], 0.008);
        self.water(horizon);
        if backdrop.lighthouse {
            let x = self.wide * 0.84;
            let rock = vec![
                (x - 0.42, 0.82),
                (x - 0.24, 0.68),
                (x - 0.1, 0.62),
                (x + 0.14, 0.63),
                (x + 0.5, 0.74),
                (x + 0.5, 0.9),
            ];
            self.lighthouse(x, 0.65, 0.42);
            self.lay(&[rock], papers.stone, 0.014);
        }
        if backdrop.ground == Ground::Beach {
            let foam = self.rolling(0.785, 0.02, 2.0);
            let up =
                |points: &[(f32, f32)], by: f32| points.iter().map(|(x, y)| (*x, y + by)).collect();
            let sand: Vec<_> = up(&foam, 0.02);
            self.lay(&[foam], papers.cloud, 0.008);
            self.lay(&[sand], papers.sand, 0.006);
        }
    }

    fn city(&mut self, papers: &Palette, horizon: f32) {
        for row in 0..2_u16 {
            let mut x = -0.05;
            let mut at = usize::from(row);
            while x < self.wide {
                let wide = self.chance.between(0.13, 0.24);
                let high = self.chance.between(0.22, 0.4) + if row == 0 { 0.2 } else { 0.0 };
                let wall = mix(
                    papers.wall[at % 4],
                    papers.sky[2],
                    if row == 0 { 0.55 } else { 0.08 },
                );
                self.tower(x, horizon, wide, high, wall);
                x += wide * if row == 0 { 1.02 } else { 1.12 };
                at += 1;
            }
        }
        let pavement = mix(papers.stone, [1.0; 3], 0.28);
        self.lay(&[rect(-0.1, horizon, self.wide + 0.2, 0.3)], pavement, 0.01);
        self.lay(
            &[rect(-0.1, horizon + 0.12, self.wide + 0.2, 0.3)],
            mix(papers.stone, [0.2, 0.22, 0.3], 0.5),
            0.006,
        );
        let lines: Vec<_> = (0..8)
            .map(|at| rect(at as f32 * 0.3 - 0.1, horizon + 0.19, 0.16, 0.012))
            .collect();
        self.lay(&lines, papers.cloud, 0.0);
    }
}

fn place<'a>(
    sheet: &'a mut Sheet,
    backdrop: &Backdrop,
    papers: &'a Palette,
    more: u64,
) -> Place<'a> {
    let wide = sheet.width_px as f32 / sheet.height_px.max(1) as f32;
    Place {
        sheet,
        chance: Chance::new(backdrop.seed ^ more),
        papers,
        light: backdrop.light,
        wide,
    }
}

/// Lays everything that is behind the subjects.
pub(super) fn lay(sheet: &mut Sheet, backdrop: &Backdrop, papers: &Palette) {
    let mut place = place(sheet, backdrop, papers, 0);
    match backdrop.ground {
        Ground::Room => place.room(papers),
        Ground::Space => place.space(papers),
        Ground::Underwater => place.underwater(papers),
        _ => place.open_air(backdrop, papers),
    }
}

/// Lays what hangs before the subjects: leaves at the edges, mist, rain, snow.
pub(super) fn front(sheet: &mut Sheet, backdrop: &Backdrop, papers: &Palette) {
    let mut place = place(sheet, backdrop, papers, 77);
    let wide = place.wide;
    match backdrop.ground {
        Ground::Forest | Ground::Meadow | Ground::Village | Ground::Mountains => {
            let paper = mix(papers.tree[0], [0.1, 0.14, 0.2], 0.35);
            for (x, turn) in [(0.0, 1.0), (wide, -1.0)] {
                let blade = |at: i32| {
                    let left = x + turn * (0.03 * at as f32 - 0.06);
                    let high = 0.9 - 0.025 * ((at * 7) % 5) as f32 + 0.012 * at as f32;
                    vec![
                        (left - 0.02, 1.02),
                        (left + turn * 0.03, high),
                        (left + 0.02, 1.02),
                    ]
                };
                let tuft: Vec<_> = (0..11).map(blade).collect();
                place.lay(&tuft, paper, 0.012);
            }
        }
        _ => {}
    }
    if matches!(
        backdrop.ground,
        Ground::Room | Ground::Space | Ground::Underwater
    ) {
        return;
    }
    match backdrop.weather {
        Weather::Fog => {
            for (top, share) in [(0.34, 0.2), (0.5, 0.26), (0.68, 0.3)] {
                let bank = place.rolling(top, 0.04, 2.0);
                place.glow(&[bank], [0.93, 0.95, 0.97], share);
            }
        }
        Weather::Rain | Weather::Storm => {
            let drops: Vec<_> = (0..150)
                .map(|_| {
                    let (x, y) = (
                        place.chance.next() * (wide + 0.3),
                        place.chance.next() * 1.1 - 0.1,
                    );
                    let long = place.chance.between(0.03, 0.07);
                    vec![
                        (x, y),
                        (x + 0.003, y),
                        (x - long * 0.3 + 0.003, y + long),
                        (x - long * 0.3, y + long),
                    ]
                })
                .collect();
            place.glow(&drops, [0.86, 0.93, 1.0], 0.55);
        }
        Weather::Snow => {
            for _ in 0..110 {
                let (x, y) = (place.chance.next() * wide, place.chance.next());
                let size = place.chance.between(0.003, 0.008);
                place.lay(&[circle(x, y, size)], [1.0; 3], 0.003);
            }
        }
        Weather::Clear => {}
    }
}

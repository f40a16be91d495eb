//! Colours of a paper picture: one set for a film, under the light of a time of day.

use super::{Light, Weather};

/// A colour, 0..1 each.
pub(super) type Rgb = [f32; 3];

/// Papers of a film before light falls on them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Palette {
    /// Sky from the top to the horizon.
    pub(super) sky: [Rgb; 4],
    pub(super) sun: Rgb,
    pub(super) cloud: Rgb,
    /// Land from far to near.
    pub(super) land: [Rgb; 4],
    /// Water from far to near.
    pub(super) water: [Rgb; 4],
    pub(super) tree: [Rgb; 2],
    pub(super) trunk: Rgb,
    pub(super) sand: Rgb,
    pub(super) stone: Rgb,
    /// Walls of houses.
    pub(super) wall: [Rgb; 4],
    pub(super) roof: Rgb,
    /// Windows with light in them, or the day's.
    pub(super) pane: Rgb,
    pub(super) floor: Rgb,
    pub(super) room: Rgb,
    pub(super) accent: Rgb,
}

const fn rgb(hex: u32) -> Rgb {
    let [_, red, green, blue] = hex.to_be_bytes();
    [
        red as f32 / 255.0,
        green as f32 / 255.0,
        blue as f32 / 255.0,
    ]
}

const fn set(land: [u32; 4], water: [u32; 4], walls: [u32; 4], more: [u32; 10]) -> Palette {
    Palette {
        sky: [
            rgb(0x008f_c9e0),
            rgb(0x00a9_d8e6),
            rgb(0x00c6_e6ea),
            rgb(0x00e4_f2ea),
        ],
        sun: rgb(more[0]),
        cloud: rgb(0x00fc_faf2),
        land: [rgb(land[0]), rgb(land[1]), rgb(land[2]), rgb(land[3])],
        water: [rgb(water[0]), rgb(water[1]), rgb(water[2]), rgb(water[3])],
        tree: [rgb(more[1]), rgb(more[2])],
        trunk: rgb(more[3]),
        sand: rgb(more[4]),
        stone: rgb(more[5]),
        wall: [rgb(walls[0]), rgb(walls[1]), rgb(walls[2]), rgb(walls[3])],
        roof: rgb(more[6]),
        pane: rgb(0x00cf_e6ee),
        floor: rgb(more[7]),
        room: rgb(more[8]),
        accent: rgb(more[9]),
    }
}

/// Sets that films choose from.
const SETS: [Palette; 4] = [
    set(
        [0x00a9_c9b8, 0x0086_b59a, 0x0063_9f78, 0x0044_855c],
        [0x0073_b6c6, 0x004f_9db5, 0x0035_829f, 0x0025_6883],
        [0x00ef_ddc0, 0x00e3_b79a, 0x00d8_938a, 0x00b9_cdd0],
        [
            0x00f8_d27a,
            0x0038_7a58,
            0x004f_9468,
            0x0080_5c44,
            0x00ee_d9a8,
            0x0098_a0a8,
            0x00c4_5f4c,
            0x00b5_8460,
            0x00ee_dfc4,
            0x00d9_704f,
        ],
    ),
    set(
        [0x00d9_c3a0, 0x00cf_a878, 0x00b9_8a58, 0x0096_6c42],
        [0x0086_aeb4, 0x0062_929c, 0x0047_7884, 0x0033_5f6c],
        [0x00f1_e0c4, 0x00e0_a878, 0x00c6_7f62, 0x00c9_c3a6],
        [
            0x00f4_b860,
            0x00b5_6a3c,
            0x00cf_8a48,
            0x0074_5240,
            0x00ee_d4a2,
            0x00a4_9a90,
            0x00a5_4c3c,
            0x00a8_7652,
            0x00f0_dcb8,
            0x0057_8088,
        ],
    ),
    set(
        [0x00b9_c7dc, 0x0094_a9c8, 0x0070_8bb0, 0x0050_6c94],
        [0x008a_bcd2, 0x0066_9fc0, 0x0048_83a8, 0x0034_688c],
        [0x00ec_e6dc, 0x00d2_c2cc, 0x00b2_b4d0, 0x00e6_c8b4],
        [
            0x00fb_dc8c,
            0x004a_7c86,
            0x0068_9a9c,
            0x0072_5f66,
            0x00e8_dcc4,
            0x0094_9cb0,
            0x008c_5a78,
            0x009c_8078,
            0x00e2_dee8,
            0x00e2_8a62,
        ],
    ),
    set(
        [0x00d6_cfae, 0x00b6_bf86, 0x0092_a566, 0x0070_884c],
        [0x0080_c2b8, 0x005c_a8a0, 0x0042_8c88, 0x002f_7070],
        [0x00f6_e4c8, 0x00ee_c08e, 0x00da_8c6c, 0x00b8_cab0],
        [
            0x00f6_c65e,
            0x005e_8a4a,
            0x007c_a456,
            0x007c_5a3c,
            0x00f0_dcae,
            0x009c_a092,
            0x00b8_5540,
            0x00b0_8458,
            0x00f2_e4c2,
            0x00c8_5c46,
        ],
    ),
];

pub(super) fn mix(a: Rgb, b: Rgb, share: f32) -> Rgb {
    [0, 1, 2].map(|at| a[at] + (b[at] - a[at]) * share)
}

fn times(a: Rgb, b: Rgb) -> Rgb {
    [0, 1, 2].map(|at| a[at] * b[at])
}

/// What a light makes of white paper.
pub(super) fn tint(light: Light, weather: Weather) -> Rgb {
    let base = match light {
        Light::Day => [1.0, 1.0, 1.0],
        Light::Dawn => [1.0, 0.9, 0.86],
        Light::Dusk => [0.98, 0.8, 0.72],
        Light::Night => [0.42, 0.48, 0.7],
    };
    match weather {
        Weather::Clear => base,
        Weather::Fog | Weather::Snow => times(base, [0.95, 0.97, 1.0]),
        Weather::Rain => times(base, [0.82, 0.87, 0.93]),
        Weather::Storm => times(base, [0.66, 0.7, 0.8]),
    }
}

/// Set `number` (any; taken round) under a light.
pub(super) fn palette(number: u64, light: Light, weather: Weather) -> Palette {
    let mut set = SETS[(number % SETS.len() as u64) as usize];
    set.sky = match light {
        Light::Day => set.sky,
        Light::Dawn => [
            rgb(0x0093_b4d6),
            rgb(0x00c3_bfd8),
            rgb(0x00f0_c9c2),
            rgb(0x00fb_e0b8),
        ],
        Light::Dusk => [
            rgb(0x0056_5a94),
            rgb(0x009c_6c96),
            rgb(0x00e4_8a78),
            rgb(0x00f8_bc74),
        ],
        Light::Night => [
            rgb(0x0014_1c40),
            rgb(0x001d_2954),
            rgb(0x002a_3b6c),
            rgb(0x003c_5080),
        ],
    };
    let grey = match weather {
        Weather::Clear => 0.0,
        Weather::Snow | Weather::Fog => 0.45,
        Weather::Rain => 0.6,
        Weather::Storm => 0.75,
    };
    let white = tint(light, weather);
    let dull = times([0.66, 0.7, 0.74], white);
    set.sky = set.sky.map(|sky| mix(sky, dull, grey));
    if weather == Weather::Snow {
        set.land = set.land.map(|land| mix(land, [0.96, 0.98, 1.0], 0.82));
        set.roof = mix(set.roof, [1.0, 1.0, 1.0], 0.75);
        set.tree = set.tree.map(|tree| mix(tree, [0.9, 0.95, 1.0], 0.35));
        set.sand = mix(set.sand, [0.96, 0.98, 1.0], 0.8);
    }
    let lit = |paper: Rgb| times(paper, white);
    set.cloud = lit(set.cloud);
    set.land = set.land.map(lit);
    set.water = set.water.map(lit);
    set.tree = set.tree.map(lit);
    set.trunk = lit(set.trunk);
    set.sand = lit(set.sand);
    set.stone = lit(set.stone);
    set.wall = set.wall.map(lit);
    set.roof = lit(set.roof);
    set.accent = lit(set.accent);
    match light {
        Light::Night => {
            set.sun = [0.98, 0.95, 0.82];
            set.pane = [1.0, 0.85, 0.5];
            set.floor = times(set.floor, [0.62, 0.58, 0.66]);
            set.room = times(set.room, [0.66, 0.62, 0.7]);
        }
        Light::Dusk => {
            set.sun = [1.0, 0.86, 0.56];
            set.pane = [1.0, 0.88, 0.6];
            set.room = times(set.room, [0.95, 0.86, 0.8]);
        }
        Light::Day | Light::Dawn => {}
    }
    set
}

//! High dynamic range and wide gamut to sRGB, simply: light, primaries, a soft shoulder, sRGB.

use super::convert::Look;
use crate::still::raw::{linear_to_srgb, srgb_to_linear};

/// Nits of diffuse white in HDR programmes (ITU-R BT.2408).
const WHITE_NITS: f64 = 203.0;
/// Peak of the display that HLG is shown on, and its system gamma (ITU-R BT.2100, table 5).
const HLG_PEAK_NITS: f64 = 1000.0;
const HLG_GAMMA: f64 = 1.2;
/// Light up to here stays; brighter light is bent towards 1.
const KNEE: f32 = 0.7;

/// ITU-R BT.2087 annex 1: BT.2020 light to BT.709 light.
const BT2020_TO_BT709: [[f32; 3]; 3] = [
    [1.6605, -0.5876, -0.0728],
    [-0.1246, 1.1329, -0.0083],
    [-0.0182, -0.1006, 1.1187],
];
/// SMPTE EG 432-1 primaries (D65) to BT.709.
const P3_TO_BT709: [[f32; 3]; 3] = [
    [1.224_94, -0.224_94, 0.0],
    [-0.042_057, 1.042_057, 0.0],
    [-0.019_638, -0.078_636, 1.098_274],
];

/// How light is coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transfer {
    Sdr,
    Pq,
    Hlg,
}

/// Which primaries the channels have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gamut {
    Bt709,
    P3,
    Bt2020,
}

/// Tables for one kind of source.
pub(super) struct ToneMap {
    transfer: Transfer,
    matrix: Option<[[f32; 3]; 3]>,
    /// Coded 16-bit value to light, 1 = diffuse white (scene light for HLG).
    light: Vec<f32>,
    /// Light in 0..1 as 16 bits to 8-bit sRGB.
    coded: Vec<u8>,
}

impl ToneMap {
    /// Nothing when the source needs no change.
    pub(super) fn new(look: Look) -> Option<Self> {
        if look.transfer == Transfer::Sdr && look.gamut == Gamut::Bt709 {
            return None;
        }
        let light = (0..=65535u32)
            .map(|value| {
                let coded = f64::from(value) / 65535.0;
                let light = match look.transfer {
                    Transfer::Sdr => srgb_to_linear(coded),
                    Transfer::Pq => pq_to_nits(coded) / WHITE_NITS,
                    Transfer::Hlg => hlg_to_scene(coded),
                };
                light as f32
            })
            .collect();
        let coded = (0..=65535u32)
            .map(|value| (linear_to_srgb(f64::from(value) / 65535.0) * 255.0 + 0.5) as u8)
            .collect();
        Some(Self {
            transfer: look.transfer,
            matrix: match look.gamut {
                Gamut::Bt709 => None,
                Gamut::P3 => Some(P3_TO_BT709),
                Gamut::Bt2020 => Some(BT2020_TO_BT709),
            },
            light,
            coded,
        })
    }

    /// One RGB pixel of 16 bits to 8-bit sRGB.
    pub(super) fn map(&self, rgb: [u16; 3]) -> [u8; 3] {
        let mut light = rgb.map(|value| self.light[usize::from(value)]);
        if self.transfer == Transfer::Hlg {
            let luminance =
                f64::from(0.2627 * light[0] + 0.678 * light[1] + 0.0593 * light[2]).max(0.0);
            let gain = luminance.powf(HLG_GAMMA - 1.0) * HLG_PEAK_NITS / WHITE_NITS;
            light = light.map(|value| value * gain as f32);
        }
        if let Some(matrix) = &self.matrix {
            light = matrix.map(|row| row[0] * light[0] + row[1] * light[1] + row[2] * light[2]);
        }
        if self.transfer != Transfer::Sdr {
            // One factor for all channels keeps the hue.
            let most = light[0].max(light[1]).max(light[2]);
            if most > KNEE {
                let factor = shoulder(most) / most;
                light = light.map(|value| value * factor);
            }
        }
        light.map(|value| self.coded[(value.clamp(0.0, 1.0) * 65535.0 + 0.5) as usize])
    }
}

/// Identity up to the knee, then towards 1 with no kink.
fn shoulder(light: f32) -> f32 {
    let room = 1.0 - KNEE;
    KNEE + room * (1.0 - (-(light - KNEE) / room).exp())
}

/// SMPTE ST 2084.
fn pq_to_nits(coded: f64) -> f64 {
    let (m1, m2) = (2610.0 / 16384.0, 2523.0 / 32.0);
    let (c1, c2, c3) = (3424.0 / 4096.0, 2413.0 / 128.0, 2392.0 / 128.0);
    let power = coded.powf(1.0 / m2);
    10_000.0 * ((power - c1).max(0.0) / (c2 - c3 * power)).powf(1.0 / m1)
}

/// ITU-R BT.2100 inverse OETF: 0..1 to scene light in 0..1.
fn hlg_to_scene(coded: f64) -> f64 {
    let a = 0.178_832_77;
    let (b, c) = (0.284_668_92, 0.559_910_73);
    if coded <= 0.5 {
        coded * coded / 3.0
    } else {
        (((coded - c) / a).exp() + b) / 12.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_points_of_the_curves() {
        // BT.2408: diffuse white of 203 nits is 58 % in PQ, 75 % in HLG.
        assert!(
            (pq_to_nits(0.58) - 203.0).abs() < 5.0,
            "{}",
            pq_to_nits(0.58)
        );
        assert!((pq_to_nits(1.0) - 10_000.0).abs() < 1e-6);
        let hlg = hlg_to_scene(0.75).powf(HLG_GAMMA) * HLG_PEAK_NITS;
        assert!((hlg - 203.0).abs() < 5.0, "{hlg}");
        assert!((hlg_to_scene(1.0) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn gray_stays_gray_and_order_stays() {
        for transfer in [Transfer::Pq, Transfer::Hlg] {
            let look = Look {
                transfer,
                gamut: Gamut::Bt2020,
            };
            let map = ToneMap::new(look).unwrap();
            let mut before = 0;
            for value in (0..=65535u16).step_by(257) {
                let [r, g, b] = map.map([value; 3]);
                assert!(
                    r.abs_diff(g) <= 1 && g.abs_diff(b) <= 1,
                    "{transfer:?} {value}"
                );
                assert!(g >= before, "{transfer:?} {value}");
                before = g;
            }
            assert!(before >= 250);
        }
        assert!(
            ToneMap::new(Look {
                transfer: Transfer::Sdr,
                gamut: Gamut::Bt709
            })
            .is_none()
        );
    }
}

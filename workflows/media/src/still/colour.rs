//! Rows of decoded samples to rows of sRGB with straight alpha.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use moxcms::{
    CicpColorPrimaries, CicpProfile, ColorProfile, DataColorSpace, Layout, MatrixCoefficients,
    RenderingIntent, ToneReprCurve, TransferCharacteristics, TransformExecutor, TransformOptions,
};

use super::raw::{Colour, Model, Sample};

type Transform<T> = Arc<dyn TransformExecutor<T> + Send + Sync>;

/// Samples that `moxcms` converts.
pub(super) trait ColourSample: Sample {
    fn transform(profile: &ColorProfile, layout: Layout) -> Option<Transform<Self>>;
}

fn options() -> TransformOptions {
    TransformOptions {
        rendering_intent: RenderingIntent::Perceptual,
        // Whole-number arithmetic gives the same values whatever vector unit the machine has.
        prefer_fixed_point: true,
        ..TransformOptions::default()
    }
}

impl ColourSample for u8 {
    fn transform(profile: &ColorProfile, layout: Layout) -> Option<Transform<Self>> {
        let srgb = ColorProfile::new_srgb();
        profile
            .create_transform_8bit(layout, &srgb, Layout::Rgb, options())
            .ok()
    }
}

impl ColourSample for u16 {
    fn transform(profile: &ColorProfile, layout: Layout) -> Option<Transform<Self>> {
        let srgb = ColorProfile::new_srgb();
        profile
            .create_transform_16bit(layout, &srgb, Layout::Rgb, options())
            .ok()
    }
}

/// Converts rows of one picture.
pub(super) struct RowConverter<T> {
    model: Model,
    transform: Option<Transform<T>>,
    /// Channels that the transform takes.
    profile_channels: usize,
}

/// Working rows, kept between calls.
#[derive(Default)]
pub(super) struct Scratch<T> {
    from: Vec<T>,
    to: Vec<T>,
}

impl<T: ColourSample> RowConverter<T> {
    /// A converter for samples of `model` described by `colour`; what it decided goes to `notes`.
    pub(super) fn new(model: Model, colour: &Colour, notes: &mut Vec<String>) -> Self {
        // A profile is foreign input to a large library: a fault in there costs the profile only.
        let chosen = catch_unwind(AssertUnwindSafe(|| choose::<T>(model, colour, notes)));
        let (transform, profile_channels) = match chosen {
            Ok(Some((transform, channels))) => (Some(transform), channels),
            Ok(None) => (None, 0),
            Err(_) => {
                notes.push("the colour profile is damaged and was ignored".to_owned());
                (None, 0)
            }
        };
        if model == Model::Cmyk {
            notes.push(if transform.is_some() {
                "CMYK, converted through its colour profile".to_owned()
            } else {
                "CMYK without a usable colour profile: converted by formula, colours are approximate"
                    .to_owned()
            });
        }
        Self {
            model,
            transform,
            profile_channels,
        }
    }

    /// Convert one row. `from`: samples of the model; `to`: RGBA, as many pixels.
    pub(super) fn row(&self, from: &[T], to: &mut [T], scratch: &mut Scratch<T>) {
        let channels = self.model.channels();
        let opaque = T::narrow(T::MAX);
        for (pixel, out) in from.chunks_exact(channels).zip(to.chunks_exact_mut(4)) {
            match self.model {
                Model::Gray => out.copy_from_slice(&[pixel[0], pixel[0], pixel[0], opaque]),
                Model::GrayAlpha => out.copy_from_slice(&[pixel[0], pixel[0], pixel[0], pixel[1]]),
                Model::Rgb => out.copy_from_slice(&[pixel[0], pixel[1], pixel[2], opaque]),
                Model::Rgba => out.copy_from_slice(pixel),
                Model::Cmyk => {
                    let paper = T::MAX - pixel[3].wide();
                    for (value, ink) in out.iter_mut().zip(&pixel[..3]) {
                        let left = T::MAX - ink.wide();
                        *value = T::narrow(
                            ((u64::from(left) * u64::from(paper) + u64::from(T::MAX / 2))
                                / u64::from(T::MAX)) as u32,
                        );
                    }
                    out[3] = opaque;
                }
            }
        }
        let Some(transform) = &self.transform else {
            return;
        };
        scratch.from.clear();
        match self.profile_channels {
            1 => scratch
                .from
                .extend(to.chunks_exact(4).map(|pixel| pixel[0])),
            3 => scratch.from.extend(
                to.chunks_exact(4)
                    .flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]),
            ),
            _ => scratch.from.extend_from_slice(from),
        }
        scratch.to.clear();
        scratch.to.resize(to.len() / 4 * 3, T::default());
        // Fails only on lengths that do not match, which these do.
        if transform.transform(&scratch.from, &mut scratch.to).is_ok() {
            for (out, rgb) in to.chunks_exact_mut(4).zip(scratch.to.chunks_exact(3)) {
                out[..3].copy_from_slice(rgb);
            }
        }
    }
}

fn choose<T: ColourSample>(
    model: Model,
    colour: &Colour,
    notes: &mut Vec<String>,
) -> Option<(Transform<T>, usize)> {
    let (profile, what) = describe(model, colour, notes)?;
    let (layout, channels) = match profile.color_space {
        DataColorSpace::Rgb => (Layout::Rgb, 3),
        DataColorSpace::Gray => (Layout::Gray, 1),
        DataColorSpace::Cmyk => (Layout::Rgba, 4),
        _ => (Layout::Rgb, 0),
    };
    let fits = match model {
        // A gray picture with an RGB profile is that profile's neutral axis.
        Model::Gray | Model::GrayAlpha => channels == 1 || channels == 3,
        Model::Rgb | Model::Rgba => channels == 3,
        Model::Cmyk => channels == 4,
    };
    if !fits {
        notes.push(format!(
            "the colour profile is for {:?} samples, the picture has {model:?}: it was ignored",
            profile.color_space
        ));
        return None;
    }
    let Some(transform) = T::transform(&profile, layout) else {
        notes.push("the colour profile is damaged or incomplete and was ignored".to_owned());
        return None;
    };
    match is_identity::<T>(&transform, channels) {
        None => {
            notes.push("the colour profile does not work and was ignored".to_owned());
            None
        }
        Some(true) => None,
        Some(false) => {
            notes.push(format!("colours converted from {what} to sRGB"));
            Some((transform, channels))
        }
    }
}

/// The profile that describes the picture, and its name for people; nothing = sRGB already.
fn describe(
    model: Model,
    colour: &Colour,
    notes: &mut Vec<String>,
) -> Option<(ColorProfile, String)> {
    if let Some((primaries, transfer)) = colour.cicp {
        if let Some(profile) = of_cicp(primaries, transfer) {
            return Some((profile, format!("code points {primaries}/{transfer}")));
        }
        notes.push(format!(
            "colour code points {primaries}/{transfer} are not converted: colours may be off"
        ));
    }
    if let Some(icc) = &colour.icc {
        match ColorProfile::new_from_slice(icc) {
            Ok(profile) => {
                let name = profile_name(&profile);
                return Some((profile, format!("colour profile {name:?}")));
            }
            Err(error) => {
                notes.push(format!(
                    "the colour profile cannot be read and was ignored: {error}"
                ));
            }
        }
    }
    let gamma = colour.gamma?;
    // 1/2.2 is how PNG writers say sRGB; odd values outside 0.2..=5 are mistakes.
    if model == Model::Cmyk || (gamma - 2.2).abs() < 0.05 || !(0.2..=5.0).contains(&gamma) {
        return None;
    }
    let mut profile = ColorProfile::new_srgb();
    profile.cicp = None;
    let curve = ToneReprCurve::Parametric(vec![gamma]);
    profile.red_trc = Some(curve.clone());
    profile.green_trc = Some(curve.clone());
    profile.blue_trc = Some(curve);
    Some((profile, format!("gamma {gamma:.2}")))
}

fn profile_name(profile: &ColorProfile) -> String {
    use moxcms::ProfileText;
    let name = match &profile.description {
        Some(ProfileText::PlainString(text)) => text.clone(),
        Some(ProfileText::Localizable(all)) => {
            all.first().map(|one| one.value.clone()).unwrap_or_default()
        }
        Some(ProfileText::Description(text)) => text.ascii_string.clone(),
        None => String::new(),
    };
    name.trim_end_matches('\0').chars().take(60).collect()
}

fn of_cicp(primaries: u8, transfer: u8) -> Option<ColorProfile> {
    // HDR transfers (16 PQ, 18 HLG) need tone mapping, which stills do not get.
    if !matches!(transfer, 1 | 4 | 5 | 6 | 8 | 13 | 14 | 15) {
        return None;
    }
    let color_primaries = CicpColorPrimaries::try_from(primaries).ok()?;
    let profile = ColorProfile::new_from_cicp(CicpProfile {
        color_primaries,
        transfer_characteristics: TransferCharacteristics::try_from(transfer).ok()?,
        matrix_coefficients: MatrixCoefficients::Identity,
        full_range: true,
    });
    profile.is_matrix_shaper().then_some(profile)
}

/// Whether a transform moves no colour by more than 1/255; nothing if it fails.
fn is_identity<T: ColourSample>(transform: &Transform<T>, channels: usize) -> Option<bool> {
    const STEPS: u32 = 8;
    let level = |n: u32| T::narrow((u64::from(T::MAX) * u64::from(n) / u64::from(STEPS)) as u32);
    let mut from = Vec::new();
    match channels {
        1 => from.extend((0..=32).map(|n| T::narrow(T::MAX / 32 * n))),
        3 => {
            for n in 0..(STEPS + 1).pow(3) {
                let side = STEPS + 1;
                from.extend([
                    level(n % side),
                    level(n / side % side),
                    level(n / side / side),
                ]);
            }
        }
        _ => from.extend([T::default(); 4]),
    }
    let mut to = vec![T::default(); from.len() / channels * 3];
    transform.transform(&from, &mut to).ok()?;
    let limit = T::MAX / 255;
    let same = |a: T, b: T| a.wide().abs_diff(b.wide()) <= limit;
    Some(match channels {
        1 => from
            .iter()
            .zip(to.chunks_exact(3))
            .all(|(gray, rgb)| rgb.iter().all(|value| same(*gray, *value))),
        3 => from.iter().zip(&to).all(|(a, b)| same(*a, *b)),
        _ => false,
    })
}

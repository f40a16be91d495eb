//! Pictures as files have them to planes and back, so that no processor of the host touches their pixels.

use engine_tensor::ops::{Bound, Outcome, words};

use super::case::{Case, Op, from_half, numbers, to_half};
use super::elementwise::{fits, int};
use crate::args::Args;
use crate::device::Kernel;
use crate::driver::Grid;
use crate::error::ensure;
use crate::{Buffer, CudaError, Device};

pub(super) const OP: Op = Op {
    name: "raster",
    cases,
};

/// A picture of three interleaved channels and a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RasterPart {
    /// Height and width of the picture.
    pub size: (usize, usize),
    /// Bytes of a value: 1 or 2.
    pub bytes: usize,
    /// Row and column at which the part begins; before 0 lies the mirror image.
    pub start: (isize, isize),
    /// Height and width of the part.
    pub part: (usize, usize),
}

fn launch(
    device: &Device,
    names: [&'static str; 2],
    (from, to): (&Buffer, &Buffer),
    over: (usize, usize),
    raster: &RasterPart,
) -> Result<(), CudaError> {
    const OP: &str = "raster";
    let known = matches!(raster.bytes, 1 | 2);
    ensure(known, OP, "bytes of a value", raster.bytes, "1 or 2")?;
    let sides = [raster.size.0, raster.size.1, raster.part.0, raster.part.1];
    for side in sides {
        ensure((1..1 << 16).contains(&side), OP, "side", side, "1 to 65535")?;
    }
    let count = |value: usize| int(OP, "side", value);
    let start = |value: isize| {
        let fitting = i32::try_from(value).ok().filter(|v| v.abs() < 1 << 20);
        ensure(
            fitting.is_some(),
            OP,
            "start",
            value.unsigned_abs(),
            "under 2^20",
        )?;
        Ok::<i32, CudaError>(fitting.unwrap_or(0))
    };
    let args = Args::new()
        .with(from.address())
        .with(to.address())
        .with(count(raster.size.0)?)
        .with(count(raster.size.1)?)
        .with(start(raster.start.1)?)
        .with(start(raster.start.0)?)
        .with(count(raster.part.0)?)
        .with(count(raster.part.1)?);
    let grid = Grid {
        blocks: (
            count(over.1.div_ceil(256))?.cast_unsigned(),
            count(over.0)?.cast_unsigned(),
            1,
        ),
        threads: 256,
        shared_bytes: 0,
        early: false,
    };
    let kernel = Kernel {
        source: "conv_stream",
        name: names[raster.bytes - 1],
    };
    // SAFETY: callers checked lengths.
    unsafe { device.launch(kernel, grid, args, (OP, &sides)) }
}

/// The part of `raster: [height, width, 3]`, values over their largest, to `planes: [3, part]`, f16.
///
/// # Errors
/// `Shape`; those of a launch.
pub fn raster_to_planes(
    device: &Device,
    raster: &Buffer,
    planes: &Buffer,
    about: &RasterPart,
) -> Result<(), CudaError> {
    let (pixels, part) = (about.size.0 * about.size.1, about.part.0 * about.part.1);
    fits("raster", "raster", raster, 3 * pixels, about.bytes)?;
    fits("raster", "planes", planes, 3 * part, 2)?;
    let names = ["raster_to_planes_8", "raster_to_planes_16"];
    launch(device, names, (raster, planes), about.part, about)
}

/// `planes: [3, part]`, f16, from pixel `start` on to `raster: [height, width, 3]`: the nearest values from 0 to their
/// largest.
///
/// # Errors
/// `Shape`, also when the raster reaches beyond the part; those of a launch.
pub fn planes_to_raster(
    device: &Device,
    planes: &Buffer,
    raster: &Buffer,
    about: &RasterPart,
) -> Result<(), CudaError> {
    const OP: &str = "raster";
    let (pixels, part) = (about.size.0 * about.size.1, about.part.0 * about.part.1);
    fits(OP, "raster", raster, 3 * pixels, about.bytes)?;
    fits(OP, "planes", planes, 3 * part, 2)?;
    for (start, size, part) in [
        (about.start.0, about.size.0, about.part.0),
        (about.start.1, about.size.1, about.part.1),
    ] {
        let end = start.checked_add_unsigned(size);
        let inside = start >= 0 && end.is_some_and(|end| end.unsigned_abs() <= part);
        ensure(
            inside,
            OP,
            "start",
            start.unsigned_abs(),
            "inside the planes",
        )?;
    }
    let names = ["planes_to_raster_8", "planes_to_raster_16"];
    launch(device, names, (planes, raster), about.size, about)
}

fn mirrored(at: isize, len: usize) -> usize {
    let period = 2 * (len as isize - 1).max(1);
    let at = at.rem_euclid(period);
    if len == 1 {
        0
    } else {
        at.min(period - at) as usize
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (height, width) in [(1, 1), (5, 3), (40, 300)] {
        for bytes in [1, 2] {
            let part = RasterPart {
                size: (height, width),
                bytes,
                start: (-8, -8),
                part: (height + 16, width + 16),
            };
            let name = format!("{width} x {height} px, {bytes} bytes");
            cases.push(Case::new(
                format!("{name}, to planes"),
                // The nearest f16.
                Bound::Relative(5e-4),
                move |device, _| to_planes_case(device, &part),
            ));
            cases.push(Case::new(
                format!("{name}, back"),
                Bound::Equal,
                move |device, _| back_case(device, &part),
            ));
        }
    }
    cases
}

fn to_planes_case(device: &Device, about: &RasterPart) -> Result<Outcome, CudaError> {
    let ((height, width), (rows, columns)) = (about.size, about.part);
    let bytes: Vec<u8> = words(3, 3 * height * width * about.bytes)
        .map(|word| (word >> 56) as u8)
        .collect();
    let value = |at: usize| match about.bytes {
        1 => f32::from(bytes[at]) / 255.0,
        _ => f32::from(u16::from_le_bytes([bytes[2 * at], bytes[2 * at + 1]])) / 65535.0,
    };
    let reference = (0..3 * rows * columns)
        .map(|at| {
            let (c, y, x) = (at / (rows * columns), at / columns % rows, at % columns);
            let y = mirrored(about.start.0 + y as isize, height);
            let x = mirrored(about.start.1 + x as isize, width);
            value((y * width + x) * 3 + c)
        })
        .collect();
    let (raster, planes) = (device.upload(&bytes)?, device.alloc(6 * rows * columns)?);
    device.fill(&planes, 0xff)?;
    raster_to_planes(device, &raster, &planes, about)?;
    let fast = from_half(&device.read(&planes, 0, 3 * rows * columns)?);
    Ok(Outcome { fast, reference })
}

fn back_case(device: &Device, about: &RasterPart) -> Result<Outcome, CudaError> {
    let ((height, width), (rows, columns)) = (about.size, about.part);
    let about = RasterPart {
        start: (8, 8),
        ..*about
    };
    let most = if about.bytes == 1 { 255.0f32 } else { 65535.0 };
    let mut values: Vec<f32> = numbers(1, 3 * rows * columns);
    values[8 * columns + 8] = f32::NAN;
    let bits = to_half(&values);
    let exact = from_half(&bits);
    let reference = (0..3 * height * width)
        .map(|at| {
            let (y, x, c) = (at / (3 * width), at / 3 % width, at % 3);
            let value = exact[(c * rows + y + 8) * columns + x + 8] * most;
            if value.is_nan() {
                0.0
            } else {
                (value.clamp(0.0, most) + 0.5).floor()
            }
        })
        .collect();
    let planes = device.upload(&bits)?;
    let raster = device.alloc(3 * height * width * about.bytes)?;
    device.fill(&raster, 0xff)?;
    planes_to_raster(device, &planes, &raster, &about)?;
    let fast = if about.bytes == 1 {
        let values: Vec<u8> = device.read(&raster, 0, 3 * height * width)?;
        values.into_iter().map(f32::from).collect()
    } else {
        let values: Vec<u16> = device.read(&raster, 0, 3 * height * width)?;
        values.into_iter().map(f32::from).collect()
    };
    Ok(Outcome { fast, reference })
}

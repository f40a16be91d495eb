//! Still pictures: PNG, JPEG, WebP and TIFF files to upright sRGB, and back.
//!
//! The type is found by content, never by extension. Limits are held against the header before
//! anything is decoded. What was converted or is odd comes back as notes for people.

mod colour;
mod decode;
mod header;
pub(crate) mod raw;
mod reduce;
mod save;
pub(crate) mod sniff;
mod tiff;

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read as _, Seek, SeekFrom, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use image::ImageEncoder as _;

use self::colour::{ColourSample, RowConverter};
use self::raw::{Raw, Samples};
pub use self::save::{SavePicture, SaveSamples, check_still_name, jpeg_of, save_still};
use crate::{MediaError, Picture, Pixels};

/// Longest side that is read.
pub const MAX_SIDE_PX: u32 = 32_768;
/// Most pixels that are read.
pub const MAX_PIXELS: u64 = 200_000_000;
/// Largest file that is read.
pub const MAX_FILE_BYTES: u64 = 2 << 30;

/// How to read a still.
#[derive(Debug, Clone, Copy, Default)]
pub struct StillOptions {
    /// Make the picture smaller right after decoding so that its longer side is at most this.
    /// Never makes it larger.
    pub max_side_px: Option<u32>,
}

/// A still that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The picture: upright, sRGB, straight alpha; 16 bits a channel where the file has them.
    pub picture: Picture,
    /// Size in the file, before it was turned upright or made smaller.
    pub coded_width_px: u32,
    /// Height in the file.
    pub coded_height_px: u32,
    /// What was converted or is odd, for people.
    pub notes: Vec<String>,
}

/// Read a still. Sides up to [`MAX_SIDE_PX`], up to [`MAX_PIXELS`] in all.
///
/// # Errors
/// [`MediaError::BadFile`] for empty, damaged or cut files and for anything that is not one of the
/// four types; [`MediaError::TooLarge`]; [`MediaError::Io`].
pub fn load_still(path: &Path, options: &StillOptions) -> Result<Picture, MediaError> {
    load_still_noted(path, options).map(|loaded| loaded.picture)
}

/// [`load_still`] with notes on what was converted.
///
/// # Errors
/// As [`load_still`].
pub fn load_still_noted(path: &Path, options: &StillOptions) -> Result<Loaded, MediaError> {
    let io = |what| {
        move |source| MediaError::Io {
            what,
            path: path.to_owned(),
            source,
        }
    };
    let meta = std::fs::metadata(path).map_err(io("cannot open a picture"))?;
    if meta.is_dir() {
        return Err(bad(path, "expected a picture, got a folder".to_owned()));
    }
    let file = File::open(path).map_err(io("cannot open a picture"))?;
    read(BufReader::new(file), meta.len(), path, options)
}

/// Width and height of a still as they stand in its file, from its head alone.
///
/// # Errors
/// [`MediaError::Io`]; [`MediaError::BadFile`] for what has no head that can be read. A file whose
/// size is told may still be refused by [`load_still`].
pub fn still_size_px(path: &Path) -> Result<(u32, u32), MediaError> {
    let io = |source| MediaError::Io {
        what: "cannot open a picture",
        path: path.to_owned(),
        source,
    };
    let file = BufReader::new(File::open(path).map_err(io)?);
    let reader = image::ImageReader::new(file)
        .with_guessed_format()
        .map_err(io)?;
    reader
        .into_dimensions()
        .map_err(|error| bad(path, format!("the picture's size cannot be read: {error}")))
}

/// Write an 8-bit PNG. 16-bit pictures are rounded.
///
/// # Errors
/// [`MediaError::Io`]; [`MediaError::BadRequest`] for a picture whose data does not fit its size.
pub fn save_png(picture: &Picture, path: &Path) -> Result<(), MediaError> {
    let io = |source| MediaError::Io {
        what: "cannot write a PNG picture",
        path: path.to_owned(),
        source,
    };
    let narrowed;
    let data = match &picture.pixels {
        Pixels::Rgba8(data) => data,
        Pixels::Rgba16(_) => {
            narrowed = picture.clone().into_8_bit();
            let Pixels::Rgba8(data) = &narrowed.pixels else {
                return Err(MediaError::BadRequest("cannot narrow a picture".to_owned()));
            };
            data
        }
    };
    let expected = u64::from(picture.width_px) * u64::from(picture.height_px) * 4;
    if data.len() as u64 != expected || expected == 0 {
        return Err(MediaError::BadRequest(format!(
            "cannot write a PNG of {} x {} px: expected {expected} values, got {}",
            picture.width_px,
            picture.height_px,
            data.len()
        )));
    }
    let mut file = BufWriter::new(File::create(path).map_err(io)?);
    image::codecs::png::PngEncoder::new(&mut file)
        .write_image(
            data,
            picture.width_px,
            picture.height_px,
            image::ExtendedColorType::Rgba8,
        )
        .map_err(|error| match error {
            image::ImageError::IoError(source) => io(source),
            other => io(std::io::Error::other(other)),
        })?;
    file.flush().map_err(io)
}

fn bad(path: &Path, what: String) -> MediaError {
    MediaError::BadFile {
        what,
        path: path.to_owned(),
    }
}

/// Refuse sizes over the limits.
fn check_size(width_px: u32, height_px: u32, path: &Path) -> Result<(), MediaError> {
    if width_px == 0 || height_px == 0 {
        return Err(bad(
            path,
            format!("the picture says that it is {width_px} x {height_px} px"),
        ));
    }
    let pixels = u64::from(width_px) * u64::from(height_px);
    if width_px.max(height_px) > MAX_SIDE_PX || pixels > MAX_PIXELS {
        return Err(MediaError::TooLarge {
            what: format!(
                "the picture is {width_px} x {height_px} px, expected sides up to {MAX_SIDE_PX} px \
                 and up to {} million pixels",
                MAX_PIXELS / 1_000_000
            ),
            path: path.to_owned(),
        });
    }
    Ok(())
}

pub(crate) fn read<R: BufRead + Seek>(
    mut reader: R,
    len_bytes: u64,
    path: &Path,
    options: &StillOptions,
) -> Result<Loaded, MediaError> {
    let io = |source| MediaError::Io {
        what: "cannot read a picture",
        path: path.to_owned(),
        source,
    };
    if len_bytes == 0 {
        return Err(bad(
            path,
            "expected a picture, got an empty file".to_owned(),
        ));
    }
    if len_bytes > MAX_FILE_BYTES {
        return Err(MediaError::TooLarge {
            what: format!(
                "the picture file has {len_bytes} bytes, expected up to {MAX_FILE_BYTES}"
            ),
            path: path.to_owned(),
        });
    }
    let mut head = Vec::with_capacity(sniff::HEAD_BYTES);
    std::io::Read::take(&mut reader, sniff::HEAD_BYTES as u64)
        .read_to_end(&mut head)
        .map_err(io)?;
    let Some(kind) = sniff::kind(&head) else {
        return Err(bad(
            path,
            format!(
                "expected a PNG, JPEG, WebP or TIFF picture, got {}",
                sniff::looks_like(&head)
            ),
        ));
    };
    reader.seek(SeekFrom::Start(0)).map_err(io)?;
    // The decoders are foreign code on foreign input: a fault in one is a damaged file.
    catch_unwind(AssertUnwindSafe(|| {
        let raw = decode::decode(kind, reader, len_bytes, path)?;
        Ok(settle(raw, options))
    }))
    .unwrap_or_else(|_| {
        Err(bad(
            path,
            format!("the {} picture is damaged: its decoder failed", kind.name()),
        ))
    })
}

fn settle(raw: Raw, options: &StillOptions) -> Loaded {
    let Raw {
        width_px,
        height_px,
        model,
        samples,
        colour,
        orientation,
        mut notes,
    } = raw;
    let out = reduce::fitted(width_px, height_px, options.max_side_px);
    let pixels = match samples {
        Samples::U8(data) => {
            let converter = RowConverter::new(model, &colour, &mut notes);
            Pixels::Rgba8(sized(&data, (width_px, height_px), out, &converter))
        }
        Samples::U16(data) => {
            let converter = RowConverter::new(model, &colour, &mut notes);
            Pixels::Rgba16(sized(&data, (width_px, height_px), out, &converter))
        }
    };
    if out != (width_px, height_px) {
        notes.push(format!(
            "made smaller from {width_px} x {height_px} to {} x {} px",
            out.0, out.1
        ));
    }
    if orientation > 1 {
        notes.push(format!("turned upright (orientation {orientation})"));
    }
    let picture = Picture {
        width_px: out.0,
        height_px: out.1,
        pixels,
    }
    .oriented(orientation);
    Loaded {
        picture,
        coded_width_px: width_px,
        coded_height_px: height_px,
        notes,
    }
}

fn sized<T: ColourSample>(
    samples: &[T],
    from: (u32, u32),
    to: (u32, u32),
    converter: &RowConverter<T>,
) -> Vec<T> {
    let size = |(width, height): (u32, u32)| (width as usize, height as usize);
    if from == to {
        let (width, height) = size(from);
        reduce::whole(samples, width, height, converter)
    } else {
        reduce::smaller(samples, size(from), size(to), converter)
    }
}

#[cfg(test)]
mod tests;

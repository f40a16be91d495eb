//! The soundfont: SF3 (Vorbis samples) made into SF2 (plain samples) in memory, because the
//! synthesizer reads SF2 only. Only samples of the presets asked for are decoded.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use lewton::inside_ogg::OggStreamReader;
use rustysynth::SoundFont;

/// Generator that names the instrument of a preset zone.
const GEN_INSTRUMENT: u16 = 41;
/// Generator that names the sample of an instrument zone.
const GEN_SAMPLE: u16 = 53;
/// Flag of a sample's type: Vorbis.
const TYPE_VORBIS: u16 = 0x10;
/// Silence after each sample, as the format wants it.
const GAP: usize = 46;
/// Silence in which samples that are not used lie; long, as zones may shift their ends.
const UNUSED: usize = 1_000_000;
const UNUSED_PLACES: [u32; 4] = [400_000, 600_000, 450_000, 550_000];

fn u16_at(bytes: &[u8], at: usize) -> Result<u16> {
    let pair = bytes.get(at..at + 2).context("the soundfont ends early")?;
    Ok(u16::from_le_bytes([pair[0], pair[1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32> {
    Ok(u32::from(u16_at(bytes, at)?) | u32::from(u16_at(bytes, at + 2)?) << 16)
}

/// The chunks of `bytes`: name and content.
fn chunks(bytes: &[u8]) -> Result<Vec<(&[u8], &[u8])>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at + 8 <= bytes.len() {
        let size = u32_at(bytes, at + 4)? as usize;
        let content = bytes
            .get(at + 8..at + 8 + size)
            .context("a chunk is cut off")?;
        found.push((&bytes[at..at + 4], content));
        at += 8 + size + size % 2;
    }
    Ok(found)
}

fn chunk<'a>(list: &[(&'a [u8], &'a [u8])], name: &str) -> Result<&'a [u8]> {
    let found = list.iter().find(|(id, _)| *id == name.as_bytes());
    Ok(found
        .with_context(|| format!("the soundfont has no {name:?}"))?
        .1)
}

/// Values of generator `wanted` in zones `first..last` of a preset or instrument.
fn values(bags: &[u8], gens: &[u8], first: u16, last: u16, wanted: u16) -> Result<Vec<u16>> {
    let start = u16_at(bags, usize::from(first) * 4)?;
    let end = u16_at(bags, usize::from(last) * 4)?;
    let mut found = Vec::new();
    for at in start..end {
        if u16_at(gens, usize::from(at) * 4)? == wanted {
            found.push(u16_at(gens, usize::from(at) * 4 + 2)?);
        }
    }
    Ok(found)
}

/// Numbers of the samples that `presets` (bank, program) sound with.
fn used_samples(pdta: &[(&[u8], &[u8])], presets: &[(u16, u16)]) -> Result<BTreeSet<u16>> {
    let (phdr, pbag, pgen) = (
        chunk(pdta, "phdr")?,
        chunk(pdta, "pbag")?,
        chunk(pdta, "pgen")?,
    );
    let (inst, ibag, igen) = (
        chunk(pdta, "inst")?,
        chunk(pdta, "ibag")?,
        chunk(pdta, "igen")?,
    );
    let mut samples = BTreeSet::new();
    let mut met = BTreeSet::new();
    for at in 0..phdr.len() / 38 - 1 {
        let key = (u16_at(phdr, at * 38 + 22)?, u16_at(phdr, at * 38 + 20)?);
        if !presets.contains(&key) {
            continue;
        }
        met.insert(key);
        let (first, last) = (u16_at(phdr, at * 38 + 24)?, u16_at(phdr, at * 38 + 62)?);
        for instrument in values(pbag, pgen, first, last, GEN_INSTRUMENT)? {
            let place = usize::from(instrument) * 22 + 20;
            let (first, last) = (u16_at(inst, place)?, u16_at(inst, place + 22)?);
            samples.extend(values(ibag, igen, first, last, GEN_SAMPLE)?);
        }
    }
    for preset in presets {
        ensure!(
            met.contains(preset),
            "the soundfont has no preset {preset:?} (bank, program)"
        );
    }
    Ok(samples)
}

fn decode(ogg: &[u8]) -> Result<Vec<i16>> {
    let mut reader = OggStreamReader::new(Cursor::new(ogg)).context("a sample is not Vorbis")?;
    let mut samples = Vec::new();
    while let Some(packet) = reader.read_dec_packet_itl()? {
        samples.extend(packet);
    }
    if reader.ident_hdr.audio_channels != 1 {
        bail!(
            "a sample has {} channels, expected 1",
            reader.ident_hdr.audio_channels
        );
    }
    Ok(samples)
}

fn put_chunk(out: &mut Vec<u8>, name: &[u8], content: &[u8]) -> Result<()> {
    out.extend_from_slice(name);
    out.extend_from_slice(&u32::try_from(content.len())?.to_le_bytes());
    out.extend_from_slice(content);
    if content.len() % 2 == 1 {
        out.push(0);
    }
    Ok(())
}

fn put_list(out: &mut Vec<u8>, kind: &[u8], list: &[(&[u8], &[u8])]) -> Result<()> {
    let mut content = kind.to_vec();
    for (name, bytes) in list {
        put_chunk(&mut content, name, bytes)?;
    }
    put_chunk(out, b"LIST", &content)
}

/// Reads the presets (bank, program) of the SF3 file at `path`.
pub fn load(path: &Path, presets: &[(u16, u16)]) -> Result<Arc<SoundFont>> {
    let file = std::fs::read(path)
        .with_context(|| format!("cannot read the soundfont {}", path.display()))?;
    ensure!(
        file.get(8..12) == Some(b"sfbk"),
        "no soundfont: {}",
        path.display()
    );
    let mut lists = Vec::new();
    for (_, content) in chunks(&file[12..])? {
        lists.push((&content[..4], chunks(&content[4..])?));
    }
    let [(_, info), (_, sdta), (_, pdta)] = lists.as_slice() else {
        bail!("expected three lists in the soundfont, got {}", lists.len());
    };
    let coded = chunk(sdta, "smpl")?;
    let mut headers = chunk(pdta, "shdr")?.to_vec();
    let used = used_samples(pdta, presets)?;
    let mut wave = vec![0_i16; UNUSED];
    for number in 0..headers.len() / 46 - 1 {
        let at = number * 46 + 20;
        let field = |index: usize| u32_at(&headers, at + index * 4);
        let (start, end, loop_start, loop_end) = (field(0)?, field(1)?, field(2)?, field(3)?);
        let kind = u16_at(&headers, at + 24)?;
        ensure!(kind & TYPE_VORBIS != 0, "sample {number} is not Vorbis");
        let mut places = UNUSED_PLACES;
        if used.contains(&u16::try_from(number)?) {
            let samples = decode(
                coded
                    .get(start as usize..end as usize)
                    .context("a cut sample")?,
            )?;
            let first = u32::try_from(wave.len())?;
            let last = first + u32::try_from(samples.len())?;
            places = [
                first,
                last,
                first + loop_start,
                (first + loop_end).min(last),
            ];
            wave.extend(samples);
            wave.extend([0; GAP]);
        }
        for (index, place) in places.into_iter().enumerate() {
            headers[at + index * 4..at + index * 4 + 4].copy_from_slice(&place.to_le_bytes());
        }
        headers[at + 24..at + 26].copy_from_slice(&(kind & !TYPE_VORBIS).to_le_bytes());
    }
    let wave: Vec<u8> = wave
        .iter()
        .flat_map(|sample| sample.to_le_bytes())
        .collect();
    let version = [2, 0, 1, 0];
    let plain_info: Vec<(&[u8], &[u8])> = info
        .iter()
        .map(|(name, bytes)| {
            (
                *name,
                if *name == b"ifil" {
                    &version[..]
                } else {
                    *bytes
                },
            )
        })
        .collect();
    let plain_pdta: Vec<(&[u8], &[u8])> = pdta
        .iter()
        .map(|(name, bytes)| {
            (
                *name,
                if *name == b"shdr" {
                    &headers[..]
                } else {
                    *bytes
                },
            )
        })
        .collect();
    let mut body = b"sfbk".to_vec();
    put_list(&mut body, b"INFO", &plain_info)?;
    put_list(&mut body, b"sdta", &[(b"smpl", &wave)])?;
    put_list(&mut body, b"pdta", &plain_pdta)?;
    let mut out = Vec::new();
    put_chunk(&mut out, b"RIFF", &body)?;
    let font = SoundFont::new(&mut Cursor::new(out))
        .map_err(|error| anyhow::anyhow!("the converted soundfont is refused: {error}"))?;
    Ok(Arc::new(font))
}

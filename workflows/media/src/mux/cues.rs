//! Subtitles as MP4 timed text.

use ffmpeg_next as av;
use flow_timeline::Cue;

use crate::MediaError;
use crate::ff::failed;

/// A stretch of film with one text; stretches never overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FlatCue {
    pub first_frame: i64,
    pub frames: i64,
    pub text: String,
}

/// A track holds one text at a time: where cues overlap, their texts stand under each other, in
/// order of their start. Cut to the film's `frames`.
pub(crate) fn flatten(cues: &[Cue], frames: i64) -> Vec<FlatCue> {
    let mut kept: Vec<(i64, i64, &str)> = cues
        .iter()
        .filter(|cue| !cue.text.trim().is_empty())
        .map(|cue| {
            let end = cue.first_frame.saturating_add(cue.frames.max(0));
            (
                cue.first_frame.clamp(0, frames),
                end.clamp(0, frames),
                cue.text.trim(),
            )
        })
        .filter(|(start, end, _)| end > start)
        .collect();
    kept.sort_by_key(|(start, ..)| *start);
    let mut edges: Vec<i64> = kept
        .iter()
        .flat_map(|(start, end, _)| [*start, *end])
        .collect();
    edges.sort_unstable();
    edges.dedup();
    let mut out: Vec<FlatCue> = Vec::new();
    let mut low = 0;
    for pair in edges.windows(2) {
        while kept.get(low).is_some_and(|(_, end, _)| *end <= pair[0]) {
            low += 1;
        }
        let shown: Vec<&str> = kept[low..]
            .iter()
            .take_while(|(start, ..)| *start <= pair[0])
            .filter(|(_, end, _)| *end > pair[0])
            .map(|(.., text)| *text)
            .collect();
        if shown.is_empty() {
            continue;
        }
        let text = shown.join("\n").replace("\r\n", "\n").replace('\r', "\n");
        match out.last_mut() {
            Some(last) if last.text == text && last.first_frame + last.frames == pair[0] => {
                last.frames += pair[1] - pair[0];
            }
            _ => out.push(FlatCue {
                first_frame: pair[0],
                frames: pair[1] - pair[0],
                text,
            }),
        }
    }
    out
}

/// A timed text sample: length, then the words. Longer texts are cut at a character.
pub(crate) fn packet(text: &str) -> Result<av::Packet, MediaError> {
    let mut end = text.len().min(usize::from(u16::MAX));
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let words = &text.as_bytes()[..end];
    let mut packet = av::Packet::new(words.len() + 2);
    let Some(data) = packet.data_mut() else {
        return Err(failed("make a subtitle packet")(av::Error::Unknown));
    };
    data[..2].copy_from_slice(&(words.len() as u16).to_be_bytes());
    data[2..].copy_from_slice(words);
    Ok(packet)
}

/// Stream description: white text, centred at the bottom of a picture of this size.
pub(crate) fn parameters(
    width_px: u32,
    height_px: u32,
) -> Result<av::codec::Parameters, MediaError> {
    let side = |px: u32| px.min(u32::from(u16::MAX)) as u16;
    let font_px = (height_px / 18).clamp(8, 255) as u8;
    let mut head: Vec<u8> = Vec::new();
    head.extend([0; 4]); // display flags
    head.extend([1, 0xFF]); // centred, at the bottom
    head.extend([0, 0, 0, 0]); // no background
    for edge in [0, 0, side(height_px), side(width_px)] {
        head.extend(edge.to_be_bytes());
    }
    head.extend([0, 0, 0, 0, 0, 1, 0, font_px]); // whole text, font 1, plain
    head.extend([255, 255, 255, 255]);
    let font = b"Sans-Serif";
    head.extend((8 + 2 + 2 + 1 + font.len() as u32).to_be_bytes());
    head.extend(b"ftab");
    head.extend([0, 1, 0, 1, font.len() as u8]);
    head.extend(font);
    let mut parameters = av::codec::Parameters::new();
    // SAFETY: the parameters are alive and own nothing yet. FFmpeg frees the description with
    // them, so it must come from FFmpeg's allocator, padded with zeros as it asks.
    unsafe {
        let raw = parameters.as_mut_ptr();
        let padding = av::ffi::AV_INPUT_BUFFER_PADDING_SIZE as usize;
        let data = av::ffi::av_mallocz(head.len() + padding).cast::<u8>();
        if data.is_null() {
            return Err(failed("make a subtitle stream")(av::Error::from(
                av::ffi::AVERROR(12),
            )));
        }
        std::ptr::copy_nonoverlapping(head.as_ptr(), data, head.len());
        (*raw).codec_type = av::ffi::AVMediaType::AVMEDIA_TYPE_SUBTITLE;
        (*raw).codec_id = av::ffi::AVCodecID::AV_CODEC_ID_MOV_TEXT;
        (*raw).extradata = data;
        (*raw).extradata_size = head.len() as i32;
        (*raw).width = width_px as i32;
        (*raw).height = (height_px / 6) as i32;
    }
    Ok(parameters)
}

/// Three letters, as MP4 holds a language: of `en`, `en-GB` or `eng`. Unknown ones are `und`.
pub(crate) fn language_code(language: &str) -> String {
    let main = language
        .split(['-', '_'])
        .next()
        .unwrap_or("")
        .to_ascii_lowercase();
    const CODES: [(&str, &str); 44] = [
        ("ar", "ara"),
        ("bg", "bul"),
        ("bn", "ben"),
        ("ca", "cat"),
        ("cs", "ces"),
        ("da", "dan"),
        ("de", "deu"),
        ("el", "ell"),
        ("en", "eng"),
        ("es", "spa"),
        ("et", "est"),
        ("fa", "fas"),
        ("fi", "fin"),
        ("fr", "fra"),
        ("ga", "gle"),
        ("he", "heb"),
        ("hi", "hin"),
        ("hr", "hrv"),
        ("hu", "hun"),
        ("id", "ind"),
        ("is", "isl"),
        ("it", "ita"),
        ("ja", "jpn"),
        ("ko", "kor"),
        ("lt", "lit"),
        ("lv", "lav"),
        ("ms", "msa"),
        ("nl", "nld"),
        ("no", "nor"),
        ("pl", "pol"),
        ("pt", "por"),
        ("ro", "ron"),
        ("ru", "rus"),
        ("sk", "slk"),
        ("sl", "slv"),
        ("sr", "srp"),
        ("sv", "swe"),
        ("ta", "tam"),
        ("th", "tha"),
        ("tr", "tur"),
        ("uk", "ukr"),
        ("ur", "urd"),
        ("vi", "vie"),
        ("zh", "zho"),
    ];
    if let Some((_, code)) = CODES.iter().find(|(two, _)| *two == main) {
        return (*code).into();
    }
    if main.len() == 3 && main.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return main;
    }
    "und".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cue(first_frame: i64, frames: i64, text: &str) -> Cue {
        Cue {
            first_frame,
            frames,
            text: text.into(),
        }
    }

    #[test]
    fn overlapping_cues_stand_under_each_other() {
        let flat = flatten(
            &[
                cue(20, 20, "b"),
                cue(-5, 30, "a"),
                cue(90, 40, "c"),
                cue(50, 0, "d"),
            ],
            100,
        );
        let flat: Vec<_> = flat
            .iter()
            .map(|c| (c.first_frame, c.frames, c.text.as_str()))
            .collect();
        assert_eq!(
            flat,
            [(0, 20, "a"), (20, 5, "a\nb"), (25, 15, "b"), (90, 10, "c")]
        );
        assert_eq!(language_code("en-GB"), "eng");
        assert_eq!(language_code("tlh"), "tlh");
        assert_eq!(language_code("?"), "und");
    }
}

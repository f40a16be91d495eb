use std::path::PathBuf;

use engine_base::Rational;
use flow_timeline::Cue;

use super::*;

fn case(name: &str) -> Vec<u8> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    std::fs::read(root.join(name)).unwrap()
}

const FIRST: &str = "Café – naïve, “quoted” 5 €";

#[test]
fn sub_01_every_odd_file_gives_its_two_cues() {
    for name in [
        "cp1252",
        "cr-only",
        "dots-and-short-ms",
        "leading-blank-lines",
        "leading-lrm",
        "long-arrow",
        "no-numbers",
        "utf16be-nobom",
        "utf16le-bom",
        "utf8-bom",
    ] {
        let file = read_subtitles(&case(&format!("sub-01/{name}.srt"))).unwrap();
        let times: Vec<_> = file
            .cues
            .iter()
            .map(|c| (c.start_millis, c.end_millis))
            .collect();
        assert_eq!(
            times,
            [(1000, 2500), (3000, 4000)],
            "{name}: {:?}",
            file.notes
        );
        assert_eq!(file.cues[0].text, FIRST, "{name} read as {}", file.encoding);
        let second = &file.cues[1].text;
        assert!(second.starts_with("Ñandú über "), "{name}: {second:?}");
    }
}

#[test]
fn sub_01_gbk_reads_right_and_says_so() {
    let file = read_subtitles(&case("sub-01/gbk.srt")).unwrap();
    assert_eq!(file.cues[0].text, "这是第一句话,场景在码头。");
    assert_eq!(file.encoding, "GBK");
    assert!(file.notes[0].to_string().contains("GBK"));
}

#[test]
fn sub_01_the_cut_is_named_with_its_line_and_the_rest_kept() {
    let file = read_subtitles(&case("sub-01/cut-off.srt")).unwrap();
    assert_eq!(file.cues.len(), 1);
    assert_eq!(file.cues[0].text, FIRST);
    assert_eq!(file.notes.len(), 1);
    assert_eq!(file.notes[0].line, 6);
}

#[test]
fn an_unclear_code_page_is_a_question_with_samples() {
    let mut bytes = b"1\n00:00:01,000 --> 00:00:02,000\n".to_vec();
    bytes.extend([0xC4, 0xE3, b'\n']);
    let Err(SubtitleError::EncodingUnclear(choices)) = read_subtitles(&bytes) else {
        panic!("two bytes cannot tell a code page");
    };
    let gbk = choices
        .iter()
        .find(|choice| choice.encoding == "GBK")
        .unwrap();
    assert_eq!(gbk.sample, "你");
    assert_eq!(read_subtitles_as(&bytes, "gbk").unwrap().cues[0].text, "你");
    assert!(matches!(
        read_subtitles_as(&bytes, "klingon"),
        Err(SubtitleError::UnknownEncoding(_))
    ));
}

#[test]
fn sub_03_the_written_file_keeps_logical_order_without_marks() {
    let bytes = case("sub-03/rtl.srt");
    let file = read_subtitles(&bytes).unwrap();
    assert_eq!(file.cues.len(), 5);
    assert_eq!(file.cues[4].text, "- לא.\n- כן!");
    let fps = Rational::whole(25);
    let cues: Vec<Cue> = file
        .cues
        .iter()
        .map(|cue| Cue {
            first_frame: cue.start_millis / 40,
            frames: (cue.end_millis - cue.start_millis) / 40,
            text: cue.text.clone(),
        })
        .collect();
    let written = write_srt(&cues, fps, &SrtStyle::default()).unwrap();
    let source = String::from_utf8(bytes).unwrap();
    assert_eq!(written.trim_end(), source.trim_end());
}

#[test]
fn style_decides_mark_and_line_ends_and_times_are_exact() {
    let cues = [Cue {
        first_frame: 1,
        frames: 107_891,
        text: "a\r\n\r\nb".into(),
    }];
    let fps = Rational::new(30_000, 1001).unwrap();
    let style = SrtStyle {
        crlf: true,
        bom: true,
    };
    let written = write_srt(&cues, fps, &style).unwrap();
    assert_eq!(
        written,
        "\u{FEFF}1\r\n00:00:00,033 --> 00:59:59,996\r\na\r\nb\r\n\r\n"
    );
    let read = read_subtitles(written.as_bytes()).unwrap();
    assert_eq!(read.cues[0].end_millis, 3_599_996);
}

#[test]
fn a_text_may_hold_blank_lines_numbers_and_arrows() {
    let text = "1\n00:00:01,000 --> 00:00:02,000 X1:40\nfirst\n\nthen -> on\n1984\n\n2\n0:03 --> 0:04,5\nlast";
    let file = read_subtitles(text.as_bytes()).unwrap();
    assert_eq!(file.cues[0].text, "first\n\nthen -> on\n1984");
    assert_eq!(
        (file.cues[1].start_millis, file.cues[1].end_millis),
        (3000, 4500)
    );
    assert!(matches!(
        read_subtitles(b"hello\nworld"),
        Ok(SrtFile { cues, notes, .. }) if cues.is_empty() && notes.len() == 2
    ));
}

#[test]
fn very_many_blank_lines_in_a_text_are_read_at_once() {
    let blank = "\n".repeat(400_000);
    let text = format!("00:00:01,000 --> 00:00:02,000\nfirst\n{blank}last");
    let start = std::time::Instant::now();
    let file = read_subtitles(text.as_bytes()).unwrap();
    assert_eq!(file.cues.len(), 1);
    assert_eq!(file.cues[0].text.len(), "first\n".len() + blank.len() + 4);
    // Looking on from each of them took minutes.
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
}

#[test]
fn mutated_files_never_panic_and_cues_stay_sound() {
    let seeds = [
        "utf8-bom",
        "utf16le-bom",
        "gbk",
        "cp1252",
        "long-arrow",
        "cr-only",
    ];
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    for seed in seeds {
        let original = case(&format!("sub-01/{seed}.srt"));
        for _ in 0..1500 {
            let mut bytes = original.clone();
            for _ in 0..1 + next() % 6 {
                let at = next() % bytes.len();
                match next() % 4 {
                    0 => bytes[at] = next() as u8,
                    1 => bytes.truncate(at.max(1)),
                    2 => bytes.insert(at, b":->,.\n\r0\0\xFF"[next() % 10]),
                    _ => {
                        bytes.remove(at);
                        if bytes.is_empty() {
                            bytes.push(b'1');
                        }
                    }
                }
            }
            if let Ok(file) = read_subtitles(&bytes) {
                for cue in &file.cues {
                    assert!(cue.end_millis > cue.start_millis && cue.start_millis >= 0);
                }
            }
        }
    }
}

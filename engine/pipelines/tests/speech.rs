//! Real voices speak: needs the packs that `cargo xtask setup` fetches. Kokoro's voices are tested
//! where `longtake models pull kokoro-82m-int8` put them.
#![allow(
    clippy::unwrap_used,
    reason = "a failed step of a test ends it; helpers count as test code"
)]

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use engine_base::{CancelToken, Code, NoProgress, ProgressEvent};
use engine_pipelines::{Speech, SpeechError, SpeechFiles, SpeechPipeline, SpeechRequest};

fn models() -> PathBuf {
    let data = || {
        let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
        std::env::var_os("XDG_DATA_HOME")
            .map_or_else(|| home.join(".local/share"), PathBuf::from)
            .join("longtake/models")
    };
    std::env::var_os("LONGTAKE_MODELS").map_or_else(data, PathBuf::from)
}

fn files() -> SpeechFiles {
    let kokoro = models().join("kokoro-82m-int8");
    let files = SpeechFiles {
        runtime: models().join("onnxruntime/libonnxruntime.so.1.32.0"),
        hibari: models().join("hibari-0.2.1"),
        kokoro: kokoro.join("verified.json").is_file().then_some(kokoro),
    };
    for path in [&files.runtime, &files.hibari] {
        assert!(
            path.exists(),
            "{path:?} is not there: fetch it with `cargo xtask setup`"
        );
    }
    files
}

fn pipeline() -> &'static SpeechPipeline {
    static OPENED: OnceLock<SpeechPipeline> = OnceLock::new();
    OPENED.get_or_init(|| SpeechPipeline::open(&files(), 2).unwrap())
}

fn say(pipeline: &SpeechPipeline, request: &SpeechRequest) -> Result<Speech, SpeechError> {
    pipeline.speak(request, &CancelToken::new(), &NoProgress)
}

fn secs(speech: &Speech) -> f64 {
    speech.samples.len() as f64 / f64::from(speech.rate_hz)
}

fn decibels(value: f64) -> f64 {
    20.0 * value.max(1e-9).log10()
}

/// Level of the speech in decibels of full scale: of blocks of 10 ms within 30 dB of the loudest.
fn level(samples: &[f32]) -> f64 {
    let square = |block: &[f32]| {
        let sum: f64 = block.iter().map(|value| f64::from(value * value)).sum();
        sum / block.len() as f64
    };
    let blocks: Vec<f64> = samples.chunks(240).map(square).collect();
    let loudest = blocks.iter().copied().fold(0.0, f64::max);
    let loud: Vec<f64> = blocks
        .into_iter()
        .filter(|block| *block > loudest * 1e-3)
        .collect();
    decibels((loud.iter().sum::<f64>() / loud.len() as f64).sqrt())
}

/// What holds of any speech.
fn check(request: &SpeechRequest, speech: &Speech) {
    assert_eq!(speech.rate_hz, 24_000);
    let peak = speech
        .samples
        .iter()
        .fold(0.0f32, |most, value| most.max(value.abs()));
    assert!(peak < 0.9, "it clips or nearly so: {peak}");
    assert!(speech.samples.iter().all(|value| value.is_finite()));
    let level = level(&speech.samples);
    assert!((-24.0..=-18.0).contains(&level), "the level is {level} dB");
    // Nothing clicks where it begins and ends.
    for edge in [speech.samples.first(), speech.samples.last()] {
        assert!(edge.is_some_and(|value| value.abs() < 1e-3), "{edge:?}");
    }
    let mut before = 0.0;
    for word in &speech.words {
        assert!(
            word.start_secs >= before - 1e-9,
            "{word:?} begins before {before}"
        );
        assert!(word.end_secs >= word.start_secs, "{word:?}");
        assert!(word.end_secs <= secs(speech) + 1e-9, "{word:?}");
        assert!(request.text.get(word.source.clone()).is_some(), "{word:?}");
        before = word.end_secs;
    }
}

const TEXT: &str = "The lighthouse keeper repairs the lamp before the storm. \
                    She climbs the stairs, slowly, and lights it.";

#[test]
fn the_default_voice_speaks_clearly_evenly_and_the_same_again() {
    let request = SpeechRequest::new(TEXT);
    let began = Instant::now();
    let speech = say(pipeline(), &request).unwrap();
    println!(
        "{:.2} s in {:.2} s",
        secs(&speech),
        began.elapsed().as_secs_f64()
    );
    check(&request, &speech);
    // 17 words at 130 to 230 a minute.
    assert_eq!(speech.words.len(), 17);
    assert!((4.4..7.5).contains(&secs(&speech)), "{}", secs(&speech));
    let alone = SpeechPipeline::open(&files(), 1).unwrap();
    let again = say(&alone, &request).unwrap();
    assert!(
        again == speech,
        "the same text sounds otherwise on one thread"
    );
    // A sentence sounds the same wherever it stands.
    let first = SpeechRequest::new(&TEXT[..56]);
    let first = say(&alone, &first).unwrap();
    assert!(speech.samples.starts_with(&first.samples));
}

#[test]
fn words_are_where_they_are_heard() {
    let request = SpeechRequest::new(TEXT);
    let speech = say(pipeline(), &request).unwrap();
    let at = |secs: f64| ((secs * 24_000.0) as usize).min(speech.samples.len());
    let named: Vec<&str> = speech
        .words
        .iter()
        .map(|word| request.text[word.source.clone()].trim_matches(['.', ',']))
        .collect();
    assert_eq!(named[..4], ["The", "lighthouse", "keeper", "repairs"]);
    for word in &speech.words {
        let length = word.end_secs - word.start_secs;
        assert!((0.02..1.2).contains(&length), "{word:?}");
        // Within half a frame more: a stop is silent up to its release.
        let (begin, end) = (word.start_secs - 0.025, word.end_secs + 0.025);
        let heard = level(&speech.samples[at(begin)..at(end)]);
        assert!(heard > -36.0, "{word:?} is silent: {heard} dB");
    }
    // Between the sentences there is the rest that was asked for.
    let (storm, she) = (&speech.words[8], &speech.words[9]);
    let rest = she.start_secs - storm.end_secs;
    assert!((0.4..0.8).contains(&rest), "{rest}");
    let middle = f64::midpoint(storm.end_secs, she.start_secs);
    let silent = &speech.samples[at(middle - 0.1)..at(middle + 0.1)];
    assert!(silent.iter().all(|value| value.abs() < 1e-3));
}

#[test]
fn a_slower_rate_is_longer_and_a_faster_one_shorter() {
    let mut request = SpeechRequest::new("The lighthouse keeper repairs the lamp.");
    let own = secs(&say(pipeline(), &request).unwrap());
    request.rate = 0.7;
    let slow = say(pipeline(), &request).unwrap();
    check(&request, &slow);
    request.rate = 1.4;
    let fast = say(pipeline(), &request).unwrap();
    check(&request, &fast);
    let (slow, fast) = (secs(&slow) / own, secs(&fast) / own);
    println!("{slow:.2} at 0.7, {fast:.2} at 1.4");
    assert!((1.25..1.6).contains(&slow) && (0.6..0.85).contains(&fast));
}

#[test]
fn requests_that_cannot_be_met_say_why() {
    let refused = |change: &dyn Fn(&mut SpeechRequest)| {
        let mut request = SpeechRequest::new("Hello.");
        change(&mut request);
        say(pipeline(), &request).unwrap_err()
    };
    let error = refused(&|request| request.language = "ja".into());
    assert_eq!(error.code(), Code::NotFound);
    let text = error.to_string();
    assert!(text.contains("\"ja\"") && text.contains("en-US"), "{text}");
    let error = refused(&|request| request.voice = Some("hibari:nobody".into()));
    assert!(error.to_string().contains("hibari:af_heart"), "{error}");
    for rate in [0.0, 0.49, 2.01, -1.0, f64::NAN, f64::INFINITY] {
        let error = refused(&|request| request.rate = rate);
        assert!(error.to_string().contains("0.5 to 2"), "{error}");
    }
    for pause in [-0.1, 11.0, f64::NAN] {
        let error = refused(&|request| request.sentence_pause_secs = pause);
        assert_eq!(error.code(), Code::BadInput);
    }
    for (text, script) in [
        ("灯台守はランプを直す。", "Japanese"),
        ("灯塔看守人在暴风雨前修灯。", "Chinese"),
        ("등대지기가 램프를 고친다.", "Korean"),
        ("Смотритель маяка чинит лампу 12 раз", "Cyrillic"),
        ("يصلح حارس المنارة المصباح", "Arabic"),
        ("שומר המגדלור מתקן את המנורה", "Hebrew"),
        ("प्रकाशस्तंभ का रखवाला दीपक ठीक करता है", "Devanagari"),
        ("คนเฝ้าประภาคารซ่อมตะเกียง", "Thai"),
        ("Ο φύλακας του φάρου επισκευάζει τη λάμπα", "Greek"),
        ("He said смотритель маяка", "Cyrillic"),
    ] {
        let error = refused(&|request| request.text = text.into());
        assert_eq!(error.code(), Code::BadInput);
        let text = error.to_string();
        assert!(text.contains("en-US") && text.contains(script), "{text}");
    }
    for text in [
        "",
        " \n\t ",
        "\u{0}\u{7}\u{1b}",
        "...",
        "🎉👩\u{200d}🚀",
        "<break time='1s'/>",
        "<speak></speak>",
    ] {
        let error = refused(&|request| request.text = text.into());
        assert!(
            matches!(error, SpeechError::NothingToSpeak { .. }),
            "{text:?}: {error}"
        );
    }
    let cancel = CancelToken::new();
    cancel.cancel();
    let stopped = pipeline().speak(&SpeechRequest::new(TEXT), &cancel, &NoProgress);
    assert_eq!(stopped.unwrap_err().code(), Code::Cancelled);
}

#[test]
fn a_word_in_another_script_is_left_out_and_not_guessed_at() {
    let spoken = |text: &str| {
        let speech = say(pipeline(), &SpeechRequest::new(text)).unwrap();
        let words = speech.words.into_iter();
        words.map(|word| word.spoken).collect::<Vec<_>>()
    };
    let text = "The keeper of the lighthouse said Привет to the sailor.";
    let words = spoken(text);
    assert_eq!(words.len(), 9, "{words:?}");
    assert_eq!(words[6..], ["to", "the", "sailor"]);
    let told = text.replace("Привет", "[Привет](privyet)");
    assert_eq!(spoken(&told)[6], "privyet");
}

/// Rows of other languages: their texts are in Latin letters, so that only the caller knows. Told,
/// the language is refused by name and no digit of it is read by English rules.
#[test]
fn a_language_that_no_voice_speaks_is_said_and_not_mumbled() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/cases/tts-01/cases-other-languages.tsv");
    let table = std::fs::read_to_string(path).unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .skip(1)
        .map(|line| line.split('\t').collect())
        .collect();
    assert_eq!(rows.len(), 5);
    for row in rows {
        for language in [row[0].to_owned(), format!("{}-XX", row[0])] {
            for voice in [None, Some("hibari:af_heart".to_owned())] {
                let request = SpeechRequest {
                    language: language.clone(),
                    voice,
                    ..SpeechRequest::new(row[1])
                };
                for error in [
                    pipeline().sentences(&request).unwrap_err(),
                    say(pipeline(), &request).unwrap_err(),
                ] {
                    assert!(matches!(error, SpeechError::NoLanguage { .. }), "{error}");
                    let text = error.to_string();
                    let named = format!("{language:?}");
                    assert!(text.contains(&named) && text.contains("en-US"), "{text}");
                }
            }
        }
    }
}

#[test]
fn breaks_are_heard_as_rests() {
    let spoken = |text: &str| {
        let request = SpeechRequest::new(text);
        let mut all = Vec::new();
        let speech = say(pipeline(), &request).unwrap();
        check(&request, &speech);
        pipeline()
            .speak_each(
                &request,
                &CancelToken::new(),
                &NoProgress,
                &mut |sentence| {
                    all.push((sentence.samples.len(), sentence.rest_secs));
                    Ok(())
                },
            )
            .unwrap();
        (speech, all)
    };
    let (plain, one) = spoken("The keeper waits.");
    assert_eq!(one.len(), 1);
    let (speech, two) = spoken("The keeper waits. <break time=\"1.5s\"/> She waits.");
    assert_eq!((two.len(), two[0].1), (2, 1.5));
    assert_eq!(two[0].0, one[0].0, "the first sentence sounds as alone");
    let gap = speech.words[3].start_secs - speech.words[2].end_secs;
    assert!((1.5..1.9).contains(&gap), "{gap}");
    // In front, and behind the last word.
    let (speech, around) = spoken("<break time='750ms'/>The keeper waits.<break time='250ms'/>");
    assert_eq!(around, [(one[0].0 + 18_000, 0.25)]);
    assert!(speech.samples[..18_000].iter().all(|value| *value == 0.0));
    let (first, last) = (18_000, 18_000 + plain.samples.len());
    assert!(speech.samples[first..last] == plain.samples[..]);
    assert_eq!(speech.samples.len(), last + 6000);
    assert!((speech.words[0].start_secs - plain.words[0].start_secs - 0.75).abs() < 1e-9);
}

/// A hundred thousand characters are planned at once and spoken as far as they are wanted.
#[test]
fn a_text_of_a_hundred_thousand_characters_goes_on_in_pieces_and_stops() {
    let some = "In 1984 the keeper of the light, Dr. Ann Smith, climbed 199 steps at 9:30 p.m. \
                and lit it. Nobody saw her, and nobody asked! ";
    let text: String = some.chars().cycle().take(100_000).collect();
    let request = SpeechRequest::new(text);
    let began = Instant::now();
    let lines = pipeline().lines(&request).unwrap();
    println!(
        "{} sentences in {:.2} s",
        lines.len(),
        began.elapsed().as_secs_f64()
    );
    assert!(lines.len() > 1500, "{}", lines.len());
    let words: usize = lines.iter().map(|line| line.split(' ').count()).sum();
    assert!(words > 20_000, "{words}");
    assert_eq!(lines[1], "Nobody saw her, and nobody asked!");

    let cancel = CancelToken::new();
    let reports = Mutex::new(Vec::new());
    let report = |event: ProgressEvent| reports.lock().unwrap().push(event);
    let (mut taken, mut longest) = (0, 0);
    let ended = pipeline().speak_each(&request, &cancel, &report, &mut |sentence| {
        taken += 1;
        longest = longest.max(sentence.samples.len());
        if taken == 8 {
            cancel.cancel();
        }
        Ok(())
    });
    assert_eq!(ended.unwrap_err().code(), Code::Cancelled);
    assert!((8..=10).contains(&taken), "{taken}");
    assert!(longest < 20 * 24_000, "{longest}");
    let reports = reports.into_inner().unwrap();
    assert!(reports.iter().all(|event| event.of == lines.len() as u64));
    let left = reports.last().unwrap().secs_left;
    assert!(left.is_some_and(|left| left > 1.0), "{left:?}");
}

#[test]
fn odd_texts_are_spoken_or_refused_but_never_break() {
    let long_word = "pneumono".repeat(150);
    let no_stops = "the keeper climbs the stairs and ".repeat(30);
    for text in [
        "<speak>Wait <break time=\"5s\"/> here.</speak>",
        "One\u{0}two\u{1b}[31m three\r\nfour.",
        "\u{202e}backwards\u{202c} 👩‍🚀 «quoted» ½ ²",
        "[read](/ɹˈɛd/) and [1984](nineteen eighty-four)",
        "!!! ??? ... --- a",
        &long_word,
        &no_stops,
    ] {
        let request = SpeechRequest::new(text);
        match say(pipeline(), &request) {
            Ok(speech) => check(&request, &speech),
            Err(error) => assert_eq!(error.code(), Code::BadInput, "{error}"),
        }
    }
}

#[test]
fn a_long_text_comes_sentence_by_sentence() {
    let text = "It rains. ".repeat(40);
    let request = SpeechRequest::new(text);
    let reports = Mutex::new(Vec::new());
    let report = |event: ProgressEvent| reports.lock().unwrap().push(event);
    let (mut count, mut longest) = (0, 0);
    let mut first = Vec::new();
    pipeline()
        .speak_each(&request, &CancelToken::new(), &report, &mut |sentence| {
            count += 1;
            longest = longest.max(sentence.samples.len());
            if first.is_empty() {
                first.clone_from(&sentence.samples);
            }
            assert!(
                sentence.samples == first,
                "the same sentence sounds otherwise"
            );
            assert_eq!(sentence.rest_secs > 0.0, count < 40);
            Ok(())
        })
        .unwrap();
    assert_eq!(count, 40);
    assert!(longest < 2 * 24_000, "{longest}");
    let reports = reports.into_inner().unwrap();
    assert_eq!(
        reports.last().map(|last| (last.step, last.of)),
        Some((40, 40))
    );
    // What takes a sentence may end it all.
    let stop = SpeechError::Cancelled(engine_base::Cancelled);
    let mut stop = Some(stop);
    let mut taken = 0;
    let ended = pipeline().speak_each(&request, &CancelToken::new(), &NoProgress, &mut |_| {
        taken += 1;
        Err(stop.take().unwrap())
    });
    assert!(ended.is_err() && taken == 1);
}

#[test]
fn missing_and_damaged_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let copy = |files: &SpeechFiles| {
        for item in std::fs::read_dir(&files.hibari).unwrap().flatten() {
            let to = folder.path().join(item.file_name());
            drop(std::fs::remove_file(&to));
            std::fs::write(&to, std::fs::read(item.path()).unwrap()).unwrap();
        }
    };
    let real = files();
    let mut files = real.clone();
    files.hibari = folder.path().to_owned();
    files.kokoro = None;
    for name in ["hibari.onnx", "oov.json", "vocab.json"] {
        copy(&real);
        std::fs::remove_file(folder.path().join(name)).unwrap();
        let error = SpeechPipeline::open(&files, 1).err().unwrap();
        assert_eq!(error.code(), Code::NotFound);
        assert!(error.to_string().contains(name), "{error}");
    }
    for (name, bytes) in [
        ("vocab.json", &b"{\"ab\": 3}"[..]),
        ("vocab.json", b"[]"),
        (
            "oov.json",
            b"{\"in\": [\"a\"], \"out\": [\"a\"], \"maxlen\": 0}",
        ),
        ("hibari.onnx", b"not a network"),
    ] {
        copy(&real);
        std::fs::write(folder.path().join(name), bytes).unwrap();
        let spoken = SpeechPipeline::open(&files, 1)
            .and_then(|pipeline| say(&pipeline, &SpeechRequest::new("Hello zzyzx.")));
        let error = spoken.unwrap_err();
        assert!(error.to_string().contains(name), "{name}: {error}");
    }
}

#[test]
fn the_voices_of_kokoro_speak() {
    if files().kokoro.is_none() {
        println!("skipped, not installed: kokoro-82m-int8 (longtake models pull kokoro-82m-int8)");
        return;
    }
    let voices = pipeline().voices();
    assert_eq!(voices.len(), 29);
    assert_eq!(
        voices
            .iter()
            .filter(|voice| voice.language == "en-GB")
            .count(),
        8
    );
    for voice in ["kokoro:am_michael", "kokoro:bf_emma"] {
        let request = SpeechRequest {
            voice: Some(voice.into()),
            ..SpeechRequest::new("The keeper waits.")
        };
        let began = Instant::now();
        let speech = say(pipeline(), &request).unwrap();
        println!(
            "{voice}: {:.2} s in {:.2} s",
            secs(&speech),
            began.elapsed().as_secs_f64()
        );
        check(&request, &speech);
        assert!((0.6..2.0).contains(&secs(&speech)));
        assert_eq!(speech.words.len(), 3);
    }
    let british = SpeechRequest {
        language: "en-GB".into(),
        ..SpeechRequest::new("Tea.")
    };
    assert!(pipeline().sentences(&british).is_ok());
}

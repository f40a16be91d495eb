//! Scripts: read in both forms, written, looked over, planned.

use std::collections::{BTreeMap, BTreeSet};

use engine_base::Rational;
use flow_story::{
    Assets, FAULTS_MAX, Fault, Parsed, Script, SpokenLine, WordTime, lint, parse, parse_json,
    parse_markdown, plan_film, to_json, to_markdown,
};
use flow_timeline::{FilmFormat, FilmPlan};

/// Any bytes as a script in both forms: what is read comes back from what is written, faults name
/// places in the file, and a plan has no gaps.
///
/// # Panics
/// When that does not hold.
pub fn script(bytes: &[u8]) {
    for name in ["script.md", "script.json"] {
        match parse(bytes, name) {
            Ok(parsed) => read(&parsed),
            Err(faults) => {
                let ends = bytes.iter().filter(|byte| matches!(byte, b'\n' | b'\r'));
                said(&faults, ends.count() + 1);
            }
        }
    }
}

/// Faults can be shown, are not too many, and lie within a file of so many lines.
fn said(faults: &[Fault], lines: usize) {
    assert!(!faults.is_empty(), "refused without a reason");
    assert!(faults.len() <= FAULTS_MAX + 1, "{} faults", faults.len());
    for fault in faults {
        assert!(!fault.problem.is_empty(), "a fault says nothing: {fault:?}");
        assert!(!fault.to_string().is_empty());
        let line = fault.line.unwrap_or(1) as usize;
        assert!((1..=lines).contains(&line), "line {line} of {lines}");
        assert_ne!(fault.column, Some(0), "columns count from 1: {fault}");
    }
}

fn read(parsed: &Parsed) {
    let script = &parsed.script;
    let markdown = to_markdown(script);
    let again = parse_markdown(&markdown).expect("written Markdown is read");
    assert_eq!(&again.script, script, "through {markdown}");
    assert_eq!(to_markdown(&again.script), markdown);
    let json = to_json(script);
    let again = parse_json(&json).expect("written JSON is read");
    assert_eq!(&again.script, script, "through {json}");
    assert_eq!(to_json(&again.script), json);

    let format = script.format(FilmFormat::DEFAULT);
    for assets in [Assets::default(), everything(script), nothing()] {
        for warning in lint(script, &parsed.lines, &format, &assets) {
            assert!(!warning.to_string().is_empty());
        }
        match plan_film(script, &format, &assets) {
            Ok(plan) => planned(&plan),
            Err(faults) => said(&faults, usize::MAX),
        }
    }
}

fn planned(plan: &FilmPlan) {
    plan.check().expect("planned pieces join");
    let text = serde_json::to_string(plan).expect("a plan is written");
    let again: FilmPlan = serde_json::from_str(&text).expect("a written plan is read");
    assert_eq!(&again, plan);
}

fn names(script: &Script) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for shot in script.shots() {
        names.insert(shot.picture.clone());
        names.extend(shot.video.iter().map(|video| video.file.clone()));
        names.extend(shot.sounds.iter().map(|sound| sound.file.clone()));
        names.extend(shot.lines.iter().map(|line| line.voice.clone()));
    }
    names.extend(script.music.iter().map(|cue| cue.file.clone()));
    names
}

/// Every file is there; sounds have lengths from nothing to hours.
fn everything(script: &Script) -> Assets {
    let names = names(script);
    let lengths = [(0, 1), (1, 48_000), (7, 3), (36_000, 1)];
    let sound_secs = names.iter().zip(lengths.iter().cycle());
    Assets {
        sound_secs: sound_secs
            .filter_map(|(name, (num, den))| Some((name.clone(), Rational::new(*num, *den).ok()?)))
            .collect(),
        pictures_of_shots: script
            .shots()
            .map(|shot| (shot.id.clone(), "take.png".to_owned()))
            .collect(),
        spoken: spoken(script),
        names: Some(names),
    }
}

/// Every second line is spoken, for no time or for minutes, its words where they may lie and
/// where they may not.
fn spoken(script: &Script) -> BTreeMap<String, SpokenLine> {
    let mut spoken = BTreeMap::new();
    for shot in script.shots() {
        for (at, line) in shot.lines.iter().enumerate().step_by(2) {
            let long = i64::try_from(at % 5).unwrap_or(0) * 17;
            let word = |end_byte: usize| WordTime {
                end_byte,
                start_millis: 900 - long,
                end_millis: long * 1000,
            };
            let line = SpokenLine {
                secs: Rational::whole(long),
                words: [1, line.text.len() / 2, line.text.len(), usize::MAX]
                    .map(word)
                    .into(),
            };
            spoken.insert(flow_story::speech_name(&shot.id, at + 1), line);
        }
    }
    spoken
}

/// No file is there.
fn nothing() -> Assets {
    Assets {
        names: Some(BTreeSet::new()),
        ..Assets::default()
    }
}

//! Figures of the producer on ten premises and three languages: `cargo run --release -p
//! flow-studio --example producer [MODEL]` prints a row of JSON for each and one for all.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::time::Instant;

use engine_base::CancelToken;
use engine_hub::{Hub, HubOptions};
use flow_story::{By, Length, Premise, ProduceOptions, Script, produce, to_markdown};
use flow_studio::LocalLlm;
use serde_json::json;

const PREMISES: [&str; 13] = [
    "A lighthouse keeper finds a message in a bottle that was written by herself.",
    "Two rival chefs must share one kitchen on a night train across the desert.",
    "The last bus driver of a drowned city waits for a passenger.",
    "A deaf boy teaches an old violin maker to hear the forest again.",
    "Ada and Lin restore their grandfather's clock before the town floods.",
    "A robot in an abandoned factory plants a garden.",
    "A postman delivers a letter that is forty years late.",
    "Three sisters race a snowstorm to bring the sheep home.",
    "An astronaut repairs a radio while the station loses its light.",
    "A cat leads a lonely widow through the night market.",
    "守塔人在海边发现了一个漂流瓶。",
    "حارس المنارة يجد رسالة في زجاجة.",
    "🐙🚀",
];

fn distinct_2(script: &Script) -> f64 {
    let (mut all, mut different) = (0usize, BTreeSet::new());
    for shot in script.shots() {
        let lines = shot.lines.iter().map(|line| &line.text);
        for text in std::iter::once(&shot.action).chain(lines) {
            let words: Vec<&str> = text.split_whitespace().collect();
            all += words.windows(2).count();
            different.extend(
                words
                    .windows(2)
                    .map(|pair| format!("{pair:?}").to_lowercase()),
            );
        }
    }
    different.len() as f64 / all.max(1) as f64
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let hub = Hub::open(HubOptions::of_this_machine()?)?;
    let mut model = LocalLlm::open(arguments.first().map(String::as_str), &hub)?;
    let options = ProduceOptions {
        seed: 1,
        length: Length::secs(45),
        ..ProduceOptions::default()
    };
    let mut out = std::io::stdout();
    let (mut shots, mut clean) = (0, 0);
    for premise in PREMISES {
        let began = Instant::now();
        let made = produce(
            premise,
            &options,
            &mut model,
            &mut |_| {},
            &CancelToken::new(),
        )?;
        let script = &made.script;
        let told = Premise::read(premise)?;
        let named = script.scenes.iter().filter(|scene| {
            scene.shots.iter().any(|shot| {
                let seen = shot.action.to_lowercase();
                told.nouns
                    .iter()
                    .any(|noun| seen.contains(&noun.to_lowercase()))
                    || script
                        .cast
                        .iter()
                        .any(|member| seen.contains(&member.name.to_lowercase()))
            })
        });
        let by_rule = script
            .shots()
            .filter(|shot| shot.by.get("action") == Some(By::Rule));
        let row = json!({
            "premise": premise, "language": script.language, "title": script.title,
            "scenes": script.scenes.len(), "scenes_named": named.count(),
            "shots": made.counts.shots, "shots_clean": made.counts.shots_clean,
            "lines": script.lines().count(), "actions_by_rule": by_rule.count(),
            "distinct_2": distinct_2(script), "drawn": made.counts.drawn,
            "refused": made.counts.refused, "tokens": made.counts.tokens,
            "secs": began.elapsed().as_secs_f64(),
        });
        writeln!(out, "{row}")?;
        if arguments.len() > 1 {
            writeln!(out, "{}", to_markdown(script))?;
        }
        shots += made.counts.shots;
        clean += made.counts.shots_clean;
    }
    writeln!(out, "{}", json!({ "shots": shots, "shots_clean": clean }))?;
    Ok(())
}

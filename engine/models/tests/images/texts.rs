//! CLIP's text models, T5 and UMT5.

use engine_base::CancelToken;
use engine_models::{ClipTextConfig, T5Config, load_clip_text, load_t5_encoder};
use engine_tensor::Cpu;
use engine_weights::Checkpoint as _;

use crate::fixture::Fixture;

/// Ids of each row of an input, and how many of them count.
fn ids(fixture: &Fixture, name: &str, mask: Option<&str>) -> Vec<Vec<u32>> {
    let whole = |name: &str| -> (usize, Vec<u32>) {
        let tensor = fixture.inputs.tensor(name).unwrap();
        let numbers = tensor.bytes.as_chunks::<8>().0.iter();
        let numbers = numbers.map(|bytes| u32::try_from(i64::from_le_bytes(*bytes)).unwrap());
        (tensor.shape[1], numbers.collect())
    };
    let (row, all) = whole(name);
    let counts = mask.map(|mask| whole(mask).1);
    let rows = all.chunks_exact(row).enumerate().map(|(at, ids)| {
        let counts = counts
            .as_ref()
            .map(|counts| &counts[at * row..(at + 1) * row]);
        let len = counts.map_or(row, |counts| counts.iter().sum::<u32>() as usize);
        ids[..len].to_vec()
    });
    rows.collect()
}

#[test]
fn clip_gives_the_states_of_the_reference() {
    let fixture = Fixture::open("clip_text");
    let cpu = Cpu::new(2).unwrap();
    let cancel = CancelToken::new();
    for (call, folder) in [("clip_l", "text_encoder"), ("clip_g", "text_encoder_2")] {
        let config: ClipTextConfig = fixture.json(&format!("{folder}/config.json"));
        let model = load_clip_text(&fixture.weights(folder), "", &config, &cpu).unwrap();
        for (row, ids) in ids(&fixture, &format!("{call}.input_ids"), None)
            .iter()
            .enumerate()
        {
            let states = model.states(ids, &cancel).unwrap();
            fixture.check_row(call, "last_hidden_state", row, &states.last);
            for (index, hidden) in states.hidden.iter().enumerate() {
                fixture.check_row(call, &format!("hidden.{index}"), row, hidden);
            }
            if call == "clip_l" {
                fixture.check_row(call, "pooler_output", row, &states.pooled);
            } else {
                fixture.check_row(call, "text_embeds", row, &states.projected.unwrap());
            }
        }
        assert!(model.states(&[], &cancel).is_err());
        assert!(model.states(&[0; 78], &cancel).is_err());
        assert!(model.states(&[256], &cancel).is_err());
    }
}

#[test]
fn t5_and_umt5_give_the_states_of_the_reference() {
    let cpu = Cpu::new(2).unwrap();
    let cancel = CancelToken::new();
    for name in ["t5_encoder", "umt5_encoder"] {
        let fixture = Fixture::open(name);
        let config: T5Config = fixture.json("config.json");
        let model = load_t5_encoder(&fixture.weights(""), "", &config, &cpu).unwrap();
        let rows = ids(&fixture, "enc.input_ids", Some("enc.attention_mask"));
        assert_eq!(
            rows[1].len(),
            30,
            "the second text is filled up in the reference"
        );
        for (row, ids) in rows.iter().enumerate() {
            let states = model.states(ids, &cancel).unwrap();
            for (index, hidden) in states.iter().enumerate() {
                fixture.check_row("enc", &format!("hidden.{index}"), row, hidden);
            }
            let last = states.last().unwrap();
            fixture.check_row("enc", "last_hidden_state", row, last);
        }
        assert!(model.states(&[], &cancel).is_err());
        assert!(model.states(&[256], &cancel).is_err());
    }
}

//! Models of pictures and words as encoders of prompts, and Qwen 3.

use engine_base::CancelToken;
use engine_models::{
    Activations, KvKind, LoadOptions, VlEncoder, VlStates, load_dense, load_vl_encoder,
};
use engine_tensor::Cpu;
use engine_weights::Checkpoint as _;
use serde_json::Value;

use crate::fixture::Fixture;

const IMAGE: u32 = 376;

fn ids(fixture: &Fixture, name: &str) -> Vec<u32> {
    let tensor = fixture.inputs.tensor(name).unwrap();
    let numbers = tensor.bytes.as_chunks::<8>().0.iter();
    numbers
        .map(|bytes| u32::try_from(i64::from_le_bytes(*bytes)).unwrap())
        .collect()
}

fn open(fixture: &Fixture) -> VlEncoder {
    let config: Value = fixture.json("config.json");
    load_vl_encoder(&fixture.weights(""), "", &config, &Cpu::new(2).unwrap()).unwrap()
}

fn check(fixture: &Fixture, call: &str, states: &VlStates) {
    let (behind, before) = states.hidden.split_last().unwrap();
    for (index, hidden) in before.iter().enumerate() {
        fixture.check(call, &format!("hidden.{index}"), hidden);
    }
    fixture.check(call, &format!("hidden.{}", before.len()), &states.last);
    if fixture.folder.ends_with("qwen3_vl") {
        fixture.check(call, "prenorm_last", behind);
    }
}

#[test]
fn prompts_without_and_with_a_picture_have_the_states_of_the_reference() {
    let cancel = CancelToken::new();
    for name in ["qwen2_5_vl", "qwen3_vl"] {
        let fixture = Fixture::open(name);
        let model = open(&fixture);
        assert_eq!(model.family(), name);
        assert_eq!((model.hidden(), model.token_px()), (64, Some(8)));
        assert_eq!(model.image_token(), Some(IMAGE));
        let tokens = ids(&fixture, "text.input_ids");
        check(
            &fixture,
            "text",
            &model.states(&tokens, &[], &cancel).unwrap(),
        );
        let tokens = ids(&fixture, "image.input_ids");
        let patches = fixture.input("image.pixel_values");
        let at = tokens.iter().position(|token| *token == IMAGE).unwrap();
        let with = model.states_of_patches(&tokens, (at, &patches, (8, 12)), &cancel);
        check(&fixture, "image", &with.unwrap());

        assert!(model.states(&[], &[], &cancel).is_err());
        assert!(model.states(&[384], &[], &cancel).is_err());
        let cut = (at, &patches[1..], (8, 12));
        assert!(model.states_of_patches(&tokens, cut, &cancel).is_err());
        let late = (tokens.len() - 3, &patches[..], (8, 12));
        assert!(model.states_of_patches(&tokens, late, &cancel).is_err());
    }
}

#[test]
fn a_picture_is_cut_into_patches_in_the_order_of_its_tokens() {
    let cancel = CancelToken::new();
    let fixture = Fixture::open("qwen3_vl");
    let model = open(&fixture);
    let patches = fixture.input("image.pixel_values");
    let tokens = ids(&fixture, "image.input_ids");
    let at = tokens.iter().position(|token| *token == IMAGE).unwrap();
    // Both frames of a patch as the first, and the picture that has them.
    let (side, frame) = (4, 16);
    let mut still = patches;
    let mut picture = vec![0.0; 3 * 32 * 48];
    for (index, patch) in still.chunks_exact_mut(96).enumerate() {
        let (cell, inside) = (index / 4, index % 4);
        let (row, column) = (cell / 6 * 2 + inside / 2, cell % 6 * 2 + inside % 2);
        for (colour, frames) in patch.chunks_exact_mut(2 * frame).enumerate() {
            frames.copy_within(..frame, frame);
            for (pixel, value) in frames[..frame].iter().enumerate() {
                let (y, x) = (row * side + pixel / side, column * side + pixel % side);
                picture[(colour * 32 + y) * 48 + x] = *value;
            }
        }
    }
    let patched = model.states_of_patches(&tokens, (at, &still, (8, 12)), &cancel);
    let given = engine_models::PromptPicture {
        at,
        picture: &picture,
        height: 32,
        width: 48,
    };
    let shown = model.states(&tokens, &[given], &cancel);
    assert_eq!(shown.unwrap(), patched.unwrap());
    assert_eq!(model.tokens_of((32, 48)), 24);
    let odd = engine_models::PromptPicture {
        height: 30,
        ..given
    };
    assert!(model.states(&tokens, &[odd], &cancel).is_err());
}

#[test]
fn qwen3_gives_states_after_each_of_its_layers() {
    let fixture = Fixture::open("qwen3");
    let options = LoadOptions {
        threads: 2,
        kv: KvKind::F32,
        activations: Activations::Exact,
        ..LoadOptions::default()
    };
    let model = load_dense(&fixture.weights(""), &options).unwrap();
    let cancel = CancelToken::new();
    for (row, tokens) in ids(&fixture, "lm.input_ids").chunks_exact(24).enumerate() {
        // The last the reference stores went through the last norm.
        for layer in 0..3 {
            let mut stream = std::sync::Arc::clone(&model).stream();
            let states = stream.states_after(tokens, layer, &cancel).unwrap();
            fixture.check_row("lm", &format!("hidden.{layer}"), row, &states);
        }
    }
}

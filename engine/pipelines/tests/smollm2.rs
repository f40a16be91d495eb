//! The default model makes replies: needs the pack that `cargo xtask setup` fetches.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use engine_base::CancelToken;
use engine_pipelines::{
    ChatMessage, Constraint, FinishReason, TextOptions, TextPipeline, TextReply, TextRequest,
};
use engine_weights::Gguf;
use serde_json::{Value, json};

const FOLDER: &str = "smollm2-135m-instruct-q4_1";

fn models_folder() -> PathBuf {
    let data = || {
        let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
        std::env::var_os("XDG_DATA_HOME")
            .map_or_else(|| home.join(".local/share"), PathBuf::from)
            .join("longtake/models")
    };
    std::env::var_os("LONGTAKE_MODELS").map_or_else(data, PathBuf::from)
}

fn open(options: TextOptions) -> TextPipeline {
    let folder = models_folder().join(FOLDER);
    let file = std::fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|e| e == "gguf"))
        .unwrap_or_else(|| {
            panic!("the default model is not in {folder:?}: fetch it with `cargo xtask setup`")
        });
    let checkpoint = Gguf::open(&file).expect("the default model is a GGUF file");
    TextPipeline::open(&checkpoint, options).expect("the default model is supported")
}

fn say(pipeline: &mut TextPipeline, request: &TextRequest) -> TextReply {
    let mut on_text = |_: &str| ControlFlow::Continue(());
    pipeline
        .generate(request, &mut on_text, &CancelToken::new())
        .expect("a reply")
}

fn per_token_millis(reply: &TextReply) -> f64 {
    reply.decode_secs * 1e3 / reply.tokens.len() as f64
}

#[test]
fn it_answers_a_question_and_repeats_itself_by_seed() {
    let mut pipeline = open(TextOptions::default());
    let question = ChatMessage::user("What is the capital of France? Answer in one sentence.");
    let mut request = TextRequest::chat(vec![question], 48);
    request.sampling.temperature = 0.0;
    let reply = say(&mut pipeline, &request);
    println!(
        "{:?}: {} prompt tokens in {:.3} s, {} tokens at {:.1} ms",
        reply.text,
        reply.prompt_tokens,
        reply.prefill_secs,
        reply.tokens.len(),
        per_token_millis(&reply)
    );
    assert!(reply.text.contains("Paris"), "{:?}", reply.text);
    assert_eq!(reply.finish, FinishReason::Stop);

    request.sampling.temperature = 0.9;
    request.sampling.seed = 7;
    let first = say(&mut pipeline, &request);
    assert_eq!(first.reused_tokens, first.prompt_tokens - 1);
    let second = say(&mut open(TextOptions::default()), &request);
    assert_eq!((&first.text, &first.tokens), (&second.text, &second.tokens));
}

#[test]
fn it_fills_a_schema_with_or_without_asking_for_forced_tokens() {
    let schema = json!({
        "type": "object",
        "properties": {
            "title": {"type": "string", "minLength": 3, "maxLength": 40},
            "scenes": {
                "type": "array", "minItems": 2, "maxItems": 2,
                "items": {
                    "type": "object",
                    "properties": {
                        "place": {"type": "string", "minLength": 3, "maxLength": 30},
                        "time": {"enum": ["day", "night"]},
                    },
                    "required": ["place", "time"],
                    "additionalProperties": false,
                },
            },
        },
        "required": ["title", "scenes"],
        "additionalProperties": false,
    });
    let ask = "Describe a film about a lighthouse keeper as JSON with a title and two scenes.";
    let mut request = TextRequest::chat(vec![ChatMessage::user(ask)], 300);
    request.sampling.seed = 3;
    request.sampling.top_p = 0.9;
    request.constraint = Constraint::JsonSchema(schema);
    let mut pipeline = open(TextOptions::default());
    let start = Instant::now();
    let reply = say(&mut pipeline, &request);
    println!(
        "{}: first in {:.2} s, {} of {} tokens forced",
        reply.text,
        start.elapsed().as_secs_f64(),
        reply.forced_tokens,
        reply.tokens.len()
    );
    assert_eq!(reply.finish, FinishReason::ConstraintDone);
    let value: Value = serde_json::from_str(&reply.text).expect("valid JSON");
    assert_eq!(value["scenes"].as_array().map(Vec::len), Some(2));
    assert!(reply.forced_tokens > 0);

    let mut asking = open(TextOptions {
        ask_for_forced_tokens: true,
        ..TextOptions::default()
    });
    let asked = say(&mut asking, &request);
    assert_eq!((&asked.text, &asked.tokens), (&reply.text, &reply.tokens));
    let share = asked.constraint_secs / asked.decode_secs;
    println!(
        "constraint {:.2} ms of {:.2} ms for each token: {:.1} %",
        asked.constraint_secs * 1e3 / asked.tokens.len() as f64,
        per_token_millis(&asked),
        share * 100.0
    );
}

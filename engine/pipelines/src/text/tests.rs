use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::tokenizer::tests::qwen_fixture;

mod schemas;

/// A model whose logits are a hash of everything before: what it says depends on each token it
/// was given, so a wrong cache shows at once.
#[derive(Debug)]
struct HashModel {
    vocab: usize,
    context: usize,
    /// Hash after each token.
    states: Vec<u64>,
    logits: Vec<f32>,
    sharpness: f32,
    calls: Arc<Mutex<Vec<usize>>>,
}

fn mix(state: u64, token: u64) -> u64 {
    let mut x = state ^ token.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for _ in 0..2 {
        x ^= x >> 31;
        x = x.wrapping_mul(0x94d0_49bb_1331_11eb);
    }
    x ^ (x >> 29)
}

impl HashModel {
    fn new(context: usize) -> Self {
        Self {
            vocab: 400,
            context,
            states: Vec::new(),
            logits: Vec::new(),
            sharpness: 6.0,
            calls: Arc::default(),
        }
    }
}

impl TokenModel for HashModel {
    fn vocab_tokens(&self) -> usize {
        self.vocab
    }

    fn context_tokens(&self) -> usize {
        self.context
    }

    fn cached_tokens(&self) -> usize {
        self.states.len()
    }

    fn extend(&mut self, tokens: &[u32], cancel: &CancelToken) -> Result<&[f32], ModelError> {
        assert!(!tokens.is_empty());
        cancel.check()?;
        assert!(self.states.len() + tokens.len() <= self.context);
        self.calls.lock().expect("no panic").push(tokens.len());
        for &token in tokens {
            let last = self.states.last().copied().unwrap_or(7);
            self.states.push(mix(last, u64::from(token) + 1));
        }
        let state = self.states[self.states.len() - 1];
        let unit = |t: u64| (mix(state, t + 1000) >> 40) as f32 / (1u32 << 24) as f32;
        self.logits = (0..self.vocab as u64)
            .map(|t| unit(t) * self.sharpness)
            .collect();
        Ok(&self.logits)
    }

    fn truncate(&mut self, tokens: usize) {
        self.states.truncate(tokens);
    }
}

fn template() -> ChatTemplate {
    let source = include_str!("../../../../tests/fixtures/tokenizers/bpe_qwen/chat_template.jinja");
    ChatTemplate::new(source, "", "<|im_end|>").expect("a template")
}

fn pipeline_of(model: HashModel, options: TextOptions) -> TextPipeline {
    TextPipeline::new(qwen_fixture(), Some(template()), Box::new(model), options)
        .expect("parts that fit")
}

fn pipeline() -> TextPipeline {
    pipeline_of(HashModel::new(2048), TextOptions::default())
}

fn say(pipeline: &mut TextPipeline, request: &TextRequest) -> Result<TextReply, TextError> {
    let mut pieces = String::new();
    let mut on_text = |piece: &str| {
        assert!(!piece.is_empty());
        pieces.push_str(piece);
        ControlFlow::Continue(())
    };
    let reply = pipeline.generate(request, &mut on_text, &CancelToken::new())?;
    assert_eq!(pieces, reply.text, "the pieces are the text");
    Ok(reply)
}

fn seeded(prompt: &str, max_tokens: usize, seed: u64) -> TextRequest {
    let mut request = TextRequest::plain(prompt, max_tokens);
    request.sampling.seed = seed;
    // A random text would end within a few hundred tokens.
    request.sampling.logit_bias = [(381, f32::NEG_INFINITY), (383, f32::NEG_INFINITY)].into();
    request
}

/// Without what took time or was saved.
fn essence(reply: &TextReply) -> (&str, &[u32], FinishReason, usize) {
    (
        &reply.text,
        &reply.tokens,
        reply.finish,
        reply.prompt_tokens,
    )
}

#[test]
fn a_reply_depends_on_its_seed_and_prompt_only() {
    let request = seeded("Once upon", 40, 3);
    let first = say(&mut pipeline(), &request).expect("a reply");
    assert_eq!(
        (first.tokens.len(), first.finish),
        (40, FinishReason::Length)
    );
    let mut used = pipeline();
    for (prompt, seed) in [("Once upon", 9), ("Something else", 3), ("", 3)] {
        let other = say(&mut used, &seeded(prompt, 30, seed)).expect("a reply");
        assert_ne!(other.text, first.text);
    }
    let again = say(&mut used, &request).expect("a reply");
    assert_eq!(essence(&again), essence(&first));
}

#[test]
fn a_shared_beginning_is_not_read_again() {
    let model = HashModel::new(2048);
    let calls = Arc::clone(&model.calls);
    let mut pipeline = pipeline_of(model, TextOptions::default());
    let first = say(&mut pipeline, &seeded("The cat sat.", 10, 1)).expect("a reply");
    assert_eq!(first.reused_tokens, 0);
    calls.lock().expect("no panic").clear();
    let second = seeded("The cat sat. It slept.", 10, 1);
    let reply = say(&mut pipeline, &second).expect("a reply");
    let shared = first.prompt_tokens;
    assert_eq!(reply.reused_tokens, shared);
    assert_eq!(
        calls.lock().expect("no panic")[0],
        reply.prompt_tokens - shared
    );
    let fresh = say(&mut self::pipeline(), &second).expect("a reply");
    assert_eq!(essence(&reply), essence(&fresh));
    // The same prompt again leaves one token to be read.
    let reply = say(&mut pipeline, &second).expect("a reply");
    assert_eq!(reply.reused_tokens, reply.prompt_tokens - 1);
    assert_eq!(essence(&reply), essence(&fresh));
}

#[test]
fn a_conversation_goes_through_the_template() {
    let mut request = TextRequest::chat(vec![ChatMessage::user("hi")], 5);
    request.sampling = Sampling::greedy();
    let reply = say(&mut pipeline(), &request).expect("a reply");
    let text = template()
        .render(&[ChatMessage::user("hi")], true)
        .expect("text");
    let tokens = qwen_fixture().encode_bare(&text).expect("tokens");
    assert_eq!(reply.prompt_tokens, tokens.len());
    let mut without = TextPipeline::new(
        qwen_fixture(),
        None,
        Box::new(HashModel::new(99)),
        TextOptions::default(),
    )
    .expect("parts that fit");
    let error = say(&mut without, &request).expect_err("no template");
    assert!(error.to_string().contains("no chat template"), "{error}");
    assert_eq!(error.code(), Code::NotFound);
}

#[test]
fn the_model_ends_its_reply() {
    let mut request = TextRequest::plain("x", 500);
    request.sampling.logit_bias = [(383, 3.0)].into();
    let reply = say(&mut pipeline(), &request).expect("a reply");
    assert_eq!(reply.finish, FinishReason::Stop);
    assert!(reply.tokens.len() < 500 && !reply.tokens.contains(&383));
    assert!(!reply.text.contains("<|im_end|>"));
}

#[test]
fn logits_without_a_token_are_never_drawn() {
    let mut request = seeded("x", 300, 1);
    request
        .sampling
        .logit_bias
        .extend((384..400).map(|t| (t, 50.0)));
    let reply = say(&mut pipeline(), &request).expect("a reply");
    assert!(reply.tokens.iter().all(|&t| t < 384), "{:?}", reply.tokens);
}

#[test]
fn stop_texts_end_the_reply_before_them() {
    let mut request = seeded("Once", 200, 5);
    let whole = say(&mut pipeline(), &request).expect("a reply").text;
    let chars: Vec<char> = whole.chars().collect();
    // A stop text that lies across tokens: every place of the reply in turn.
    for at in (10..60).step_by(7) {
        let stop: String = chars[at..at + 4].iter().collect();
        request.stop = vec!["never said at all".to_owned(), stop.clone()];
        let reply = say(&mut pipeline(), &request).expect("a reply");
        assert_eq!(reply.finish, FinishReason::StopString, "{stop:?}");
        let before = whole.split(&stop).next().expect("a part");
        assert_eq!(reply.text, before, "{stop:?}");
    }
    request.stop = vec![String::new()];
    let error = say(&mut pipeline(), &request).expect_err("an empty stop text");
    assert_eq!(error.code(), Code::BadInput);
}

#[test]
fn a_reply_can_be_broken_off() {
    let request = seeded("Once", 200, 5);
    let whole = say(&mut pipeline(), &request).expect("a reply");
    let mut pipeline = pipeline();
    let mut count = 0;
    let mut on_text = |_: &str| {
        count += 1;
        if count == 3 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let reply = pipeline
        .generate(&request, &mut on_text, &CancelToken::new())
        .expect("a reply");
    assert_eq!(reply.finish, FinishReason::Cancelled);
    assert!(whole.text.starts_with(&reply.text) && !reply.text.is_empty());

    let cancel = CancelToken::new();
    let mut on_text = |_: &str| {
        cancel.cancel();
        ControlFlow::Continue(())
    };
    let reply = pipeline
        .generate(&request, &mut on_text, &cancel)
        .expect("a reply");
    assert_eq!(reply.finish, FinishReason::Cancelled);
    assert!(reply.tokens.len() < 20);
    // Cancelled before it began: no text, and the pipeline goes on working.
    let reply = pipeline.generate(&request, &mut |_| ControlFlow::Continue(()), &cancel);
    assert!(reply.expect("a reply").tokens.is_empty());
    let again = say(&mut pipeline, &request).expect("a reply");
    assert_eq!(essence(&again), essence(&whole));
}

#[test]
fn prompts_beyond_the_context_are_refused_with_figures() {
    let mut small = pipeline_of(HashModel::new(32), TextOptions::default());
    let error = say(&mut small, &seeded(&"a ".repeat(100_000), 5, 0)).expect_err("too long");
    let TextError::PromptTooLong {
        prompt_tokens,
        context_tokens,
    } = error
    else {
        panic!("{error}");
    };
    assert!(prompt_tokens > 100_000 && context_tokens == 32);
    assert_eq!(error.code(), Code::BadInput);
    // What fits is cut where the context ends.
    let reply = say(&mut small, &seeded("abc", 500, 0)).expect("a reply");
    assert_eq!(reply.finish, FinishReason::Length);
    assert_eq!(reply.prompt_tokens + reply.tokens.len(), 32);
    let nothing = say(&mut small, &seeded("abc", 0, 0)).expect("a reply");
    assert!(nothing.tokens.is_empty());
}

#[test]
fn an_empty_prompt_gives_a_reply() {
    let reply = say(&mut pipeline(), &seeded("", 10, 0)).expect("a reply");
    assert_eq!((reply.prompt_tokens, reply.tokens.len()), (1, 10));
}

#[test]
fn a_tokenizer_of_another_model_is_refused() {
    let mut model = HashModel::new(32);
    model.vocab = 100;
    let made = TextPipeline::new(
        qwen_fixture(),
        None,
        Box::new(model),
        TextOptions::default(),
    );
    let error = made.expect_err("too few logits");
    assert!(
        error.to_string().contains("384 tokens and the model 100"),
        "{error}"
    );
}

fn shot_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "framing": {"enum": ["wide", "medium", "close"]},
            "action": {"type": "string", "minLength": 3, "maxLength": 12},
            "length_secs": {"type": "integer", "minimum": 1, "maximum": 30},
            "names": {"type": "array", "items": {"type": "string", "maxLength": 4}, "maxItems": 3},
        },
        "required": ["framing", "action", "length_secs", "names"],
        "additionalProperties": false,
    })
}

#[test]
fn forced_tokens_change_nothing_but_the_calls() {
    let run = |ask_for_forced_tokens: bool, seed: u64| {
        let model = HashModel::new(2048);
        let calls = Arc::clone(&model.calls);
        let options = TextOptions {
            ask_for_forced_tokens,
            ..TextOptions::default()
        };
        let mut request = TextRequest::plain("A shot:", 400);
        request.sampling.seed = seed;
        request.constraint = Constraint::JsonSchema(shot_schema());
        let reply = say(&mut pipeline_of(model, options), &request).expect("a reply");
        let calls = calls.lock().expect("no panic").len();
        (reply, calls)
    };
    for seed in 0..5 {
        let (skipping, few) = run(false, seed);
        let (asking, many) = run(true, seed);
        assert_eq!(essence(&skipping), essence(&asking));
        assert_eq!(
            skipping.finish,
            FinishReason::ConstraintDone,
            "{}",
            skipping.text
        );
        assert_eq!(asking.forced_tokens, 0);
        assert!(
            skipping.forced_tokens > 10,
            "{} forced",
            skipping.forced_tokens
        );
        assert_eq!(many - few, skipping.forced_tokens);
    }
}

#[test]
fn a_number_ends_where_the_model_ends_it() {
    let mut request = TextRequest::plain("How many?", 40);
    request.constraint = Constraint::JsonSchema(json!({"type": "integer"}));
    request.sampling.logit_bias = [(383, 2.0)].into();
    let reply = say(&mut pipeline(), &request).expect("a reply");
    assert_eq!(reply.finish, FinishReason::ConstraintDone);
    assert!(reply.text.parse::<i64>().is_ok(), "{:?}", reply.text);
}

#[test]
fn a_forbidden_token_that_is_the_only_one_is_an_error() {
    let mut request = TextRequest::plain("x", 40);
    request.constraint = Constraint::Regex("z".to_owned());
    let token = qwen_fixture().encode_bare("z").expect("tokens")[0];
    request.sampling.logit_bias = [(token, f32::NEG_INFINITY)].into();
    for ask_for_forced_tokens in [false, true] {
        let options = TextOptions {
            ask_for_forced_tokens,
            ..TextOptions::default()
        };
        let mut pipeline = pipeline_of(HashModel::new(99), options);
        let error = say(&mut pipeline, &request).expect_err("nothing is left");
        assert!(
            matches!(error, TextError::Sample(SampleError::NoneAllowed { .. })),
            "{error}"
        );
    }
}

#[test]
fn an_unmet_constraint_is_an_error_before_the_model_is_asked() {
    let model = HashModel::new(99);
    let calls = Arc::clone(&model.calls);
    let mut pipeline = pipeline_of(model, TextOptions::default());
    let mut request = TextRequest::plain("x", 40);
    request.constraint =
        Constraint::JsonSchema(json!({"type": "string", "minLength": 2, "maxLength": 1}));
    let error = say(&mut pipeline, &request).expect_err("cannot be met");
    assert!(
        matches!(
            error,
            TextError::Constraint(ConstraintError::CannotBeMet { .. })
        ),
        "{error}"
    );
    assert!(calls.lock().expect("no panic").is_empty());
}

#[test]
fn two_hundred_random_schemas_give_valid_json() {
    let mut pipeline = pipeline();
    let (mut tokens, mut guided) = (0, 0.0);
    for seed in 0..200 {
        let schema = schemas::random_schema(seed);
        let mut request = TextRequest::plain("Data:", 1500);
        request.sampling.seed = seed;
        request.constraint = Constraint::JsonSchema(schema.clone());
        let reply = say(&mut pipeline, &request).unwrap_or_else(|e| panic!("{schema}: {e}"));
        assert_eq!(
            reply.finish,
            FinishReason::ConstraintDone,
            "{schema} gave {}",
            reply.text
        );
        let value: Value = serde_json::from_str(&reply.text)
            .unwrap_or_else(|e| panic!("{schema} gave {:?}: {e}", reply.text));
        if let Err(fault) = schemas::validate(&schema, &schema, &value) {
            panic!("{schema} gave {value}: {fault}");
        }
        tokens += reply.tokens.len();
        guided += reply.constraint_secs;
    }
    let micros = guided * 1e6 / tokens as f64;
    println!("{tokens} tokens, {micros:.0} us of constraint for each");
    assert!(tokens > 4000, "only {tokens} tokens");
}

#[test]
fn the_validator_sees_faults() {
    let schema = shot_schema();
    let good = json!({"framing": "wide", "action": "walks", "length_secs": 3, "names": []});
    assert_eq!(schemas::validate(&schema, &schema, &good), Ok(()));
    for (key, value) in [
        ("framing", json!("tall")),
        ("action", json!("a")),
        ("action", json!("abcdefghijklm")),
        ("length_secs", json!(31)),
        ("length_secs", json!(1.5)),
        ("names", json!(["a", 3])),
        ("names", json!(["a", "b", "c", "d"])),
        ("extra", json!(1)),
    ] {
        let mut bad = good.clone();
        bad[key] = value;
        assert!(schemas::validate(&schema, &schema, &bad).is_err(), "{bad}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn resumed_replies_equal_fresh_ones(prompts in prop::collection::vec("[ab ]{0,12}", 1..5), seed: u64) {
        let mut used = pipeline();
        for prompt in &prompts {
            let request = seeded(prompt, 6, seed);
            let resumed = say(&mut used, &request).expect("a reply");
            let fresh = say(&mut pipeline(), &request).expect("a reply");
            prop_assert_eq!(essence(&resumed), essence(&fresh));
        }
    }
}

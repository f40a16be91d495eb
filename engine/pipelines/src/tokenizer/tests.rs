use proptest::prelude::*;

use super::*;

const FIXTURE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/fixtures/tokenizers"
);

fn read(name: &str) -> Vec<u8> {
    std::fs::read(format!("{FIXTURE}/{name}")).expect("the fixture is in the repository")
}

pub(crate) fn qwen_fixture() -> Tokenizer {
    let config = read("bpe_qwen/tokenizer_config.json");
    Tokenizer::from_json(&read("bpe_qwen/tokenizer.json"), Some(&config)).expect("a tokenizer")
}

fn ids(value: &Value) -> Vec<u32> {
    let ids = value.as_array().expect("a list of ids");
    ids.iter()
        .map(|id| id.as_u64().expect("an id") as u32)
        .collect()
}

#[test]
fn fixtures_encode_and_decode_as_the_reference() {
    let expected: Value = serde_json::from_slice(&read("expected.json")).expect("JSON");
    let mut cases = 0;
    for kind in ["bpe_qwen", "bpe_clip", "unigram_t5"] {
        let json = read(&format!("{kind}/tokenizer.json"));
        let tokenizer = Tokenizer::from_json(&json, None).expect("a tokenizer");
        for case in expected[kind].as_array().expect("cases") {
            let text = case["text"].as_str().expect("text");
            let encoded = ids(&case["ids"]);
            assert_eq!(
                tokenizer.encode(text).expect("tokens"),
                encoded,
                "{kind} {text:?}"
            );
            let bare = tokenizer.encode_bare(text).expect("tokens");
            assert_eq!(bare, ids(&case["ids_plain"]), "{kind} {text:?}");
            for (key, with_special) in [("decoded", false), ("decoded_all", true)] {
                let decoded = tokenizer.decode(&encoded, with_special).expect("text");
                assert_eq!(
                    decoded,
                    case[key].as_str().expect("text"),
                    "{kind} {text:?}"
                );
            }
            cases += 1;
        }
    }
    assert!(cases >= 20, "only {cases} cases");
}

#[test]
fn token_bytes_join_to_the_text() {
    let tokenizer = qwen_fixture();
    assert!(tokenizer.is_byte_exact());
    for text in [
        "Hello, world!",
        " two  spaces ",
        "Grüße 你好 🙂👍🏽\n\ttab",
        "\u{0}\u{7f}",
    ] {
        let tokens = tokenizer.encode_bare(text).expect("tokens");
        let joined: Vec<u8> = tokens
            .iter()
            .flat_map(|&t| tokenizer.token_bytes(t).to_vec())
            .collect();
        assert_eq!(String::from_utf8(joined).as_deref(), Ok(text));
    }
}

#[test]
fn special_tokens_are_known_and_named() {
    let tokenizer = qwen_fixture();
    let end = tokenizer.token_id("<|im_end|>").expect("in the vocabulary");
    assert!(tokenizer.is_special(end) && tokenizer.is_end(end));
    assert_eq!(tokenizer.token_bytes(end), b"<|im_end|>");
    assert_eq!(
        tokenizer.encode_bare("a<|im_end|>").expect("tokens")[1..],
        [end]
    );
    assert_eq!(
        tokenizer.decode(&[64, end], false).as_deref().ok(),
        Some("a")
    );
    assert_eq!(tokenizer.token_bytes(9_999_999), b"");
    assert!(!tokenizer.is_special(9_999_999));
}

/// The fixture, as GGUF metadata would hold it.
fn qwen_as_gguf() -> GgufVocabulary {
    let json: Value = serde_json::from_slice(&read("bpe_qwen/tokenizer.json")).expect("JSON");
    let vocab = json["model"]["vocab"].as_object().expect("a vocabulary");
    let mut tokens = vec![String::new(); 384];
    for (name, id) in vocab {
        tokens[id.as_u64().expect("an id") as usize] = name.clone();
    }
    let mut token_types = vec![1; 384];
    for added in json["added_tokens"].as_array().expect("added tokens") {
        let id = added["id"].as_u64().expect("an id") as usize;
        tokens[id] = added["content"].as_str().expect("a name").to_owned();
        token_types[id] = CONTROL_TYPE;
    }
    let merges = json["model"]["merges"].as_array().expect("merges");
    let part = |merge: &Value, at: usize| merge[at].as_str().expect("a name").to_owned();
    GgufVocabulary {
        model: "gpt2".to_owned(),
        pre: Some("qwen2".to_owned()),
        tokens,
        token_types,
        merges: merges
            .iter()
            .map(|m| part(m, 0) + " " + &part(m, 1))
            .collect(),
        eos: Some(383),
        bos: Some(381),
        ..GgufVocabulary::default()
    }
}

const CONTROL_TYPE: i64 = 3;

#[test]
fn gguf_metadata_gives_the_same_tokens_as_the_json() {
    let expected: Value = serde_json::from_slice(&read("expected.json")).expect("JSON");
    let tokenizer = Tokenizer::from_gguf(&qwen_as_gguf()).expect("a tokenizer");
    assert_eq!(tokenizer.vocab_tokens(), 384);
    assert_eq!(
        tokenizer.end_tokens(),
        [383, 381],
        "the end token first, then the known names"
    );
    for case in expected["bpe_qwen"].as_array().expect("cases") {
        let text = case["text"].as_str().expect("text");
        assert_eq!(
            tokenizer.encode(text).expect("tokens"),
            ids(&case["ids"]),
            "{text:?}"
        );
        let decoded = tokenizer.decode(&ids(&case["ids"]), true).expect("text");
        assert_eq!(decoded, case["decoded_all"].as_str().expect("text"));
    }
}

#[test]
fn begin_and_end_tokens_are_added_as_the_file_says() {
    let mut vocabulary = qwen_as_gguf();
    let encode = |vocabulary: &GgufVocabulary| {
        let tokenizer = Tokenizer::from_gguf(vocabulary).expect("a tokenizer");
        assert_eq!(tokenizer.encode_bare("a").expect("tokens"), [64]);
        tokenizer.encode("a").expect("tokens")
    };
    assert_eq!(encode(&vocabulary), [64]);
    vocabulary.add_bos = Some(true);
    assert_eq!(encode(&vocabulary), [381, 64]);
    vocabulary.add_eos = Some(true);
    assert_eq!(encode(&vocabulary), [381, 64, 383]);
    vocabulary.bos = None;
    assert_eq!(encode(&vocabulary), [64, 383]);
}

#[test]
fn words_are_cut_as_each_kind_says() {
    let mut vocabulary = qwen_as_gguf();
    // Without merges each word falls into bytes, so that only the cut of digits would show; the
    // merge of two digits shows whether they meet in one word.
    vocabulary.tokens.push("12".to_owned());
    vocabulary.token_types.push(1);
    vocabulary.merges = vec!["1 2".to_owned()];
    let mut count = |pre: Option<&str>| {
        vocabulary.pre = pre.map(str::to_owned);
        let tokenizer = Tokenizer::from_gguf(&vocabulary).expect("a tokenizer");
        assert_eq!(
            tokenizer
                .decode(&tokenizer.encode_bare("x 12, 1234").expect("tokens"), true)
                .ok(),
            Some("x 12, 1234".to_owned())
        );
        tokenizer.encode_bare("12").expect("tokens").len()
    };
    assert_eq!(count(Some("gpt-2")), 1);
    assert_eq!(count(Some("llama-bpe")), 1);
    assert_eq!(count(Some("smollm")), 2);
    assert_eq!(count(Some("qwen2")), 2);
    assert_eq!(count(None), 1);
    vocabulary.pre = Some("minerva-7b".to_owned());
    let error = Tokenizer::from_gguf(&vocabulary).expect_err("an unknown cut");
    let text = error.to_string();
    assert!(
        text.contains("\"minerva-7b\"") && text.contains("smollm"),
        "{text}"
    );
    assert_eq!(error.code(), Code::Refused);
}

fn sentence_piece() -> GgufVocabulary {
    let mut tokens: Vec<String> = ["<unk>", "<s>", "</s>"].map(str::to_owned).to_vec();
    let mut token_types = vec![2, 3, 3];
    for byte in 0..=255u8 {
        tokens.push(format!("<0x{byte:02X}>"));
        token_types.push(6);
    }
    let mut scores = vec![0.0; tokens.len()];
    let pieces = [
        ("▁h", -1.0),
        ("el", -2.0),
        ("lo", -3.0),
        ("ell", -4.0),
        ("▁hell", -5.0),
        ("▁", -100.0),
        ("h", -101.0),
        ("e", -102.0),
        ("l", -103.0),
        ("o", -104.0),
    ];
    for (piece, score) in pieces {
        tokens.push(piece.to_owned());
        token_types.push(1);
        scores.push(score);
    }
    GgufVocabulary {
        model: "llama".to_owned(),
        tokens,
        token_types,
        scores,
        bos: Some(1),
        eos: Some(2),
        unknown: Some(0),
        ..GgufVocabulary::default()
    }
}

#[test]
fn sentence_piece_merges_by_score_and_falls_back_to_bytes() {
    let tokenizer = Tokenizer::from_gguf(&sentence_piece()).expect("a tokenizer");
    let names = |text: &str| -> Vec<String> {
        let tokens = tokenizer.encode(text).expect("tokens");
        tokens
            .iter()
            .filter_map(|&t| tokenizer.token_name(t))
            .collect()
    };
    // ▁h first, then el, then lo of what is left, which is better than ell.
    assert_eq!(names("hello"), ["<s>", "▁h", "el", "lo"]);
    assert_eq!(names("hell"), ["<s>", "▁hell"]);
    assert_eq!(names("é"), ["<s>", "▁", "<0xC3>", "<0xA9>"]);
    assert!(!tokenizer.is_byte_exact());
    for text in ["hello", "hello hello", "é 場景 🎬", "  two", ""] {
        let tokens = tokenizer.encode(text).expect("tokens");
        assert_eq!(tokenizer.decode(&tokens, false).as_deref().ok(), Some(text));
    }
}

#[test]
fn broken_metadata_is_refused_by_its_fault() {
    let refused = |change: &dyn Fn(&mut GgufVocabulary)| -> String {
        let mut vocabulary = qwen_as_gguf();
        change(&mut vocabulary);
        let error = Tokenizer::from_gguf(&vocabulary).expect_err("a broken vocabulary");
        error.to_string()
    };
    assert!(refused(&|v| v.tokens.clear()).contains("0 tokens"));
    assert!(refused(&|v| v.token_types.truncate(3)).contains("3 token types, expected 384"));
    assert!(refused(&|v| v.eos = Some(384)).contains("end token is 384"));
    assert!(refused(&|v| v.merges[0] = "ab".to_owned()).contains("merge 0 is \"ab\""));
    assert!(refused(&|v| v.merges[0] = "zz qq".to_owned()).contains("zz"));
    assert!(refused(&|v| v.tokens[5] = "x".repeat(5000)).contains("token 5 is 5000 bytes"));
    let bert = refused(&|v| v.model = "bert".to_owned());
    assert!(
        bert.contains("\"bert\"") && bert.contains("gpt2, llama"),
        "{bert}"
    );
    let scoreless = refused(&|v| v.model = "llama".to_owned());
    assert!(scoreless.contains("no scores"), "{scoreless}");
    for json in ["", "{}", "[]", "{\"model\":{\"type\":\"BPE\"}}"] {
        let error = Tokenizer::from_json(json.as_bytes(), None).expect_err("no tokenizer");
        assert_eq!(error.code(), Code::Corrupt);
    }
}

#[test]
fn long_runs_lose_nothing() {
    let tokenizer = qwen_fixture();
    for unit in [" ", "a", "\n", "1", "é", "!? "] {
        let text = unit.repeat(200_000 / unit.len());
        let tokens = tokenizer.encode_bare(&text).expect("tokens");
        let bytes: usize = tokens.iter().map(|&t| tokenizer.token_bytes(t).len()).sum();
        assert_eq!(bytes, text.len(), "{unit:?}");
    }
}

proptest! {
    #[test]
    fn texts_come_back(text in "[\\PC\n\t ]{0,60}") {
        let tokenizer = qwen_fixture();
        let tokens = tokenizer.encode_bare(&text).expect("tokens");
        let back = tokenizer.decode(&tokens, true).expect("text");
        // The fixture's normalizer composes characters, so a text comes back composed.
        let again = tokenizer.encode_bare(&back).expect("tokens");
        prop_assert_eq!(again, tokens);
        if text.is_ascii() {
            prop_assert_eq!(back, text);
        }
    }
}

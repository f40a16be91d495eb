use super::*;

fn template(source: &str) -> ChatTemplate {
    ChatTemplate::new(source, "<s>", "</s>").expect("a template")
}

fn rendered(source: &str, extra: &Value) -> Result<String, TemplateError> {
    let input = TemplateInput {
        extra: extra.as_object().cloned().unwrap_or_default(),
        ..TemplateInput::default()
    };
    ChatTemplate::new(source, "<s>", "</s>")?.render_input(&input)
}

#[test]
fn the_reported_template_gives_the_reference_bytes() {
    let source = include_str!("../../../../tests/cases/ld-07/template.jinja");
    let input = include_str!("../../../../tests/cases/ld-07/input.json");
    let expected = include_str!("../../../../tests/cases/ld-07/expected.txt");
    let input: Value = serde_json::from_str(input).expect("JSON");
    assert_eq!(rendered(source, &input).expect("text"), expected);
}

/// Published with SmolLM2-135M-Instruct.
const SMOLLM2: &str = "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

#[test]
fn a_conversation_becomes_the_models_text() {
    let messages = [
        ChatMessage::system("Be brief & <kind>."),
        ChatMessage::user("  Hi \"you\" 🎬\n"),
    ];
    let text = template(SMOLLM2).render(&messages, true).expect("text");
    assert_eq!(
        text,
        "<|im_start|>system\nBe brief & <kind>.<|im_end|>\n\
         <|im_start|>user\n  Hi \"you\" 🎬\n<|im_end|>\n<|im_start|>assistant\n"
    );
    let text = template(SMOLLM2)
        .render(&messages[1..], false)
        .expect("text");
    assert!(
        text.starts_with("<|im_start|>system\nYou are a helpful AI"),
        "{text}"
    );
    assert!(text.ends_with("<|im_end|>\n"), "{text}");
}

#[test]
fn python_methods_and_loop_controls_work() {
    let source = "{%- for m in messages -%}{%- if loop.index > 2 %}{% break %}{% endif -%}\
        {{ m.content.strip().split('|')[-1].upper() }};{%- endfor -%}\
        {%- set ns = namespace(n=0) -%}{%- for k, v in d.items() -%}{%- set ns.n = ns.n + v -%}{%- endfor -%}\
        {{ ns.n }};{{ d.get('zz', 'none') }};{{ d.keys() | list | length }};\
        {{ 'a-b'.replace('-', '+') }};{{ 'xay'.startswith(('y', 'x')) }};{{ messages[1:] | length }};\
        {{ 'abc'[::-1] }};{{ bos_token }};{{ ', '.join(['p', 'q']) }};{{ nothing }};\
        {{ 'two words'.title() }};{{ 'a b  c'.split() | tojson }};{{ 'a,b,c'.rsplit(',', 1) | tojson }}";
    let messages = ["x|one ", "two", "three"].map(ChatMessage::user);
    let input = TemplateInput {
        messages: &messages,
        extra: json!({"d": {"z": 1, "a": 2}})
            .as_object()
            .cloned()
            .unwrap_or_default(),
        ..TemplateInput::default()
    };
    let text = template(source).render_input(&input).expect("text");
    assert_eq!(
        text,
        "ONE;TWO;3;none;2;a+b;True;2;cba;<s>;p, q;;Two Words;[\"a\", \"b\", \"c\"];[\"a,b\", \"c\"]"
    );
}

#[test]
fn a_template_may_refuse_in_its_own_words() {
    let source =
        "{% if messages|length == 0 %}{{ raise_exception('say \"something\"') }}{% endif %}";
    let error = template(source).render(&[], true).expect_err("refused");
    assert!(matches!(&error, TemplateError::Raised { message } if message == "say \"something\""));
    assert_eq!(error.code(), Code::BadInput);
    // Also from inside a macro.
    let source = "{% macro m() %}{{ raise_exception('deep') }}{% endmacro %}{{ m() }}";
    let error = template(source).render(&[], true).expect_err("refused");
    assert!(error.to_string().contains("\"deep\""), "{error}");
}

#[test]
fn the_date_comes_from_the_caller_only() {
    let source = "{% if strftime_now is defined %}{{ strftime_now('%d %b %Y') }}{% else %}no date{% endif %}";
    assert_eq!(
        template(source).render(&[], true).ok().as_deref(),
        Some("no date")
    );
    let input = TemplateInput {
        now: Some(TemplateTime { unix_secs: 0 }),
        ..TemplateInput::default()
    };
    let dated = template(source).render_input(&input);
    assert_eq!(dated.ok().as_deref(), Some("01 Jan 1970"));
    let error = template("{{ strftime_now('%Y') }}")
        .render(&[], true)
        .expect_err("no date");
    assert!(matches!(error, TemplateError::NotThere { .. }), "{error}");
    assert!(error.to_string().contains("strftime_now"), "{error}");
}

#[test]
fn what_is_not_there_is_named() {
    for (source, name) in [
        ("\n{{ open_file('x') }}", "open_file"),
        ("{{ messages | frobnicate }}", "frobnicate"),
        ("{% if 1 is sorcery %}{% endif %}", "sorcery"),
        ("{{ 'a'.encode('utf-8') }}", "encode"),
        ("{{ messages.append(1) }}", "append"),
        ("{% include 'other.jinja' %}", "other.jinja"),
        ("{{ nothing.at.all }}", "undefined"),
        ("{{ nothing | tojson }}", "not there"),
    ] {
        let error = rendered(source, &json!({})).expect_err(source);
        assert!(
            matches!(error, TemplateError::NotThere { .. }),
            "{source}: {error:?}"
        );
        assert!(error.to_string().contains(name), "{source}: {error}");
    }
    let error = rendered("\n\n{{ open_file('x') }}", &json!({})).expect_err("no such function");
    assert!(error.to_string().ends_with("in line 3"), "{error}");
}

#[test]
fn templates_that_do_not_end_are_stopped() {
    let start = std::time::Instant::now();
    let nested = "{% for a in range(90000) %}".repeat(5) + &"{% endfor %}".repeat(5);
    for source in [
        nested.as_str(),
        "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
        "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s.replace('', ns.s) %}{% endfor %}",
        "{{ 'x' * 99999999 }}",
        "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}",
        "{% set ns = namespace(s='x' * 9999) %}{% for i in range(9999) %}{{ ns.s | tojson | tojson }}{% endfor %}",
    ] {
        let error = rendered(source, &json!({})).expect_err(source);
        let says = error.to_string();
        assert!(
            matches!(error, TemplateError::Endless { .. }),
            "{source}: {error:?}"
        );
        assert!(says.contains("did not end"), "{says}");
    }
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

#[test]
fn no_template_is_refused_as_one() {
    for source in ["{{", "{% if %}", "{% endfor %}", "{{ 'a' \u{0} }}"] {
        let error = ChatTemplate::new(source, "", "").expect_err(source);
        assert!(
            matches!(error, TemplateError::Syntax { .. }),
            "{source}: {error:?}"
        );
        assert_eq!(error.code(), Code::Corrupt);
    }
    let deep = "{{ ".to_owned() + &"(".repeat(100_000);
    assert!(ChatTemplate::new(deep, "", "").is_err());
    let long = " ".repeat(MAX_TEMPLATE_BYTES + 1);
    let error = ChatTemplate::new(long, "", "").expect_err("too long");
    assert!(matches!(error, TemplateError::TooLong { .. }));
    let message = [ChatMessage::user("x".repeat(MAX_TEXT_BYTES + 1))];
    let error = template(SMOLLM2)
        .render(&message, true)
        .expect_err("too long");
    assert!(error.to_string().contains("16777217 bytes"), "{error}");
}

#[test]
fn long_conversations_pass() {
    let long = [ChatMessage::user("word ".repeat(40_000))];
    let text = template(SMOLLM2)
        .render(&long, true)
        .expect("200 KB of text");
    assert!(text.len() > 200_000);
    let many: Vec<ChatMessage> = (0..2000)
        .map(|n| ChatMessage::user(n.to_string()))
        .collect();
    assert!(template(SMOLLM2).render(&many, true).is_ok());
}

#[test]
fn templates_are_found_in_a_tokenizer_config() {
    let found = |config: Value| template_of_config(config.to_string().as_bytes());
    assert_eq!(found(json!({"chat_template": "a"})).as_deref(), Some("a"));
    let named = json!({"chat_template": [
        {"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]});
    assert_eq!(found(named).as_deref(), Some("d"));
    assert_eq!(found(json!({})), None);
    assert_eq!(template_of_config(b"not json"), None);
}

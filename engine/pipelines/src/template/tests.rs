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

/// Something done over and over to what the time before left in `ns.l` (and `ns.k`).
fn over_and_over(times: usize, step: &str, then: &str) -> String {
    format!(
        "{{% set ns = namespace(l=[1], k=[1], s='x') %}}{{% for i in range({times}) %}}{step}{{% endfor %}}{then}"
    )
}

fn set(value: &str) -> String {
    format!("{{% set ns.l = {value} %}}")
}

#[test]
fn templates_that_do_not_end_are_stopped() {
    let start = std::time::Instant::now();
    let nested = "{% for a in range(90000) %}".repeat(5) + &"{% endfor %}".repeat(5);
    let set_s = |value: &str| format!("{{% set ns.s = {value} %}}");
    let text = |value: &str| over_and_over(99, &set_s(value), "{{ ns.s | length }}");
    let list = |value: &str| over_and_over(99, &set(value), "{{ ns.l | length }}");
    let deep = |value: &str| over_and_over(99_999, &set(value), "done");
    let both = set("[ns.l, ns.l]") + "{% set ns.k = [ns.k, ns.k] %}";
    let mut sources = vec![
        nested,
        "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}".into(),
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}".into(),
        "{% macro m(n) %}{{ m(n + n) }}{% endmacro %}{{ m([1]) }}".into(),
        "{% macro a(n) %}{{ b(n ~ n) }}{% endmacro %}{% macro b(n) %}{{ a(n ~ n) }}{% endmacro %}{{ a('x') }}".into(),
        "{{ 'x' * 99999999 }}".into(),
        "{% set l = [1] %}{{ l * 99999999 }}".into(),
        "{% set l = [1] %}{{ (l * 99999999) | join('x') }}".into(),
        "{% set l = [1] %}{% for i in l * 99999999 %}{% endfor %}".into(),
        "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}".into(),
        "{% for i in [[1]] recursive %}{{ loop([i + i]) }}{% endfor %}".into(),
        over_and_over(9999, "{{ (ns.s * 9999) | tojson | tojson }}", ""),
        "{% set a = [1] %}".to_owned() + &"{% set a = a + a %}".repeat(60) + "{{ a | length }}",
        "{% set a = [1] %}".to_owned() + &"{% set a = [a] %}".repeat(9999),
        over_and_over(30, &both, "{{ ns.l == ns.k }}"),
        over_and_over(30, &both, "{{ ns.l in [ns.k] }}"),
        over_and_over(30, &set("{'a': ns.l, 'b': ns.l}"), "{{ ns.l | tojson }}"),
        over_and_over(30, &set("[ns.l, ns.l]"), "{{ ns.l }}"),
        // Few items that each are a long text.
        over_and_over(16, &set_s("ns.s ~ ns.s"), "{{ [ns.s] * 9999 }}"),
        // Costly to compare, and compared often.
        over_and_over(15, &both, "{% for i in range(99999) %}{{ ns.l == ns.k }}{% endfor %}"),
    ];
    let texts = [
        "ns.s ~ ns.s",
        "ns.s + ns.s",
        "ns.s * 2",
        "ns.s.replace('', ns.s)",
        "ns.s.join(['', '', ns.s])",
        "[ns.s, ns.s] | join",
        "ns.s | replace('x', 'xx')",
        "'%s%s' | format(ns.s, ns.s)",
    ];
    sources.extend(texts.map(text));
    let lists = [
        "ns.l + ns.l",
        "ns.l * 2",
        "[ns.l, ns.l] | sum(start=[])",
        "(ns.l + ns.l)[:]",
        "[ns.l, ns.l]",
        "{'a': ns.l, 'b': ns.l}",
        "(ns.l, ns.l)",
        "(ns.l + ns.l) | reverse | list",
    ];
    sources.extend(lists.map(list));
    let deeps = [
        "[ns.l]",
        "{'a': ns.l}",
        "(ns.l,)",
        "dict(a=ns.l)",
        "ns.l | batch(1)",
        "[ns.l] | list",
    ];
    sources.extend(deeps.map(deep));
    for source in &sources {
        let began = std::time::Instant::now();
        let error = rendered(source, &json!({})).expect_err(source);
        let says = error.to_string();
        println!("{:?} {says}: {source:.60}", began.elapsed());
        assert!(
            matches!(error, TemplateError::Endless { .. }),
            "{source}: {error:?}"
        );
        assert!(says.contains("did not end"), "{says}");
    }
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

#[test]
fn what_would_not_end_while_it_is_compiled_is_refused() {
    for product in [
        "[1] * 99999999",
        "99999999 * [1]",
        "2 * ([1] * 99999999)",
        "2 in [1] * 99999999 * 99999999",
        "([1]) * 9",
        "(false or [1]) * 9",
        "9 * (0 or ([1]))",
        "x if [1] * 9 else y",
    ] {
        let error = ChatTemplate::new(format!("\n{{{{ {product} }}}}"), "", "").expect_err(product);
        assert!(
            error.to_string().contains("multiplied, in line 2"),
            "{product}: {error}"
        );
    }
    for fine in [
        "x[1] * 2",
        "2 * x[1]",
        "f([1]) * 2",
        "[1, 2] | length * 2",
        "[2 * 3]",
        "'=' * 9",
    ] {
        ChatTemplate::new(format!("{{{{ {fine} }}}}"), "", "").expect(fine);
    }
    // Each part of a long expression is a call of the compiler inside of another.
    let parts = [
        ("1", "+1", 2),
        ("a", ".b", 2),
        ("'a'", "|e", 2),
        ("", "not ", 1),
        ("a", "~a", 2),
        ("a", " if a else a", 4),
        ("a", " or a", 2),
        ("a", "**a", 2),
        ("a", "()", 2),
        ("a", "[0]", 3),
        ("[1]", "+[1]", 4),
        ("a", "==a", 2),
        ("a", " is b", 2),
        ("", "-", 1),
    ];
    for (first, part, tokens) in parts {
        let last = if first.is_empty() { "a" } else { "" };
        let of = |count: usize| format!("{{{{ {first}{}{last} }}}}", part.repeat(count));
        let error = ChatTemplate::new(of(40_000), "", "").expect_err(part);
        assert!(
            error.to_string().contains("in one block"),
            "{part}: {error}"
        );
        // The longest that passes comes to an end, whichever way.
        let longest = of((limits::MAX_BLOCK_TOKENS - 4) / tokens);
        println!(
            "{part}: {:?}",
            ChatTemplate::new(longest, "", "").and_then(|t| t.render(&[], true))
        );
    }
    let chain = |count| format!("{{% if a %}}{}{{% endif %}}", "{% elif b %}".repeat(count));
    let error = ChatTemplate::new(chain(40_000), "", "").expect_err("a long chain");
    assert!(error.to_string().contains("conditions"), "{error}");
    assert_eq!(
        template(&chain(limits::MAX_CONDITIONS))
            .render(&[], true)
            .ok()
            .as_deref(),
        Some("")
    );
}

#[test]
fn values_made_anew_at_each_walk_do_not_pile_up() {
    for step in [
        "ns.l[:]",
        "ns.l[::-1]",
        "ns.l | reverse",
        "ns.l * 1",
        "ns.l + []",
    ] {
        let source = over_and_over(2000, &set(step), "{{ ns.l }}");
        assert_eq!(rendered(&source, &json!({})).expect(step), "[1]", "{step}");
    }
}

#[test]
fn nothing_comes_to_hold_itself() {
    for source in [
        "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}",
        "{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns }}",
        "{% set ns = namespace() %}{% for x in [1] %}{% set ns.a = loop %}{% endfor %}{{ ns.a }}",
        "{% set a = namespace() %}{% set b = namespace(a=a) %}{{ b }}",
    ] {
        let error = rendered(source, &json!({})).expect_err(source);
        assert!(error.to_string().contains("cannot be kept"), "{error}");
    }
    // The engine's own would divide by the number of values.
    let source = "{% for x in [1] %}{{ loop.cycle() }}{% endfor %}";
    assert!(rendered(source, &json!({})).is_err());
    let source = "{% for x in [1, 2, 3] %}{{ loop.cycle('a', 'b') }}{% endfor %}";
    assert_eq!(rendered(source, &json!({})).expect("text"), "aba");
}

#[test]
fn what_templates_do_with_lists_is_as_before() {
    let source = "{%- set ns = namespace(all=[], system='') -%}\
        {%- for m in messages -%}{%- if m.role == 'system' -%}{%- set ns.system = ns.system + m.content -%}\
        {%- else -%}{%- set ns.all = ns.all + [{'n': loop.index0, 'text': m.content | trim}] -%}{%- endif -%}{%- endfor -%}\
        {{ ns.system }}|{{ ns.all | length }}|{{ ns.all[-1].text }}|{{ ns.all[1:3] | map(attribute='n') | join('+') }}|\
        {{ (ns.all | selectattr('n', 'eq', 7) | list)[0] | tojson }}|{{ 7 in ns.all | map(attribute='n') }}|\
        {%- macro m(x, y=2) -%}{{ x }}{{ y if y > 1 else 'n' }}{%- endmacro -%}{{ m(1) }}{{ m(3, y=0) }}|\
        {%- for g in ns.all | batch(400) -%}{{ g | length }},{%- else -%}none{%- endfor -%}|\
        {{ (1, 2) + (3,) }}|{{ [1] + [2] == [1, 2] }}|{{ 'a' in 'cat' and not 'b' in ['c'] }}|{{ dict(a=1).items() | list }}";
    let mut messages = vec![ChatMessage::system("Be "), ChatMessage::system("brief.")];
    messages.extend((0..900).map(|n| ChatMessage::user(format!(" turn {n} "))));
    let text = template(source).render(&messages, true).expect("text");
    assert_eq!(
        text,
        "Be brief.|900|turn 899|3+4|{\"n\": 7, \"text\": \"turn 5\"}|True|123n|400,400,100,|(1, 2, 3)|True|True|[['a', 1]]"
    );
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

//! Any text as a chat template, with any conversation: it ends, with a text or an error that says
//! why.
//!
//! Input: the template, then after a zero byte what the user says.

#![no_main]

use engine_pipelines::{ChatMessage, ChatTemplate, TemplateInput, TemplateTime};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let at = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    let Ok(source) = std::str::from_utf8(&bytes[..at]) else {
        return;
    };
    let said = String::from_utf8_lossy(bytes.get(at + 1..).unwrap_or_default());
    let template = match ChatTemplate::new(source, "<s>", "</s>") {
        Ok(template) => template,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let messages = [ChatMessage::system("Be brief."), ChatMessage::user(said)];
    let input = TemplateInput {
        messages: &messages,
        add_generation_prompt: true,
        now: Some(TemplateTime { unix_secs: 1_700_000_000 }),
        ..TemplateInput::default()
    };
    match template.render_input(&input) {
        Ok(text) => assert_eq!(template.render_input(&input).ok(), Some(text)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});

//! Replies of chat servers: whole, or as a stream of events.

use serde_json::Value;

/// What a server replied.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) text: String,
    pub(super) tokens: usize,
}

/// Why a reply gives no text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReplyError {
    /// The stream ended before the reply did.
    Cut,
    /// The model would not.
    Refusal(String),
    /// No reply at all; its beginning.
    Nonsense(String),
}

const DONE: &[u8] = b"data: [DONE]";

/// Whether a stream has said that it is done; some servers keep the connection open after that.
pub(super) fn is_finished(body: &[u8]) -> bool {
    let tail = &body[body.len().saturating_sub(DONE.len() + 4)..];
    body.starts_with(b"data:") && tail.windows(DONE.len()).any(|piece| piece == DONE)
}

/// What a server says went wrong.
pub(super) fn server_message(body: &[u8]) -> String {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let said = value["error"]["message"]
        .as_str()
        .or(value["error"].as_str());
    let said = said
        .or(value["message"].as_str())
        .or(value["detail"].as_str());
    said.map_or_else(|| start(&String::from_utf8_lossy(body)), start)
}

fn start(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(160).collect()
}

/// The text of a reply.
pub(super) fn read(body: &[u8]) -> Result<Reply, ReplyError> {
    let text = String::from_utf8_lossy(body);
    let trimmed = text.trim_start();
    if trimmed.starts_with("data:") || trimmed.starts_with("event:") || trimmed.starts_with(':') {
        return stream(trimmed);
    }
    let value: Value = match serde_json::from_str(trimmed) {
        Ok(value) => value,
        Err(error) if error.is_eof() && trimmed.starts_with('{') => return Err(ReplyError::Cut),
        Err(_no_json) => return Err(ReplyError::Nonsense(start(trimmed))),
    };
    let choice = &value["choices"][0];
    let message = &choice["message"];
    refusal(choice, message)?;
    let content = match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            return Err(ReplyError::Nonsense(start(trimmed)));
        }
    };
    Ok(Reply {
        tokens: tokens(&value).unwrap_or_else(|| content.split_whitespace().count()),
        text: content,
    })
}

fn tokens(value: &Value) -> Option<usize> {
    usize::try_from(value["usage"]["completion_tokens"].as_u64()?).ok()
}

fn refusal(choice: &Value, message: &Value) -> Result<(), ReplyError> {
    if let Some(said) = message["refusal"].as_str().filter(|said| !said.is_empty()) {
        return Err(ReplyError::Refusal(start(said)));
    }
    if choice["finish_reason"] == "content_filter" {
        return Err(ReplyError::Refusal(
            "its content filter stopped the reply".to_owned(),
        ));
    }
    Ok(())
}

fn stream(text: &str) -> Result<Reply, ReplyError> {
    let mut reply = Reply {
        text: String::new(),
        tokens: 0,
    };
    let mut said = None;
    let (mut finished, mut events) = (false, 0);
    let mut refused = String::new();
    for line in text.lines() {
        let Some(data) = line.strip_prefix("data:").map(str::trim) else {
            continue;
        };
        if data == "[DONE]" {
            finished = true;
            break;
        }
        let Ok(value) = serde_json::from_str::<Value>(data) else {
            continue;
        };
        if !value["error"].is_null() {
            return Err(ReplyError::Nonsense(server_message(data.as_bytes())));
        }
        events += 1;
        said = tokens(&value).or(said);
        let choice = &value["choices"][0];
        refused.push_str(choice["delta"]["refusal"].as_str().unwrap_or(""));
        refusal(choice, &Value::Null)?;
        if let Some(piece) = choice["delta"]["content"].as_str() {
            reply.text.push_str(piece);
            reply.tokens += 1;
        }
        finished |= choice["finish_reason"].is_string();
    }
    if !refused.is_empty() {
        return Err(ReplyError::Refusal(start(&refused)));
    }
    if !finished {
        return Err(ReplyError::Cut);
    }
    if events == 0 {
        return Err(ReplyError::Nonsense(start(text)));
    }
    reply.tokens = said.unwrap_or(reply.tokens);
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_and_streamed_replies_give_the_same() {
        let whole =
            br#"{"choices":[{"message":{"content":"{\"a\":\"b\"}"},"finish_reason":"stop"}],
            "usage":{"completion_tokens":7}}"#;
        let streamed = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n\
            data: {\"choices\":[{\"delta\":{\"content\":\"{\\\"a\\\":\"}}]}\n\n: ping\n\n\
            data: {\"choices\":[{\"delta\":{\"content\":\"\\\"b\\\"}\"},\"finish_reason\":\"stop\"}]}\n\n\
            data: {\"choices\":[],\"usage\":{\"completion_tokens\":7}}\n\ndata: [DONE]\n\n";
        let wanted = Ok(Reply {
            text: "{\"a\":\"b\"}".to_owned(),
            tokens: 7,
        });
        assert_eq!(read(whole), wanted);
        assert_eq!(read(streamed.as_bytes()), wanted);
        assert!(is_finished(streamed.as_bytes()) && !is_finished(whole));
    }

    #[test]
    fn cuts_refusals_and_nonsense_are_told_apart() {
        let cut = "data: {\"choices\":[{\"delta\":{\"content\":\"{\"}}]}\n\n";
        assert_eq!(read(cut.as_bytes()), Err(ReplyError::Cut));
        assert_eq!(read(br#"{"choices":[{"mess"#), Err(ReplyError::Cut));
        let refused = br#"{"choices":[{"message":{"content":null,"refusal":"I will not."}}]}"#;
        assert_eq!(
            read(refused),
            Err(ReplyError::Refusal("I will not.".to_owned()))
        );
        for nonsense in [
            "",
            "<html>502</html>",
            "{}",
            "[1,2]",
            "data: [DONE]",
            "data: x\n\ndata: [DONE]",
        ] {
            let got = read(nonsense.as_bytes());
            assert!(
                matches!(got, Err(ReplyError::Nonsense(_))),
                "{nonsense}: {got:?}"
            );
        }
    }
}

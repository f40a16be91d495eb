//! The command list for agents: Model Context Protocol over lines of JSON-RPC 2.0
//! (<https://modelcontextprotocol.io/specification/2025-06-18>), each command a tool.

use std::io::{BufRead, Write};
use std::sync::OnceLock;

use engine_base::Code;
use serde_json::{Value, json};

use crate::desk::{self, CommandEntry, Schemas};
use crate::error::StudioError;
use crate::join::Commands;

/// Versions of the protocol that are spoken, newest first.
const VERSIONS: [&str; 3] = ["2025-06-18", "2025-03-26", "2024-11-05"];
/// Longest line that is read.
const LINE_BYTES_MAX: u64 = 32 << 20;

/// Codes of JSON-RPC.
const PARSE_ERROR: i64 = -32_700;
const INVALID_REQUEST: i64 = -32_600;
const METHOD_NOT_FOUND: i64 = -32_601;
const INVALID_PARAMS: i64 = -32_602;

/// Names of tools have no dots.
fn tool_name(command: &str) -> String {
    command.replace('.', "_")
}

/// The tools as a client is told of them.
fn tools() -> Vec<Value> {
    desk::commands()
        .iter()
        .map(|command| tool(command, schemas()))
        .collect()
}

/// Those of the command list. Without them a tool can still be called: its types stand in its
/// description.
fn schemas() -> &'static Schemas {
    static SCHEMAS: OnceLock<Schemas> = OnceLock::new();
    SCHEMAS.get_or_init(|| Schemas::of_commands().unwrap_or_default())
}

fn tool(command: &CommandEntry, schemas: &Schemas) -> Value {
    let types = command.arguments_in_typescript();
    let (takes, gives) = command
        .schemas(schemas)
        .unwrap_or_else(|_no_schema| (json!({ "type": "object" }), json!({ "type": "object" })));
    json!({
        "name": tool_name(command.name),
        "title": command.name,
        "description": format!("{}\n\nArguments, in TypeScript:\n{types}", command.docs),
        "inputSchema": takes,
        "outputSchema": gives,
        "annotations": {
            "title": command.docs,
            "readOnlyHint": command.is_query(),
            "destructiveHint": command.destroys(),
            "idempotentHint": command.is_query(),
            "openWorldHint": matches!(
                command.name,
                "models.pull" | "story.write" | "story.rewrite" | "settings.test_llm"
            ),
        },
    })
}

/// Answer requests, a line each, until there are no more.
///
/// # Errors
/// A line cannot be read or an answer not be written.
pub fn serve_mcp(
    desk: &dyn Commands,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> Result<(), StudioError> {
    let failed = |what: &str, error: &std::io::Error| {
        StudioError::new(Code::of_io(error), format!("cannot {what}: {error}"))
    };
    loop {
        let mut line = Vec::new();
        let read = std::io::Read::take(&mut *input, LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)
            .map_err(|error| failed("read a request", &error))?;
        if read == 0 {
            return Ok(());
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let answer = match serde_json::from_slice::<Value>(&line) {
            Ok(message) => answer(desk, &message),
            Err(error) => Some(refused(&Value::Null, PARSE_ERROR, &error.to_string())),
        };
        if let Some(answer) = answer {
            writeln!(output, "{answer}")
                .and_then(|()| output.flush())
                .map_err(|error| failed("write an answer", &error))?;
        }
    }
}

fn refused(id: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

/// The answer to a message; notifications have none.
fn answer(desk: &dyn Commands, message: &Value) -> Option<Value> {
    let Some(method) = message["method"].as_str() else {
        // An answer of the client's to something that was never asked.
        let is_answer = message.get("result").or(message.get("error")).is_some();
        return (!is_answer).then(|| refused(&message["id"], INVALID_REQUEST, "expected a method"));
    };
    let id = message.get("id").filter(|id| !id.is_null())?;
    let params = &message["params"];
    let result = match method {
        "initialize" => Ok(initialized(params)),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(json!({ "tools": tools() })),
        "tools/call" => called(desk, params),
        other => Err((METHOD_NOT_FOUND, format!("there is no method {other:?}"))),
    };
    Some(match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err((code, text)) => refused(id, code, &text),
    })
}

fn initialized(params: &Value) -> Value {
    let asked = params["protocolVersion"].as_str().unwrap_or_default();
    let version = VERSIONS.iter().find(|known| **known == asked);
    json!({
        "protocolVersion": version.unwrap_or(&VERSIONS[0]),
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "longtake", "version": env!("CARGO_PKG_VERSION") },
        "instructions": "Each tool is a command of the studio. `project` is the absolute path of a \
                         .longtake folder. Jobs (render, export, story) return a number: ask \
                         queue_list until the job's state is done, failed or cancelled.",
    })
}

fn called(desk: &dyn Commands, params: &Value) -> Result<Value, (i64, String)> {
    let name = params["name"].as_str().unwrap_or_default();
    let commands = desk::commands();
    let command = commands
        .iter()
        .find(|command| tool_name(command.name) == name);
    let Some(command) = command else {
        return Err((INVALID_PARAMS, format!("there is no tool {name:?}")));
    };
    let args = match &params["arguments"] {
        Value::Null => json!({}),
        given => given.clone(),
    };
    // What a command fails with is for the agent to read, and no failure of the protocol.
    Ok(match desk.call(command.name, args) {
        Ok(value) => {
            let text = value.to_string();
            // Structured content is an object always: a list is the `value` of one.
            let structured = if command.gives_object(schemas()) {
                value
            } else {
                json!({ "value": value })
            };
            json!({
                "content": [{ "type": "text", "text": text }],
                "structuredContent": structured,
                "isError": false,
            })
        }
        Err(error) => json!({
            "content": [{
                "type": "text",
                "text": format!("{}: {}", error.code.as_str(), error.message),
            }],
            "isError": true,
        }),
    })
}

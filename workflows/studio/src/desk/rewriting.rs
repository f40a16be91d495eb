//! Texts of a script written again by a language model, one after the other.

use engine_base::{CancelToken, Code, ProgressEvent};
use flow_story::{Llm, LlmRequest, Message, Role, Script};
use serde_json::{Value, json};

use super::queue::JobResult;
use super::story::{RewriteArgs, RewriteTarget};
use super::{Desk, perform};
use crate::command::Kind;
use crate::error::StudioError;
use crate::events::{StudioEvent, Watcher};
use crate::project::{parse, set_field};
use crate::say::Say;
use crate::{premise, rewrite as diffs};

/// Most texts that one request writes again.
const TEXTS_MAX: usize = 200;
/// Tries of a text whose reply is empty or not a text.
const TRIES: u64 = 3;

/// What a text of a script is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Text {
    /// For the model.
    what: &'static str,
    /// Most words that a reply may have.
    words_max: usize,
}

/// A text of the script.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    /// JSON pointer in the whole script.
    pointer: String,
    /// JSON pointer in its row.
    field: String,
    /// JSON pointer of its row in the whole script.
    row: String,
    text: Text,
    old: String,
}

/// Write the texts of a part of a script again, as a proposal.
pub(super) fn rewrite(
    desk: &Desk,
    args: &RewriteArgs,
    watcher: &dyn Watcher,
    cancel: &CancelToken,
) -> Result<JobResult, StudioError> {
    let open = desk.project(&args.project)?;
    let base = open.project.script()?;
    let mut value = diffs::to_value(&base)?;
    let places = places(&value, &args.target)?;
    if places.is_empty() {
        return Err(StudioError::said(Code::BadInput, &Say::NothingToRewrite {}));
    }
    watcher.event(StudioEvent::Stage {
        what: "loading the language model".into(),
    });
    let llm = args.llm.clone().or_else(|| desk.settings().llm);
    let mut llm = premise::model(llm.as_deref(), cancel)?;
    watcher.event(StudioEvent::Stage {
        what: Say::Writing {}.into(),
    });
    for (at, place) in places.iter().enumerate() {
        watcher.event(StudioEvent::Progress(ProgressEvent {
            what: place.text.what.to_owned(),
            step: at as u64,
            of: places.len() as u64,
            secs_left: None,
        }));
        if let Some(text) = written(llm.as_mut(), &value, place, args, cancel)? {
            put(&mut value, place, &text)?;
        }
    }
    let script: Script = parse(&value)?;
    let from = match &args.wish {
        Some(wish) if !wish.trim().is_empty() => format!("{}: {wish}", name(&args.target)),
        _ => name(&args.target),
    };
    perform::propose(desk, &open, &base, &script, &from)
}

fn name(target: &RewriteTarget) -> String {
    let (kind, id) = (target.kind.as_str(), &target.id);
    match (&target.field, target.kind) {
        (Some(field), Kind::Film) => format!("film {field}"),
        (None, Kind::Film) => "film".to_owned(),
        (Some(field), _) => format!("{kind} {id} {field}"),
        (None, _) => format!("{kind} {id}"),
    }
}

/// Put a text into the script, marked as written by a model.
fn put(script: &mut Value, place: &Place, text: &str) -> Result<(), StudioError> {
    set_field(script, &place.pointer, &json!(text))?;
    let steps: Vec<&str> = place.field.split('/').skip(1).collect();
    let (thing, field) = match steps.as_slice() {
        ["lines", index, field] => (format!("{}/lines/{index}", place.row), *field),
        [field, ..] => (place.row.clone(), *field),
        [] => return Ok(()),
    };
    set_field(script, &format!("{thing}/by/{field}"), &json!("model"))
}

const fn text(what: &'static str, words_max: usize) -> Text {
    Text { what, words_max }
}

/// Texts of rows.
const TEXTS: [(Kind, &[(&str, Text)]); 5] = [
    (
        Kind::Film,
        &[
            ("logline", text("the film in one sentence", 40)),
            ("style", text("how the film looks", 40)),
        ],
    ),
    (
        Kind::Cast,
        &[("look", text("what the person looks like", 40))],
    ),
    (
        Kind::Place,
        &[("look", text("what the place looks like", 40))],
    ),
    (
        Kind::Scene,
        &[("heading", text("the scene's heading, a few words", 10))],
    ),
    (
        Kind::Shot,
        &[
            (
                "action",
                text("what happens in the shot, one or two sentences", 50),
            ),
            (
                "depicts",
                text("what the shot's picture shows, for a painter", 60),
            ),
            (
                "framing",
                text("the framing, such as wide, close, from above", 6),
            ),
        ],
    ),
];

fn places(script: &Value, target: &RewriteTarget) -> Result<Vec<Place>, StudioError> {
    let mut rows: Vec<(Kind, String)> = Vec::new();
    let length = |pointer: &str| {
        let list = script.pointer(pointer).and_then(Value::as_array);
        list.map_or(0, Vec::len)
    };
    let called = |pointer: &str, kind: Kind| {
        let id = script.pointer(&format!("{pointer}/{}", kind.id_field()));
        id.and_then(Value::as_str) == Some(target.id.as_str())
    };
    match target.kind {
        Kind::Film => rows.push((Kind::Film, String::new())),
        Kind::Cast | Kind::Place => {
            let list = if target.kind == Kind::Cast {
                "/cast"
            } else {
                "/places"
            };
            let all = (0..length(list)).map(|at| format!("{list}/{at}"));
            rows.extend(
                all.filter(|row| called(row, target.kind))
                    .map(|row| (target.kind, row)),
            );
        }
        Kind::Scene | Kind::Shot => {
            for scene in (0..length("/scenes")).map(|at| format!("/scenes/{at}")) {
                let whole = target.kind == Kind::Scene && called(&scene, Kind::Scene);
                if whole {
                    rows.push((Kind::Scene, scene.clone()));
                }
                let shots = format!("{scene}/shots");
                for shot in (0..length(&shots)).map(|at| format!("{shots}/{at}")) {
                    if (whole && target.field.is_none())
                        || (target.kind == Kind::Shot && called(&shot, Kind::Shot))
                    {
                        rows.push((Kind::Shot, shot));
                    }
                }
            }
        }
    }
    if rows.is_empty() {
        let message = format!("there is no {}", name(target));
        return Err(StudioError::new(Code::NotFound, message));
    }
    let mut places = Vec::new();
    for (kind, row) in rows {
        for (field, text) in fields(script, kind, &row) {
            let pointer = format!("{row}{field}");
            let old = script.pointer(&pointer).and_then(Value::as_str);
            let asked = target.field.as_ref();
            // A text that is not there is written only when it is asked for by name.
            if asked.is_none_or(|asked| *asked == field) && (asked.is_some() || old.is_some()) {
                places.push(Place {
                    pointer,
                    field,
                    row: row.clone(),
                    text,
                    old: old.unwrap_or_default().to_owned(),
                });
            }
        }
    }
    places.truncate(TEXTS_MAX);
    Ok(places)
}

/// Text fields of a row, with what they are.
fn fields(script: &Value, kind: Kind, row: &str) -> Vec<(String, Text)> {
    let known = TEXTS.iter().find(|(of, _)| *of == kind);
    let known = known.map_or(&[][..], |(_, fields)| fields);
    let mut fields: Vec<(String, Text)> = known
        .iter()
        .map(|(field, text)| (format!("/{field}"), *text))
        .collect();
    if kind == Kind::Shot {
        let lines = script
            .pointer(&format!("{row}/lines"))
            .and_then(Value::as_array);
        let count = lines.map_or(0, Vec::len);
        let said = text("a spoken line, only the words said", 40);
        let line = |at| (format!("/lines/{at}/text"), said);
        fields.extend((0..count).map(line));
    }
    fields
}

/// A new text for a place; nothing when the model has none to give.
fn written(
    llm: &mut dyn Llm,
    script: &Value,
    place: &Place,
    args: &RewriteArgs,
    cancel: &CancelToken,
) -> Result<Option<String>, StudioError> {
    let row = script.pointer(&place.row).unwrap_or(script);
    let held = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let language = held(script, "language");
    let mut about = format!("The film: {}", held(script, "title"));
    for (name, value) in [
        ("Logline", held(script, "logline")),
        ("Style", held(script, "style")),
        ("What happens here", held(row, "action")),
    ] {
        if !value.is_empty() {
            about.push_str(&format!("\n{name}: {value}"));
        }
    }
    let old = if place.old.is_empty() {
        "(nothing yet)"
    } else {
        &place.old
    };
    let wish = args
        .wish
        .as_deref()
        .map(str::trim)
        .filter(|wish| !wish.is_empty());
    let wish = wish.unwrap_or("make it more vivid and concrete");
    let asked = format!(
        "{about}\n\nRewrite this text. It is {}.\nOld text: {old}\nWish: {wish}\nReply with the \
         new text only, in the language {language:?}.",
        place.text.what
    );
    for attempt in 0..TRIES {
        let request = LlmRequest {
            system: "You edit film scripts. You reply with the edited text and nothing else."
                .to_owned(),
            messages: vec![Message {
                role: Role::User,
                text: asked.clone(),
            }],
            schema: None,
            max_tokens: 160,
            temperature: 0.8,
            seed: args.seed.unwrap_or(0).wrapping_add(attempt),
            stop: vec!["\n\n".to_owned()],
        };
        match llm.complete(&request, cancel) {
            Ok(reply) => {
                if let Some(text) = clean(&reply.text, place.text.words_max) {
                    return Ok(Some(text));
                }
            }
            Err(error) if error.passing => tracing::debug!(%error, "a reply is asked for again"),
            Err(error) => return Err(StudioError::new(error.code, error.message)),
        }
    }
    Ok(None)
}

/// A reply as a text of the script: its first whole sentences of at most `words_max` words
/// together, without quotes or labels around them. A first sentence that is longer is no reply.
fn clean(reply: &str, words_max: usize) -> Option<String> {
    let mut text = reply.trim();
    for label in ["New text:", "new text:", "Text:"] {
        text = text.strip_prefix(label).map_or(text, str::trim);
    }
    let unquoted = ["\"", "“", "„"]
        .iter()
        .find_map(|open| text.strip_prefix(open)?.strip_suffix(['"', '”', '“']));
    let plain: String = unquoted
        .unwrap_or(text)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    let ends = |word: &str| {
        word.trim_end_matches(['"', '”', ')'])
            .ends_with(['.', '!', '?', '…'])
    };
    let mut kept = 0;
    let mut said: Vec<String> = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let rest = words.get(at..).unwrap_or_default();
        let length = rest
            .iter()
            .position(|word| ends(word))
            .map_or(rest.len(), |end| end + 1);
        let sentence = rest.get(..length).unwrap_or_default().join(" ");
        at += length;
        // A small model falls into saying the same again.
        if at > words_max || said.contains(&sentence) {
            break;
        }
        said.push(sentence);
        kept = at;
    }
    let text = words.get(..kept).unwrap_or_default().join(" ");
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script() -> Value {
        json!({
            "longtake": 1, "title": "T", "language": "en", "logline": "L",
            "cast": [{ "name": "Tom", "look": "tall" }],
            "scenes": [{ "id": "one", "heading": "H", "shots": [
                { "id": "a", "length": "2 s", "colour": "black", "action": "A.", "lines": [
                    { "text": "Hello.", "speaker": "Tom", "by": { "text": "user" } }] },
                { "id": "b", "length": "2 s", "colour": "black", "depicts": "B." },
            ]}],
        })
    }

    fn pointers(kind: Kind, id: &str, field: Option<&str>) -> Vec<String> {
        let target = RewriteTarget {
            kind,
            id: id.into(),
            field: field.map(str::to_owned),
        };
        let places = places(&script(), &target).unwrap();
        places.into_iter().map(|place| place.pointer).collect()
    }

    #[test]
    fn texts_of_a_part_are_found() {
        let all = [
            "/scenes/0/heading",
            "/scenes/0/shots/0/action",
            "/scenes/0/shots/0/lines/0/text",
            "/scenes/0/shots/1/depicts",
        ];
        assert_eq!(pointers(Kind::Scene, "one", None), all);
        assert_eq!(pointers(Kind::Scene, "one", Some("/heading")), all[..1]);
        assert_eq!(
            pointers(Kind::Shot, "b", Some("/action")),
            ["/scenes/0/shots/1/action"]
        );
        assert_eq!(pointers(Kind::Film, "", None), ["/logline"]);
        assert_eq!(pointers(Kind::Cast, "Tom", None), ["/cast/0/look"]);
        assert_eq!(pointers(Kind::Shot, "b", Some("/length")), [""; 0]);
        let none = RewriteTarget {
            kind: Kind::Shot,
            id: "z".into(),
            field: None,
        };
        assert_eq!(places(&script(), &none).unwrap_err().code, Code::NotFound);
    }

    #[test]
    fn a_written_text_is_marked_as_the_models() {
        let target = RewriteTarget {
            kind: Kind::Shot,
            id: "a".into(),
            field: None,
        };
        let mut value = script();
        for place in places(&value, &target).unwrap() {
            put(&mut value, &place, "New.").unwrap();
        }
        let shot = &value["scenes"][0]["shots"][0];
        assert_eq!(shot["action"], "New.");
        assert_eq!(shot["by"]["action"], "model");
        assert_eq!(shot["lines"][0]["by"]["text"], "model");
        parse(&value).unwrap();
    }

    #[test]
    fn replies_become_plain_texts() {
        assert_eq!(clean(" \"A door\nopens.\" ", 9).unwrap(), "A door opens.");
        assert_eq!(clean("New text: “Rain.”", 9).unwrap(), "Rain.");
        assert_eq!(clean("wide, from above", 6).unwrap(), "wide, from above");
        assert_eq!(clean(" \n ", 9), None);
        // Whole sentences as far as they fit, and none twice.
        assert_eq!(clean("One two. Three four five.", 4).unwrap(), "One two.");
        assert_eq!(clean("Rain. Rain. Rain.", 9).unwrap(), "Rain.");
        assert_eq!(clean("one two three four five", 4), None);
    }
}

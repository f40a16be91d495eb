//! Fields of rows by JSON pointers.

use engine_base::Code;
use serde_json::{Value, json};

use crate::error::StudioError;

/// Record that a person wrote the field at a JSON pointer, in a thing that records who wrote what.
pub(super) fn by_user(body: &mut Value, pointer: &str) {
    let steps: Vec<&str> = pointer.split('/').skip(1).collect();
    let (thing, field) = match steps.as_slice() {
        [list, item, field, ..] => match body.pointer_mut(&format!("/{list}/{item}")) {
            Some(thing) if thing.get("by").is_some() => (Some(thing), *field),
            _ => (Some(body), *list),
        },
        [field, ..] => (Some(body), *field),
        [] => (None, ""),
    };
    if let Some(by) = thing
        .and_then(|thing| thing.get_mut("by"))
        .and_then(Value::as_object_mut)
        && field != "by"
    {
        by.insert(field.to_owned(), json!("user"));
    }
}

/// Set the value at a JSON pointer; missing objects on the way are made, null takes it away.
pub(crate) fn set_field(body: &mut Value, pointer: &str, value: &Value) -> Result<(), StudioError> {
    let refused = |why: &str| {
        StudioError::new(
            Code::BadInput,
            format!("cannot set the field {pointer:?}: {why}"),
        )
    };
    let Some((parent, last)) = pointer.rsplit_once('/') else {
        return Err(refused("expected a JSON pointer such as /action"));
    };
    let last = last.replace("~1", "/").replace("~0", "~");
    let mut place = body;
    for step in parent.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        place = match place {
            Value::Array(items) => {
                let at: usize = step.parse().map_err(|_not_a_number| {
                    refused(&format!("expected a number in place of {step:?}"))
                })?;
                items
                    .get_mut(at)
                    .ok_or_else(|| refused(&format!("there is no item {at}")))?
            }
            Value::Object(fields) => fields.entry(step).or_insert_with(|| json!({})),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                return Err(refused(&format!(
                    "{step:?} is not inside a list or an object"
                )));
            }
        };
    }
    match place {
        Value::Object(fields) if value.is_null() => {
            fields.remove(&last);
        }
        Value::Object(fields) => {
            fields.insert(last, value.clone());
        }
        Value::Array(items) => {
            let at: usize = last.parse().map_err(|_not_a_number| {
                refused(&format!("expected a number in place of {last:?}"))
            })?;
            match (at < items.len(), value.is_null()) {
                (true, true) => drop(items.remove(at)),
                (true, false) => items[at] = value.clone(),
                (false, false) if at == items.len() => items.push(value.clone()),
                (false, _) => return Err(refused(&format!("there is no item {at}"))),
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return Err(refused("it is not inside a list or an object"));
        }
    }
    Ok(())
}

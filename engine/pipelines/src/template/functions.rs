//! What chat templates call besides the template language's own: `raise_exception`,
//! `strftime_now`, and the methods of Python's texts, maps and lists.

use std::fmt;

use minijinja::value::{Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State};

/// A moment, for templates that tell the model what day it is. In UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TemplateTime {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub unix_secs: i64,
}

/// What `raise_exception` was given; travels as the source of the template engine's error.
#[derive(Debug)]
struct RaisedMessage(String);

impl fmt::Display for RaisedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RaisedMessage {}

/// The message, if the template raised the error itself.
pub(super) fn raised(error: &Error) -> Option<String> {
    let source = std::error::Error::source(error)?;
    let message = source.downcast_ref::<RaisedMessage>()?;
    Some(message.0.clone())
}

/// Make the functions and methods known to templates.
pub(super) fn add(environment: &mut Environment<'_>, now: Option<TemplateTime>) {
    environment.add_function(
        "raise_exception",
        |message: String| -> Result<Value, Error> {
            let error = Error::new(ErrorKind::InvalidOperation, "raise_exception was called");
            Err(error.with_source(RaisedMessage(message)))
        },
    );
    if let Some(now) = now {
        environment.add_function("strftime_now", move |format: String| now.format(&format));
    }
    environment.set_unknown_method_callback(|state, value, method, args| {
        // Each reads its value once, however long it is.
        state.consume_fuel(1 + value.len().unwrap_or(0) as u64 / 16)?;
        let called = match value.kind() {
            ValueKind::String => {
                text_method(state, value.as_str().unwrap_or_default(), method, args)
            }
            ValueKind::Map => map_method(value, method, args),
            ValueKind::Seq => list_method(value, method, args),
            _ => None,
        };
        called.unwrap_or_else(|| {
            Err(Error::new(
                ErrorKind::UnknownMethod,
                format!("{} has no method {method:?}", value.kind()),
            ))
        })
    });
}

impl TemplateTime {
    /// As C's `strftime` writes it in the C locale.
    fn format(self, format: &str) -> Result<String, Error> {
        const MONTHS: [&str; 12] = [
            "January",
            "February",
            "March",
            "April",
            "May",
            "June",
            "July",
            "August",
            "September",
            "October",
            "November",
            "December",
        ];
        const DAYS: [&str; 7] = [
            "Thursday",
            "Friday",
            "Saturday",
            "Sunday",
            "Monday",
            "Tuesday",
            "Wednesday",
        ];
        let days = self.unix_secs.div_euclid(86_400);
        let secs = self.unix_secs.rem_euclid(86_400);
        let (year, month, day) = civil_of_days(days);
        let month_name = MONTHS[(month - 1) as usize];
        let day_name = DAYS[days.rem_euclid(7) as usize];
        let hour = secs / 3600;
        let hour12 = (hour + 11) % 12 + 1;
        let mut out = String::new();
        let mut chars = format.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            let mut kind = chars.next();
            let bare = kind == Some('-');
            if bare {
                kind = chars.next();
            }
            let mut digits = |number: i64, width: usize| {
                let width = if bare { 0 } else { width };
                out.push_str(&format!("{number:0width$}"));
            };
            match kind {
                Some('Y') => digits(year, 4),
                Some('y') => digits(year.rem_euclid(100), 2),
                Some('m') => digits(month, 2),
                Some('d') => digits(day, 2),
                Some('H') => digits(hour, 2),
                Some('I') => digits(hour12, 2),
                Some('M') => digits(secs / 60 % 60, 2),
                Some('S') => digits(secs % 60, 2),
                Some('j') => digits(days - days_of_civil(year, 1, 1) + 1, 3),
                Some('e') => out.push_str(&format!("{day:2}")),
                Some('B') => out.push_str(month_name),
                Some('b' | 'h') => out.push_str(&month_name[..3]),
                Some('A') => out.push_str(day_name),
                Some('a') => out.push_str(&day_name[..3]),
                Some('p') => out.push_str(if hour < 12 { "AM" } else { "PM" }),
                Some('F') => out.push_str(&format!("{year:04}-{month:02}-{day:02}")),
                Some('%') => out.push('%'),
                other => {
                    let other = other.map_or("nothing".to_owned(), |c| format!("{c:?}"));
                    return Err(Error::new(
                        ErrorKind::InvalidOperation,
                        format!("strftime_now does not know {other} after %"),
                    ));
                }
            }
        }
        Ok(out)
    }
}

/// Year, month and day of a count of days since 1970-01-01, in the Gregorian calendar. Years begin
/// in March, so that the leap day is their last.
fn civil_of_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

fn days_of_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let from_march = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

type Called = Option<Result<Value, Error>>;

fn missing() -> Error {
    Error::from(ErrorKind::MissingArgument)
}

fn text_at(args: &[Value], at: usize) -> Result<&str, Error> {
    args.get(at).and_then(Value::as_str).ok_or_else(missing)
}

/// Python's `str`; `None` for methods it has not, or that no template was seen to use.
fn text_method(state: &State<'_, '_>, text: &str, method: &str, args: &[Value]) -> Called {
    let chars: Option<Vec<char>> = args
        .first()
        .and_then(Value::as_str)
        .map(|s| s.chars().collect());
    let strips = |c: char| match &chars {
        Some(chars) => chars.contains(&c),
        None => c.is_whitespace(),
    };
    let with = |run: &dyn Fn(&str) -> Value| text_at(args, 0).map(run);
    Some(match method {
        "strip" => Ok(Value::from(text.trim_matches(strips))),
        "lstrip" => Ok(Value::from(text.trim_start_matches(strips))),
        "rstrip" => Ok(Value::from(text.trim_end_matches(strips))),
        "upper" => Ok(Value::from(text.to_uppercase())),
        "lower" => Ok(Value::from(text.to_lowercase())),
        "title" => Ok(Value::from(capitalized_words(text, true))),
        "capitalize" => Ok(Value::from(capitalized_words(text, false))),
        "splitlines" => Ok(text.lines().collect()),
        "startswith" => affix(args, |part| text.starts_with(part)),
        "endswith" => affix(args, |part| text.ends_with(part)),
        "removeprefix" => with(&|part| Value::from(text.strip_prefix(part).unwrap_or(text))),
        "removesuffix" => with(&|part| Value::from(text.strip_suffix(part).unwrap_or(text))),
        "count" => with(&|part| Value::from(text.matches(part).count())),
        "find" => with(&|part| {
            let at = text.find(part).map(|at| text[..at].chars().count() as i64);
            Value::from(at.unwrap_or(-1))
        }),
        "isdigit" => Ok(Value::from(every(text, |c| c.is_ascii_digit()))),
        "isspace" => Ok(Value::from(every(text, char::is_whitespace))),
        "replace" => replace(state, text, args),
        "split" => split(text, args, false),
        "rsplit" => split(text, args, true),
        "join" => args.first().ok_or_else(missing).and_then(|parts| {
            let parts: Vec<Value> = parts.try_iter()?.collect();
            let parts: Vec<&str> = parts
                .iter()
                .map(|p| p.as_str().unwrap_or_default())
                .collect();
            state.consume_fuel((text.len() * parts.len()) as u64 / 64)?;
            Ok(Value::from(parts.join(text)))
        }),
        _ => return None,
    })
}

fn every(text: &str, test: impl Fn(char) -> bool) -> bool {
    !text.is_empty() && text.chars().all(test)
}

/// Upper case at the beginning, of each word or of the text only; lower case elsewhere.
fn capitalized_words(text: &str, each_word: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut begins = true;
    for c in text.chars() {
        if begins {
            out.extend(c.to_uppercase());
        } else {
            out.extend(c.to_lowercase());
        }
        begins = each_word && !c.is_alphabetic();
    }
    out
}

/// `startswith` and `endswith` take a text or several.
fn affix(args: &[Value], fits: impl Fn(&str) -> bool) -> Result<Value, Error> {
    let parts = args.first().ok_or_else(missing)?;
    if let Some(part) = parts.as_str() {
        return Ok(Value::from(fits(part)));
    }
    let any = parts
        .try_iter()?
        .any(|part| part.as_str().is_some_and(&fits));
    Ok(Value::from(any))
}

fn replace(state: &State<'_, '_>, text: &str, args: &[Value]) -> Result<Value, Error> {
    let (old, new) = (text_at(args, 0)?, text_at(args, 1)?);
    let limit = match args.get(2) {
        None => usize::MAX,
        Some(count) => count.as_usize().unwrap_or(usize::MAX),
    };
    // An empty text lies between all characters, so the result may be far longer than its parts.
    let places = text.matches(old).count().min(limit);
    state.consume_fuel((text.len() as u64 + places as u64 * new.len() as u64) / 64)?;
    Ok(Value::from(text.replacen(old, new, limit)))
}

fn split(text: &str, args: &[Value], from_end: bool) -> Result<Value, Error> {
    let limit = args
        .get(1)
        .and_then(Value::as_usize)
        .map(|n| n.saturating_add(1));
    let limit = limit.unwrap_or(usize::MAX);
    let separator = args.first().filter(|s| !s.is_none());
    let Some(separator) = separator else {
        if limit != usize::MAX {
            return Err(Error::new(
                ErrorKind::InvalidOperation,
                "split with a count needs a separator",
            ));
        }
        return Ok(text.split_whitespace().collect());
    };
    match separator.as_str() {
        None | Some("") => Err(Error::new(
            ErrorKind::InvalidOperation,
            "split needs a separator that is a text and not empty",
        )),
        Some(separator) if from_end => {
            let mut parts: Vec<&str> = text.rsplitn(limit, separator).collect();
            parts.reverse();
            Ok(parts.into_iter().collect())
        }
        Some(separator) => Ok(text.splitn(limit, separator).collect()),
    }
}

/// Python's `dict`.
fn map_method(map: &Value, method: &str, args: &[Value]) -> Called {
    let pairs = |pick: &dyn Fn(Value, Value) -> Value| -> Result<Value, Error> {
        let keys: Vec<Value> = map.try_iter()?.collect();
        let picked: Result<Vec<Value>, Error> = keys
            .into_iter()
            .map(|key| {
                let item = map.get_item(&key)?;
                Ok(pick(key, item))
            })
            .collect();
        Ok(Value::from(picked?))
    };
    Some(match method {
        "keys" => pairs(&|key, _| key),
        "values" => pairs(&|_, item| item),
        "items" => pairs(&|key, item| Value::from(vec![key, item])),
        "get" => args.first().ok_or_else(missing).and_then(|key| {
            let item = map.get_item(key)?;
            Ok(if item.is_undefined() {
                args.get(1).cloned().unwrap_or(Value::from(()))
            } else {
                item
            })
        }),
        _ => return None,
    })
}

/// Python's `list`, as far as it changes nothing.
fn list_method(list: &Value, method: &str, args: &[Value]) -> Called {
    let wanted = args.first().ok_or_else(missing);
    Some(match method {
        "count" => wanted.and_then(|wanted| {
            let count = list.try_iter()?.filter(|item| item == wanted).count();
            Ok(Value::from(count))
        }),
        "index" => wanted.and_then(|wanted| {
            let at = list.try_iter()?.position(|item| item == *wanted);
            at.map(Value::from).ok_or_else(|| {
                Error::new(
                    ErrorKind::InvalidOperation,
                    "index of an item that is not there",
                )
            })
        }),
        "append" | "extend" | "insert" | "pop" => Err(Error::new(
            ErrorKind::UnknownMethod,
            format!("lists cannot be changed with {method:?} here; use + instead"),
        )),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_as_strftime_does() {
        let at = |unix_secs| TemplateTime { unix_secs };
        // 2024-02-29 13:05:09 UTC, a Thursday.
        let leap = at(1_709_211_909);
        let all = "%d %b %Y|%A %B|%y-%m-%d %H:%M:%S|%I %p|%j|%-d.%-m|%a %e %F %%";
        assert_eq!(
            leap.format(all).ok().as_deref(),
            Some(
                "29 Feb 2024|Thursday February|24-02-29 13:05:09|01 PM|060|29.2|Thu 29 2024-02-29 %"
            )
        );
        assert_eq!(
            at(0).format("%F %a").ok().as_deref(),
            Some("1970-01-01 Thu")
        );
        assert_eq!(at(-1).format("%F %T").ok(), None);
        assert_eq!(
            at(-1).format("%F %H").ok().as_deref(),
            Some("1969-12-31 23")
        );
        assert_eq!(
            at(951_782_400).format("%F").ok().as_deref(),
            Some("2000-02-29")
        );
        assert!(leap.format("%").is_err());
    }

    #[test]
    fn days_and_dates_are_inverse() {
        for days in (-800_000..800_000).step_by(97) {
            let (year, month, day) = civil_of_days(days);
            assert_eq!(days_of_civil(year, month, day), days);
        }
    }
}

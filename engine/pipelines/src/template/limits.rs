//! Limits on what a template builds.
//!
//! The template engine charges each step and each byte to its fuel, but not what values stand for:
//! a list added to itself forty times costs forty steps and stands for a million million items, a
//! list put into a list a hundred thousand times ends the process when it is dropped, and a
//! comparison or a printing walks all of it. So the compiled template is rewritten: behind every
//! instruction that can build a list or a map stands a call that weighs what was built, and
//! what is too heavy or too deep ends the template before it can grow further.

use minijinja::machinery::{Instruction, Instructions, Token, tokenize};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Rest, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State};

use super::{Place, TemplateError};

/// Heaviest value: what it stands for, written out, in steps of an item or 64 bytes of text.
const BASE_WEIGHT: u64 = 1 << 17;

/// Deepest lists and maps in lists and maps.
const MAX_NESTING: usize = 160;

/// Weight that costs as much as one instruction.
const WEIGHT_PER_FUEL: u64 = 4;

/// Most instructions of a template, calls to the limits included.
const MAX_INSTRUCTIONS: u32 = 1 << 22;

/// Most words and signs of one block. The longest of known templates have some hundreds.
pub(super) const MAX_BLOCK_TOKENS: usize = 2048;

/// Most conditions that follow others (`elif`) in a template.
pub(super) const MAX_CONDITIONS: usize = 512;

/// Address space of the stack; memory is taken as it is used. Measured: the longest block takes
/// under 8 MiB without optimization.
const STACK_BYTES: usize = 64 << 20;

const MULTIPLIED: &str = "a list that is spelled out cannot be multiplied";

/// Words after which a bracket begins a value, and is no index of it.
const BEFORE_VALUES: [&str; 18] = [
    "and",
    "call",
    "do",
    "elif",
    "else",
    "extends",
    "filter",
    "from",
    "if",
    "import",
    "in",
    "include",
    "is",
    "not",
    "or",
    "recursive",
    "set",
    "with",
];

// No template can name a filter so.
const WEIGH: &str = "\u{0}weigh";
const SETTLE: &str = "\u{0}settle";
const KEEP: &str = "\u{0}keep";
const CYCLE: &str = "\u{0}cycle";

/// Do something on a stack of its own, with room for all calls inside of calls that the limits
/// leave; what panics there, or cannot begin, is an error.
pub(super) fn on_large_stack<T: Send>(
    work: impl FnOnce() -> Result<T, TemplateError> + Send,
) -> Result<T, TemplateError> {
    let failed = |reason: String| TemplateError::Failed {
        reason,
        place: Place(None),
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("template".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, work)
            .map_err(|error| failed(format!("cannot begin a thread: {error}")))?;
        let ended = thread.join();
        ended.unwrap_or_else(|_panic| Err(failed("the template engine panicked".to_owned())))
    })
}

/// A bracket that is open.
struct Bracket {
    /// It groups or spells out a value, and is no call, index or attribute.
    is_value: bool,
    /// It spells out a list, or one stands in it.
    lists: bool,
    /// It is the right side of a multiplication, or inside of one.
    multiplied: bool,
}

/// Refuse what the engine cannot compile safely: an expression or a chain of conditions so long
/// that its compiler, which calls itself for each part, would use up the stack; and a list that is
/// spelled out and multiplied, which it carries out while it compiles, where no fuel is taken,
/// with whatever is done to the result.
///
/// # Errors
/// What is refused. What cannot be read as tokens is left to the compiler.
pub(super) fn check_source(source: &str, syntax: SyntaxConfig) -> Result<(), (String, usize)> {
    let mut open: Vec<Bracket> = Vec::new();
    let (mut block_tokens, mut conditions) = (0, 0);
    // Of the token before: whether it ends a value, ends one with a list in it, is `*`.
    let (mut ends_value, mut ends_list, mut is_product) = (false, false, false);
    for (token, span) in tokenize(source, false, syntax).map_while(Result::ok) {
        let line = usize::from(span.start_line);
        block_tokens += 1;
        if block_tokens > MAX_BLOCK_TOKENS {
            let message = format!("more than {MAX_BLOCK_TOKENS} words and signs in one block");
            return Err((message, line));
        }
        let (before_is_value, before_is_list) = (ends_value, ends_list);
        let before_is_product = is_product;
        (ends_value, ends_list, is_product) = (false, false, false);
        match token {
            Token::TemplateData(_) | Token::VariableStart | Token::BlockStart => {
                block_tokens = 0;
                open.clear();
            }
            Token::BracketOpen | Token::ParenOpen | Token::BraceOpen => {
                let is_list = matches!(token, Token::BracketOpen) && !before_is_value;
                let multiplied = open.last().is_some_and(|outer| outer.multiplied)
                    || (before_is_product && !before_is_value);
                if is_list && multiplied {
                    return Err((MULTIPLIED.to_owned(), line));
                }
                open.push(Bracket {
                    is_value: !before_is_value,
                    lists: is_list,
                    multiplied,
                });
            }
            Token::BracketClose | Token::ParenClose | Token::BraceClose => {
                let closed = open.pop();
                ends_list = closed.is_some_and(|closed| closed.is_value && closed.lists);
                if let Some(outer) = open.last_mut() {
                    outer.lists |= ends_list;
                }
                ends_value = true;
            }
            Token::Mul if before_is_list => return Err((MULTIPLIED.to_owned(), line)),
            Token::Mul => is_product = true,
            Token::Ident(name) => {
                ends_value = !BEFORE_VALUES.contains(&name);
                conditions += usize::from(name == "elif");
                if conditions > MAX_CONDITIONS {
                    let message = format!("more than {MAX_CONDITIONS} conditions after others");
                    return Err((message, line));
                }
            }
            Token::Str(_)
            | Token::String(_)
            | Token::Int(_)
            | Token::Int128(_)
            | Token::Float(_) => ends_value = true,
            _ => {}
        }
    }
    Ok(())
}

/// Make the calls known that [`bounded`] puts into a template; values may weigh as much as four
/// times what was given.
pub(super) fn add(environment: &mut Environment<'_>, given_weight: u64) {
    let limit = given_weight.saturating_mul(4).saturating_add(BASE_WEIGHT);
    environment.add_filter(WEIGH, move |state: &State<'_, '_>, value: Value| {
        weigh(state, &value, 0, limit).map(|()| value)
    });
    environment.add_filter(SETTLE, move |state: &State<'_, '_>, value: Value| {
        settle(state, value, limit)
    });
    environment.add_filter(KEEP, move |state: &State<'_, '_>, value: Value| {
        weigh(state, &value, 1, limit).map(|()| value)
    });
    environment.add_filter(
        CYCLE,
        |state: &mut State<'_, '_>, args: Rest<Value>| match args.split_first() {
            Some((called, given)) if !given.is_empty() => called.call_method(state, "cycle", given),
            _ => Err(Error::from(ErrorKind::MissingArgument)),
        },
    );
    // Neither is a template author's: the first joins lists without end, the second shows all
    // that there is.
    environment.remove_filter("chain");
    environment.remove_global("debug");
}

/// The same instructions with calls to the limits between them.
///
/// # Errors
/// More instructions than a template may have.
pub(super) fn bounded<'s>(code: &Instructions<'s>) -> Result<Instructions<'s>, Error> {
    let mut starts = Vec::new();
    let mut at: u32 = 0;
    while let Some(instruction) = code.get(starts.len() as u32) {
        starts.push(at);
        at += ahead_of(instruction).len() as u32 + 1 + u32::from(behind(instruction).is_some());
        if at > MAX_INSTRUCTIONS {
            let message = format!("more than {MAX_INSTRUCTIONS} instructions");
            return Err(Error::new(ErrorKind::OutOfFuel, message));
        }
    }
    let old_count = starts.len();
    starts.push(at);
    let mut rewritten = Instructions::new(code.name(), code.source());
    for index in 0..old_count as u32 {
        let Some(instruction) = code.get(index) else {
            break;
        };
        let line = code.get_line(index).map(|line| line as u16);
        let mut put = |instruction: Instruction<'s>| match line {
            Some(line) => rewritten.add_with_line(instruction, line),
            None => rewritten.add(instruction),
        };
        for each in ahead_of(instruction) {
            put(each.clone());
        }
        put(moved(instruction.clone(), &starts));
        if let Some(filter) = behind(instruction) {
            put(apply(filter));
        }
    }
    Ok(rewritten)
}

const fn apply(filter: &'static str) -> Instruction<'static> {
    // The last number says that the filter has no place among the template's own.
    Instruction::ApplyFilter(filter, Some(1), !0)
}

/// What is called before an instruction, on what it will take from the stack.
fn ahead_of(instruction: &Instruction<'_>) -> &'static [Instruction<'static>] {
    const KEEP_SECOND: &[Instruction<'static>] =
        &[Instruction::Swap, apply(KEEP), Instruction::Swap];
    const WEIGH_BOTH: &[Instruction<'static>] = &[
        apply(WEIGH),
        Instruction::Swap,
        apply(WEIGH),
        Instruction::Swap,
    ];
    const WEIGH_TOP: &[Instruction<'static>] = &[apply(WEIGH)];
    match instruction {
        Instruction::SetAttr(_) => KEEP_SECOND,
        Instruction::Eq
        | Instruction::Ne
        | Instruction::Lt
        | Instruction::Lte
        | Instruction::Gt
        | Instruction::Gte
        | Instruction::In
        | Instruction::CompareAndPreserve(_) => WEIGH_BOTH,
        // A list can be a key, and a test can compare.
        Instruction::GetItem => WEIGH_TOP,
        Instruction::PerformTest(_, Some(1..), _) => WEIGH_TOP,
        _ => &[],
    }
}

/// What is called after an instruction, on what it left on the stack.
fn behind(instruction: &Instruction<'_>) -> Option<&'static str> {
    match instruction {
        Instruction::BuildMap(_)
        | Instruction::BuildList(_)
        | Instruction::BuildTuple(_)
        | Instruction::Add => Some(WEIGH),
        Instruction::Mul
        | Instruction::Slice
        | Instruction::ApplyFilter(..)
        | Instruction::CallFunction(..)
        | Instruction::CallMethod(..)
        | Instruction::CallObject(_) => Some(SETTLE),
        Instruction::LoadConst(value)
            if matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) =>
        {
            Some(SETTLE)
        }
        _ => None,
    }
}

/// An instruction whose jump goes where the same instruction now is.
fn moved<'s>(instruction: Instruction<'s>, starts: &[u32]) -> Instruction<'s> {
    let to = |old: u32| starts.get(old as usize).copied().unwrap_or(old);
    match instruction {
        Instruction::Iterate(target) => Instruction::Iterate(to(target)),
        Instruction::Jump(target) => Instruction::Jump(to(target)),
        Instruction::JumpIfFalse(target) => Instruction::JumpIfFalse(to(target)),
        Instruction::JumpIfFalseOrPop(target) => Instruction::JumpIfFalseOrPop(to(target)),
        Instruction::JumpIfTrueOrPop(target) => Instruction::JumpIfTrueOrPop(to(target)),
        Instruction::BuildMacro(name, target, flags) => {
            Instruction::BuildMacro(name, to(target), flags)
        }
        // Without something to go through, the engine's own divides by zero.
        Instruction::CallMethod("cycle", count) => Instruction::ApplyFilter(CYCLE, count, !0),
        other => other,
    }
}

fn too_heavy(limit: u64) -> Error {
    let message = format!(
        "a value stands for more than {limit} items or {} bytes",
        limit * 64
    );
    Error::new(ErrorKind::OutOfFuel, message)
}

/// Walk all that a value stands for, and take the fuel for it. Namespaces and loops are refused
/// inside of others, that is at any nesting but 0, because they could come to hold themselves.
fn weigh(state: &State<'_, '_>, value: &Value, nesting: usize, limit: u64) -> Result<(), Error> {
    let mut left = limit;
    let walked = walk(value, nesting, &mut left, limit);
    state.consume_fuel((limit - left) / WEIGHT_PER_FUEL)?;
    walked
}

fn walk(value: &Value, nesting: usize, left: &mut u64, limit: u64) -> Result<(), Error> {
    let mut take = |weight: u64| match left.checked_sub(weight) {
        Some(rest) => {
            *left = rest;
            Ok(())
        }
        None => {
            *left = 0;
            Err(too_heavy(limit))
        }
    };
    if nesting > MAX_NESTING {
        let message = format!("lists and maps nested deeper than {MAX_NESTING}");
        return Err(Error::new(ErrorKind::OutOfFuel, message));
    }
    match value.kind() {
        ValueKind::String => take(1 + value.as_str().unwrap_or_default().len() as u64 / 64),
        ValueKind::Bytes => take(1 + value.as_bytes().unwrap_or_default().len() as u64 / 64),
        ValueKind::Seq | ValueKind::Iterable => {
            take(1)?;
            if value.len().is_some_and(|items| items as u64 > *left) {
                *left = 0;
                return Err(too_heavy(limit));
            }
            for item in value.try_iter()? {
                walk(&item, nesting + 1, left, limit)?;
            }
            Ok(())
        }
        ValueKind::Map if nesting > 0 && changes(value) => {
            let message = "a namespace or a loop cannot be kept inside of another value";
            Err(Error::new(ErrorKind::InvalidOperation, message))
        }
        ValueKind::Map => {
            take(1)?;
            for key in value.try_iter()? {
                walk(&key, nesting + 1, left, limit)?;
                walk(&value.get_item(&key)?, nesting + 1, left, limit)?;
            }
            Ok(())
        }
        _ => take(1),
    }
}

/// Whether a value is one of the engine's own that change while the template runs.
fn changes(value: &Value) -> bool {
    value.as_object().is_some_and(|object| {
        let name = object.type_name();
        name.ends_with("::Namespace") || name.ends_with("::Loop")
    })
}

/// A list in the place of what would be made anew, out of others, at each walk through it: those
/// could stand one behind the other without end.
fn settle(state: &State<'_, '_>, value: Value, limit: u64) -> Result<Value, Error> {
    let made_anew = match value.kind() {
        ValueKind::Iterable => true,
        ValueKind::Seq => value.as_object().is_some_and(|object| {
            let name = object.type_name();
            !name.contains("Vec<") && !name.ends_with("Tuple")
        }),
        _ => false,
    };
    weigh(state, &value, 0, limit)?;
    if !made_anew {
        return Ok(value);
    }
    let items: Vec<Value> = value.try_iter()?.collect();
    Ok(Value::from(items))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_land_where_their_instructions_went() {
        let mut code = Instructions::new("t", "");
        code.add_with_line(Instruction::BuildList(Some(0)), 1);
        code.add_with_line(Instruction::SetAttr("a"), 2);
        code.add_with_line(Instruction::Jump(1), 3);
        code.add(Instruction::Jump(4));
        let rewritten = bounded(&code).expect("instructions");
        // A list and its weighing, three ahead of the attribute, the attribute, two jumps.
        let target = |index| match rewritten.get(index) {
            Some(Instruction::Jump(target)) => *target,
            _ => panic!("no jump at {index}"),
        };
        assert_eq!((target(6), target(7)), (2, 8));
        assert!(matches!(rewritten.get(5), Some(Instruction::SetAttr("a"))));
        assert_eq!(rewritten.get_line(4), Some(2));
        assert!(rewritten.get(8).is_none());
    }
}

//! Addresses of pages and mail, handles, hashtags and file names.

use super::capitals;
use super::cursor::Cursor;
use super::number::Number;
use super::scan::{At, SPELL};

/// Endings of host names that are taken for one without `www` or a scheme.
const DOMAINS: [&str; 22] = [
    "com", "org", "net", "edu", "gov", "io", "co", "uk", "de", "fr", "tv", "info", "dev", "app",
    "eu", "us", "ca", "au", "jp", "it", "es", "me",
];

/// Endings of files.
const FILES: [&str; 40] = [
    "txt", "pdf", "png", "jpg", "jpeg", "gif", "mp3", "mp4", "wav", "mov", "mkv", "zip", "csv",
    "json", "md", "html", "htm", "css", "js", "ts", "rs", "py", "exe", "doc", "docx", "xls",
    "xlsx", "ppt", "pptx", "srt", "toml", "yaml", "yml", "xml", "svg", "tar", "gz", "webp", "flac",
    "ogg",
];

/// Endings that are said as words.
const ENDINGS_SAID: [&str; 8] = ["com", "org", "net", "gov", "info", "zip", "doc", "tar"];

fn in_name(next: char) -> bool {
    next.is_alphanumeric() || "-_".contains(next)
}

/// The words of a part of an address.
fn part(text: &str, at: &At<'_>) -> String {
    let mut said = Vec::new();
    let mut cursor = Cursor::new(text);
    while let Some(next) = cursor.peek() {
        if next.is_ascii_digit() {
            let digits = cursor.run(|next| next.is_ascii_digit());
            let number = Number {
                whole: digits.to_owned(),
                decimals: String::new(),
            };
            said.push(number.say(at.accent));
        } else if next.is_alphabetic() {
            let word = cursor.letters();
            let known = ENDINGS_SAID.contains(&word);
            let country = word.len() == 2
                && text.ends_with(word)
                && DOMAINS.contains(&word)
                && !matches!(word, "co" | "me");
            let unreadable = word.chars().count() <= 3 && capitals::is_unreadable(word);
            if country || unreadable && !known {
                let letters = if word.len() > 1 {
                    word.to_uppercase()
                } else {
                    word.to_owned()
                };
                said.push(format!("{SPELL}{letters}"));
            } else {
                said.push(word.to_owned());
            }
        } else {
            let signs = cursor.run(|sign| !(sign.is_alphabetic() || sign.is_ascii_digit()));
            match signs {
                "." => said.push("dot".to_owned()),
                "-" => said.push("dash".to_owned()),
                "_" => said.push("underscore".to_owned()),
                "+" => said.push("plus".to_owned()),
                _ => {}
            }
        }
    }
    said.join(" ")
}

fn host<'a>(cursor: &mut Cursor<'a>) -> Option<&'a str> {
    let run = Cursor::new(cursor.rest).run(|next| in_name(next) || next == '.');
    let run = run.trim_end_matches('.');
    let (front, domain) = run.rsplit_once('.')?;
    let alphabetic = domain.chars().all(char::is_alphabetic) && domain.len() > 1;
    if front.is_empty() || !alphabetic || run.contains("..") {
        return None;
    }
    cursor.eat(run);
    Some(run)
}

/// "https://example.org/a?b=1": the host and the first part of the path; what follows is left out.
pub(super) fn page(at: &At<'_>) -> Option<(usize, String)> {
    let mut cursor = Cursor::new(at.rest);
    let scheme = ["https://", "http://", "ftp://"]
        .iter()
        .any(|scheme| cursor.eat(scheme));
    let www = cursor.eat("www.");
    let host = host(&mut cursor)?;
    let domain = host.rsplit('.').next()?;
    // "Example.org" opens a sentence; "J.de" is no page.
    let plain = host.chars().all(|next| !next.is_uppercase());
    let named = host.split('.').all(|part| part.len() > 1);
    let shown = scheme || www || (plain || named) && DOMAINS.contains(&domain);
    if !shown {
        return None;
    }
    let www = if www {
        format!("{SPELL}WWW dot ")
    } else {
        String::new()
    };
    let mut said = format!("{www}{}", part(host, at));
    if cursor.eat(":") {
        cursor.digits(1, 5);
    }
    let mut path = cursor;
    let rest = path.run(|next| !next.is_whitespace() && !"\"<>()[]{}".contains(next));
    let rest = rest.trim_end_matches(['.', ',', ';', ':', '!', '?', '\'']);
    if rest.starts_with(['/', '?', '#']) {
        cursor.eat(rest);
        let first: &str = rest
            .trim_start_matches('/')
            .split(['/', '?', '#', '&'])
            .next()
            .unwrap_or_default();
        if rest.starts_with('/') && !first.is_empty() && first.len() <= 40 {
            said = format!("{said} slash {}", part(first, at));
        }
    }
    Some((cursor.taken(), said))
}

/// "me@example.org".
pub(super) fn mail(at: &At<'_>) -> Option<(usize, String)> {
    let mut cursor = Cursor::new(at.rest);
    let name = cursor.run(|next| in_name(next) || ".+".contains(next));
    if name.is_empty() || name.starts_with('.') || !cursor.eat("@") {
        return None;
    }
    let host = host(&mut cursor)?;
    Some((
        cursor.taken(),
        format!("{} at {}", part(name, at), part(host, at)),
    ))
}

/// "#sunset", "#NoFilter", "@someone".
pub(super) fn tag(at: &At<'_>) -> Option<(usize, String)> {
    let mut cursor = Cursor::new(at.rest);
    let sign = cursor.eat_any("#@")?;
    let name = cursor.run(|next| next.is_alphanumeric() || next == '_');
    if !name.starts_with(char::is_alphabetic) {
        return None;
    }
    let said = match sign {
        '#' => "hashtag",
        _ => "at",
    };
    Some((
        cursor.taken(),
        format!(
            "{said} {}",
            part(&humps(name), at).replace(" underscore ", " ")
        ),
    ))
}

/// Words that only capitals part, apart: "NoFilter".
fn humps(name: &str) -> String {
    let mut apart = String::with_capacity(name.len() + 4);
    let mut before = ' ';
    for next in name.chars() {
        if next.is_uppercase() && before.is_lowercase() {
            apart.push(' ');
        }
        apart.push(next);
        before = next;
    }
    apart
}

/// "report.pdf", "scene_12.mp4".
pub(super) fn file(at: &At<'_>) -> Option<(usize, String)> {
    let mut cursor = Cursor::new(at.rest);
    let run = cursor.run(|next| in_name(next) || next == '.');
    let run = run.trim_end_matches('.');
    let (name, ending) = run.rsplit_once('.')?;
    if name.is_empty() || name.ends_with('.') || !FILES.contains(&ending.to_lowercase().as_str()) {
        return None;
    }
    let ending = if ENDINGS_SAID.contains(&ending) {
        ending.to_owned()
    } else {
        format!("{SPELL}{}", ending.to_uppercase())
    };
    Some((run.len(), format!("{} dot {ending}", part(name, at))))
}

#[cfg(test)]
mod tests {
    use super::super::{Accent, scan::said};

    #[test]
    fn addresses_are_said() {
        let cases = [
            ("https://example.org/a?b=1", "example dot org slash a"),
            ("See www.example.com.", "See W W W dot example dot com."),
            ("example.co.uk, please", "example dot co dot U K, please"),
            ("Example.org is up", "Example dot org is up"),
            ("me@example.org", "me at example dot org"),
            (
                "jo.doe+x@example.org!",
                "jo dot doe plus x at example dot org!",
            ),
            ("#sunset", "hashtag sunset"),
            // A sign that is of numbers and no digit.
            ("#m²s", "hashtag m s"),
            ("#NoFilter", "hashtag No Filter"),
            ("@someone", "at someone"),
            ("open report.pdf now", "open report dot P D F now"),
            ("scene_12.mp4", "scene underscore twelve dot M P four"),
            ("The end.It began", "The end. It began"),
        ];
        for (text, words) in cases {
            assert_eq!(said(text, Accent::Us), words, "{text}");
        }
    }
}

//! Any bytes, read as a script in both forms: no panic, and what is read comes back from what is
//! written and plans to a film without gaps, or says why not.

#![no_main]

use flow_story::{Assets, parse, parse_json, parse_markdown, plan_film, to_json, to_markdown};
use flow_timeline::FilmFormat;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for name in ["script.md", "script.json"] {
        let Ok(parsed) = parse(bytes, name) else {
            continue;
        };
        let script = parsed.script;
        let again = parse_markdown(&to_markdown(&script)).expect("written Markdown is read");
        assert_eq!(again.script, script);
        let again = parse_json(&to_json(&script)).expect("written JSON is read");
        assert_eq!(again.script, script);
        let format = script.format(FilmFormat::DEFAULT);
        if let Ok(plan) = plan_film(&script, &format, &Assets::default()) {
            plan.check().expect("planned pieces join");
        }
    }
});

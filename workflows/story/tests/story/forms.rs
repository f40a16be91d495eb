//! Both written forms give back exactly what was written.

use flow_story::{parse, parse_json, parse_markdown, to_json, to_markdown};
use proptest::prelude::*;

use crate::scripts;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(192) })]

    #[test]
    fn every_script_comes_back_from_both_forms(script in scripts::script()) {
        let markdown = to_markdown(&script);
        let read = parse_markdown(&markdown).map_err(|faults| {
            TestCaseError::fail(format!("{}\n{markdown}", faults[0]))
        })?;
        prop_assert_eq!(&read.script, &script, "{}", markdown);
        prop_assert_eq!(to_markdown(&read.script), markdown);
        let json = to_json(&script);
        let read = parse_json(&json).map_err(|faults| {
            TestCaseError::fail(format!("{}\n{json}", faults[0]))
        })?;
        prop_assert_eq!(&read.script, &script);
    }

    #[test]
    fn line_ends_and_byte_order_marks_change_nothing(script in scripts::script()) {
        let markdown = to_markdown(&script);
        let windows = format!("\u{feff}{}", markdown.replace('\n', "\r\n"));
        prop_assert_eq!(parse(windows.as_bytes(), "x.md").unwrap().script, script.clone());
        let old = markdown.replace('\n', "\r");
        prop_assert_eq!(parse(old.as_bytes(), "x").unwrap().script, script);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}", cut in 0usize..2000) {
        let sample = include_str!("../../../../assets/samples/the-door-left-open.md");
        let mut at = cut.min(sample.len());
        while !sample.is_char_boundary(at) { at -= 1; }
        let broken = format!("{}{text}{}", &sample[..at], &sample[at..]);
        for name in ["a.md", "a.json", "a"] {
            let _read = parse(broken.as_bytes(), name);
            let _read = parse(text.as_bytes(), name);
        }
    }
}

//! What pictures show, from the words of scripts.

use super::*;
use crate::parse::parse;

const SCRIPT: &str = "";

#[test]
fn words_are_met_in_plurals_and_small() {
    let text = words("The Keeper's boats, at NIGHT");
    assert_eq!(text, ["the", "keeper", "boats", "at", "night"]);
    assert!(has(&text, &["boat"]) && !has(&text, &["oat"]));
    assert!(parse(SCRIPT).is_err() || SCRIPT.is_empty());
}

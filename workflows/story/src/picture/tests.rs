//! What pictures show, from the words of scripts.

use super::*;

#[test]
fn words_are_met_in_plurals_and_small() {
    let text = words("The Keeper's boats, at NIGHT");
    assert_eq!(text, ["the", "keeper", "boats", "at", "night"]);
    assert!(has(&text, &["boat"]) && !has(&text, &["oat"]));
}

#[test]
fn the_first_text_that_says_it_decides() {
    let texts = [words("a kitchen"), words("on the beach")];
    assert_eq!(said(&texts, GROUNDS), Some(PictureGround::Room));
    assert_eq!(said(&[words("nothing of it")], GROUNDS), None);
}

#[test]
fn a_member_of_the_cast_is_drawn_the_same_everywhere() {
    let keeper = CastMember {
        name: "Mara".to_owned(),
        look: "a woman in a green coat".to_owned(),
        ..CastMember::default()
    };
    let (figure, prompt, seed) = figure_of(&keeper, 3);
    assert!(figure.dressed && prompt.contains("woman walking") && prompt.contains("in green"));
    assert_eq!(figure_of(&keeper, 0), (figure, prompt, seed));
}

//! Which sentence forms a text may take: words of the premise and of the scene in their places.

use super::draw::Draw;
use super::forms::Lexicon;
use super::premise::{Premise, word_list};
use super::prompts::plural_verb;
use super::stages::{Stages, capital, is_abstract};
use super::words::sentences::{
    AFTER, CREATURE, DIALOGUE, LOOK_GROWN, LOOK_OTHER, LOOK_PLACE, LOOK_YOUNG, NARRATION, PERSON,
    SCENERY, SCENES, STILL, THING, TITLES,
};
use super::words::things::{
    ANIMALS, FIXED, FLAT, HER, HIM, NAMES_HER, NAMES_HIM, OPENED, PARTS, PLACE_ADJECTIVES, PLACES,
    PROPS, SETTINGS, SMALL, VEIL, WEATHER, YOUNG, holds, listed,
};
use crate::script::Script;

/// Words for titles that any premise may have.
const TITLE_WORDS: &str = "Light Winter Silence Road Promise Tide Night Answer Door Storm Morning";
/// Forms offered for one text; few, so that neighbours differ.
const FORMS_OFFERED: usize = 3;
/// Ends of sentences offered for one text, besides the plain one.
const ENDS_OFFERED: usize = 4;

/// Things for the hand that are talked of in a scene; those of the premise come first.
const TALKED_OF: usize = 3;

/// Acts of a story.
pub(crate) const ACTS: usize = 5;

/// The act in which a part of the film lies that has `at` of `count` before it.
pub(crate) fn act(at: usize, count: usize) -> usize {
    if at + 1 >= count {
        return ACTS - 1;
    }
    match at * 100 / (count - 1).max(1) {
        ..15 => 0,
        15..36 => 1,
        36..66 => 2,
        _ => 3,
    }
}

/// What a noun of a premise is, for what can be said of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    Small,
    Place,
    Creature,
    Other,
}

pub(crate) fn sort(noun: &str) -> Sort {
    if holds(PLACES, noun) {
        Sort::Place
    } else if holds(SMALL, noun) || holds(PROPS, noun) {
        Sort::Small
    } else if holds(ANIMALS, noun) {
        Sort::Creature
    } else {
        Sort::Other
    }
}

pub(crate) fn is_plural(noun: &str) -> bool {
    noun == "people"
        || (noun.ends_with('s') && !["ss", "us", "is"].iter().any(|end| noun.ends_with(end)))
}

fn some_of(list: &str, count: usize, draw: &mut Draw) -> Vec<String> {
    let items: Vec<String> = listed(list).collect();
    let items: Vec<&str> = items.iter().map(String::as_str).collect();
    draw.some(&items, count)
        .into_iter()
        .map(|item| format!("the {item}"))
        .collect()
}

fn the(noun: &str) -> String {
    format!("the {noun}")
}

/// Whether a premise speaks of women, of men, or of both or neither.
fn gendered(text: &str) -> (bool, bool) {
    let words = word_list(text);
    let any = |list: &str| words.iter().any(|word| holds(list, word));
    (any(HER), any(HIM))
}

impl Stages<'_> {
    /// Those of `forms` whose turn it is at `turn`, as one expression: texts that follow each other
    /// take other forms, in an order of the film's own.
    fn offered(
        &self,
        lexicon: &Lexicon,
        forms: &[&str],
        what: &str,
        turn: usize,
    ) -> Option<String> {
        let mut usable: Vec<&str> = forms
            .iter()
            .copied()
            .filter(|form| lexicon.fill(form).is_some())
            .collect();
        let mut draw = self.draw(&format!("order of {what}"));
        for at in (1..usable.len()).rev() {
            usable.swap(at, draw.below(at + 1));
        }
        let count = usable.len().max(1);
        let step = FORMS_OFFERED.min(count);
        let first = turn * step % count;
        // Every round through all of them begins elsewhere, so that other ones stand together.
        let first = first + turn * step / count;
        let turns = (0..step).map(|at| usable.get((first + at) % count).copied());
        lexicon.any(&turns.flatten().collect::<Vec<_>>())
    }

    /// Words for a scene, the same for all its shots, without those that `me` says.
    pub(super) fn lexicon(&self, script: &Script, scene: usize, me: &str) -> Lexicon {
        let premise = self.premise;
        let mut draw = self.draw(&format!("words of scene {scene}"));
        let mine = word_list(me);
        let free = |noun: &&String| !mine.contains(*noun) && !is_abstract(noun);
        let of = |wanted: Sort| -> Vec<String> {
            let nouns = premise.nouns.iter().filter(free);
            nouns
                .filter(|noun| sort(noun) == wanted)
                .map(|noun| the(noun))
                .collect()
        };
        let person = |noun: &str| {
            premise.people.iter().any(|person| {
                let role = person.split(' ').next_back().unwrap_or("");
                role == noun || noun.strip_suffix('s') == Some(role)
            })
        };
        let roles: Vec<String> = premise
            .people
            .iter()
            .filter(|person| !self.acting.contains(person))
            .filter_map(|person| person.split(' ').next_back())
            .filter(|role| !mine.contains(&(*role).to_owned()))
            .map(the)
            .collect();
        let mut small = of(Sort::Small);
        let props = some_of(PROPS, 4, &mut draw);
        small.extend(
            props
                .iter()
                .filter(|prop| !mine.iter().any(|word| prop.ends_with(word)))
                .cloned(),
        );
        let mut place = of(Sort::Place);
        // The same place that the scene has, or will have once it is written.
        let here = script.places.get(scene % script.places.len().max(1));
        place.extend(here.map(|place| place.name.clone()));
        place.dedup();
        let mut others: Vec<String> = script
            .cast
            .iter()
            .map(|member| member.name.clone())
            .filter(|name| name != me)
            .collect();
        let somebody = others.clone();
        others.extend(roles.iter().take(1).cloned());
        others.extend(of(Sort::Creature));
        let mut any = of(Sort::Small);
        any.extend(of(Sort::Place));
        any.extend(of(Sort::Other));
        any.retain(|noun| !person(noun.trim_start_matches("the ")));
        if any.len() < 2 {
            any.extend(props.iter().take(2).cloned());
        }
        if others.is_empty() {
            others.clone_from(&any);
        }
        let names: Vec<String> = script
            .cast
            .iter()
            .map(|member| member.name.clone())
            .collect();
        let mut lexicon = Lexicon::default();
        lexicon.put("me", &[me.to_owned()]);
        lexicon.put("small", &small);
        lexicon.put("place", &place);
        lexicon.put("any", &any);
        lexicon.put("other", &others);
        lexicon.put("somebody", &somebody);
        lexicon.put("props", &props);
        lexicon.put("flat", &some_of(FLAT, 5, &mut draw));
        lexicon.put("name", &names);
        lexicon.put("fixed", &some_of(FIXED, 6, &mut draw));
        lexicon.put("opened", &some_of(OPENED, 3, &mut draw));
        for (name, list) in [("weather", WEATHER), ("veil", VEIL)] {
            let items: Vec<String> = listed(list).collect();
            let items: Vec<&str> = items.iter().map(String::as_str).collect();
            let few: Vec<String> = draw
                .some(&items, 3)
                .into_iter()
                .map(str::to_owned)
                .collect();
            lexicon.put(name, &few);
        }
        lexicon
    }

    /// What is seen of somebody or something.
    pub(super) fn action_form(
        &self,
        script: &Script,
        scene: usize,
        (subject, member): (&str, bool),
        turn: usize,
        draw: &mut Draw,
    ) -> Option<String> {
        let mut lexicon = self.lexicon(script, scene, subject);
        lexicon.put_form("after", &ends(AFTER, draw));
        let still = ends(STILL, draw);
        lexicon.put_form("still", &still);
        if member {
            return self.offered(&lexicon, PERSON, "people", turn);
        }
        let noun = subject.rsplit(' ').next().unwrap_or(subject).to_lowercase();
        let other = [THING[1], SCENERY[1], SCENERY[3]];
        let forms: &[&str] = match sort(&noun) {
            Sort::Small => THING,
            Sort::Place => SCENERY,
            Sort::Creature => CREATURE,
            Sort::Other => &other,
        };
        if is_plural(&noun) {
            let still = STILL
                .replace("does not", "do not")
                .replace("it is", "they are");
            lexicon.put_form("still", &still);
            let forms: Vec<String> = forms.iter().map(|form| of_many(form)).collect();
            let forms: Vec<&str> = forms.iter().map(String::as_str).collect();
            return self.offered(&lexicon, &forms, &noun, turn);
        }
        self.offered(&lexicon, forms, &noun, turn)
    }

    /// What is said at shot `number` of `count`.
    pub(super) fn line_form(
        &self,
        script: &Script,
        scene: usize,
        speaker: Option<&str>,
        (number, count): (usize, usize),
        turn: usize,
    ) -> Option<String> {
        let mut lexicon = self.lexicon(script, scene, speaker.unwrap_or(""));
        lexicon.keep("small", TALKED_OF);
        let act = act(number, count);
        match speaker {
            Some(_) => self.offered(&lexicon, DIALOGUE[act], &format!("talk {act}"), turn),
            None => self.offered(&lexicon, NARRATION, "narration", turn),
        }
    }

    /// What a scene is about.
    pub(super) fn scene_form(&self, script: &Script, scene: usize, me: &str) -> Option<String> {
        let count = self.outline.shots.len();
        let act = if count == 1 { 1 } else { act(scene, count) };
        self.lexicon(script, scene, me).any(SCENES[act])
    }

    /// Titles of the premise's things.
    pub(super) fn title_form(&self, draw: &mut Draw) -> Option<String> {
        let nouns = self.premise.nouns.iter().filter(|noun| !is_abstract(noun));
        let nouns: Vec<String> = nouns.map(|noun| capital(noun)).collect();
        let others: Vec<String> = listed(TITLE_WORDS)
            .filter(|word| !nouns.contains(word))
            .collect();
        let mut lexicon = Lexicon::default();
        lexicon.put("noun", &nouns);
        lexicon.put("noun2", &others);
        let turn = draw.below(TITLES.len());
        self.offered(&lexicon, TITLES, "titles", turn)
    }

    /// Names for somebody who is `role` in the premise; `first` is whom its pronouns mean.
    pub(super) fn name_form(
        &self,
        (role, first): (&str, bool),
        taken: &[String],
        draw: &mut Draw,
    ) -> String {
        let told = if first {
            self.premise.text.as_str()
        } else {
            ""
        };
        let (mut her, mut him) = gendered(role);
        if !her && !him {
            (her, him) = gendered(told);
        }
        let lists = match (her, him) {
            (true, false) => [NAMES_HER, ""],
            (false, true) => [NAMES_HIM, ""],
            _ => [NAMES_HER, NAMES_HIM],
        };
        let names: Vec<String> = lists
            .into_iter()
            .flat_map(listed)
            .filter(|name| !taken.iter().any(|known| known.eq_ignore_ascii_case(name)))
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        draw.some(&names, 4).join("|")
    }

    /// Names of a place: of the premise for the first ones, then any.
    pub(super) fn place_form(&self, at: usize, draw: &mut Draw) -> String {
        let places: Vec<&String> = self
            .premise
            .nouns
            .iter()
            .filter(|noun| sort(noun) == Sort::Place)
            .collect();
        let adjectives: Vec<String> = listed(PLACE_ADJECTIVES).collect();
        let adjectives: Vec<&str> = adjectives.iter().map(String::as_str).collect();
        let adjectives = draw.some(&adjectives, 5).join("|");
        match places.get(at / 2) {
            Some(place) if at.is_multiple_of(2) => format!("the [({adjectives}) ]{place}"),
            Some(place) if !is_plural(place) => {
                let parts: Vec<String> = listed(PARTS).collect();
                format!("the {place} ({})", parts.join("|"))
            }
            _ => {
                let settings: Vec<String> = listed(SETTINGS).collect();
                let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
                format!(
                    "the [({adjectives}) ]({})",
                    draw.some(&settings, 8).join("|")
                )
            }
        }
    }
}

/// A few ends of a list, and the plain one.
fn ends(list: &str, draw: &mut Draw) -> String {
    let all: Vec<&str> = list.split('|').collect();
    format!(".|{}", draw.some(&all, ENDS_OFFERED).join("|"))
}

/// The form of what somebody looks like, or a place where `role` is none.
pub(super) fn look_form(premise: &Premise, role: Option<&str>, draw: &mut Draw) -> String {
    let Some(role) = role else {
        return thinned(LOOK_PLACE, draw);
    };
    let words = word_list(role);
    let last = words.last().map_or("", String::as_str);
    let made = ["robot", "android", "ghost", "machine"].contains(&last);
    let young = |words: &[String]| words.iter().any(|word| holds(YOUNG, word));
    let all_young = || {
        let mut people = premise.people.iter().peekable();
        people.peek().is_some() && people.all(|person| young(&word_list(person)))
    };
    let form = if made || holds(ANIMALS, last) {
        LOOK_OTHER
    } else if young(&words) || (role.is_empty() && all_young()) {
        LOOK_YOUNG
    } else {
        LOOK_GROWN
    };
    thinned(form, draw)
}

/// The form with two choices left of every three or more.
fn thinned(form: &str, draw: &mut Draw) -> String {
    let mut out = String::new();
    for part in form.split_inclusive(')') {
        match part.split_once('(') {
            Some((before, group)) => {
                let all: Vec<&str> = group.trim_end_matches(')').split('|').collect();
                out.push_str(&format!("{before}({})", draw.some(&all, 2).join("|")));
            }
            None => out.push_str(part),
        }
    }
    out
}

/// The form with the first verbs after `{me}` as they go with more than one.
fn of_many(form: &str) -> String {
    let Some((start, rest)) = form.split_once("{me} (") else {
        return form.to_owned();
    };
    let Some((verbs, end)) = rest.split_once(')') else {
        return form.to_owned();
    };
    let verbs: Vec<String> = verbs.split('|').map(plural_verb).collect();
    format!("{start}{{me}} ({}){end}", verbs.join("|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acts_follow_each_other_at_any_length() {
        for count in [3, 9, 92] {
            let acts: Vec<usize> = (0..count).map(|at| act(at, count)).collect();
            assert!(
                acts.is_sorted() && acts[0] == 0 && acts[count - 1] == 4,
                "{acts:?}"
            );
        }
        let long: std::collections::BTreeSet<usize> = (0..9).map(|at| act(at, 9)).collect();
        assert_eq!(long.len(), ACTS);
    }

    #[test]
    fn forms_for_many_have_their_verbs() {
        assert_eq!(
            of_many("{me} (lies|catches) on {fixed}."),
            "{me} (lie|catch) on {fixed}."
        );
        assert!(is_plural("sisters") && !is_plural("bus") && !is_plural("glass"));
    }

    #[test]
    fn every_form_has_only_lists_that_there_are() {
        let mut lexicon = Lexicon::default();
        for name in [
            "me", "small", "place", "any", "other", "name", "fixed", "opened", "weather", "noun",
            "noun2", "veil", "flat", "props", "somebody",
        ] {
            lexicon.put(name, &["x".to_owned()]);
        }
        lexicon.put_form("after", ".");
        lexicon.put_form("still", ".");
        let dialogue = DIALOGUE.iter().copied().flatten();
        let scenes = SCENES.iter().copied().flatten();
        let sets = [PERSON, THING, SCENERY, CREATURE, NARRATION, TITLES];
        for form in sets.into_iter().flatten().chain(dialogue).chain(scenes) {
            let filled = lexicon.fill(form);
            let depth = filled.as_deref().map(|form| {
                form.matches(['(', '[']).count() as i64 - form.matches([')', ']']).count() as i64
            });
            assert_eq!(depth, Some(0), "{form}");
        }
    }
}

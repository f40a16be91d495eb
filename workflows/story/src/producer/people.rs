//! Who is in the film and where it happens.

use super::error::ProduceError;
use super::fallback;
use super::forms;
use super::plain_forms::look_form;
use super::premise::Writing;
use super::prompts::{LOOK, NAME, PLACE};
use super::stages::Stages;
use super::words::things::{ANIMALS, holds};
use crate::origin::{By, Origins};
use crate::script::{CastMember, Place, Script};

impl Stages<'_> {
    pub(super) fn cast(&mut self, script: &mut Script) -> Result<(), ProduceError> {
        self.writer.stage("cast");
        let premise = self.premise;
        let count = self.outline.cast.max(premise.names.len().min(3));
        let mut names: Vec<String> = Vec::new();
        // Animals are in the cast only where there is nobody else.
        let humans: Vec<&String> = premise
            .people
            .iter()
            .filter(|person| !holds(ANIMALS, person))
            .collect();
        let people = if humans.is_empty() {
            premise.people.iter().collect()
        } else {
            humans
        };
        for at in 0..count {
            let role = people.get(at).map_or("", |role| role.as_str()).to_owned();
            self.acting.push(role.clone());
            let (name, by) = match premise.names.get(at) {
                Some(name) => (name.clone(), By::User),
                None => self.name(&role, &names, at)?,
            };
            let shown = if role.is_empty() {
                format!("Look of {name}")
            } else {
                format!("Look of {name}, the {role}")
            };
            let question = format!("{}\n{shown}", self.story());
            let place = format!("look of cast {at}");
            let (look, look_by) = self.label(
                &LOOK,
                question,
                (self.look_pattern(Some(&role), at), self.look_words()),
                &place,
                &[],
                |_| role.clone(),
            )?;
            names.push(name.clone());
            script.cast.push(CastMember {
                name,
                look,
                voice: String::new(),
                references: Vec::new(),
                by: Origins::default()
                    .with(by, &["name"])
                    .with(look_by, &["look"]),
            });
        }
        Ok(())
    }

    fn name(
        &mut self,
        role: &str,
        names: &[String],
        at: usize,
    ) -> Result<(String, By), ProduceError> {
        let premise = self.premise;
        let mut taken = names.to_vec();
        taken.extend(NAME.examples.iter().map(|(_, name)| (*name).to_owned()));
        taken.extend(premise.nouns.iter().cloned());
        let of = if role.is_empty() {
            "somebody in it"
        } else {
            role
        };
        let question = format!("{}\nName of the {of}", self.story());
        let letters = premise.writing.letters();
        let pattern = match premise.writing {
            Writing::Latin => "[A-Z][a-z]{2,7}".to_owned(),
            Writing::Han => format!("[{letters}]{{2,3}}"),
            Writing::Japanese => "[\u{30a1}-\u{30fa}]{2,4}".to_owned(),
            Writing::Cyrillic => format!("[А-Я][{letters}]{{2,7}}"),
            Writing::Greek => format!("[Α-Ω][{letters}]{{2,8}}"),
            _ => format!("[{letters}]{{2,7}}"),
        };
        let words = if premise.writing.is_unspaced() {
            (1, 5)
        } else {
            (1, 1)
        };
        let pattern = if self.writer.is_weak() {
            let mut draw = self.draw(&format!("names {at}"));
            forms::pattern(&format!(
                "({})",
                self.name_form((role, at == 0), &taken, &mut draw)
            ))
        } else {
            pattern
        };
        self.label(
            &NAME,
            question,
            (Some(pattern), words),
            &format!("name of cast {at}"),
            &taken,
            |draw| fallback::name(premise, names, draw),
        )
    }

    /// A pattern for how somebody looks, or a place where there is no role.
    fn look_pattern(&self, role: Option<&str>, at: usize) -> Option<String> {
        if self.writer.is_weak() {
            let mut draw = self.draw(&format!("look {at} {}", role.is_some()));
            return Some(forms::pattern(&look_form(self.premise, role, &mut draw)));
        }
        let letters = self.premise.writing.letters();
        Some(if self.premise.writing.is_unspaced() {
            format!("[{letters}]{{4,20}}")
        } else {
            let part = format!("[{letters}]{{2,11}}( [{letters}]{{2,11}}){{1,4}}");
            format!("{part}(, {part}){{0,2}}")
        })
    }

    fn look_words(&self) -> (usize, usize) {
        if self.premise.writing.is_unspaced() {
            (3, 30)
        } else {
            (2, 16)
        }
    }

    pub(super) fn places(&mut self, script: &mut Script) -> Result<(), ProduceError> {
        self.writer.stage("places");
        let premise = self.premise;
        let mut names: Vec<String> = Vec::new();
        let letters = premise.writing.letters();
        for at in 0..self.outline.places {
            let known = match names.as_slice() {
                [] => premise
                    .nouns
                    .first()
                    .map_or("The house", String::as_str)
                    .to_owned(),
                names => names.join(", "),
            };
            let known = if names.is_empty() && self.english() {
                format!("The {known}")
            } else {
                known
            };
            let question = format!("{}\n{known}, and also", self.story());
            let pattern = match premise.writing {
                Writing::Latin if self.english() => "the( [a-z]{3,11}){1,5}".to_owned(),
                writing if writing.is_unspaced() => format!("[{letters}]{{2,6}}"),
                _ => format!("[{letters}]{{2,12}}( [{letters}]{{2,12}}){{0,2}}"),
            };
            let pattern = if self.writer.is_weak() {
                let mut draw = self.draw(&format!("places {at}"));
                forms::pattern(&self.place_form(at, &mut draw))
            } else {
                pattern
            };
            let mut taken = names.clone();
            taken.extend(PLACE.examples.iter().map(|(_, place)| (*place).to_owned()));
            let words = if premise.writing.is_unspaced() {
                (2, 8)
            } else {
                (1, 4)
            };
            let place = format!("place {at}");
            let (name, by) = self.label(
                &PLACE,
                question,
                (Some(pattern), words),
                &place,
                &taken,
                |_| {
                    let noun = premise.nouns.get(at % premise.nouns.len().max(1));
                    let noun = noun.map_or(premise.language.as_str(), String::as_str);
                    if at < premise.nouns.len() {
                        noun.to_owned()
                    } else {
                        format!("{noun} {}", at + 1)
                    }
                },
            )?;
            let question = format!("{}\nLook of {name}", self.story());
            let place = format!("look of place {at}");
            let (look, look_by) = self.label(
                &LOOK,
                question,
                (self.look_pattern(None, at), self.look_words()),
                &place,
                &[],
                |_| String::new(),
            )?;
            script.places.push(Place {
                id: place_id(&name, at, &script.places),
                name: name.clone(),
                look,
                references: Vec::new(),
                by: Origins::default()
                    .with(by, &["name"])
                    .with(look_by, &["look"])
                    .with(By::Rule, &["id"]),
            });
            names.push(name);
        }
        Ok(())
    }
}

fn place_id(name: &str, at: usize, places: &[Place]) -> String {
    let bare = name.strip_prefix("the ").unwrap_or(name);
    let id: String = bare
        .chars()
        .map(|c| if c.is_alphanumeric() { c } else { '-' })
        .take(40)
        .collect();
    let id = id.trim_matches('-').to_lowercase();
    if id.is_empty() || places.iter().any(|place| place.id == id) {
        return format!("place-{}", at + 1);
    }
    id
}

//! Pictures for shots by what both say.

use std::collections::BTreeSet;

use super::draw::Draw;
use super::premise::word_list;
use super::words::FUNCTION_WORDS;
use crate::origin::By;
use crate::script::Script;

/// A picture that a film may use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Picture {
    /// File name, as the script will write it.
    pub name: String,
    /// What it shows, where somebody has written that down; may be empty.
    pub caption: String,
}

/// Words that mean nearly the same in pictures, first the one that stands for all.
const SAME: &[&[&str]] = &[
    &[
        "sea", "ocean", "wave", "tide", "water", "coast", "shore", "beach", "bay",
    ],
    &[
        "boat", "ship", "vessel", "ferry", "canoe", "sail", "harbour", "harbor", "port", "pier",
    ],
    &["house", "home", "cottage", "cabin", "hut", "door"],
    &[
        "mountain", "alpine", "alp", "hill", "peak", "canyon", "valley", "cliff",
    ],
    &[
        "field",
        "meadow",
        "pasture",
        "pastoral",
        "farm",
        "plain",
        "landscape",
        "grass",
    ],
    &["forest", "wood", "tree", "jungle", "grove"],
    &[
        "flower", "blossom", "plant", "leaf", "garden", "bloom", "acanthus", "allium", "rose",
    ],
    &[
        "street", "road", "city", "town", "village", "square", "alley",
    ],
    &["train", "railway", "locomotive", "station", "track"],
    &[
        "plane",
        "airplane",
        "aeroplane",
        "aircraft",
        "flight",
        "sky",
        "cloud",
    ],
    &["cat", "kitten"],
    &["dog", "puppy", "hound"],
    &["horse", "pony", "mare"],
    &["sheep", "lamb", "flock", "cattle", "cow", "animal"],
    &["bird", "gull", "crow", "swan", "hen"],
    &["child", "boy", "girl", "kid", "baby"],
    &[
        "woman",
        "mother",
        "lady",
        "grandmother",
        "daughter",
        "sister",
    ],
    &["man", "father", "grandfather", "son", "brother"],
    &["people", "crowd", "family", "portrait", "face", "person"],
    &["night", "dark", "moon", "star", "midnight"],
    &[
        "dawn", "sunrise", "morning", "sun", "dusk", "sunset", "evening", "light",
    ],
    &["snow", "winter", "ice", "frost", "frozen"],
    &["rain", "storm", "cloudburst", "thunder"],
    &["lighthouse", "tower", "beacon"],
    &["room", "kitchen", "office", "interior", "attic", "bedroom"],
    &["letter", "message", "note", "paper", "book", "page", "map"],
    &["bread", "bakery", "oven", "baker", "food"],
    &["river", "stream", "creek", "brook", "lake", "pond"],
    &["desert", "dust", "sand", "dune"],
    &["factory", "machine", "engine", "workshop", "mill", "robot"],
];

/// Groups of [`SAME`] and plain stems, so that `boats` meets `harbour` a little and `boat` well.
struct Meaning {
    stems: BTreeSet<String>,
    groups: BTreeSet<usize>,
}

fn stem(word: &str) -> String {
    if !word.is_ascii() || word.len() < 4 {
        return word.to_owned();
    }
    for (ending, put) in [("ies", "y"), ("ches", "ch"), ("shes", "sh"), ("xes", "x")] {
        if let Some(start) = word.strip_suffix(ending) {
            return format!("{start}{put}");
        }
    }
    for ending in ["ing", "ed"] {
        if let Some(start) = word.strip_suffix(ending)
            && start.len() > 3
        {
            return start.to_owned();
        }
    }
    match word.strip_suffix('s') {
        Some(start) if !start.ends_with('s') => start.to_owned(),
        _ => word.to_owned(),
    }
}

impl Meaning {
    fn of(text: &str) -> Self {
        let function = FUNCTION_WORDS[0].1;
        let parted: String = text
            .chars()
            .map(|c| {
                if matches!(c, '-' | '_' | '.') || c.is_numeric() {
                    ' '
                } else {
                    c
                }
            })
            .collect();
        let stems: BTreeSet<String> = word_list(&parted)
            .into_iter()
            .filter(|word| !function.contains(&word.as_str()) && word.chars().count() > 1)
            .map(|word| stem(&word))
            .collect();
        let groups = SAME
            .iter()
            .enumerate()
            .filter(|(_, group)| group.iter().any(|word| stems.contains(&stem(word))))
            .map(|(at, _)| at)
            .collect();
        Self { stems, groups }
    }

    fn nearness(&self, other: &Self) -> usize {
        let shared = self.stems.intersection(&other.stems).count();
        let alike = self.groups.intersection(&other.groups).count();
        shared * 100 + alike * 40
    }
}

/// For each shot text the picture that fits best, as places in `pictures`: none twice while there
/// are others, and never twice in a row where there are two. Ties go by an order that the texts
/// decide: the same texts and pictures give the same choice, other texts begin elsewhere.
pub fn match_pictures(shots: &[String], pictures: &[Picture]) -> Vec<usize> {
    if pictures.is_empty() {
        return Vec::new();
    }
    let name = |picture: &Picture| {
        let name = picture.name.rsplit(['/', '\\']).next().unwrap_or("");
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        format!("{stem} {}", picture.caption)
    };
    let shown: Vec<Meaning> = pictures
        .iter()
        .map(|each| Meaning::of(&name(each)))
        .collect();
    let first = Draw::new(0, &shots.join("\n")).below(pictures.len());
    let order: Vec<usize> = (0..pictures.len())
        .map(|at| (first + at) % pictures.len())
        .collect();
    let told: Vec<Meaning> = shots.iter().map(|each| Meaning::of(each)).collect();
    let mut chosen: Vec<Option<usize>> = vec![None; shots.len()];
    let mut uses = vec![0usize; pictures.len()];
    for round in 0..shots.len().div_ceil(pictures.len()) {
        // The best pair first, so that a shot with many fits leaves others theirs.
        let mut pairs: Vec<(usize, usize, usize)> = Vec::new();
        for (shot, told) in told
            .iter()
            .enumerate()
            .filter(|(at, _)| chosen[*at].is_none())
        {
            for (turn, picture) in order.iter().enumerate() {
                pairs.push((told.nearness(&shown[*picture]), shot, turn));
            }
        }
        pairs.sort_by_key(|(nearness, shot, turn)| (std::cmp::Reverse(*nearness), *shot, *turn));
        for (nearness, shot, turn) in pairs {
            let picture = order[turn];
            let beside = |at: Option<usize>| {
                at.and_then(|at| chosen.get(at))
                    .is_some_and(|each| *each == Some(picture))
            };
            let twice =
                pictures.len() > 2 && (beside(shot.checked_sub(1)) || beside(Some(shot + 1)));
            if nearness > 0 && chosen[shot].is_none() && uses[picture] <= round && !twice {
                chosen[shot] = Some(picture);
                uses[picture] += 1;
            }
        }
        // What fits nothing takes what is left, in order.
        for shot in 0..shots.len() {
            if chosen[shot].is_some() {
                continue;
            }
            let beside = |picture: usize| {
                let before = shot.checked_sub(1).and_then(|at| chosen[at]);
                before == Some(picture) || chosen.get(shot + 1).copied().flatten() == Some(picture)
            };
            let free = order
                .iter()
                .copied()
                .find(|picture| uses[*picture] <= round && !beside(*picture));
            if let Some(picture) = free {
                chosen[shot] = Some(picture);
                uses[picture] += 1;
            }
        }
    }
    // Neighbours kept some apart: any that is not beside will do, else any.
    for shot in 0..shots.len() {
        if chosen[shot].is_none() {
            let before = shot.checked_sub(1).and_then(|at| chosen[at]);
            let after = chosen.get(shot + 1).copied().flatten();
            let free = order
                .iter()
                .copied()
                .filter(|at| Some(*at) != before && Some(*at) != after);
            let picture = free.min_by_key(|at| uses[*at]).unwrap_or(0);
            chosen[shot] = Some(picture);
            uses[picture] += 1;
        }
    }
    chosen.into_iter().flatten().collect()
}

/// Give every shot that shows nothing yet the picture that fits it best.
pub fn choose_pictures(script: &mut Script, pictures: &[Picture]) {
    let texts: Vec<String> = script
        .scenes
        .iter()
        .flat_map(|scene| {
            scene.shots.iter().map(|shot| {
                format!(
                    "{} {} {} {}",
                    shot.action, shot.depicts, scene.heading, scene.place
                )
            })
        })
        .collect();
    let chosen = match_pictures(&texts, pictures);
    let shots = script.scenes.iter_mut().flat_map(|scene| &mut scene.shots);
    for (shot, picture) in shots.zip(chosen) {
        if shot.picture.is_empty() && shot.video.is_none() {
            shot.picture.clone_from(&pictures[picture].name);
            shot.colour = None;
            shot.by.set("picture", By::Rule);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pictures() -> Vec<Picture> {
        [
            "nagasaki-boats.jpg",
            "dust-bowl-home.jpg",
            "locomotion-house-cat.jpg",
            "black_canyon2.jpg",
        ]
        .map(|name| Picture {
            name: name.to_owned(),
            caption: String::new(),
        })
        .to_vec()
    }

    fn chosen(shots: &[&str]) -> Vec<usize> {
        let shots: Vec<String> = shots.iter().map(|each| (*each).to_owned()).collect();
        match_pictures(&shots, &pictures())
    }

    #[test]
    fn pictures_go_to_the_shots_that_speak_of_them() {
        let got = chosen(&[
            "A cat sleeps on the sill.",
            "The ship waits in the harbour.",
            "Mara looks into the valley.",
            "Dust blows around the house.",
        ]);
        assert_eq!(got, [2, 0, 3, 1]);
        assert_eq!(
            got,
            chosen(&[
                "A cat sleeps on the sill.",
                "The ship waits in the harbour.",
                "Mara looks into the valley.",
                "Dust blows around the house.",
            ])
        );
    }

    #[test]
    fn none_comes_twice_while_others_are_left_nor_twice_in_a_row() {
        let boats = [
            "A boat.",
            "Another boat.",
            "More boats.",
            "The last boat.",
            "A boat again.",
        ];
        let got = chosen(&boats);
        let first: BTreeSet<&usize> = got.iter().take(4).collect();
        let all: BTreeSet<&usize> = got.iter().collect();
        assert_eq!(all.len(), 4, "{got:?}");
        assert!(first.len() >= 3);
        let many: Vec<&str> = boats.iter().cycle().take(37).copied().collect();
        let got = chosen(&many);
        assert!(got.windows(2).all(|pair| pair[0] != pair[1]), "{got:?}");
        for picture in 0..4 {
            let uses = got.iter().filter(|each| **each == picture).count();
            assert!((7..=12).contains(&uses), "{picture}: {uses}");
        }
        assert_eq!(match_pictures(&["x".to_owned()], &[]), [0; 0]);
    }

    #[test]
    fn captions_count_as_names_do() {
        let mut all = pictures();
        all.push(Picture {
            name: "IMG_0042.jpg".to_owned(),
            caption: "a lighthouse at night".to_owned(),
        });
        let shots = ["Mara climbs the lighthouse stairs.".to_owned()];
        assert_eq!(match_pictures(&shots, &all), [4]);
    }
}

//! Sounds that the program carries with it, so that a script can name them anywhere.

const SOUNDS: [(&str, &[u8]); 6] = [
    (
        "bed-dawn",
        include_bytes!("../../../assets/samples/sound/bed-dawn.opus"),
    ),
    (
        "bed-tide",
        include_bytes!("../../../assets/samples/sound/bed-tide.opus"),
    ),
    (
        "bed-hearth",
        include_bytes!("../../../assets/samples/sound/bed-hearth.opus"),
    ),
    (
        "ambience-sea",
        include_bytes!("../../../assets/samples/sound/ambience-sea.opus"),
    ),
    (
        "ambience-forest",
        include_bytes!("../../../assets/samples/sound/ambience-forest.opus"),
    ),
    (
        "ambience-room",
        include_bytes!("../../../assets/samples/sound/ambience-room.opus"),
    ),
];

/// The sound called `name`, as an Opus file.
pub(crate) fn sound(name: &str) -> Option<&'static [u8]> {
    SOUNDS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, bytes)| *bytes)
}

/// Names of all of them.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    SOUNDS.iter().map(|(name, _)| *name)
}

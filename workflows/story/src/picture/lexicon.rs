//! Words of places, times, weathers, people and things, and what the small picture model draws for them.

use super::{PictureGround as Ground, PictureLight as Light, PictureWeather as Weather};

/// What is drawn for somebody or something.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Figure {
    /// Words that the model knows.
    pub(super) prompt: &'static str,
    /// Its larger side, as a share of the frame's height, at a middle distance.
    pub(super) size: f32,
    /// Skin and clothes can be said.
    pub(super) dressed: bool,
    /// Drawn from the chest up: stands at the frame's lower edge.
    pub(super) is_bust: bool,
    pub(super) flies: bool,
    pub(super) swims: bool,
    /// Acts by itself: a text that names nothing may mean it.
    pub(super) lives: bool,
    /// Does not fit into a room.
    pub(super) outdoors: bool,
}

const fn thing(prompt: &'static str, size: f32) -> Figure {
    Figure {
        prompt,
        size,
        dressed: false,
        is_bust: false,
        flies: false,
        swims: false,
        lives: false,
        outdoors: false,
    }
}

const fn animal(prompt: &'static str, size: f32) -> Figure {
    Figure {
        lives: true,
        ..thing(prompt, size)
    }
}

const fn large(prompt: &'static str, size: f32) -> Figure {
    Figure {
        outdoors: true,
        ..thing(prompt, size)
    }
}

const fn person(prompt: &'static str, size: f32) -> Figure {
    Figure {
        dressed: true,
        ..animal(prompt, size)
    }
}

const fn bust(prompt: &'static str) -> Figure {
    Figure {
        is_bust: true,
        ..animal(prompt, 0.52)
    }
}

const fn flier(prompt: &'static str, size: f32) -> Figure {
    Figure {
        flies: true,
        ..thing(prompt, size)
    }
}

/// A bird or an insect.
const fn winged(prompt: &'static str, size: f32) -> Figure {
    Figure {
        lives: true,
        ..flier(prompt, size)
    }
}

/// What flies and does not fit into a room.
const fn craft(prompt: &'static str, size: f32) -> Figure {
    Figure {
        outdoors: true,
        ..flier(prompt, size)
    }
}

const fn swimmer(prompt: &'static str, size: f32) -> Figure {
    Figure {
        swims: true,
        ..animal(prompt, size)
    }
}

const fn vessel(prompt: &'static str, size: f32) -> Figure {
    Figure {
        swims: true,
        ..large(prompt, size)
    }
}

pub(super) const MAN: Figure = person("a man walking", 0.56);
pub(super) const WOMAN: Figure = person("a woman walking", 0.56);

/// People; the first group that fits is taken.
pub(super) const FIGURES: &[(&[&str], Figure)] = &[
    (&["robot", "android", "automaton"], bust("a robot")),
    (&["astronaut", "cosmonaut"], bust("an astronaut")),
    (&["ghost", "phantom"], animal("a ghost", 0.44)),
    (&["alien"], animal("an alien", 0.42)),
    (&["mermaid"], swimmer("a mermaid", 0.5)),
    (&["fairy"], person("a fairy", 0.46)),
    (
        &["wizard", "mage", "magician", "sorcerer", "witch"],
        person("a mage", 0.5),
    ),
    (
        &["girl", "daughter", "schoolgirl", "niece", "granddaughter"],
        person("a woman walking", 0.42),
    ),
    (
        &[
            "boy",
            "children",
            "son",
            "child",
            "kid",
            "schoolboy",
            "nephew",
            "grandson",
            "apprentice",
        ],
        person("a man walking", 0.42),
    ),
    (
        &[
            "woman",
            "women",
            "mother",
            "sister",
            "wife",
            "widow",
            "grandmother",
            "lady",
            "queen",
            "she",
            "her",
            "herself",
            "aunt",
            "actress",
            "waitress",
            "nurse",
            "bride",
            "princess",
            "seamstress",
            "ada",
            "mara",
            "anna",
            "lin",
            "mira",
            "nora",
            "clara",
            "elena",
            "ines",
            "rosa",
            "maria",
        ],
        WOMAN,
    ),
    (
        &[
            "man",
            "men",
            "father",
            "brother",
            "husband",
            "widower",
            "grandfather",
            "king",
            "he",
            "him",
            "his",
            "uncle",
            "fisherman",
            "postman",
            "sailor",
            "captain",
            "prince",
            "gentleman",
            "monk",
            "knight",
            "keeper",
            "driver",
            "maker",
            "baker",
            "chef",
            "cook",
            "farmer",
            "teacher",
            "doctor",
            "painter",
            "pilot",
            "miner",
            "hunter",
            "shepherd",
            "clockmaker",
            "stranger",
            "passenger",
            "traveller",
            "musician",
            "scientist",
            "soldier",
        ],
        MAN,
    ),
];

/// Things and animals.
pub(super) const THINGS: &[(&[&str], Figure)] = &[
    (
        &["boat", "rowboat", "dinghy", "sailboat", "yacht"],
        vessel("a sailboat", 0.4),
    ),
    (
        &["ship", "ferry", "vessel", "steamer"],
        vessel("a ship", 0.5),
    ),
    (&["whale"], swimmer("a whale", 0.45)),
    (&["dolphin"], swimmer("a dolphin", 0.36)),
    (&["fish"], swimmer("a fish", 0.26)),
    (&["cat", "kitten"], animal("a cat", 0.3)),
    (&["dog", "puppy", "hound"], animal("a dog", 0.32)),
    (&["horse", "pony", "mare"], animal("a horse", 0.46)),
    (&["sheep", "lamb", "flock"], animal("an ewe", 0.32)),
    (&["goat"], animal("a goat", 0.34)),
    (&["cow", "cattle"], animal("a cow", 0.4)),
    (&["pig"], animal("a pig", 0.3)),
    (&["fox"], animal("a fox", 0.32)),
    (&["wolf", "wolves"], animal("a wolf", 0.36)),
    (&["bear"], animal("a bear", 0.4)),
    (&["rabbit", "hare"], animal("a rabbit", 0.26)),
    (&["mouse", "mice"], animal("a mouse", 0.22)),
    (&["elephant"], animal("an elephant", 0.5)),
    (&["owl"], winged("an owl", 0.24)),
    (
        &[
            "bird", "gull", "seagull", "pigeon", "dove", "crow", "sparrow",
        ],
        winged("a dove", 0.22),
    ),
    (&["butterfly"], winged("a butterfly", 0.2)),
    (&["bee"], winged("a honeybee", 0.2)),
    (&["dragon"], animal("a dragon", 0.52)),
    (&["kite"], flier("a kite", 0.24)),
    (&["balloon"], flier("a balloon", 0.26)),
    (
        &["plane", "airplane", "aeroplane"],
        craft("an airplane", 0.36),
    ),
    (&["helicopter"], craft("a helicopter", 0.36)),
    (
        &["rocket", "spaceship", "spacecraft"],
        craft("a rocket", 0.4),
    ),
    (&["satellite", "spacestation"], craft("a satellite", 0.34)),
    (&["train", "locomotive"], large("a locomotive", 0.52)),
    (&["tram"], large("a tram car", 0.46)),
    (&["bus"], large("a bus", 0.48)),
    (&["car", "taxi"], large("a car", 0.4)),
    (&["truck", "van", "lorry"], large("a truck", 0.46)),
    (&["tractor"], large("a tractor", 0.44)),
    (&["bicycle", "bike"], thing("a bicycle", 0.36)),
    (&["violin", "fiddle"], thing("a violin", 0.3)),
    (&["guitar"], thing("a guitar", 0.34)),
    (&["piano"], thing("a musical keyboard", 0.36)),
    (&["trumpet", "horn"], thing("a trumpet", 0.26)),
    (&["drum"], thing("a drum", 0.26)),
    (&["clock", "clockwork"], thing("a mantelpiece clock", 0.3)),
    (&["watch"], thing("a watch", 0.24)),
    (
        &["letter", "envelope", "mail", "post"],
        thing("an envelope", 0.22),
    ),
    (&["book", "diary", "notebook"], thing("a closed book", 0.24)),
    (&["map"], thing("a world map", 0.28)),
    (
        &["scroll", "message", "note", "page", "paper"],
        thing("a scroll", 0.24),
    ),
    (
        &["bottle", "flask"],
        thing("a bottle with popping cork", 0.26),
    ),
    (&["key"], thing("a key", 0.2)),
    (&["lantern"], thing("a red paper lantern", 0.26)),
    (&["lamp", "bulb"], thing("a light bulb", 0.22)),
    (&["candle"], thing("a candle", 0.22)),
    (&["radio"], thing("a radio", 0.28)),
    (&["telephone", "phone"], thing("a telephone", 0.24)),
    (&["camera"], thing("a camera", 0.26)),
    (&["television"], thing("a television", 0.32)),
    (&["umbrella"], thing("an umbrella", 0.32)),
    (&["suitcase", "luggage", "bag"], thing("a luggage", 0.28)),
    (&["hat"], thing("a top hat", 0.22)),
    (&["crown"], thing("a crown", 0.22)),
    (&["jewel", "gem", "diamond"], thing("a gem stone", 0.2)),
    (&["ring"], thing("a ring", 0.18)),
    (&["sword"], thing("a dagger", 0.28)),
    (&["bell"], thing("a bell", 0.24)),
    (&["door"], thing("a door", 0.46)),
    (&["chair"], thing("a chair", 0.36)),
    (&["bed"], thing("a bed", 0.42)),
    (&["bread", "loaf"], thing("a bread", 0.24)),
    (&["cake"], thing("a birthday cake", 0.26)),
    (&["apple"], thing("a red apple", 0.2)),
    (&["soup", "pot", "stew"], thing("a pot of food", 0.26)),
    (
        &["coffee", "tea", "cup", "mug"],
        thing("a hot beverage", 0.22),
    ),
    (
        &["flower", "rose", "blossom", "bloom"],
        thing("a tulip", 0.28),
    ),
    (&["sunflower"], thing("a sunflower", 0.3)),
    (&["seedling", "seed", "sprout"], thing("a seedling", 0.22)),
    (&["plant"], thing("a potted plant", 0.28)),
    (&["mushroom"], thing("a mushroom", 0.24)),
    (&["tree", "oak"], large("a deciduous tree", 0.5)),
    (&["snowman"], thing("a snowman without snow", 0.42)),
    (&["castle"], large("a castle", 0.5)),
    (&["house", "cottage", "hut"], large("a house", 0.46)),
    (&["tent"], large("a tent", 0.4)),
    (&["anchor"], thing("an anchor", 0.28)),
    (&["telescope"], thing("a telescope", 0.36)),
    (&["fire", "campfire", "flame"], thing("fire", 0.28)),
    (&["star"], flier("a star", 0.2)),
    (&["present", "gift"], thing("a wrapped gift", 0.26)),
    (
        &["parcel", "box", "crate", "package"],
        thing("a package", 0.26),
    ),
];

/// Where words say that it is.
pub(super) const GROUNDS: &[(Ground, &[&str])] = &[
    (
        Ground::Room,
        &[
            "room",
            "kitchen",
            "attic",
            "office",
            "shop",
            "workshop",
            "interior",
            "indoors",
            "inside",
            "bedroom",
            "cellar",
            "library",
            "museum",
            "bakery",
            "hospital",
            "classroom",
            "studio",
            "cabin",
            "theatre",
            "restaurant",
            "cafe",
            "apartment",
            "hall",
            "factory",
            "carriage",
            "compartment",
            "corridor",
            "laboratory",
            "basement",
            "warehouse",
            "parlour",
            "house",
            "home",
            "int",
        ],
    ),
    (
        Ground::Space,
        &[
            "space",
            "orbit",
            "spaceship",
            "spacecraft",
            "moonbase",
            "galaxy",
            "astronaut",
        ],
    ),
    (
        Ground::Underwater,
        &["underwater", "seabed", "reef", "drowned", "submarine"],
    ),
    (Ground::Desert, &["desert", "dune", "oasis", "sahara"]),
    (
        Ground::Beach,
        &[
            "beach",
            "shore",
            "coast",
            "cliff",
            "lighthouse",
            "island",
            "pier",
            "harbour",
            "harbor",
            "quay",
            "dock",
            "rocks",
            "jetty",
        ],
    ),
    (
        Ground::Sea,
        &[
            "sea", "ocean", "wave", "bay", "lake", "river", "water", "deck",
        ],
    ),
    (
        Ground::Forest,
        &["forest", "wood", "woodland", "jungle", "grove", "clearing"],
    ),
    (
        Ground::Mountains,
        &[
            "mountain", "peak", "summit", "alp", "ridge", "pass", "glacier",
        ],
    ),
    (
        Ground::City,
        &[
            "city", "street", "road", "market", "square", "avenue", "downtown", "town", "alley",
            "station", "bridge", "rooftop", "crossing", "platform",
        ],
    ),
    (
        Ground::Village,
        &[
            "village",
            "farm",
            "farmhouse",
            "cottage",
            "churchyard",
            "yard",
            "hamlet",
        ],
    ),
    (Ground::Sky, &["sky", "cloud", "air", "balloon"]),
    (
        Ground::Meadow,
        &[
            "meadow",
            "field",
            "hill",
            "garden",
            "park",
            "grass",
            "pasture",
            "valley",
            "plain",
            "landscape",
        ],
    ),
];

/// When words say that it is.
pub(super) const LIGHTS: &[(Light, &[&str])] = &[
    (
        Light::Night,
        &[
            "night",
            "midnight",
            "moon",
            "moonlight",
            "dark",
            "darkness",
            "star",
            "starlight",
            "nightfall",
        ],
    ),
    (
        Light::Dusk,
        &["dusk", "sunset", "evening", "twilight", "sundown"],
    ),
    (Light::Dawn, &["dawn", "sunrise", "morning", "daybreak"]),
    (
        Light::Day,
        &["day", "noon", "midday", "afternoon", "daylight", "sunny"],
    ),
];

/// What weather words say.
pub(super) const WEATHERS: &[(Weather, &[&str])] = &[
    (
        Weather::Snow,
        &[
            "snow",
            "snowstorm",
            "blizzard",
            "winter",
            "snowy",
            "snowfall",
            "frost",
        ],
    ),
    (
        Weather::Storm,
        &[
            "storm",
            "thunder",
            "lightning",
            "gale",
            "hurricane",
            "tempest",
            "flood",
        ],
    ),
    (
        Weather::Rain,
        &["rain", "drizzle", "downpour", "rainy", "shower"],
    ),
    (Weather::Fog, &["fog", "mist", "misty", "foggy", "haze"]),
];

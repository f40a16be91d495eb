//! Things, places and people by kind: what sentence forms may say of them.

/// Parts a list; `_` stands for a space inside an item.
pub(crate) fn listed(list: &str) -> impl Iterator<Item = String> + '_ {
    list.split_ascii_whitespace()
        .map(|word| word.replace('_', " "))
}

/// Whether a list holds a word, or the word without its plural ending.
pub(crate) fn holds(list: &str, word: &str) -> bool {
    let one = word.strip_suffix('s').unwrap_or(word);
    list.split_ascii_whitespace()
        .any(|known| known == word || known == one)
}

/// Things for the hand that belong into any film.
pub(crate) const PROPS: &str = "lantern rope key candle cup book basket box hammer photograph coat \
    blanket bell coin whistle ribbon jar spoon bucket umbrella notebook pencil torch compass scarf \
    ladder suitcase mirror glove parcel ticket kettle shovel stone feather broom apron chair map \
    matchbox thermos postcard spanner brush drawing necklace button lamp plate stool wrench";

/// Things for the hand that premises are about.
pub(crate) const SMALL: &str = "message bottle letter violin clock radio lamp bread flower seed doll \
    toy watch ring sword crown egg cake piano guitar drum song recipe diary phone telephone suitcase \
    key book map photograph painting picture kite balloon boat_model camera mask coin gold jewel \
    diamond necklace coat dress shoe hat pen paper note card package parcel gift box medal flag \
    candle lantern torch compass telescope knife needle thread bell mirror umbrella bicycle record \
    tape film_reel puppet ball stone shell feather apple soup tea coffee medicine robot_arm battery \
    engine typewriter machine ticket rope chair table cup manuscript poem secret signal";

/// Where one can be.
pub(crate) const PLACES: &str = "sea ocean city forest desert village town market factory kitchen \
    station island harbour harbor garden lighthouse train bus house home school library museum \
    theatre theater hospital mountain river lake farm field road bridge tower castle church shop \
    cafe bakery cellar attic ship boat car street square park beach shore cave mine valley hill \
    prison hotel bar restaurant office laboratory submarine spaceship planet moon camp tent \
    orchard vineyard mill barn cabin apartment room hall stage studio workshop temple palace \
    cemetery graveyard canyon glacier jungle swamp meadow airport airplane tram subway tunnel \
    carnival circus zoo aquarium observatory canal pier dock alley sky ruins kingdom world country";

/// What moves by itself and does not speak.
pub(crate) const ANIMALS: &str = "cat dog fox bear whale horse sheep bird crow octopus dragon wolf \
    lion tiger elephant monkey mouse rat rabbit deer owl eagle gull swan duck goose hen cow goat \
    pig donkey bee spider snake fish shark dolphin turtle kitten puppy lamb calf pigeon parrot \
    raven hound pony camel penguin seal otter";

/// Parts of any place, to stand by, lie on or look past.
pub(crate) const FIXED: &str = "table bench wall stairs doorway counter railing fence window shelf \
    corner stove post gate lamppost well barrel crate cart workbench";

/// What things lie on.
pub(crate) const FLAT: &str = "table bench floor shelf counter step windowsill ledge barrel crate \
    cart workbench chair trunk stone tray";

/// What places vanish in.
pub(crate) const VEIL: &str = "rain snow fog mist smoke dust dark haze dusk";

/// What can be opened and closed.
pub(crate) const OPENED: &str = "door window drawer gate cupboard hatch curtain trunk shutter";

/// What places lie under and vanish in.
pub(crate) const WEATHER: &str = "rain snow stars moon clouds first_light grey_sky open_sky";

/// Places that any story can go to.
pub(crate) const SETTINGS: &str = "harbour cellar kitchen platform courtyard attic bridge shore \
    market workshop stairwell waiting_room orchard backyard rooftop corridor crossroads riverbank \
    storeroom boathouse chapel tunnel square alley greenhouse hallway schoolyard ferry_landing";

/// Parts of a place that a premise names: "the lighthouse stairs".
pub(crate) const PARTS: &str = "stairs yard gate roof road door wall window corner cellar";

/// Before a place.
pub(crate) const PLACE_ADJECTIVES: &str = "old empty narrow quiet flooded dusty cold lamplit stone \
    wooden frozen crowded dim rainy windy overgrown";

/// First names that could be from anywhere, women's.
pub(crate) const NAMES_HER: &str = "Mara Noor Edda Lena Ines Yara Hanna Priya Selma Tove Ayla Nadia \
    Clara Ivana Rosalia Mina Esther Juno Freya Leila Odile Sunniva Wren Zofia";

/// First names that could be from anywhere, men's.
pub(crate) const NAMES_HIM: &str = "Ilan Tomas Ravi Otto Emre Kofi Levi Anton Mateo Ivo Samir Hugo \
    Niko Pavel Amos Jiro Luca Omar Felix Bruno Arvid Dario Teo Caspar";

/// Words that say that somebody is a woman or a girl.
pub(crate) const HER: &str = "she her hers herself woman girl mother sister daughter grandmother \
    aunt wife widow queen princess nun witch bride heroine waitress actress";

/// Words that say that somebody is a man or a boy.
pub(crate) const HIM: &str = "he his him himself man boy father brother son grandfather uncle \
    husband widower king prince monk priest knight postman fisherman";

/// Words that say that somebody is young.
pub(crate) const YOUNG: &str = "boy girl child kid son daughter orphan student teenager prince \
    princess apprentice";

/// Things that no picture shows.
pub(crate) const ABSTRACT: &str = "love life time death peace war hope truth way world day days night year years week \
    month name story memory dream dreams fear power secret past future everything \
    something nothing help summer winter end beginning language century hour hours \
    minutes silence job winters";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_hold_words_and_their_plurals() {
        assert!(holds(PLACES, "sea") && holds(SMALL, "letters") && !holds(SMALL, "sea"));
        assert!(listed(WEATHER).any(|word| word == "first light"));
    }
}

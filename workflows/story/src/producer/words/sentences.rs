//! Sentence forms that a weak model fills in. `(a|b)` is one of several, `[a]` may be left out,
//! `{name}` is one of a list of the scene at hand: `{small}` things for the hand, `{place}`
//! places, `{any}` both and people's roles, `{fixed}` parts of places, `{opened}` what opens,
//! `{flat}` what things lie on, `{weather}`, `{veil}`, `{somebody}` of the cast, `{me}` who it is about, `{other}` somebody else or a thing.

/// What people are seen doing.
pub(crate) const PERSON: &[&str] = &[
    "{me} (lifts|picks up|puts down|holds up|turns over|unwraps|wipes|hides) {small}{after}",
    "{me} (walks to|runs to|stops at|waits by|kneels by|sits down by|leans on) {fixed}{after}",
    "{me} (opens|closes|unlocks|pushes|knocks on|leans on) {opened}{after}",
    "{me} (carries|drags|brings|pushes) {small} (to|past|toward|around) {fixed}{after}",
    "{me} (crosses|leaves|enters|walks through|runs through|looks out over) {place}{after}",
    "{me} (lays|sets|drops|leaves|balances) {small} on {flat}{after}",
    "{me} (follows|watches|waves to|walks toward|turns away from|points at) {other}{after}",
    "{me} (opens|closes|unlocks) {opened} and (looks for|reaches for|lifts|hides) {small}.",
    "{me} (looks at|stares at|points at|reaches for|bends over|steps around) {small}{after}",
    "{me} (stands|sits|kneels|waits) by {fixed} and (cleans|counts|mends|wraps|holds) {small}.",
    "{me} (walks|runs|limps|hurries) past {fixed} with {small} in (one|the left|the other) hand.",
    "{me} (looks up from|turns away from|lets go of) {small} and (stares at|walks to) {opened}.",
    "{me} (writes|scratches|draws|reads) (a name|a number|one word|a line) (on|under|beside) {flat}{after}",
    "{me} (takes off a coat|ties a shoe|rolls up both sleeves|drinks some water|lights a match) by {fixed}{after}",
    "{me} (hands|throws|shows|offers) {small} to {somebody}{after}",
];

/// Ends of such sentences; a few are offered at a time.
pub(crate) const AFTER: &str = " without a word.| one last time.| with both hands.| in silence.\
    | and waits.| and listens.| and looks back.| and smiles.\
    | before the light goes.| and shakes with cold.| as the wind rises.| and counts to three.\
    | and breathes out.| very slowly.| and nods.| and turns around.";

/// What things for the hand are seen doing.
pub(crate) const THING: &[&str] = &[
    "{me} (lies|rests|stands|waits) (on|under) {flat}{still}",
    "{me} (catches|throws back|blocks) the (last|first|morning|evening|only) light{still}",
    "{me} (leans|gleams|lies|rests) (beside|behind|against|near) {fixed}{still}",
    "{me} (falls|rolls|slides|slips) (from|off|past|toward) {flat}{still}",
    "{me} (lies|rests|waits) between {props} and {opened}{still}",
];

/// What places are seen doing.
pub(crate) const SCENERY: &[&str] = &[
    "{me} (lies|stands|waits|stretches out) (dark|empty|silent|still|open|grey) under the {weather}.",
    "{me} (fades|disappears|vanishes|sinks) (into|behind|in) the {veil}{still}",
    "{me} (grows quiet|falls dark|lights up|comes alive) (as|while|before) (the bells ring|the wind drops|the doors close|the lamps go on|the day ends|somebody shouts).",
    "{me} (glows|shines|gleams) (through|behind|beyond) the {veil}{still}",
];

/// What animals and crowds are seen doing.
pub(crate) const CREATURE: &[&str] = &[
    "{me} (waits|sleeps|hides|stops|turns around) (by|behind|under|near|beside) {fixed}{still}",
    "{me} (walks|runs|slips|wanders|jumps) (past|over|around|toward|behind) {fixed}{still}",
    "{me} (watches|circles|follows|leaves|finds) {other} and (waits|stops|looks back|runs on).",
];

/// Ends of sentences about things; a few are offered at a time.
pub(crate) const STILL: &str = " as the wind rises.| while nobody looks.| in the half dark.\
    | as if it had always been so.| without a sound.| in the cold light.| until it is still.| before dawn.\
    | under a grey sky.| for a long moment.| once more.";

/// What a narrator says, of any part of a story.
pub(crate) const NARRATION: &[&str] = &[
    "Nobody (remembered|looked for|waited for|came back for|asked about) {any}.",
    "Every (night|morning|evening|winter) {any} (seemed|felt|grew|looked) a little (older|smaller|closer|brighter|darker|quieter|farther away).",
    "(The silence|A promise|A whisper|Every sound|A name) (travelled far|weighed more|lasted longer|meant something) in {place}.",
    "Some (promises|doors|letters|names|roads|songs|debts) (wait|open|return|are kept) (only once|in the dark|for years|without witnesses|when nobody asks).",
    "There was (only one|still one|no other|no second) (way|road|chance|answer|light|door) (left|out of {place}|to {any}).",
    "It was not {any} that (woke|stopped|called|changed|saved|frightened) {name}.",
    "{name} had (never|always|once|only) (wanted|feared|known|loved|lost|followed|missed) {any}.",
    "(By dawn|Before midnight|By noon|Until evening|By the first snow|After the last light), {name} (was gone|was awake|had changed|knew enough|had to choose|was alone|had an answer).",
    "That (night|morning|day|evening|winter), {name} (made a promise|broke a promise|kept the secret|told the truth|forgot the time|let go of {any}|thought only of {any}).",
    "{Small} had (waited|been hidden|kept quiet|lain there) (for years|since the winter|longer than anyone knew|all this time).",
    "(Long ago|For years|In those days|All that winter) {place} belonged to (nobody|the wind|somebody else|the night|{name}).",
    "What (began|ended|was lost|was hidden) (in|near|beyond) {place} (stayed|ended|came back|grew) there.",
    "(Once|Twice|More than once) {name} (dreamed of|spoke to|ran from|said goodbye to|wrote about) {any}.",
    "Without {any}, {place} was only (a name|a shape|a long silence|a place to wait|a rumour).",
    "People (talked|lied|sang|argued|whispered) about {any} (for weeks|until dark|but never to {name}|and then forgot).",
    "Of all (the days|the nights|the winters), {name} (chose|remembered|feared|wanted) this one.",
];

/// What people say, by the acts of a story: opening, want, obstacle, turn, end.
pub(crate) const DIALOGUE: [&[&str]; 5] = [
    &[
        "Who (left|put|brought|hid|moved) {small} here?",
        "Did you (see|hear|find|expect) {any} (too|last night|this morning|before I did)?",
        "I (found|saw|missed|expected) {small} (this morning|last night|long before you|by chance).",
        "Nobody told me about {any}.",
        "You (look|sound|smile) like somebody from {place}.",
        "Is {small} (yours|new|for me|always so cold)?",
        "How long have you (waited for|watched|looked for|kept away from) {any}?",
        "(Come in|Sit down|Be quiet|Wait), (I know|you are late for|nobody knows) {any}.",
        "It has been (years|weeks|a long time) since I (left|saw|slept in|sang in) {place}.",
    ],
    &[
        "I (want|need|came for|only ask for) {small}, nothing else.",
        "We have to (reach|find|save|leave|cross) {place} (before dark|tonight|together|in time).",
        "Help me (with|carry|hide|find|mend) {small}.",
        "Let me (hold|carry|keep|try|see) {small} (once|tonight|first|myself).",
        "One more (day|night|hour|try) and (I am done with|we can leave|nobody will miss) {any}.",
        "If (I|we) (find|save|lose|keep) {small}, (everything changes|we can go home|nobody will know).",
        "(Tomorrow|Tonight|Someday) I will (see|leave|cross|go back to) {place}.",
        "Show me (where you keep|how you found|why you need) {small}.",
        "All I (want|need|think of) is {any}.",
    ],
    &[
        "{Small} (is gone|is broken|is not safe here|will not last|is not enough).",
        "You cannot (take|keep|sell|leave|hide) {small} (now|alone|like this|forever).",
        "There is no (time|light|room|way) left for {any}.",
        "Why did you (hide|leave|lose|break|sell|touch) {small}?",
        "(Stay away from|Do not come near|Forget|Turn back from) {place}.",
        "Without {small} we (are lost|have nothing|will never leave|cannot go on).",
        "(They|The others) will (take|burn|close|never find) {place} (tonight|before us|without us).",
        "I cannot (find|carry|feel|trust|hear) {any} (anymore|any longer|in this light).",
        "Somebody (took|moved|sold|burned) {small} (while we slept|before us|last night).",
    ],
    &[
        "It was (you|me|never about us) (all along|that night|from the start).",
        "It was never about {any}.",
        "I (lied|was wrong|told nobody|forgot) about {any}.",
        "You (kept|saved|hid|remembered) {small} (all this time|for me|without me).",
        "(Look at|Listen to) {any} again.",
        "(Wait|Look|Listen), {any} (is moving|has stopped|has changed|is here).",
        "What if {any} (was right|is still there|comes back|was only waiting)?",
        "Give me {small} and (run|trust me|close your eyes|do not look back).",
        "We were never (alone|lost|safe) in {place}.",
    ],
    &[
        "(Keep|Take) {small}, (it is yours|I am going home|you need it more|I know the way).",
        "We can (go home|start again|rest|leave {place}) now.",
        "I will (miss|remember|come back for|take care of) {any}.",
        "Thank you for {small}.",
        "{Any} (is ours|is quiet|is safe|can rest|belongs to you) now.",
        "Tell them (I was|we were|you were) in {place} (once|to the end|all night).",
        "(Nobody|Everybody) will (remember|forget|ask about|sing about) {any}.",
        "Leave {small} (here|by {fixed}|for the next one|where it stood).",
        "So this is how {any} ends.",
    ],
];

/// What a scene is about, by the acts of a story.
pub(crate) const SCENES: [&[&str]; 5] = [
    &[
        "{me} (finds|notices|comes upon|picks up) {small} (in|near) {place}.",
        "{me} (comes to|returns to|wakes in|arrives at) {place} and (meets|sees|hears of) {other}.",
    ],
    &[
        "{me} wants to (keep|find|mend|save|hide|carry home) {small} (before dark|alone|at any price).",
        "{me} (promises|decides|begins|agrees) to (reach|save|leave|search|cross) {place} for {other}.",
    ],
    &[
        "{me} (loses|breaks|drops|cannot find) {small} and (is alone|has to wait|must turn back).",
        "{me} is (stopped|followed|lied to|left alone) (in|near) {place} by {other}.",
    ],
    &[
        "{me} (learns|sees|admits|discovers) who (hid|left|needed|made) {small}.",
        "{me} (turns back|changes sides|tells the truth|gives up the search) for {other}.",
    ],
    &[
        "{me} (gives away|brings back|leaves behind|keeps) {small} and (goes home|stays|is free).",
        "{me} (leaves|stays in|says goodbye to|comes home to) {place} with {other}.",
    ],
];

/// Titles; things in them have no article of their own.
pub(crate) const TITLES: &[&str] = &[
    "The (Last|Other|Quiet|Borrowed|Second|Hidden|Long) {Noun}",
    "{Noun} (of|at|under|beyond|before|without) the {Noun2}",
    "(Where|When|Before|Until|After) the {Noun} (Waits|Ends|Sleeps|Returns|Sings|Burns)",
    "A {Noun} for the {Noun2}",
    "The {Noun} and the {Noun2}",
    "(One|No|Every|Another) {Noun}",
    "(Keeping|Leaving|Finding|Crossing|Waiting for|Goodbye to) the {Noun}",
    "What the {Noun} (Knew|Kept|Said|Carried|Lost)",
];

/// Looks of people, of the young, and of places.
pub(crate) const LOOK_GROWN: &str = "(about thirty|about forty|past fifty|nearly seventy), (grey|short|\
    dark|curly|white|braided) hair, (a heavy wool coat|a patched jacket|rolled-up sleeves|a worn \
    leather bag|a paint-stained apron|muddy boots|a red scarf|thick glasses|a blue work shirt)";
/// See [`LOOK_GROWN`].
pub(crate) const LOOK_YOUNG: &str = "(nine|ten|twelve|fifteen) years old, (short|dark|curly|tangled|\
    braided) hair, (a coat too large|scratched knees|a yellow raincoat|a school bag|bare feet|ink on \
    the fingers|a striped sweater)";
/// See [`LOOK_GROWN`].
pub(crate) const LOOK_OTHER: &str = "(small|tall|old|thin|broad), (scratched|dusty|dark|pale|shining) \
    all over, (one bright eye|slow and careful|a dent on one side|always watching|marked by the weather)";
/// See [`LOOK_GROWN`].
pub(crate) const LOOK_PLACE: &str = "(peeling paint|wet stone|bare brick|old timber|cracked tiles|rusted \
    iron), (a single lamp|long shadows|low ceilings|tall windows|open sky|drifting mist), (nobody \
    about|dust in the air|the smell of rain|puddles on the ground|a chair left out)";

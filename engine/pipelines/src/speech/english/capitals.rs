//! Words in capitals: those that are spelled, those that are said, and those that are shouted.

/// What a word in capitals is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Capitals {
    /// Letter by letter: BBC.
    Spelled,
    /// As a word with a sound of its own: NASA.
    Said,
    /// A plain word, shouted: HELP.
    Shouted,
}

/// Spelled although they could be read, also between shouted words.
const SPELLED: &str = " AA ABC AC AD ADA AI AIDA AKA API AR ATM AV AWOL BA BAFTA BBC BC BCE BIOS BMW \
    BST CBS CD CE CEO CFO CIA CNN CO COO CPU CT CTO CV DA DC DI DIY DJ DNA DOB DOS DUI DVD EC ECG EEG ER \
    ESA ESP EST ET ETA EU EUR EV FAQ FBI FM GDP GI GMT GP GPS GPU HD HDMI HIV HQ HR IBM ICU ID IE IMF \
    IO IOU IP IPA IQ IRA IRS ISBN ISO ISP IT ITV IUD IV IVF KGB KO LA LED LLC LP MA MBA MC MD MI MIT \
    MP MRI MTV NBA NBC NFL NHS NSA NY NYC OBE OCD OK OS PA PC PDF PDA PE PI PIN PM PO POV POW PR PS \
    PTA QA RAF REM RIP RNA RSVP RV SAT SD SOS SS SSD SUV TA TB TED TNT TV UAE UFO UI UK UN UPS URL US \
    USA USB USSR UV VAT VC VHS VIP VO VP VR WC WHO WWI WWII XL ";

/// Of these, the ones that are said as words after all.
const SAID: &str = " AIDA AIDS ASAP AWOL BAFTA BIOS BREXIT COBOL COVID EPCOT FEMA FIFA FOMO GIF HUD IKEA \
    INTERPOL JPEG LASER LED MIDI NAFTA NASA NASDAQ NATO OPEC OSHA PIN POTUS RADAR RAM REM ROM SARS SAT SCUBA \
    SIM SOHO SONAR SWAT TASER TED TIFF UEFA UNESCO UNICEF YOLO ZIP ";

/// Short words that are shouted also when they stand alone.
const SHOUTED: &str = " ALL AM AND ANY ARE AS ASK AT AWAY BACK BAD BANG BE BEEN BEST BIG BOOM BOY BUT BUY BY \
    CALL CAN CAR CAT COLD COME CUT DAD DAY DEAD DEAR DID DIE DO DOES DOG DON DONE DOOR DOWN DROP EACH EAT END \
    EVEN EVER EXIT EYE FAR FAST FEW FIN FIND FIRE FLY FOR FREE FROM FUN GET GIRL GIVE GO GOD GOOD GOT GUN HAD HALT \
    HAS HAVE HE HEAR HELL HELP HER HERE HEY HIM HIS HOME HOT HOW I IF IN INTO IS JOB JUST KEEP KILL KNOW \
    LAST LATE LEFT LESS LET LIFE LIKE LIVE LONG LOOK LOST LOVE MAD MAKE MAN MANY MAY ME MEN MIND MISS MOM MORE MOST MOVE \
    MUM MUST MY NAME NEED NEVER NEW NEXT NO NONE NOR NOT NOTE NOW OF OFF OFTEN OH OLD ON ONCE ONE ONLY OPEN OR OUR OUT OVER \
    OWN PAST PAY PLAY PUSH PULL PUT RAN READ REAL RED REST RIGHT RUN SAD SAFE SAID SALE SAME SAVE SAW SAY SEA SEE SELL SEND SET SHE \
    SHOW SHUT SIR SIT SIX SO SOLD SOME SON SOON STAY STOP SUCH SURE TAKE TALK TEA TELL TEN THAN THAT THE THEM THEN \
    THEY THIS TIE TIME TO TOO TOP TRUE TRY TURN TWO UP UPON VERY WAIT WAKE WALK WANT WAR WARN WAS WAY WE WELL \
    WENT WERE WHAT WHEN WHY WILL WIN WITH WON WORD WORK YEAH YEAR YES YET YOU YOUR ZERO ";

fn listed(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == word)
}

/// Whether nobody could read the letters as a word: no vowel among them, or only vowels.
pub(super) fn is_unreadable(word: &str) -> bool {
    let vowel = |letter: char| "aeiouyAEIOUY".contains(letter);
    !word.chars().any(vowel) || word.chars().all(vowel)
}

/// Decides on a word of at least two letters, all of them capitals. `among` says that a
/// neighbouring word is in capitals too.
pub(super) fn decide(word: &str, among: bool) -> Capitals {
    let letters = word.chars().count();
    if listed(SAID, word) {
        Capitals::Said
    } else if listed(SHOUTED, word) {
        Capitals::Shouted
    } else if listed(SPELLED, word) || is_unreadable(word) && letters < 8 {
        // Between shouted words the short ones are words: "LET US GO", "GET IT".
        let pronoun = matches!(word, "US" | "IT" | "WHO" | "IO" | "TA");
        if among && pronoun {
            Capitals::Shouted
        } else {
            Capitals::Spelled
        }
    } else if letters >= 5 || among {
        Capitals::Shouted
    } else {
        Capitals::Spelled
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Accent, scan::said};

    #[test]
    fn capitals_are_spelled_said_or_shouted() {
        let cases = [
            ("The BBC and IBM.", "The B B C and I B M."),
            ("NASA said no.", "NASA said no."),
            ("HELP ME!", "help me!"),
            ("LET US GO NOW", "let us go now"),
            ("the US army", "the U S army"),
            ("She shouted STOP twice.", "She shouted stop twice."),
            ("THE LIGHTHOUSE KEEPER", "the lighthouse keeper"),
            ("1st AD on 2nd unit", "first A D on second unit"),
            ("a TV show", "a T V show"),
            ("two TVs", "two T Vs"),
            ("the FBI's man", "the F B I's man"),
            ("Plan B", "Plan B"),
            ("A man", "A man"),
            ("I, Claudius", "I, Claudius"),
            ("an iPhone", "an i Phone"),
        ];
        for (text, words) in cases {
            assert_eq!(said(text, Accent::Us), words, "{text}");
        }
    }
}

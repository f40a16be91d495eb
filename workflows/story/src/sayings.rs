//! What the linter and the planner say.

use crate::{Coded, Figure};

crate::texts! {
    /// What could be better in a script, what would mend it, and what keeps it from being made.
    pub enum ScriptText {
        FilmLength { got: i64, got_secs: Figure, asked: i64, asked_secs: Figure }
            = "film_length",
            "the film is {got} frames ({got_secs} s), {asked} ({asked_secs} s) were asked for";
        ShortenShots { frames: i64 } = "shorten_shots", "shorten shots by {frames} frames together";
        LengthenShots { frames: i64 }
            = "lengthen_shots", "lengthen shots by {frames} frames together";
        NoTitle {} = "no_title", "the film has no title";
        GiveTitle {} = "give_title", "give it one";
        NoTitleShown {} = "no_title_shown", "no shot shows a title";
        AddTitle {} = "add_title", "add '- title: ...' to a shot";
        UnknownSpeaker { name: String }
            = "unknown_speaker", "{name:?} speaks but is not in the cast";
        AddToCast { name: String } = "add_to_cast", "add {name} to the cast";
        WriteOrAddToCast { near: String, name: String }
            = "write_or_add_to_cast", "write {near}, or add {name} to the cast";
        UnusedCast { name: String } = "unused_cast", "{name:?} is in the cast but in no shot";
        UseOrDropCast {} = "use_or_drop_cast", "give them a line or an action, or take them out";
        UnusedPlace { place: String } = "unused_place", "no scene is at {place:?}";
        UseOrDropPlace {} = "use_or_drop_place", "give it a scene, or take it out";
        MissingFile { name: String } = "missing_file", "there is no file {name:?}";
        PutFile {} = "put_file", "put the file there, or name another";
        DidYouMean { name: String } = "did_you_mean", "did you mean {name:?}?";
        ShowsNothing {} = "shows_nothing", "the shot shows nothing";
        NamePicture {} = "name_picture", "name a picture, video or colour";
        ShortShot { secs: Figure } = "short_shot", "the shot is seen for {secs} s";
        AtLeastHalf {} = "at_least_half", "make it at least 0.5 s";
        TitlePastShot { frames: i64 }
            = "title_past_shot", "the title would stay {frames} frames past the shot";
        TitleEarlier { frames: i64 }
            = "title_earlier", "start it earlier or keep it for {frames} frames";
        TitleTooShort { secs: Figure } = "title_too_short", "the title is seen for {secs} s";
        TitleLonger { secs: Figure } = "title_longer", "show it for {secs} s or shorten it";
        RollCorners { zoom: Figure }
            = "roll_corners", "the roll shows black corners at zoom {zoom}";
        ZoomTo { zoom: Figure } = "zoom_to", "zoom to {zoom} or more";
        TooManyWords { words: i64, secs: Figure }
            = "too_many_words", "{words} words in {secs} s are too many to be said";
        LengthenOrCut { secs: Figure, words: i64 }
            = "lengthen_or_cut", "lengthen the shot to {secs} s or cut to {words} words";
        VoicePastShot { secs: Figure }
            = "voice_past_shot", "the voice goes on {secs} s past the shot";
        LengthenOrKeep {}
            = "lengthen_or_keep", "lengthen the shot, or keep it if it should carry over";
        LinePastShot {} = "line_past_shot", "the line begins after the shot's end";
        StartEarlier {} = "start_earlier", "start it earlier";
        SubtitleTooFast { text: String, rate: Figure }
            = "subtitle_too_fast", "the subtitle {text:?} runs at {rate} characters a second";
        GiveTime { secs: Figure } = "give_time", "give it {secs} s or fewer words";

        FilmTooLong { frames: i64, most: i64 }
            = "film_too_long", "the film of {frames} frames is too long: at most {most}, a day";
        ShorterThanFrame {} = "shorter_than_frame", "the shot is shorter than a frame";
        ShorterThanTransitions { frames_in: i64, frames_out: i64, frames: i64 }
            = "shorter_than_transitions",
            "the shot of {frames} frames is shorter than its transitions: {frames_in} frames in and \
             {frames_out} out";
        ShorterThanFades { frames_in: i64, frames_out: i64, frames: i64 }
            = "shorter_than_fades",
            "the {frames} frames of the shot are shorter than its fades: {frames_in} frames in and \
             {frames_out} out";
        GoesOutTwice {} = "goes_out_twice", "the shot goes out twice: a fade and a transition";
        NoFrameLeft {} = "no_frame_left", "there is no frame left for it";
        Unheard {} = "unheard", "the film ends before it can be spoken";
        NoSuchFile { name: String } = "no_such_file", "there is no such file: {name:?}";
    }
}

/// As a fault carries it.
pub(crate) fn coded(text: &ScriptText) -> Option<Box<Coded>> {
    Some(Box::new(text.coded()))
}

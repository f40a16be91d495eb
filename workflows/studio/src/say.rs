//! What the studio says to people: each text in English and, where it has one, as a code with
//! values, so that a page says it in its own language.

use std::fmt;

use engine_base::Code;
use flow_story::{Coded, Figure};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

flow_story::texts! {
    /// Steps, titles of jobs, notes and refusals that pages show in their own language.
    pub(crate) enum Say {
        ReadingFiles {} = "reading_files", "reading the files";
        MakingFilm {} = "making_film", "making the film";
        DrawingPictures {} = "drawing_pictures", "drawing the pictures";
        MakingPictures {} = "making_pictures", "making the pictures";
        MakingProxy {} = "making_proxy", "making a copy that plays here";
        WritingFilm {} = "writing_film", "writing the film";
        ReadingFilmAgain {} = "reading_film_again", "reading the film once more";
        SpeakingLines {} = "speaking_lines", "speaking the lines";
        LoadingLanguageModel {} = "loading_language_model", "loading the language model";
        WritingScript { stage: String } = "writing_script", "writing the script: {stage}";
        Writing {} = "writing", "writing";
        ScriptIsIn { path: String } = "script_is_in", "the script is in {path}";
        LookingForFiles {} = "looking_for_files", "looking for the files";

        RenderAll { film: String } = "render_all", "Render {film}";
        DraftAll { film: String } = "draft_all", "Draft of {film}";
        RenderMissing { film: String } = "render_missing", "Render missing shots of {film}";
        DraftMissing { film: String } = "draft_missing", "Draft of missing shots of {film}";
        RenderShots { shots: String, film: String } = "render_shots", "Render {shots} of {film}";
        DraftShots { shots: String, film: String } = "draft_shots", "Draft of {shots} of {film}";
        AnotherPicture { shot: String } = "another_picture", "Another picture for {shot}";
        ChoosingPicture {} = "choosing_picture", "choosing a picture";
        DrawingPicture { number: i64, count: i64, shot: String }
            = "drawing_picture", "drawing picture {number} of {count}, for {shot}";
        DrawOne { shot: String } = "draw_one", "Draw a picture for {shot}";
        DrawScouts { count: i64, shot: String } = "draw_scouts", "Draw {count} scouts for {shot}";
        DrawMissing { count: i64, film: String }
            = "draw_missing", "Draw the {count} missing pictures of {film}";
        NothingToDraw {} = "nothing_to_draw", "every shot has a picture, video or colour already";
        DrawCount { most: i64, got: i64 }
            = "draw_count", "expected 1 to {most} pictures, got {got}";
        NoPictureModel {}
            = "no_picture_model",
            "the model that draws pictures is not here: fetch the default pack on page Models";
        DrawnByOurs { shot: String, why: String }
            = "drawn_by_ours", "shot {shot:?} is drawn by our own model: {why}";
        ExportTo { name: String } = "export_to", "Export {name}";
        FetchModel { name: String } = "fetch_model", "Fetch {name}";
        CheckModel { name: String } = "check_model", "Check {name}";
        WriteFrom { premise: String } = "write_from", "Write {premise:?}";
        RewriteRow { kind: String, id: String } = "rewrite_row", "Rewrite {kind} {id}";
        HearText { text: String } = "hear_text", "Hear {text:?}";
        ProxyOf { name: String } = "proxy_of", "Copy of {name} that plays here";

        SmallPictures { count: i64, model: String }
            = "small_pictures",
            "{count} pictures are smaller than they are shown and will look soft: `longtake models \
             pull {model}` fetches what makes them twice as large";
        LongerThanAsked { secs: Figure }
            = "longer_than_asked",
            "the film is {secs} s longer than asked for: the lines take that long";
        OneLineToSpeak {}
            = "one_line_to_speak",
            "one line is to be spoken first; until then its length is an estimate";
        LinesToSpeak { count: i64 }
            = "lines_to_speak",
            "{count} lines are to be spoken first; until then their lengths are estimates";
        NotSpoken { why: String }
            = "not_spoken", "the lines are shown and not spoken: {why}";
        NoVoiceSpeaks { language: String, languages: String }
            = "no_voice_speaks",
            "no voice on this machine speaks {language:?}: the lines are shown and not spoken; \
             languages there are: {languages}";
        LineSilent { why: String, text: String }
            = "line_silent", "a line stays silent: {why}: {text:?}";
        FileNeededBy { name: String, shots: String }
            = "file_needed_by", "there is no file {name:?}, needed by {shots}";
        NoFile { name: String } = "no_file", "there is no file {name:?}";
        CutVideo { name: String }
            = "cut_video", "the end of {name:?} is missing: it is used as far as it goes";
        NoFontHas { character: String }
            = "no_font_has", "no font here has the character '{character}': it will be a box";

        RemoveRow { id: String } = "remove_row", "Remove {id}";
        SetTo { value: String } = "set_to", "Set to {value}";
        LengthenTo { length: String } = "lengthen_to", "Lengthen to {length}";
        ShowColour { colour: String } = "show_colour", "Show {colour}";
        AddToCastLabel { name: String } = "add_to_cast_label", "Add {name} to the cast";

        ScriptReadIn { title: String } = "script_read_in", "script {title:?} read in";
        ChangesTaken {} = "changes_taken", "changes taken";
        FieldSet { kind: String, id: String, field: String } = "field_set", "{kind} {id}: {field}";
        FilmFieldSet { field: String } = "film_field_set", "film: {field}";
        RowAdded { kind: String, id: String } = "row_added", "{kind} {id} added";
        RowRemoved { kind: String, id: String } = "row_removed", "{kind} {id} removed";
        RowMoved { kind: String, id: String } = "row_moved", "{kind} {id} moved";
        TakeChosen { shot: String } = "take_chosen", "shot {shot}: another take";
        TakeNotRated { shot: String } = "take_not_rated", "shot {shot}: take not rated";
        TakeRated { shot: String, rating: i64 } = "take_rated", "shot {shot}: take rated {rating}";
        TakeOff { shot: String } = "take_off", "shot {shot}: take off the list";
        SnapshotRestored { name: String } = "snapshot_restored", "snapshot {name:?} restored";

        JobFailed { title: String, why: String } = "job_failed", "{title}: {why}";
        JobsBusy { job: i64 } = "jobs_busy", "job {job} works on the model";
        JobRefused { job: i64, what: String, state: String }
            = "job_refused", "job {job} cannot be {what}: it is {state}";
        NoJob { job: i64 } = "no_job", "there is no job {job}";
        ProjectBusy { path: String } = "project_busy", "a job runs on the project: {path:?}";
        OpenIn { program: String, pid: i64, host: String, path: String }
            = "open_in",
            "cannot open the project: it is open in {program:?} (process {pid} on {host}); make the \
             film there (page Export), or end that process: {path:?}";
        StudioRuns { program: String, pid: i64, address: String, path: String }
            = "studio_runs",
            "the studio of this machine runs in {program:?} (process {pid}, http://{address}) and \
             cannot be opened twice: use it there, end that process, or name another data folder: \
             {path:?}";
        StudioStarts { path: String }
            = "studio_starts",
            "another process opens or closes the studio of this machine, or holds it without \
             serving it: try again, or name another data folder: {path:?}";
        StudioAway { program: String, pid: i64, why: String }
            = "studio_away", "the studio in {program:?} (process {pid}) does not answer: {why}";
        NoProject { path: String } = "no_project", "there is no project here: {path:?}";
        NewerProject { path: String }
            = "newer_project",
            "the project was written by a newer version of the program and was not touched: {path}";
        NotPermitted { what: String, path: String }
            = "not_permitted", "cannot {what}: this user may not: {path:?}";
        ReadOnly { what: String, path: String }
            = "read_only", "cannot {what}: the folder or file may only be read: {path:?}";
        DiskFull { what: String, path: String }
            = "disk_full", "cannot {what}: the disk is full: {path:?}";
        FileNotFound { what: String, path: String }
            = "file_not_found", "cannot {what}: it is not there: {path:?}";
        NotForMoney { against: String }
            = "not_for_money", "a film that earns money may not be made with: {against}";
        NoMedia { hash: String } = "no_media", "there is no file of the content {hash}";
        OtherContent { name: String, expected: String, got: String }
            = "other_content",
            "{name:?} is another file than the one that is missing: expected content {expected}, \
             got {got}";
        NotFoundInFolder { path: String, looked: i64 }
            = "not_found_in_folder",
            "none of the {looked} files in the folder is the one that is missing: {path:?}";
        NotMissing { name: String } = "not_missing", "{name:?} is not missing";
        NothingToLookFor { name: String }
            = "nothing_to_look_for",
            "it is not known what {name:?} was: choose a file by bringing it in";
        NotMedia { name: String }
            = "not_media", "expected a picture, video or sound, got another file: {name:?}";
        NoFileName { name: String } = "no_file_name", "expected a file name, got none: {name:?}";
        NoLanguageServer { why: String } = "no_language_server", "{why}";
        NothingToRewrite {}
            = "nothing_to_rewrite",
            "expected a part of the script with texts to write again, got none";
        PremiseWithoutWords { got: String }
            = "premise_without_words",
            "cannot make a film from the premise {got:?}: expected a sentence such as \"a \
             lighthouse keeper finds a message in a bottle\"";
        NameLength { most: i64 } = "name_length", "expected a name of 1 to {most} characters";
        NoShot { id: String } = "no_shot", "there is no shot called {id:?}";
        NoRow { kind: String, id: String, known: String }
            = "no_row", "there is no {kind} called {id:?}; there are: {known}";
        BrokenStills { files: String }
            = "broken_stills", "these pictures cannot be read:\n{files}";
    }
}

/// A text for people in English and, where it has one, as a code with values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Said {
    /// In English.
    pub text: String,
    /// For pages in another language.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "Coded")]
    pub coded: Option<Coded>,
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<String> for Said {
    fn from(text: String) -> Self {
        Self { text, coded: None }
    }
}

impl From<&str> for Said {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<Say> for Said {
    fn from(say: Say) -> Self {
        Self {
            text: say.to_string(),
            coded: Some(say.coded()),
        }
    }
}

/// Every code that a page may be told, with its English words.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    let script = flow_story::ScriptText::ALL.iter();
    script.chain(Say::ALL).copied()
}

/// A refused read or write as a text, by what the system says of it.
pub(crate) fn of_io(what: &str, path: &std::path::Path, error: &std::io::Error) -> Option<Say> {
    use std::io::ErrorKind;
    let (what, path) = (what.to_owned(), path.display().to_string());
    Some(match (Code::of_io(error), error.kind()) {
        (Code::DiskFull, _) => Say::DiskFull { what, path },
        (_, ErrorKind::ReadOnlyFilesystem) => Say::ReadOnly { what, path },
        (_, ErrorKind::PermissionDenied) => Say::NotPermitted { what, path },
        (_, ErrorKind::NotFound) => Say::FileNotFound { what, path },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn codes_are_used_once() {
        let codes: Vec<&str> = all().map(|(code, _)| code).collect();
        let once: BTreeSet<&str> = codes.iter().copied().collect();
        assert_eq!(once.len(), codes.len());
        assert!(codes.len() > 80);
    }
}

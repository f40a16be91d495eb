//! Subtitle files of any encoding.

use flow_media::subtitle::{SubtitleError, read_subtitles, read_subtitles_as};

/// Any bytes as a subtitle file: what is read has cues with a length and words, and reading it by
/// an encoding that was offered never says that the encoding is not clear.
///
/// # Panics
/// When that does not hold.
pub fn subtitle(bytes: &[u8]) {
    match read_subtitles(bytes) {
        Ok(file) => {
            for cue in &file.cues {
                assert!(cue.start_millis >= 0, "before the start: {cue:?}");
                assert!(cue.end_millis > cue.start_millis, "no length: {cue:?}");
            }
            for note in &file.notes {
                assert!(!note.to_string().is_empty());
            }
            let named = read_subtitles_as(bytes, file.encoding).expect("the same encoding, named");
            assert_eq!(named.cues, file.cues, "{}", file.encoding);
        }
        Err(SubtitleError::EncodingUnclear(choices)) => {
            assert!(!choices.is_empty(), "a question without answers");
            for choice in choices {
                let read = read_subtitles_as(bytes, choice.encoding);
                let unread = matches!(
                    read,
                    Err(SubtitleError::EncodingUnclear(_) | SubtitleError::UnknownEncoding(_))
                );
                assert!(!unread, "{} was offered: {read:?}", choice.encoding);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

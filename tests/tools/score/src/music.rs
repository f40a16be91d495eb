//! From written music to sound: notes, chords with voice leading, a player with a human hand.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use rustysynth::{SoundFont, Synthesizer, SynthesizerSettings};

use crate::dice::Dice;
use crate::sound::{RATE, Room, Stereo, gain, samples};

/// A note in beats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Note {
    pub start: f64,
    pub beats: f64,
    pub key: i32,
    /// 0..1.
    pub force: f64,
}

/// Number of the key written as `f#4`; `c4` is 60.
pub fn key(text: &str) -> Result<i32> {
    let split = text
        .find(|c: char| c.is_ascii_digit())
        .context("a note without an octave")?;
    let octave: i32 = text[split..].parse()?;
    Ok(pitch_class(&text[..split])? + 12 * (octave + 1))
}

fn pitch_class(text: &str) -> Result<i32> {
    let mut letters = text.chars();
    let base = match letters.next() {
        Some('c') => 0,
        Some('d') => 2,
        Some('e') => 4,
        Some('f') => 5,
        Some('g') => 7,
        Some('a') => 9,
        Some('b') => 11,
        _ => bail!("no note: {text:?}"),
    };
    match letters.as_str() {
        "" => Ok(base),
        "#" => Ok(base + 1),
        "b" => Ok((base + 11) % 12),
        _ => bail!("no note: {text:?}"),
    }
}

/// A melody written as `a4/2 -/1 …` (key or rest, beats), from `start` on. Long notes are played
/// a little fuller, the first of a bar a little stronger.
pub fn melody(start: f64, bar: f64, text: &str) -> Result<Vec<Note>> {
    let mut at = start;
    let mut notes = Vec::new();
    for word in text.split_whitespace().filter(|word| *word != "|") {
        let (name, beats) = word
            .split_once('/')
            .with_context(|| format!("no length: {word:?}"))?;
        let beats: f64 = beats
            .parse()
            .with_context(|| format!("no length: {word:?}"))?;
        if name != "-" {
            let accent = if (at - start).rem_euclid(bar) < 0.01 {
                0.06
            } else {
                0.0
            };
            let force = 0.55 + accent + 0.03 * beats.min(3.0);
            notes.push(Note {
                start: at,
                beats,
                key: key(name)?,
                force,
            });
        }
        at += beats;
    }
    Ok(notes)
}

/// A chord: its bass, the pitch classes above and its length.
#[derive(Debug, Clone)]
pub struct Chord {
    pub start: f64,
    pub beats: f64,
    pub bass: i32,
    pub classes: Vec<i32>,
}

/// Chords written one a line: `d2: d f# a e /4`.
pub fn chords(text: &str) -> Result<Vec<Chord>> {
    let mut at = 0.0;
    let mut chords = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (bass, rest) = line
            .split_once(':')
            .with_context(|| format!("no bass: {line:?}"))?;
        let (names, beats) = rest
            .split_once('/')
            .with_context(|| format!("no length: {line:?}"))?;
        let beats: f64 = beats.trim().parse()?;
        let classes: Result<Vec<i32>> = names.split_whitespace().map(pitch_class).collect();
        chords.push(Chord {
            start: at,
            beats,
            bass: key(bass)?,
            classes: classes?,
        });
        at += beats;
    }
    Ok(chords)
}

/// How bad it is to go from voicing `before` (over `bass_before`) to `now`.
fn roughness(before: Option<(&[i32; 4], i32)>, now: &[i32; 4], bass: i32, centre: i32) -> i32 {
    let mean: i32 = now.iter().sum::<i32>() / 4;
    let mut cost = (mean - centre).abs();
    for pair in now.windows(2) {
        let gap = pair[1] - pair[0];
        cost += if gap < 2 {
            12
        } else if gap > 9 {
            3 * (gap - 9)
        } else {
            0
        };
    }
    let Some((before, bass_before)) = before else {
        return cost;
    };
    for (old, new) in before.iter().zip(now) {
        let step = (new - old).abs();
        cost += step + if step > 5 { 3 * (step - 5) } else { 0 };
    }
    // Fifths and octaves in parallel thin the harmony out.
    let old: Vec<i32> = std::iter::once(bass_before).chain(*before).collect();
    let new: Vec<i32> = std::iter::once(bass).chain(*now).collect();
    for low in 0..5 {
        for high in low + 1..5 {
            let (gap_old, gap_new) = ((old[high] - old[low]) % 12, (new[high] - new[low]) % 12);
            let moved = old[low] != new[low] && old[high] != new[high];
            let same_way = (new[low] - old[low]).signum() == (new[high] - old[high]).signum();
            if moved && same_way && gap_old == gap_new && matches!(gap_new, 0 | 7) {
                cost += 9;
            }
        }
    }
    cost
}

/// Four upper voices for each chord, between `low` and `high`, each near the last.
pub fn voice(chords: &[Chord], low: i32, high: i32) -> Vec<[i32; 4]> {
    let mut voicings: Vec<[i32; 4]> = Vec::new();
    for (at, chord) in chords.iter().enumerate() {
        let fits: Vec<i32> = (low..=high)
            .filter(|k| chord.classes.contains(&(k % 12)))
            .collect();
        let before = at
            .checked_sub(1)
            .map(|last| (&voicings[last], chords[last].bass));
        let mut best = ([low; 4], i32::MAX);
        for a in 0..fits.len() {
            for b in a + 1..fits.len() {
                for c in b + 1..fits.len() {
                    for d in c + 1..fits.len() {
                        let now = [fits[a], fits[b], fits[c], fits[d]];
                        let heard = |class: &&i32| !now.iter().any(|key| key % 12 == **class);
                        let lacking = chord.classes.iter().filter(heard).count() as i32;
                        let cost = roughness(before, &now, chord.bass, (low + high) / 2)
                            + 15 * (lacking - (chord.classes.len() as i32 - 4).max(0)).max(0);
                        if cost < best.1 {
                            best = (now, cost);
                        }
                    }
                }
            }
        }
        voicings.push(best.0);
    }
    voicings
}

/// One voice of the voicings, tones that stay are tied.
pub fn sustained(chords: &[Chord], keys: impl Fn(usize) -> i32, force: f64) -> Vec<Note> {
    let mut notes: Vec<Note> = Vec::new();
    for (at, chord) in chords.iter().enumerate() {
        match notes.last_mut() {
            Some(last) if last.key == keys(at) => last.beats += chord.beats,
            _ => notes.push(Note {
                start: chord.start,
                beats: chord.beats,
                key: keys(at),
                force,
            }),
        }
    }
    notes.iter_mut().for_each(|note| note.beats += 0.12);
    notes
}

/// Chord tones from `low` up, `count` of them, that a plucked pattern climbs.
pub fn ladder(chord: &Chord, low: i32, count: usize) -> Vec<i32> {
    (low..)
        .filter(|key| chord.classes.contains(&(key % 12)))
        .take(count)
        .collect()
}

/// Someone playing one instrument.
#[derive(Debug, Clone)]
pub struct Part {
    pub name: &'static str,
    /// Bank and program.
    pub preset: (u16, u16),
    /// -1 left to 1 right.
    pub pan: f64,
    pub gain_db: f64,
    /// Share that goes to the room.
    pub send: f64,
    /// Deviation of the onsets.
    pub loose_secs: f64,
    /// Loudness over a phrase: length in beats, lowest and highest of 0..1.
    pub swell: (f64, f64, f64),
    pub notes: Vec<Note>,
}

/// A piece that loops.
#[derive(Debug)]
pub struct Piece {
    pub name: &'static str,
    pub beats: f64,
    pub bpm: f64,
    /// Length of a phrase; time gives a little toward its end.
    pub phrase: f64,
    pub room: Room,
    pub parts: Vec<Part>,
}

/// Rendered before the first beat, for hands that come early.
const LEAD_SECS: f64 = 0.5;
/// Rendered after the last beat, for what rings on.
const TAIL_SECS: f64 = 7.0;

impl Piece {
    pub fn secs(&self) -> f64 {
        self.beats * 60.0 / self.bpm
    }

    fn time(&self, beat: f64) -> f64 {
        let turn = std::f64::consts::TAU * beat / self.phrase;
        beat * 60.0 / self.bpm - 0.05 * turn.sin()
    }

    /// Start and end in seconds, key and velocity of each note as the hand plays it.
    fn played(&self, part: &Part) -> Vec<(f64, f64, i32, i32)> {
        let mut dice = Dice::named(&format!("{}/{}", self.name, part.name));
        let mut played = Vec::new();
        for note in &part.notes {
            let arc = (std::f64::consts::PI * (note.start / self.phrase).fract()).sin();
            let force = note.force + 0.10 * (arc - 0.6) + 0.03 * dice.bell();
            let start = self.time(note.start) + part.loose_secs * dice.bell();
            let end = self.time(note.start + note.beats) + 0.5 * part.loose_secs * dice.bell();
            let velocity = (127.0 * force).round().clamp(8.0, 120.0) as i32;
            played.push((start, end.max(start + 0.05), note.key, velocity));
        }
        played.sort_by(|a, b| a.0.total_cmp(&b.0));
        // A key struck again ends its earlier note; a late release must not end the new one.
        for at in 0..played.len() {
            let (start, key) = (played[at].0, played[at].2);
            for earlier in &mut played[..at] {
                if earlier.2 == key && earlier.1 > start - 0.01 {
                    earlier.1 = (start - 0.01).max(earlier.0 + 0.01);
                }
            }
        }
        played
    }

    fn render_part(&self, font: &Arc<SoundFont>, part: &Part) -> Result<Stereo> {
        let mut settings = SynthesizerSettings::new(RATE as i32);
        settings.enable_reverb_and_chorus = false;
        settings.maximum_polyphony = 128;
        let mut synth = Synthesizer::new(font, &settings)
            .map_err(|error| anyhow::anyhow!("no synthesizer for {:?}: {error}", part.name))?;
        let (bank, program) = part.preset;
        synth.process_midi_message(0, 0xB0, 0, i32::from(bank));
        synth.process_midi_message(0, 0xC0, i32::from(program), 0);
        let pan = (64.0 + 63.0 * part.pan).round() as i32;
        synth.process_midi_message(0, 0xB0, 10, pan.clamp(0, 127));
        let mut events = Vec::new();
        for (start, end, key, velocity) in self.played(part) {
            events.push((samples(start + LEAD_SECS), key, velocity));
            events.push((samples(end + LEAD_SECS), key, 0));
        }
        events.sort_by_key(|(at, key, velocity)| (*at, *velocity, *key));
        let length = samples(LEAD_SECS + self.secs() + TAIL_SECS);
        let (mut left, mut right) = (vec![0_f32; length], vec![0_f32; length]);
        let mut next = events.iter().peekable();
        const BLOCK: usize = 256;
        for from in (0..length).step_by(BLOCK) {
            let beat = (from as f64 / RATE - LEAD_SECS) * self.bpm / 60.0;
            let (phrase, low, high) = part.swell;
            let arc = (std::f64::consts::PI * (beat / phrase).rem_euclid(1.0)).sin();
            let expression = (127.0 * (low + (high - low) * arc)).round() as i32;
            synth.process_midi_message(0, 0xB0, 11, expression.clamp(0, 127));
            let to = (from + BLOCK).min(length);
            let mut at = from;
            while let Some((when, key, velocity)) = next.next_if(|event| event.0 < to) {
                let when = (*when).clamp(at, to);
                synth.render(&mut left[at..when], &mut right[at..when]);
                at = when;
                synth.note_on(0, *key, *velocity);
            }
            synth.render(&mut left[at..to], &mut right[at..to]);
        }
        let wide = |channel: Vec<f32>| channel.into_iter().map(f64::from).collect();
        let mut sound = Stereo {
            left: wide(left),
            right: wide(right),
        };
        sound.scale(gain(part.gain_db));
        Ok(sound)
    }

    /// The loop: exactly as long as its beats, its end ringing over its beginning.
    pub fn render(&self, font: &Arc<SoundFont>) -> Result<Stereo> {
        let mut whole = Stereo::silent(samples(self.secs()));
        let lead = -(samples(LEAD_SECS) as i64);
        let mut send: Option<Stereo> = None;
        for part in &self.parts {
            let dry = self.render_part(font, part)?;
            println!(
                "  {:<12} {:>3} notes, peak {:>6.1} dB, {:>6.1} LUFS",
                part.name,
                part.notes.len(),
                20.0 * dry.peak().log10(),
                dry.loudness()?
            );
            whole.add_looped(lead, &dry, 1.0);
            let send = send.get_or_insert_with(|| Stereo::silent(dry.len()));
            send.add_looped(0, &dry, part.send);
        }
        let send = send.context("a piece without parts")?;
        whole.add_looped(lead, &self.room.wet(&send, 0.0), 1.0);
        Ok(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read() {
        assert_eq!(key("c4").unwrap(), 60);
        assert_eq!(key("bb3").unwrap(), 58);
        assert_eq!(key("f#5").unwrap(), 78);
        assert!(key("h4").is_err() && key("c").is_err());
        let notes = melody(8.0, 4.0, "a4/2 -/1 | b4/.5").unwrap();
        assert_eq!(notes.len(), 2);
        assert_eq!(
            (notes[1].start, notes[1].beats, notes[1].key),
            (11.0, 0.5, 71)
        );
    }

    #[test]
    fn voices_keep_to_chord_and_range_and_move_little() {
        let chords =
            chords("d2: d f# a /4\n g2: g b d /4\n a2: a c# e /4\n d2: d f# a /4").unwrap();
        let voicings = voice(&chords, 55, 76);
        for (chord, keys) in chords.iter().zip(&voicings) {
            assert!(
                keys.iter().all(|key| chord.classes.contains(&(key % 12))),
                "{keys:?}"
            );
            for class in &chord.classes {
                assert!(
                    keys.iter().any(|key| key % 12 == *class),
                    "{keys:?} lacks {class}"
                );
            }
        }
        for pair in voicings.windows(2) {
            for (old, new) in pair[0].iter().zip(&pair[1]) {
                assert!((old - new).abs() <= 5, "{pair:?}");
            }
        }
    }
}

//! Cutting counts and lengths.

use std::num::NonZeroU64;
use std::ops::Range;

/// Frames of one job of a node that looks at frames one by one or in a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameRun {
    /// Frames whose results it gives.
    pub makes: Range<u64>,
    /// Frames it has to see for them: `makes` and the window on both sides.
    pub reads: Range<u64>,
}

/// Cut `frames` into runs of at most `longest`, as even as possible, for a node that needs
/// `window` frames on both sides of each (0: it looks at one at a time). Joined, the runs give
/// every frame once, in order. Even, because the last of several machines decides.
pub fn frame_runs(frames: u64, longest: NonZeroU64, window: u64) -> Vec<FrameRun> {
    even(frames, longest)
        .map(|makes| FrameRun {
            reads: makes.start.saturating_sub(window)..makes.end.saturating_add(window).min(frames),
            makes,
        })
        .collect()
}

/// Cut `count` elements of a for-each into jobs of at most `longest`: as many as it takes,
/// as even as possible.
pub fn elements(count: u64, longest: NonZeroU64) -> Vec<Range<u64>> {
    even(count, longest).collect()
}

fn even(count: u64, longest: NonZeroU64) -> impl Iterator<Item = Range<u64>> {
    let parts = count.div_ceil(longest.get());
    let cut = move |part: u64| {
        let at = u128::from(count) * u128::from(part) / u128::from(parts.max(1));
        u64::try_from(at).unwrap_or(count)
    };
    (0..parts).map(move |part| cut(part)..cut(part + 1))
}

/// Cut a film for export. Segments end only at `cuts` (frames at which a shot begins, ascending)
/// so that a changed shot touches one segment, and are at least `shortest` long where the cuts
/// allow; a shot longer than `longest` is cut inside, evenly. Cuts outside the film or out of
/// order are left out.
pub fn segments(frames: u64, cuts: &[u64], shortest: u64, longest: NonZeroU64) -> Vec<Range<u64>> {
    let mut segments = Vec::new();
    let mut start = 0;
    let mut close = |end: u64, start: &mut u64| {
        let from = *start;
        segments.extend(even(end - from, longest).map(|part| from + part.start..from + part.end));
        *start = end;
    };
    for cut in cuts {
        if *cut < frames
            && cut
                .checked_sub(start)
                .is_some_and(|long| long >= shortest.max(1))
        {
            close(*cut, &mut start);
        }
    }
    if frames > start {
        close(frames, &mut start);
    }
    segments
}

/// Seeds of `count` takes of a shot whose first take has `seed`: each its own job, and another
/// count changes none of them.
pub fn takes(seed: u64, count: u32) -> Vec<u64> {
    (0..u64::from(count))
        .map(|take| seed.wrapping_add(take))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at_most(longest: u64) -> NonZeroU64 {
        NonZeroU64::new(longest).unwrap()
    }

    fn tiles(parts: &[Range<u64>], whole: u64) -> bool {
        let ends = parts.iter().map(|part| part.end);
        let starts = parts.iter().map(|part| part.start).skip(1);
        let first = parts.first().map_or(0, |part| part.start);
        let last = parts.last().map_or(0, |part| part.end);
        let joined = ends.zip(starts).all(|(end, start)| end == start);
        let filled = parts.iter().all(|part| part.start < part.end);
        first == 0 && last == whole && joined && filled
    }

    #[test]
    fn runs_are_even_and_see_their_window() {
        let runs = frame_runs(362, at_most(124), 2);
        let made: Vec<_> = runs.iter().map(|run| run.makes.clone()).collect();
        assert_eq!(made, [0..120, 120..241, 241..362]);
        assert_eq!(runs[0].reads, 0..122);
        assert_eq!(runs[1].reads, 118..243);
        assert_eq!(runs[2].reads, 239..362);
        assert!(frame_runs(0, at_most(8), 1).is_empty());
    }

    #[test]
    fn segments_end_at_cuts() {
        let parts = segments(1000, &[100, 110, 400, 2000], 50, at_most(250));
        assert_eq!(
            parts,
            [0..100, 100..250, 250..400, 400..600, 600..800, 800..1000]
        );
        assert!(segments(0, &[5], 1, at_most(9)).is_empty());
    }

    #[test]
    fn more_takes_keep_the_first() {
        assert_eq!(takes(7, 2), takes(7, 5)[..2]);
        assert_eq!(takes(u64::MAX, 2), [u64::MAX, 0]);
    }

    proptest! {
        #[test]
        fn everything_is_made_once(
            frames in 0_u64..5000,
            longest in 1_u64..700,
            window in 0_u64..5,
            mut cuts in proptest::collection::vec(0_u64..6000, 0..20),
            shortest in 0_u64..400,
        ) {
            let made: Vec<_> = frame_runs(frames, at_most(longest), window)
                .into_iter()
                .map(|run| {
                    assert!(run.reads.start <= run.makes.start && run.reads.end >= run.makes.end);
                    assert!(run.reads.end <= frames);
                    run.makes
                })
                .collect();
            prop_assert!(tiles(&made, frames), "{made:?}");
            prop_assert!(made.iter().all(|part| part.end - part.start <= longest));
            prop_assert!(tiles(&elements(frames, at_most(longest)), frames));
            cuts.sort_unstable();
            let parts = segments(frames, &cuts, shortest, at_most(longest));
            prop_assert!(tiles(&parts, frames), "{parts:?}");
            prop_assert!(parts.iter().all(|part| part.end - part.start <= longest));
        }
    }
}

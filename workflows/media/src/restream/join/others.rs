//! The streams beside the picture, packet by packet.

use std::path::Path;

use ffmpeg_next as av;
use ffmpeg_next::ffi;
use ffmpeg_next::format::context::{Input, Output};

use super::{Container, copies, failed, open};
use crate::MediaError;

/// Reads the packets of a source that are copied.
pub(super) struct Others {
    pub(super) input: Input,
    pub(super) kept: Vec<usize>,
    /// Place in the new file, by index in the source.
    rows: Vec<Option<usize>>,
    video: usize,
    /// When the file begins, for containers whose clock starts anywhere.
    pub(super) start_micros: i64,
    waiting: Option<av::Packet>,
    /// First tick past each stream, where the file's index says it.
    ends: Vec<Option<i64>>,
    /// Last decoding time written, by place in the new file.
    last: Vec<Option<i64>>,
    moved: u64,
}

impl Others {
    pub(super) fn open(
        path: &Path,
        video: usize,
        container: Container,
    ) -> Result<Self, MediaError> {
        let opened = open::open(path)?;
        let (mut input, outline) = (opened.input, opened.outline);
        let is_whole = outline.is_mp4 && !outline.is_fragmented && outline.cut.is_none();
        let ends = input
            .streams()
            .map(|stream| {
                let (start, length) = (stream.start_time(), stream.duration());
                let is_told = is_whole && start != ffi::AV_NOPTS_VALUE && length > 0;
                is_told.then(|| start.saturating_add(length))
            })
            .collect();
        let kept = copies::plan(&input, video, container, path)?.kept;
        for (index, mut stream) in input.streams_mut().enumerate() {
            if index == video || !kept.contains(&index) {
                // SAFETY: the stream is alive while the input is borrowed; the field is a plain
                // integer that the demuxer reads for each packet.
                unsafe { (*stream.as_mut_ptr()).discard = av::Discard::All.into() };
            }
        }
        // SAFETY: the context and its format's static description are alive; plain integers.
        let (flags, start) = unsafe {
            let raw = input.as_ptr();
            ((*(*raw).iformat).flags, (*raw).start_time)
        };
        let is_running = flags & ffi::AVFMT_TS_DISCONT != 0 && start != ffi::AV_NOPTS_VALUE;
        Ok(Self {
            input,
            kept,
            rows: Vec::new(),
            video,
            start_micros: if is_running { start } else { 0 },
            waiting: None,
            ends,
            last: Vec::new(),
            moved: 0,
        })
    }

    /// Tell where streams go.
    pub(super) fn aim(&mut self, rows: Vec<Option<usize>>) {
        self.last = vec![None; rows.len()];
        self.rows = rows;
    }

    pub(super) fn row(&self, index: usize) -> Option<usize> {
        self.rows.get(index).copied().flatten()
    }

    /// What is taken off a stream's times, in its ticks.
    pub(super) fn shift(&self, index: usize) -> i64 {
        use av::Rescale as _;
        let micros = av::Rational::new(1, 1_000_000);
        self.input.stream(index).map_or(0, |stream| {
            self.start_micros.rescale(micros, stream.time_base())
        })
    }

    fn next(&mut self) -> Option<av::Packet> {
        loop {
            let packet = match self.waiting.take() {
                Some(packet) => packet,
                None => open::next_packet(&mut self.input)?,
            };
            let index = packet.stream();
            if index != self.video && self.row(index).is_some() {
                return Some(packet);
            }
        }
    }

    /// Write what comes before a time, or all that is left.
    pub(super) fn write_until(
        &mut self,
        output: &mut Output,
        until: Option<(i64, av::Rational)>,
    ) -> Result<(), MediaError> {
        while let Some(mut packet) = self.next() {
            let index = packet.stream();
            let Some(base) = self.input.stream(index).map(|stream| stream.time_base()) else {
                continue;
            };
            if packet.dts().is_none() {
                packet.set_dts(packet.pts());
            }
            if let (Some((until, until_base)), Some(dts)) = (until, packet.dts()) {
                // SAFETY: plain numbers.
                let order =
                    unsafe { ffi::av_compare_ts(dts, base.into(), until, until_base.into()) };
                if order > 0 {
                    self.waiting = Some(packet);
                    return Ok(());
                }
            }
            let (Some(row), shift) = (self.row(index), self.shift(index)) else {
                continue;
            };
            // What an edit list cuts off the last packet stays cut off.
            if let (Some(end), Some(pts)) = (self.ends.get(index).copied().flatten(), packet.pts())
                && (pts.saturating_add(1)..pts.saturating_add(packet.duration())).contains(&end)
            {
                packet.set_duration(end - pts);
            }
            let moved = |time: Option<i64>| time.map(|time| time.saturating_sub(shift));
            packet.set_pts(moved(packet.pts()));
            packet.set_dts(moved(packet.dts()));
            let target = output.stream(row).map_or(base, |stream| stream.time_base());
            packet.rescale_ts(base, target);
            self.keep_rising(&mut packet, row);
            write(output, packet, row, target)?;
        }
        Ok(())
    }

    /// Muxers refuse times that do not rise; damaged files have them.
    fn keep_rising(&mut self, packet: &mut av::Packet, row: usize) {
        let (Some(dts), Some(last)) = (packet.dts(), self.last.get_mut(row)) else {
            return;
        };
        let dts = match *last {
            Some(last) if dts <= last => {
                self.moved += 1;
                let dts = last + 1;
                packet.set_dts(Some(dts));
                packet.set_pts(packet.pts().map(|pts| pts.max(dts)));
                dts
            }
            _ => dts,
        };
        *last = Some(dts);
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let count = self.moved;
        (count > 0)
            .then(|| {
                format!("{count} packets of sound or subtitles had times that did not rise: moved")
            })
            .into_iter()
            .collect()
    }
}

/// Write a packet whose times are in `base` to the stream at `row`.
pub(super) fn write(
    output: &mut Output,
    mut packet: av::Packet,
    row: usize,
    base: av::Rational,
) -> Result<(), MediaError> {
    if let Some(stream) = output.stream(row) {
        packet.rescale_ts(base, stream.time_base());
    }
    packet.set_stream(row);
    packet.set_position(-1);
    packet
        .write_interleaved(output)
        .map_err(failed("write to the video file"))
}

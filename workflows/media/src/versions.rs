//! Which codec libraries this program runs with.

use std::ffi::CStr;

/// FFmpeg's version and configuration and its codec library's version. Part of every key behind
/// which a codec runs: another library may give other bytes.
pub fn codec_versions() -> String {
    // SAFETY: `av_version_info` returns a static NUL-terminated string and needs no set-up.
    let info = unsafe { CStr::from_ptr(ffmpeg_next::ffi::av_version_info()) };
    let codec = ffmpeg_next::codec::version();
    format!("ffmpeg {}, libavcodec {codec}", info.to_string_lossy())
}

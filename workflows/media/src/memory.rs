//! How freed memory goes back to the system.

/// Have the system's allocator give large blocks back as soon as they are freed.
///
/// Pictures and frames are blocks of megabytes that live as long as a shot. The GNU allocator
/// would, once such a block was freed, take later ones from its heaps, one for each thread, where
/// they leave holes: a film's peak then grew with the number of its shots, by half from ten shots
/// to forty. Other allocators need nothing of the kind. To be called when a program starts; it
/// holds for the whole process, and calling it again does no harm.
pub fn return_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        use std::ffi::c_int;

        // SAFETY: as in malloc.h of the GNU C library, which this target links; it may be called
        // at any time from any thread.
        unsafe extern "C" {
            safe fn mallopt(parameter: c_int, value: c_int) -> c_int;
        }
        const M_MMAP_THRESHOLD: c_int = -3;
        // What the allocator starts with; set by hand, it stays.
        const THRESHOLD_BYTES: c_int = 128 * 1024;
        // A refusal costs memory, nothing else.
        let _set = mallopt(M_MMAP_THRESHOLD, THRESHOLD_BYTES);
    }
}

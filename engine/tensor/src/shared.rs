//! One output that several threads write, each its own parts.

use std::marker::PhantomData;
use std::ops::Range;

/// A slice whose disjoint parts are handed to different threads.
pub(crate) struct SharedSlice<'a, T> {
    start: *mut T,
    len: usize,
    borrowed: PhantomData<&'a mut [T]>,
}

// SAFETY: parts are only handed out by `part`, whose caller promises that they are disjoint.
unsafe impl<T: Send> Send for SharedSlice<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for SharedSlice<'_, T> {}

impl<'a, T> SharedSlice<'a, T> {
    pub(crate) fn new(slice: &'a mut [T]) -> Self {
        Self {
            start: slice.as_mut_ptr(),
            len: slice.len(),
            borrowed: PhantomData,
        }
    }

    /// The part `range`.
    ///
    /// # Safety
    /// No other live part overlaps `range`.
    ///
    /// # Panics
    /// When `range` reaches outside.
    #[expect(clippy::mut_from_ref, reason = "the caller keeps parts disjoint")]
    pub(crate) unsafe fn part(&self, range: Range<usize>) -> &mut [T] {
        assert!(
            range.start <= range.end && range.end <= self.len,
            "part inside"
        );
        // SAFETY: inside the borrowed slice by the check above; alone by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }
}

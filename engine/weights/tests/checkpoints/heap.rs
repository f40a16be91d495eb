//! Counts what each thread has allocated.
#![expect(unsafe_code, reason = "a global allocator is unsafe by nature")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counted;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // A thread that ends may free after its locals are gone; nobody measures it then.
    LIVE.try_with(|live| {
        live.set(live.get() + bytes);
        PEAK.with(|peak| peak.set(peak.get().max(live.get())));
    })
    .unwrap_or(());
}

// SAFETY: every call goes to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, new: usize) -> *mut u8 {
        // Old and new may live side by side while bytes move.
        count(new.cast_signed());
        count(-layout.size().cast_signed());
        // SAFETY: as the caller promises.
        unsafe { System.realloc(at, layout, new) }
    }
}

#[global_allocator]
static COUNTED: Counted = Counted;

/// What `work` gives, and the most bytes this thread held at once during it beyond before.
pub(crate) fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.get();
    PEAK.set(before);
    let given = work();
    (given, (PEAK.get() - before).cast_unsigned())
}

#[test]
fn the_counter_counts() {
    let (kept, peak) = peak_of(|| {
        drop(std::hint::black_box(vec![1u8; 5000]));
        std::hint::black_box(vec![1u8; 300])
    });
    assert_eq!(kept.len(), 300);
    assert!((5000..6000).contains(&peak), "{peak}");
}

//! Draws keyed by seed and place, so that one draw more never moves another.

/// A stream of draws.
pub(crate) struct Draw {
    state: u64,
}

impl Draw {
    /// The stream of `seed` for what `place` names.
    pub(crate) fn new(seed: u64, place: &str) -> Self {
        let mut state = seed ^ 0xcbf2_9ce4_8422_2325;
        for byte in place.bytes() {
            state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        let mut draw = Self { state };
        draw.next();
        draw
    }

    /// The next number, by the steps of SplitMix64.
    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number under `count`, which is at least 1.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        (self.next() % count.max(1) as u64) as usize
    }

    /// `count` different ones of `items`, in their order.
    pub(crate) fn some<'i, T: ?Sized>(&mut self, items: &[&'i T], count: usize) -> Vec<&'i T> {
        let mut order: Vec<usize> = (0..items.len()).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, self.below(at + 1));
        }
        order.truncate(count);
        order.sort_unstable();
        order.into_iter().map(|at| items[at]).collect()
    }
}

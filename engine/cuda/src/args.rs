//! Arguments of a launch, as the driver takes them.

use std::ffi::c_void;

/// Values in 8-byte places, each at the start of its own: little endian hosts only, as all of CUDA's are.
#[derive(Debug, Default)]
pub(crate) struct Args {
    places: Vec<u64>,
    /// Where each argument begins.
    starts: Vec<usize>,
}

/// A value that a kernel takes.
pub(crate) trait Arg: Copy {
    fn place(self) -> u64;
}

impl Arg for u64 {
    fn place(self) -> u64 {
        self
    }
}
impl Arg for u32 {
    fn place(self) -> u64 {
        u64::from(self)
    }
}
impl Arg for i32 {
    fn place(self) -> u64 {
        u64::from(self.cast_unsigned())
    }
}
impl Arg for f32 {
    fn place(self) -> u64 {
        u64::from(self.to_bits())
    }
}

impl Args {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn with(mut self, value: impl Arg) -> Self {
        self.starts.push(self.places.len());
        self.places.push(value.place());
        self
    }

    /// A parameter that is a struct, given as its fields in 8-byte places (two 4-byte fields share one).
    pub(crate) fn with_struct(mut self, places: &[u64]) -> Self {
        self.starts.push(self.places.len());
        self.places.extend_from_slice(places);
        self
    }

    pub(crate) fn pointers(&mut self) -> Vec<*mut c_void> {
        let base = self.places.as_mut_ptr();
        self.starts
            .iter()
            .map(|start| base.wrapping_add(*start).cast::<c_void>())
            .collect()
    }
}

/// Two 4-byte fields that follow each other.
pub(crate) fn pair(first: impl Arg, second: impl Arg) -> u64 {
    (first.place() & 0xffff_ffff) | (second.place() << 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_as_a_c_struct_has_them() {
        assert_eq!(pair(1i32, -1i32), 0xffff_ffff_0000_0001);
        assert_eq!(pair(1.0f32, 2u32), 0x0000_0002_3f80_0000);
        let mut args = Args::new().with(7u64).with_struct(&[1, 2]).with(3u32);
        assert_eq!(args.starts, [0, 1, 3]);
        assert_eq!(args.pointers().len(), 3);
    }
}

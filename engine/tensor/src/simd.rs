//! Which vector instructions this machine has.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Level {
    Plain,
    #[cfg(target_arch = "aarch64")]
    Neon,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// A set of vector instructions that this machine was found to have.
///
/// Values exist only for what was detected, which is what makes the fast paths sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Simd(Level);

impl Simd {
    /// No vector instructions beyond the target's own.
    pub const PLAIN: Self = Self(Level::Plain);

    /// All that this machine has, least first.
    pub fn available() -> Vec<Self> {
        let mut found = vec![Self::PLAIN];
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            found.push(Self(Level::Neon));
        }
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
        {
            found.push(Self(Level::Avx2));
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vnni")
            {
                found.push(Self(Level::Avx512));
            }
        }
        found
    }

    /// The quickest that this machine has.
    pub fn best() -> Self {
        Self::available().pop().unwrap_or(Self::PLAIN)
    }

    pub(crate) fn level(self) -> Level {
        self.0
    }
}

impl fmt::Display for Simd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Level::Plain => "plain",
            #[cfg(target_arch = "aarch64")]
            Level::Neon => "neon",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => "avx512-vnni",
        })
    }
}

/// Defines a function that runs `$body`, an `#[inline(always)]` function, compiled for the
/// instruction set given as first argument: generic over [`Lanes`](crate::lanes::Lanes), or, with
/// `loops`, plain loops that the compiler turns into vector code.
macro_rules! by_simd {
    ($(#[$doc:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) = loops $body:ident;) => {
        $(#[$doc])*
        $vis fn $name(simd: $crate::simd::Simd, $($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")]
            fn avx512($($arg: $ty),*) {
                $body($($arg),*);
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c")]
            fn avx2($($arg: $ty),*) {
                $body($($arg),*);
            }
            match simd.level() {
                $crate::simd::Level::Plain => $body($($arg),*),
                #[cfg(target_arch = "aarch64")]
                $crate::simd::Level::Neon => $body($($arg),*),
                // SAFETY: this level exists only where `Simd::available` found the features.
                #[cfg(target_arch = "x86_64")]
                $crate::simd::Level::Avx2 => unsafe { avx2($($arg),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                $crate::simd::Level::Avx512 => unsafe { avx512($($arg),*) },
            }
        }
    };
    ($(#[$doc:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) = $body:ident;) => {
        $(#[$doc])*
        $vis fn $name(simd: $crate::simd::Simd, $($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")]
            fn avx512($($arg: $ty),*) {
                $body::<$crate::lanes::Avx512>($($arg),*);
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c")]
            fn avx2($($arg: $ty),*) {
                $body::<$crate::lanes::Avx2>($($arg),*);
            }
            match simd.level() {
                $crate::simd::Level::Plain => $body::<$crate::lanes::Plain>($($arg),*),
                #[cfg(target_arch = "aarch64")]
                $crate::simd::Level::Neon => $body::<$crate::lanes::Neon>($($arg),*),
                // SAFETY: this level exists only where `Simd::available` found the features.
                #[cfg(target_arch = "x86_64")]
                $crate::simd::Level::Avx2 => unsafe { avx2($($arg),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                $crate::simd::Level::Avx512 => unsafe { avx512($($arg),*) },
            }
        }
    };
}
pub(crate) use by_simd;

//! Cooperative cancellation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The error of work that was asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cancelled")]
pub struct Cancelled;

#[derive(Debug, Default)]
struct Flag {
    raised: AtomicBool,
    parent: Option<Arc<Flag>>,
}

/// Asks work to stop. Clones share the request; a child also stops when its parent does.
/// Work checks it at least ten times a second.
#[derive(Debug, Clone, Default)]
pub struct CancelToken {
    flag: Arc<Flag>,
}

impl CancelToken {
    /// A token nobody has raised.
    pub fn new() -> Self {
        Self::default()
    }

    /// A token that stops with this one, or alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self {
            flag: Arc::new(Flag {
                raised: AtomicBool::new(false),
                parent: Some(Arc::clone(&self.flag)),
            }),
        }
    }

    /// Ask to stop. Cannot be taken back.
    pub fn cancel(&self) {
        self.flag.raised.store(true, Ordering::Release);
    }

    /// Whether a stop was asked for.
    pub fn is_cancelled(&self) -> bool {
        let mut flag = Some(&self.flag);
        while let Some(current) = flag {
            if current.raised.load(Ordering::Acquire) {
                return true;
            }
            flag = current.parent.as_ref();
        }
        false
    }

    /// `Err` once a stop was asked for: `token.check()?` between units of work.
    ///
    /// # Errors
    /// [`Cancelled`].
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.is_cancelled() {
            Err(Cancelled)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn child_stops_with_parent_but_not_the_other_way() {
        let parent = CancelToken::new();
        let (first, second) = (parent.child(), parent.child());
        first.cancel();
        assert_eq!(first.check(), Err(Cancelled));
        assert!(parent.check().is_ok() && second.check().is_ok());
        parent.cancel();
        assert!(second.is_cancelled());
    }
}

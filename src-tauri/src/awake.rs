//! Holds off the machine's sleep.

/// While it lives, the machine does not fall asleep by itself; its screen may.
pub(crate) struct Awake {
    _held: Option<keepawake::KeepAwake>,
}

impl std::fmt::Debug for Awake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Awake").finish_non_exhaustive()
    }
}

impl Awake {
    /// Ask the system. Where it offers no way (no session bus), work goes on without.
    pub(crate) fn hold() -> Self {
        let held = keepawake::Builder::default()
            .idle(true)
            .sleep(true)
            .display(false)
            .reason("making a film")
            .app_name("Longtake")
            .app_reverse_domain("studio.longtake.desktop")
            .create();
        Self { _held: held.ok() }
    }
}

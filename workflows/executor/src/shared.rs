//! What the threads of a run share, and how they wake each other.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine_base::{CancelToken, Clock};
use flow_graph::{Lane, Registry};
use flow_store::{CommitMark, Store};

use crate::artifacts::StoreArtifacts;
use crate::board::Board;
use crate::elsewhere::Far;
use crate::keys::SideData;
use crate::limits::Limits;
use crate::observe::RunObserver;
use crate::queue::{Job, PerRole, Role};

/// The state of a run and of its threads, under one lock.
pub(crate) struct Guarded {
    pub(crate) board: Board,
    sleepers: PerRole,
    /// Threads at work.
    pub(crate) running: usize,
    /// Results on their way to the store.
    pub(crate) commits: usize,
    /// Nothing new is begun.
    pub(crate) stopping: bool,
    /// All is done; threads end.
    pub(crate) over: bool,
    /// A fault of the executor itself.
    pub(crate) broken: Option<String>,
    /// Threads of the waiting lane.
    pub(crate) wait_threads: usize,
}

pub(crate) struct Shared {
    guarded: Mutex<Guarded>,
    work: [Condvar; 4],
    pub(crate) ended: Condvar,
    pub(crate) registry: Arc<Registry>,
    pub(crate) store: Store,
    pub(crate) artifacts: StoreArtifacts,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) side_data: Arc<SideData>,
    pub(crate) observer: Arc<dyn RunObserver>,
    pub(crate) cancel: CancelToken,
    pub(crate) limits: Limits,
    pub(crate) elsewhere: Far,
    /// Where the store's commits stood when the run began.
    pub(crate) mark: CommitMark,
}

/// Everything but the state that a run is begun with.
pub(crate) struct Setting {
    pub(crate) registry: Arc<Registry>,
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) side_data: Arc<SideData>,
    pub(crate) observer: Arc<dyn RunObserver>,
    pub(crate) cancel: CancelToken,
    pub(crate) limits: Limits,
    pub(crate) elsewhere: Far,
    pub(crate) mark: CommitMark,
}

impl Shared {
    /// A thread without work looks again after this long, whatever happens.
    const NAP: Duration = Duration::from_millis(200);

    pub(crate) fn new(board: Board, setting: Setting) -> Self {
        Self {
            guarded: Mutex::new(Guarded {
                board,
                sleepers: PerRole::default(),
                running: 0,
                commits: 0,
                stopping: false,
                over: false,
                broken: None,
                wait_threads: 0,
            }),
            work: Default::default(),
            ended: Condvar::new(),
            artifacts: StoreArtifacts::new(setting.store.clone()),
            registry: setting.registry,
            store: setting.store,
            clock: setting.clock,
            side_data: setting.side_data,
            observer: setting.observer,
            cancel: setting.cancel,
            limits: setting.limits,
            elsewhere: setting.elsewhere,
            mark: setting.mark,
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Guarded> {
        self.guarded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Change the state, then wake who has work and tell what happened. `own` is the role of the
    /// calling thread when it will look for work itself right after.
    pub(crate) fn update<R>(&self, own: Option<Role>, change: impl FnOnce(&mut Guarded) -> R) -> R {
        let mut guarded = self.lock();
        let result = change(&mut guarded);
        let events = std::mem::take(&mut guarded.board.events);
        let wakes = guarded.wakes(own);
        let over = guarded.over;
        drop(guarded);
        for (condvar, count) in self.work.iter().zip(wakes) {
            if over {
                condvar.notify_all();
            } else {
                (0..count).for_each(|_| condvar.notify_one());
            }
        }
        if over {
            self.ended.notify_all();
        }
        for event in &events {
            self.observer.event(event);
        }
        result
    }

    /// The next piece of work for a thread of this role; `None` when it is to end.
    pub(crate) fn next_job(&self, role: Role) -> Option<Job> {
        let mut guarded = self.lock();
        loop {
            if guarded.over || guarded.stopping {
                return None;
            }
            if let Some(job) = guarded.board.queues.take(role) {
                guarded.running += 1;
                return Some(job);
            }
            guarded.sleepers.add(role);
            let (woken, _timeout) = self.work[PerRole::of(role)]
                .wait_timeout(guarded, Self::NAP)
                .unwrap_or_else(PoisonError::into_inner);
            guarded = woken;
            guarded.sleepers.sub(role);
        }
    }

    /// How many more threads of the waiting lane there should be; they are counted as there.
    pub(crate) fn wait_threads_wanted(&self) -> usize {
        let mut guarded = self.lock();
        let role = Role::Lane(Lane::Wait);
        let waiting = guarded.board.queues.waiting(role);
        let idle = guarded.sleepers.get(role);
        let room = self.limits.waiting.saturating_sub(guarded.wait_threads);
        let wanted = waiting.saturating_sub(idle).min(room);
        guarded.wait_threads += wanted;
        wanted
    }
}

impl Guarded {
    /// How many threads of each role to wake. The calling thread takes one piece itself; the
    /// preparing thread is woken only for what no processor worker is free to take.
    fn wakes(&self, own: Option<Role>) -> [usize; 4] {
        let mut wakes = [0; 4];
        if self.board.queues.is_empty() {
            return wakes;
        }
        let cpu = Role::Lane(Lane::Cpu);
        for lane in [Lane::Cpu, Lane::Wait, Lane::Device] {
            let role = Role::Lane(lane);
            let taken = usize::from(own == Some(role));
            let waiting = self.board.queues.waiting(role).saturating_sub(taken);
            wakes[PerRole::of(role)] = waiting.min(self.sleepers.get(role));
        }
        let taken = usize::from(own == Some(cpu)) + self.sleepers.get(cpu);
        let waiting = self.board.queues.waiting(Role::Prepare);
        wakes[PerRole::of(Role::Prepare)] = waiting
            .saturating_sub(taken)
            .min(self.sleepers.get(Role::Prepare));
        wakes
    }

    /// Whether the run has come to its end, to be looked at whenever a thread has ended a piece
    /// of work.
    pub(crate) fn check_end(&mut self) {
        if self.over || self.running > 0 || self.commits > 0 {
            return;
        }
        if self.stopping || self.board.stopped {
            self.over = true;
        } else if self.board.queues.is_empty() {
            if self.board.open > 0 {
                self.board.break_knot();
            }
            if self.board.queues.is_empty() {
                self.over = true;
                if self.board.open > 0 {
                    let open = self.board.open;
                    self.broken = Some(format!("{open} nodes wait for nothing"));
                }
            }
        }
    }
}

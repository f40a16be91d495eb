//! A small pool of threads for work that lasts microseconds.
//!
//! Decoding a token is some hundred short parallel steps, so threads wait for the next step by
//! spinning for a bounded time before they sleep. One call runs at a time; calls from several
//! threads take turns.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use crate::TensorError;

/// Most threads of a pool.
const MAX_THREADS: usize = 256;

/// How long a thread spins for the next step before it sleeps: longer than the serial work between
/// two steps of a small model, and far shorter than anyone notices.
const SPIN: Duration = Duration::from_micros(200);

type Job<'a> = dyn Fn(usize) + Sync + 'a;

/// One call: how many tasks, and what each does.
#[derive(Clone, Copy)]
struct Call {
    job: *const Job<'static>,
    tasks: usize,
}

// SAFETY: `job` points to a `Sync` closure that outlives the call (see `Threads::run`).
unsafe impl Send for Call {}

/// In `Shared::state`: workers may enter the call.
const OPEN: usize = 1;
/// In `Shared::state`: one worker that has entered.
const ENTERED: usize = 2;
/// In `Shared::state`: one call.
const EPOCH: usize = 1 << 16;
const ENTERED_MASK: usize = EPOCH - 1 - OPEN;

#[derive(Default)]
struct Shared {
    call: Mutex<Option<Call>>,
    /// The number of the call, how many workers are in it, and whether more may enter. A worker
    /// that comes late finds the call closed and is not waited for.
    state: AtomicUsize,
    next_task: AtomicUsize,
    panicked: AtomicBool,
    stop: AtomicBool,
    /// One flag a worker: asleep, or about to be.
    asleep: Vec<AtomicBool>,
}

/// Which processors threads run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Affinity {
    /// Those that the system gives them.
    #[default]
    Free,
    /// Each on one of its own, of those that this process may use, in their order; the first one
    /// is left to the thread that calls. Linux only. Results do not depend on it.
    Pinned,
}

/// Threads that wait for work.
pub struct Threads {
    shared: Arc<Shared>,
    workers: Vec<Thread>,
    handles: Vec<JoinHandle<()>>,
    turn: Mutex<()>,
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Threads({})", self.count())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Threads {
    /// `count` threads, the caller's among them; 0 asks for one per processor.
    ///
    /// # Errors
    /// `Threads` when the system gives none, or for more than 256.
    pub fn new(count: usize) -> Result<Self, TensorError> {
        Self::with_affinity(count, Affinity::Free)
    }

    /// The same with a say in which processors they run on.
    ///
    /// # Errors
    /// As [`Threads::new`]; with [`Affinity::Pinned`] also for more threads than processors that
    /// this process may use, and on systems where threads cannot be pinned.
    pub fn with_affinity(count: usize, affinity: Affinity) -> Result<Self, TensorError> {
        let count = match count {
            0 => thread::available_parallelism()
                .map_or(1, usize::from)
                .min(MAX_THREADS),
            count => count,
        };
        let failed = |reason: String| TensorError::Threads {
            threads: count,
            reason,
        };
        if count > MAX_THREADS {
            return Err(failed(format!("expected at most {MAX_THREADS}")));
        }
        let places = match affinity {
            Affinity::Free => Vec::new(),
            Affinity::Pinned => pinning::places(count).map_err(&failed)?,
        };
        let (told, pinned) = mpsc::sync_channel(count);
        let shared = Arc::new(Shared {
            asleep: (1..count).map(|_| AtomicBool::new(false)).collect(),
            ..Shared::default()
        });
        let mut threads = Self {
            shared: Arc::clone(&shared),
            workers: Vec::new(),
            handles: Vec::new(),
            turn: Mutex::new(()),
        };
        for index in 0..count - 1 {
            let shared = Arc::clone(&shared);
            // The first processor is left to the caller's thread, which is not this pool's to pin.
            let place = places.get(index + 1).copied();
            let told = told.clone();
            let start = move || {
                let done = place.map_or(Ok(()), pinning::pin);
                // The pool waits for this; without it the thread is of no use.
                if told.send(done).is_ok() {
                    work(&shared, index);
                }
            };
            let handle = thread::Builder::new()
                .name(format!("tensor-{}", index + 1))
                .spawn(start)
                .map_err(|error| failed(error.to_string()))?;
            threads.workers.push(handle.thread().clone());
            threads.handles.push(handle);
        }
        for done in pinned.iter().take(count - 1) {
            done.map_err(&failed)?;
        }
        Ok(threads)
    }

    /// Threads that work together, the caller's among them.
    pub fn count(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs `job(0)` to `job(tasks - 1)`, each once, in any order and on any thread, and returns
    /// when all are done. Results must not depend on which thread ran what.
    ///
    /// # Panics
    /// When a task did. A task must not call `run` of the same pool.
    pub fn run(&self, tasks: usize, job: &(dyn Fn(usize) + Sync)) {
        if tasks <= 1 || self.workers.is_empty() {
            for task in 0..tasks {
                job(task);
            }
            return;
        }
        let turn = locked(&self.turn);
        let shared = &*self.shared;
        // SAFETY: only the lifetime changes. Workers call `job` only while they are counted in
        // `state`, and this function neither returns nor unwinds before the call is closed and
        // none is counted.
        let job_static: *const Job<'static> =
            unsafe { std::mem::transmute::<*const Job<'_>, *const Job<'static>>(job) };
        *locked(&shared.call) = Some(Call {
            job: job_static,
            tasks,
        });
        shared.next_task.store(0, Ordering::Relaxed);
        let epoch = shared.state.load(Ordering::Relaxed) / EPOCH;
        let opened = epoch.wrapping_add(1).wrapping_mul(EPOCH) | OPEN;
        shared.state.store(opened, Ordering::SeqCst);
        for (asleep, worker) in shared.asleep.iter().zip(&self.workers) {
            if asleep.load(Ordering::SeqCst) {
                worker.unpark();
            }
        }
        let own = catch_unwind(AssertUnwindSafe(|| take_tasks(shared, tasks, job)));
        shared.state.fetch_and(!OPEN, Ordering::AcqRel);
        let mut spins = 0u32;
        while shared.state.load(Ordering::Acquire) & ENTERED_MASK != 0 {
            spins += 1;
            if spins.is_multiple_of(4096) {
                thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
        *locked(&shared.call) = None;
        let panicked = shared.panicked.swap(false, Ordering::AcqRel);
        drop(turn);
        if let Err(panic) = own {
            resume_unwind(panic);
        }
        assert!(!panicked, "a task on another thread panicked");
    }
}

#[cfg(target_os = "linux")]
mod pinning {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    /// Processors for `count` threads.
    pub(super) fn places(count: usize) -> Result<Vec<usize>, String> {
        let set = sched_getaffinity(None)
            .map_err(|error| format!("cannot tell the processors of this process: {error}"))?;
        let places: Vec<usize> = (0..CpuSet::MAX_CPU)
            .filter(|&cpu| set.is_set(cpu))
            .collect();
        if places.len() < count {
            let there = places.len();
            return Err(format!(
                "cannot pin them: this process may use {there} processors, one for each thread is \
                 needed"
            ));
        }
        Ok(places)
    }

    /// Keep the thread that calls on one processor.
    pub(super) fn pin(cpu: usize) -> Result<(), String> {
        let mut set = CpuSet::new();
        set.set(cpu);
        sched_setaffinity(None, &set)
            .map_err(|error| format!("cannot pin a thread to processor {cpu}: {error}"))
    }
}

#[cfg(not(target_os = "linux"))]
mod pinning {
    /// There is nothing to pin threads with.
    pub(super) fn places(_count: usize) -> Result<Vec<usize>, String> {
        Err("cannot pin them: this system has no way to, leave pinning out".to_owned())
    }

    /// Never called: there are no places.
    pub(super) fn pin(_cpu: usize) -> Result<(), String> {
        Ok(())
    }
}

fn take_tasks(shared: &Shared, tasks: usize, job: &(dyn Fn(usize) + Sync)) {
    loop {
        let task = shared.next_task.fetch_add(1, Ordering::Relaxed);
        if task >= tasks {
            return;
        }
        job(task);
    }
}

/// Tries to enter a call newer than `seen`; `seen` becomes the newest call known.
fn enter(shared: &Shared, seen: &mut usize) -> bool {
    let mut state = shared.state.load(Ordering::SeqCst);
    while state / EPOCH != *seen {
        if state & OPEN == 0 {
            *seen = state / EPOCH;
            return false;
        }
        match shared.state.compare_exchange_weak(
            state,
            state + ENTERED,
            Ordering::AcqRel,
            Ordering::SeqCst,
        ) {
            Ok(_) => {
                *seen = state / EPOCH;
                return true;
            }
            Err(now) => state = now,
        }
    }
    false
}

/// Waits for a call and enters it, spinning first, then asleep; `false` when the pool ends.
fn wait(shared: &Shared, index: usize, seen: &mut usize) -> bool {
    let started = Instant::now();
    let mut spins = 0u32;
    loop {
        if enter(shared, seen) {
            return true;
        }
        if shared.stop.load(Ordering::Acquire) {
            return false;
        }
        std::hint::spin_loop();
        spins += 1;
        if spins.is_multiple_of(64) && started.elapsed() > SPIN {
            break;
        }
    }
    let asleep = &shared.asleep[index];
    asleep.store(true, Ordering::SeqCst);
    loop {
        if enter(shared, seen) {
            asleep.store(false, Ordering::SeqCst);
            return true;
        }
        if shared.stop.load(Ordering::SeqCst) {
            return false;
        }
        thread::park();
    }
}

fn work(shared: &Shared, index: usize) {
    let mut seen = 0;
    while wait(shared, index, &mut seen) {
        let call = *locked(&shared.call);
        if let Some(Call { job, tasks }) = call {
            // SAFETY: this thread has entered the call, so `run` keeps the closure alive.
            let job = unsafe { &*job };
            if catch_unwind(AssertUnwindSafe(|| take_tasks(shared, tasks, job))).is_err() {
                shared.panicked.store(true, Ordering::Release);
            }
        }
        shared.state.fetch_sub(ENTERED, Ordering::Release);
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        for worker in &self.workers {
            worker.unpark();
        }
        for handle in self.handles.drain(..) {
            // Workers catch the panics of tasks, so a failed join has nothing left to say.
            drop(handle.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_task_runs_once_on_any_number_of_threads() {
        for count in [1, 2, 3, 7] {
            let threads = Threads::new(count).unwrap();
            for round in 0..200 {
                let tasks = round % 23;
                let hits: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
                threads.run(tasks, &|task| {
                    hits[task].fetch_add(1, Ordering::Relaxed);
                });
                assert!(hits.iter().all(|hit| hit.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    fn sleeping_threads_wake_and_several_callers_take_turns() {
        let threads = Threads::new(2).unwrap();
        let sum = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let add = |task: usize| {
                        sum.fetch_add(task, Ordering::Relaxed);
                    };
                    for _ in 0..5 {
                        thread::sleep(Duration::from_millis(2));
                        threads.run(10, &add);
                    }
                });
            }
        });
        assert_eq!(sum.load(Ordering::Relaxed), 3 * 5 * 45);
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_goes_on() {
        let threads = Threads::new(3).unwrap();
        let failed = catch_unwind(AssertUnwindSafe(|| {
            threads.run(50, &|task| assert!(task != 31, "task 31"));
        }));
        assert!(failed.is_err());
        let ran = AtomicUsize::new(0);
        threads.run(9, &|_| {
            ran.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(ran.load(Ordering::Relaxed), 9);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn pinned_threads_stay_on_their_processors_and_give_the_same() {
        use rustix::thread::sched_getaffinity;

        let mine = sched_getaffinity(None).unwrap();
        let count = mine.count().min(4) as usize;
        let pinned = Threads::with_affinity(count, Affinity::Pinned).unwrap();
        let free = Threads::new(count).unwrap();
        let of_caller = thread::current().id();
        let sums = |threads: &Threads, seen: &Mutex<Vec<(thread::ThreadId, u32)>>| {
            let cells: Vec<AtomicUsize> = (0..64).map(|_| AtomicUsize::new(0)).collect();
            threads.run(64, &|task| {
                // Long enough that each thread gets a task.
                thread::sleep(Duration::from_micros(300));
                cells[task].store(task * task, Ordering::Relaxed);
                let affinity = sched_getaffinity(None).unwrap();
                locked(seen).push((thread::current().id(), affinity.count()));
            });
            let values = cells.iter().map(|cell| cell.load(Ordering::Relaxed));
            values.collect::<Vec<_>>()
        };
        let (seen_pinned, seen_free) = (Mutex::default(), Mutex::default());
        assert_eq!(sums(&pinned, &seen_pinned), sums(&free, &seen_free));
        let seen = locked(&seen_pinned);
        let workers = seen.iter().filter(|(id, _)| *id != of_caller);
        assert!(
            workers.clone().all(|(_, processors)| *processors == 1),
            "{seen:?}"
        );
        assert!(count == 1 || workers.count() > 0, "{seen:?}");
        assert_eq!(
            sched_getaffinity(None).unwrap(),
            mine,
            "the caller's own is left alone"
        );

        let refused = Threads::with_affinity(mine.count() as usize + 1, Affinity::Pinned);
        let says = refused.unwrap_err().to_string();
        assert!(
            says.contains("may use") && says.contains("processors"),
            "{says}"
        );
    }

    #[test]
    fn absurd_counts_are_refused() {
        assert!(Threads::new(100_000).is_err());
        assert!(Threads::new(0).unwrap().count() >= 1);
    }
}

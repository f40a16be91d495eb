//! A run from its beginning to its report.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use engine_base::SecondsLeft;
use flow_graph::Lane;

use crate::board::Board;
use crate::commit::{Pending, await_commits};
use crate::error::RunError;
use crate::observe::RunEvent;
use crate::perform::{Worker, panic_text};
use crate::queue::Role;
use crate::report::{RunEnd, RunReport};
use crate::shared::{Setting, Shared};

/// How often the run looks whether it was asked to stop, and tells how far it has come.
const TICK: Duration = Duration::from_millis(50);
/// After a request to stop, calls that do not listen are left behind after this many ticks.
const GRACE_TICKS: u32 = 14;
/// Results on their way to the store at a time.
const COMMITS: usize = 1024;

/// Run what is on `board` to its end.
pub(crate) fn run(board: Board, setting: Setting) -> Result<RunReport, RunError> {
    let start = setting.clock.monotonic();
    let shared = Arc::new(Shared::new(board, setting));
    let (sender, receiver) = sync_channel::<Pending>(COMMITS);
    let committing = {
        let shared = Arc::clone(&shared);
        spawn("flow-commits".to_owned(), move || {
            watched(&shared, || await_commits(&shared, &receiver));
        })?
    };
    let mut threads = Vec::new();
    let begun = begin_threads(&shared, &sender, &mut threads);
    drop(sender);
    if let Err(error) = begun {
        shared.update(None, |guarded| guarded.over = true);
        return Err(error);
    }
    let abandoned = oversee(&shared);
    let broken = shared.update(None, |guarded| {
        guarded.over = true;
        guarded.broken.is_some()
    });
    if broken {
        // This run's own token: calls that still run are not waited for longer than they need.
        shared.cancel.cancel();
    }
    if abandoned == 0 {
        for thread in threads.into_iter().chain([committing]) {
            // Panics were caught inside and noted.
            drop(thread.join());
        }
    }
    let mut guarded = shared.lock();
    if let Some(what) = guarded.broken.take() {
        return Err(RunError::Internal(what));
    }
    let cancelled = guarded.board.stopped || guarded.board.open > 0;
    let mut report = *guarded.board.finish();
    drop(guarded);
    if cancelled {
        report.end = RunEnd::Cancelled;
    }
    report.abandoned = abandoned as u64;
    report.wall_secs = shared.clock.monotonic().saturating_sub(start).as_secs_f64();
    Ok(report)
}

fn spawn(name: String, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, RunError> {
    Builder::new()
        .name(name)
        .spawn(body)
        .map_err(|error| RunError::Thread(error.to_string()))
}

fn begin_threads(
    shared: &Arc<Shared>,
    commits: &SyncSender<Pending>,
    threads: &mut Vec<JoinHandle<()>>,
) -> Result<(), RunError> {
    let cpu = (0..shared.limits.workers.max(1)).map(|_| Role::Lane(Lane::Cpu));
    let roles = cpu.chain([Role::Lane(Lane::Device), Role::Prepare]);
    for (number, role) in roles.enumerate() {
        let worker = Worker {
            shared: Arc::clone(shared),
            commits: commits.clone(),
            role,
        };
        let name = match role {
            Role::Lane(Lane::Device) => "flow-device".to_owned(),
            Role::Prepare => "flow-prepare".to_owned(),
            Role::Lane(Lane::Cpu | Lane::Wait) => format!("flow-cpu-{number}"),
        };
        threads.push(spawn(name, move || work(&worker))?);
    }
    Ok(())
}

/// The body of a thread: take work until there will be no more.
fn work(worker: &Worker) {
    let shared = &worker.shared;
    watched(shared, || {
        while let Some(job) = shared.next_job(worker.role) {
            worker.perform(job);
            shared.update(Some(worker.role), |guarded| {
                guarded.running -= 1;
                guarded.check_end();
            });
            more_waiting_threads(worker);
        }
    });
}

/// Threads of the waiting lane come when there is work for them.
fn more_waiting_threads(worker: &Worker) {
    let shared = &worker.shared;
    for _ in 0..shared.wait_threads_wanted() {
        let waiter = Worker {
            shared: Arc::clone(shared),
            commits: worker.commits.clone(),
            role: Role::Lane(Lane::Wait),
        };
        if let Err(error) = spawn("flow-wait".to_owned(), move || work(&waiter)) {
            // The threads that are there go on with the work, unless there is none at all.
            let left = {
                let mut guarded = shared.lock();
                guarded.wait_threads -= 1;
                guarded.wait_threads
            };
            if left == 0 {
                shared.update(None, |guarded| {
                    guarded.broken = Some(error.to_string());
                    guarded.over = true;
                });
            }
        }
    }
}

/// A panic outside of node code is a fault of the executor: the run ends with it.
fn watched(shared: &Shared, body: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
        let said = panic_text(&*panic).to_owned();
        shared.update(None, |guarded| {
            guarded.broken = Some(said);
            guarded.over = true;
        });
    }
}

/// Wait for the end, pass on a request to stop, tell how far the run has come. Gives how many
/// calls were left behind because they did not stop.
fn oversee(shared: &Shared) -> usize {
    let mut left = SecondsLeft::new(0.0);
    let mut told = usize::MAX;
    let mut ticks_stopping = 0;
    // A run that has nothing to do has no thread that would notice.
    shared.update(None, |guarded| guarded.check_end());
    let mut guarded = shared.lock();
    loop {
        if guarded.over {
            return 0;
        }
        if guarded.stopping {
            ticks_stopping += 1;
            if ticks_stopping > GRACE_TICKS && guarded.commits == 0 {
                return guarded.running;
            }
        } else if shared.cancel.is_cancelled() {
            drop(guarded);
            shared.update(None, |guarded| {
                guarded.stopping = true;
                guarded.board.queues.clear();
                guarded.check_end();
            });
            guarded = shared.lock();
            continue;
        }
        let (done, of) = (guarded.board.done, guarded.board.done + guarded.board.open);
        let (work, so_far) = (guarded.board.work, guarded.board.work_so_far());
        drop(guarded);
        left.set_of(work);
        let secs_left = left.update(shared.clock.monotonic(), so_far);
        if done != told || secs_left.is_some() {
            told = done;
            let event = RunEvent::Progress {
                done,
                of,
                secs_left,
            };
            shared.observer.event(&event);
        }
        guarded = shared.lock();
        if guarded.over {
            return 0;
        }
        let (woken, _timeout) = shared
            .ended
            .wait_timeout(guarded, TICK)
            .unwrap_or_else(PoisonError::into_inner);
        guarded = woken;
    }
}

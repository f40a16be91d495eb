//! Waits for results to be durable, in the order in which they went to the store.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use engine_base::Key;
use flow_graph::NodeError;
use flow_store::{Committed, PendingCommit, StoreError};

use crate::artifacts::node_error;
use crate::board::{Fault, How};
use crate::convert::from_stored;
use crate::queue::Place;
use crate::shared::{Guarded, Shared};

/// A result on its way to the store.
pub(crate) struct Pending {
    pub(crate) commit: PendingCommit,
    pub(crate) place: Place,
    pub(crate) key: Key,
    /// Whether dependents have it already.
    pub(crate) landed: bool,
}

/// Wait for every result that comes, until no thread can send one any more.
pub(crate) fn await_commits(shared: &Arc<Shared>, pending: &Receiver<Pending>) {
    for Pending {
        commit,
        place,
        key,
        landed,
    } in pending
    {
        let committed = commit.wait();
        let end = match committed {
            Ok(committed) => Ok(kept(shared, committed)),
            Err(error) => Err(commit_error(&error)),
        };
        shared.update(None, |guarded| {
            settle(guarded, place, key, landed, end);
            guarded.commits -= 1;
            guarded.check_end();
        });
    }
}

/// What the store keeps under a key, and whether this run made it.
struct Kept {
    ports: crate::element::Ports,
    made: bool,
}

fn kept(shared: &Shared, committed: Committed) -> Kept {
    let is_made = committed.is_made();
    let result = committed.into_result();
    let ports = from_stored(&result.ports);
    // A kept result's files may be pruned from here on; they are held like those of a lookup.
    if let Err(error) = shared.artifacts.hold_all([&ports].into_iter()) {
        tracing::warn!(%error, "files of a result in use may be pruned during the run");
    }
    Kept {
        ports,
        made: is_made && result.commit_number > shared.mark.0,
    }
}

fn commit_error(error: &StoreError) -> NodeError {
    let NodeError { code, message } = node_error(error);
    NodeError::new(code, format!("cannot keep the result: {message}"))
}

fn settle(
    guarded: &mut Guarded,
    place: Place,
    key: Key,
    landed: bool,
    end: Result<Kept, NodeError>,
) {
    let board = &mut guarded.board;
    board.committed(&key);
    match end {
        Ok(kept) => {
            if kept.made {
                board.count(|report| report.made += 1);
                board.tally(place.node, |count| count.made += 1);
            } else {
                board.count(|report| report.duplicates += 1);
            }
            if !landed {
                board.land(key, place, Ok(Arc::new(kept.ports)), How::Ran, false);
            }
        }
        Err(error) if landed => board.fail_late(place, &error),
        Err(error) => board.land(key, place, Err(Fault::Error(error)), How::Ran, false),
    }
}

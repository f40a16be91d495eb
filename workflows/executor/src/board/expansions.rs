//! Calls that wait for the graph they gave.

use std::sync::Arc;

use engine_base::{Code, Key};
use flow_graph::NodeError;

use super::{Await, Board, Change, Dependent, Fault, Flight, How, OutputOf, PartOfOutput, Splice};
use crate::element::Ports;
use crate::queue::{Closed, Job, Place};

impl Board {
    /// Put a graph in the place of a call.
    pub(crate) fn expand(&mut self, place: Place, key: Key, splice: Splice) {
        let links = splice.outputs.iter().filter_map(|output| match output {
            OutputOf::Link(node, _) => Some(*node),
            OutputOf::Known(_) => None,
        });
        let linked: Vec<usize> = links.collect();
        let roots = linked.iter().chain(&splice.roots).copied();
        let first = self.add(splice.net, roots.collect::<Vec<_>>(), Some(place));
        self.await_last += 1;
        let id = self.await_last;
        let outputs = splice.outputs.into_iter().map(|output| match output {
            OutputOf::Known(list) => PartOfOutput::Known(list),
            OutputOf::Link(node, output) => PartOfOutput::Link(first + node, output),
        });
        let waiting = Await {
            place,
            key,
            left: linked.len(),
            outputs: outputs.collect(),
            inputs: splice.inputs,
            wall_millis: splice.wall_millis,
        };
        self.awaits.insert(id, waiting);
        for node in &linked {
            let entry = &mut self.entries[first + node];
            entry.consumers += 1;
            entry.dependents.push(Dependent::Expansion(id));
        }
        if linked.is_empty() {
            self.close_expansion(id);
        }
        for node in splice.roots.iter().chain(&linked) {
            self.ask(first + node);
        }
        self.apply();
    }

    pub(super) fn close_expansion(&mut self, id: u64) {
        let Some(done) = self.awaits.remove(&id) else {
            return;
        };
        let mut ports: Ports = Vec::with_capacity(done.outputs.len());
        for output in done.outputs {
            ports.push(match output {
                PartOfOutput::Known(list) => list,
                PartOfOutput::Link(node, output) => {
                    let list = self.entries[node].outputs.as_ref();
                    let list = list.and_then(|ports| ports.get(output)).cloned();
                    self.release(node);
                    list.unwrap_or_default()
                }
            });
        }
        self.queues.push(Job::Close(Box::new(Closed {
            place: done.place,
            key: done.key,
            ports: Arc::new(ports),
            inputs: done.inputs,
            wall_millis: done.wall_millis,
        })));
    }

    pub(super) fn fail_expansion(&mut self, id: u64, fault: &Fault) {
        let Some(failed) = self.awaits.remove(&id) else {
            return;
        };
        for output in &failed.outputs {
            if let PartOfOutput::Link(node, _) = output {
                self.release(*node);
            }
        }
        let flight = self.flights.remove(&failed.key);
        if let Some(Flight::Running { waiters, .. }) = flight {
            for waiter in waiters {
                self.changes
                    .push(Change::Settle(waiter, Err(fault.clone()), How::Shared));
            }
        }
        self.changes
            .push(Change::Settle(failed.place, Err(fault.clone()), How::Ran));
    }

    /// The expansion of `owner` needs its own result: that is `owner`'s fault.
    pub(crate) fn fail_endless(&mut self, owner: Place) {
        let ids = self
            .awaits
            .iter()
            .filter(|(_, waiting)| waiting.place == owner);
        if let Some(id) = ids.map(|(id, _)| *id).min() {
            self.fail_expansion(id, &Fault::Error(endless()));
            self.apply();
        }
    }

    /// Nothing is ready or running and yet nodes wait: expansions that need each other's results.
    /// They fail, and so the run ends.
    pub(crate) fn break_knot(&mut self) {
        let mut ids: Vec<u64> = self.awaits.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            self.fail_expansion(id, &Fault::Error(endless()));
            self.apply();
        }
    }
}

/// The error of a node whose expansion needs the node's own result.
fn endless() -> NodeError {
    NodeError::new(
        Code::BadInput,
        "the graph it expands to needs its own result: expected one that comes to an end",
    )
}

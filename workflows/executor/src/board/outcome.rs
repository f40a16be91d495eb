//! What is told about a run: counts, failures, skipped nodes, predicted work.

use std::sync::Arc;

use flow_graph::NodeError;

use super::{Board, State};
use crate::net::Source;
use crate::observe::{Ending, RunEvent};
use crate::queue::Place;
use crate::report::{NodeFailure, RunReport, SkippedNode, TargetPort, TypeCount};

impl Board {
    /// The commit failed after the result was passed on.
    pub(crate) fn fail_late(&mut self, place: Place, error: &NodeError) {
        self.note_failure(place, error);
        let entry = &mut self.entries[place.node];
        entry.failed = Some(place.node);
        if entry.state == State::Done {
            entry.state = State::Failed;
            self.tainted.push(place.node);
            self.event_finished(place.node, Ending::Failed);
        }
    }

    /// Predicted seconds of one call of a node; for a type never measured, an arbitrary twentieth.
    pub(super) fn weight(&self, node: usize) -> f64 {
        let type_name = self.entries[node].node.spec().type_name;
        self.costs.secs_per_call(type_name).unwrap_or(0.05)
    }

    /// Predicted seconds of what is done, running calls with the part that is done.
    pub(crate) fn work_so_far(&self) -> f64 {
        let mut partial: Vec<(Place, f64)> = self.partial.iter().map(|(p, f)| (*p, *f)).collect();
        partial.sort_unstable_by_key(|(place, _)| *place);
        let running = partial.iter().map(|(place, f)| f * self.weight(place.node));
        self.work_done + running.sum::<f64>()
    }

    pub(super) fn report_mut(&mut self) -> &mut RunReport {
        self.report
            .get_or_insert_with(|| Box::new(RunReport::empty()))
    }

    pub(crate) fn tally(&mut self, node: usize, tally: impl FnOnce(&mut TypeCount)) {
        let type_name = self.entries[node].node.spec().type_name;
        tally(self.report_mut().by_type.entry(type_name).or_default());
    }

    pub(crate) fn count(&mut self, count: impl FnOnce(&mut RunReport)) {
        count(self.report_mut());
    }

    pub(super) fn note_failure(&mut self, place: Place, error: &NodeError) {
        self.count(|report| report.failed += 1);
        self.tally(place.node, |count| count.failed += 1);
        self.note_error(place, error);
    }

    pub(crate) fn note_error(&mut self, place: Place, error: &NodeError) {
        let entry = &self.entries[place.node];
        let spec = entry.node.spec();
        // Texts about an input begin with `input "name"`; where one does, the shell can point.
        let named = |name: &str| error.message.starts_with(&format!("input {name:?}"));
        let input = spec.inputs.iter().find(|input| named(input.name));
        let failure = NodeFailure {
            node: entry.id.to_string(),
            display: entry.display.to_string(),
            type_name: spec.type_name.to_owned(),
            input: input.map(|input| input.name.to_owned()),
            element: (entry.results.len() > 1).then_some(place.element),
            code: error.code,
            message: error.message.clone(),
        };
        self.report_mut().add_error(failure);
    }

    pub(super) fn note_skip(&mut self, node: usize, root: usize) {
        let (entry, root) = (&self.entries[node], &self.entries[root]);
        let skip = SkippedNode {
            node: entry.id.to_string(),
            display: entry.display.to_string(),
            because: root.id.to_string(),
        };
        self.report_mut().add_skip(skip);
    }

    pub(super) fn event_finished(&mut self, node: usize, ending: Ending) {
        let entry = &self.entries[node];
        self.events.push(RunEvent::NodeFinished {
            node: Arc::clone(&entry.id),
            display: Arc::clone(&entry.display),
            type_name: entry.node.spec().type_name,
            ending,
        });
    }

    /// Complete the report: outputs of the targets, and what failed late taken out.
    pub(crate) fn finish(&mut self) -> Box<RunReport> {
        self.skip_tainted();
        let mut report = self
            .report
            .take()
            .unwrap_or_else(|| Box::new(RunReport::empty()));
        report.nodes = self.done as u64;
        for target in &self.pinned {
            let entry = &self.entries[*target];
            if let (State::Done, Some(ports)) = (entry.state, &entry.outputs) {
                let outputs = entry.node.spec().outputs.iter().zip(ports.iter());
                let outputs = outputs.map(|(output, elements)| TargetPort {
                    name: output.name,
                    elements: elements.clone(),
                });
                report
                    .outputs
                    .insert(entry.id.to_string(), outputs.collect());
            }
        }
        report
    }

    /// What went on with a result whose commit failed later is not complete either.
    pub(super) fn skip_tainted(&mut self) {
        if self.tainted.is_empty() {
            return;
        }
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); self.entries.len()];
        for (at, entry) in self.entries.iter().enumerate() {
            for (input, source) in entry.sources.iter().enumerate() {
                if let Source::Link { node, lazy, .. } = source
                    && (!lazy || entry.asked.get(input).copied().unwrap_or(false))
                {
                    below[*node].push(at);
                }
            }
            // An expansion's results are its parent's.
            if let Some(parent) = entry.parent {
                below[at].push(parent.node);
            }
        }
        let mut open: Vec<(usize, usize)> = std::mem::take(&mut self.tainted)
            .into_iter()
            .map(|root| (root, root))
            .collect();
        while let Some((at, root)) = open.pop() {
            for next in &below[at] {
                if self.entries[*next].state == State::Done {
                    self.entries[*next].state = State::Skipped(root);
                    self.note_skip(*next, root);
                    open.push((*next, root));
                }
            }
        }
    }
}

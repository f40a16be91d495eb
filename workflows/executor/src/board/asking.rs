//! Who needs whom: nodes are asked for from the targets down, lazy links when a node names them.

use std::sync::Arc;

use super::{Board, Change, Dependent, Gathered, State};
use crate::element::{Feed, Taken};
use crate::net::Source;
use crate::queue::Job;

impl Board {
    /// Ask for a node and for everything it needs for certain.
    pub(super) fn ask(&mut self, node: usize) {
        let mut open = vec![node];
        while let Some(at) = open.pop() {
            if self.entries[at].state != State::Idle {
                continue;
            }
            self.entries[at].state = State::Waiting;
            self.open += 1;
            self.work += self.weight(at);
            let sources = Arc::clone(&self.entries[at].sources);
            let mut fault = None;
            for source in sources.iter() {
                let Source::Link { node, lazy, .. } = source else {
                    continue;
                };
                if !lazy && let Err(root) = self.depend(at, *node, &mut open) {
                    fault = Some(root);
                }
            }
            self.ready_or_skip(at, fault);
        }
    }

    /// Make `at` wait for `source`; the failed node when that cannot be had.
    pub(super) fn depend(
        &mut self,
        at: usize,
        source: usize,
        open: &mut Vec<usize>,
    ) -> Result<(), usize> {
        match self.entries[source].state {
            State::Done => return Ok(()),
            State::Failed => return Err(source),
            State::Skipped(root) => return Err(root),
            State::Idle => open.push(source),
            State::Waiting | State::Active | State::Stopped | State::Unused => {}
        }
        self.entries[source].dependents.push(Dependent::Node(at));
        self.entries[at].waiting += 1;
        Ok(())
    }

    pub(super) fn ready_or_skip(&mut self, at: usize, fault: Option<usize>) {
        if let Some(root) = fault {
            self.changes.push(Change::Close(at, State::Skipped(root)));
        } else if self.entries[at].waiting == 0 {
            self.queues.push(Job::Prepare(at));
        }
    }

    /// The inputs of `at`, all of which are there. `None` when it was skipped instead.
    pub(crate) fn gather(&mut self, at: usize) -> Option<Gathered> {
        let sources = Arc::clone(&self.entries[at].sources);
        let mut feeds = Vec::with_capacity(sources.len());
        let mut lazy = Vec::with_capacity(sources.len());
        let mut fault = None;
        for (input, source) in sources.iter().enumerate() {
            lazy.push(matches!(source, Source::Link { lazy: true, .. }));
            feeds.push(match source {
                Source::Absent => Feed::Absent,
                Source::Fixed(list) => Feed::Fixed(Arc::clone(list)),
                Source::Link { node, output, lazy } => {
                    let asked = self.entries[at].asked.get(input).copied().unwrap_or(false);
                    let source = &self.entries[*node];
                    match &source.outputs {
                        _ if *lazy && !asked => Feed::Unasked,
                        Some(ports) if source.state == State::Done => {
                            Feed::Port(Arc::clone(ports), *output)
                        }
                        _ => {
                            fault = Some(*node);
                            Feed::Absent
                        }
                    }
                }
            });
        }
        if let Some(root) = fault {
            self.changes.push(Change::Close(at, State::Skipped(root)));
            self.apply();
            return None;
        }
        let entry = &mut self.entries[at];
        entry.state = State::Active;
        Some(Gathered {
            node: Arc::clone(&entry.node),
            feeds,
            lazy,
            taken: std::mem::take(&mut entry.taken),
        })
    }

    /// `at` needs these lazy links before it can go on.
    pub(crate) fn ask_lazy(&mut self, at: usize, inputs: &[usize], taken: Vec<Taken>) {
        let sources = Arc::clone(&self.entries[at].sources);
        let entry = &mut self.entries[at];
        entry.taken = taken;
        entry.state = State::Waiting;
        entry.asked.resize(sources.len(), false);
        let mut fault = None;
        let mut open = Vec::new();
        for input in inputs {
            self.entries[at].asked[*input] = true;
            if let Source::Link { node, .. } = sources[*input]
                && let Err(root) = self.depend(at, node, &mut open)
            {
                fault = Some(root);
            }
        }
        for source in open {
            self.ask(source);
        }
        self.ready_or_skip(at, fault);
        self.apply();
    }
}

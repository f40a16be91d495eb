//! From lists on ports to the calls of a node, and back.

use std::sync::Arc;

use engine_base::Code;
use flow_graph::{Call, Node, NodeError, NodeSpec, OutputSpec, PortOutput, Value};

/// The elements of every output of a call or of a node, by output.
pub(crate) type Ports = Vec<Vec<Value>>;

/// What an input of a node gets.
#[derive(Debug, Clone)]
pub(crate) enum Feed {
    /// Nothing.
    Absent,
    /// Known from the start: a widget value, or elements given to an expansion.
    Fixed(Arc<Vec<Value>>),
    /// An output of a node that is done.
    Port(Arc<Ports>, usize),
    /// A lazy link whose node was not asked for yet.
    Unasked,
}

impl Feed {
    fn list(&self) -> Option<&[Value]> {
        match self {
            Self::Fixed(list) => Some(list),
            Self::Port(ports, output) => ports.get(*output).map(Vec::as_slice),
            Self::Absent | Self::Unasked => None,
        }
    }
}

/// The inputs of a node and which of them are lazy links, by input in port order.
pub(crate) struct Inputs<'a> {
    pub(crate) spec: &'a NodeSpec,
    pub(crate) feeds: &'a [Feed],
    /// Whether the input is a link that waits until it is asked for.
    pub(crate) lazy: &'a [bool],
}

/// Which lazy links an element has taken, by input. Empty when the node has none.
pub(crate) type Taken = Vec<bool>;

/// What an element does next.
pub(crate) enum Step {
    /// It is called with this.
    Ready(Call),
    /// It does not run; with a message it is an error.
    Blocked(Option<String>),
    /// It needs these lazy links first, by input.
    Needs(Vec<usize>),
}

impl Inputs<'_> {
    /// Number of calls: the longest list, 0 when one of them is empty, 1 without any. Lazy links
    /// count once an element has taken them; whole lists do not count.
    pub(crate) fn count(&self, taken: &[Taken]) -> usize {
        let mut longest = 1;
        for (at, feed) in self.feeds.iter().enumerate() {
            let counts = !self.spec.inputs[at].whole_list
                && (!self.lazy[at] || taken.iter().any(|taken| taken[at]));
            match feed.list() {
                Some([]) if counts => return 0,
                Some(list) if counts => longest = longest.max(list.len()),
                _ => {}
            }
        }
        longest
    }

    /// A fresh record of lazy links taken.
    pub(crate) fn none_taken(&self) -> Taken {
        if self.lazy.contains(&true) {
            vec![false; self.lazy.len()]
        } else {
            Taken::new()
        }
    }

    /// What element `index` does next. Goes on asking the node for lazy links, noting them in
    /// `taken`, until it needs none or one that is not there yet.
    ///
    /// # Errors
    /// Whatever the node answers, and [`Code::Internal`] when it asks for something it does not
    /// have.
    pub(crate) fn step(
        &self,
        node: &dyn Node,
        taken: &mut Taken,
        index: usize,
    ) -> Result<Step, NodeError> {
        loop {
            let call = match self.call(taken, index) {
                Ok(call) => call,
                Err(message) => return Ok(Step::Blocked(message)),
            };
            if taken.is_empty() {
                return Ok(Step::Ready(call));
            }
            let asked = node.lazy_needed(&call)?;
            let mut needs = Vec::new();
            let mut grown = false;
            for name in asked {
                let at = self.lazy_input(&name)?;
                // An optional input that nothing is linked to has no more to give, and one that
                // was taken has given what it has.
                if !self.lazy[at] || taken[at] {
                    continue;
                }
                if matches!(self.feeds[at], Feed::Unasked) {
                    needs.push(at);
                } else {
                    taken[at] = true;
                    grown = true;
                }
            }
            if !needs.is_empty() {
                return Ok(Step::Needs(needs));
            }
            if !grown {
                return Ok(Step::Ready(call));
            }
        }
    }

    fn lazy_input(&self, name: &str) -> Result<usize, NodeError> {
        let inputs = &self.spec.inputs;
        inputs.iter().position(|i| i.name == name).ok_or_else(|| {
            let type_name = self.spec.type_name;
            NodeError::new(
                Code::Internal,
                format!("{type_name:?} asked for its lazy input {name:?}, which it does not have"),
            )
        })
    }

    /// The call of element `index`, or the message of what blocks it.
    fn call(&self, taken: &[bool], index: usize) -> Result<Call, Option<String>> {
        let mut call = Call::default();
        let mut blocked: Option<Option<String>> = None;
        for (at, input) in self.spec.inputs.iter().enumerate() {
            if self.lazy[at] && !taken.get(at).copied().unwrap_or(false) {
                continue;
            }
            let Some(list) = self.feeds[at].list() else {
                continue;
            };
            let elements = if input.whole_list {
                list
            } else {
                let place = index.min(list.len().saturating_sub(1));
                list.get(place..=place).unwrap_or_default()
            };
            for value in elements {
                if let Value::Blocked(message) = value {
                    // A message wins over silence, so that it is not lost.
                    let so_far = blocked.take().flatten();
                    blocked = Some(so_far.or_else(|| message.clone()));
                }
            }
            call.inputs.insert(input.name.to_owned(), elements.to_vec());
        }
        blocked.map_or(Ok(call), Err)
    }
}

/// The elements of every output from what a call gave.
///
/// # Errors
/// [`Code::Internal`] when it does not fit the spec.
pub(crate) fn ports_of(spec: &NodeSpec, outputs: Vec<PortOutput>) -> Result<Ports, NodeError> {
    let (type_name, got) = (spec.type_name, outputs.len());
    if got != spec.outputs.len() {
        let expected = spec.outputs.len();
        return Err(NodeError::new(
            Code::Internal,
            format!("{type_name:?} gave {got} outputs: expected {expected}"),
        ));
    }
    let pairs = spec.outputs.iter().zip(outputs);
    pairs
        .map(|(output, given)| port_of(type_name, output, given))
        .collect()
}

/// The elements of one output.
///
/// # Errors
/// [`Code::Internal`] for a list where one element is to be.
pub(crate) fn port_of(
    type_name: &str,
    output: &OutputSpec,
    given: PortOutput,
) -> Result<Vec<Value>, NodeError> {
    match given {
        PortOutput::One(value) => Ok(vec![value]),
        PortOutput::Many(list) if output.list => Ok(list),
        PortOutput::Many(_) => Err(NodeError::new(
            Code::Internal,
            format!(
                "{type_name:?} gave a list at its output {:?}: expected one element",
                output.name
            ),
        )),
    }
}

/// Outputs of an element that does not run.
pub(crate) fn blocked_ports(spec: &NodeSpec) -> Ports {
    vec![vec![Value::Blocked(None)]; spec.outputs.len()]
}

/// The outputs of a node from those of its elements, in order.
pub(crate) fn join(spec: &NodeSpec, elements: Vec<Arc<Ports>>) -> Arc<Ports> {
    if let [only] = elements.as_slice() {
        return Arc::clone(only);
    }
    let mut joined: Ports = vec![Vec::new(); spec.outputs.len()];
    for element in elements {
        for (list, given) in joined.iter_mut().zip(element.iter()) {
            list.extend(given.iter().cloned());
        }
    }
    Arc::new(joined)
}

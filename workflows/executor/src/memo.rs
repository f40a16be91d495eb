//! Results of calls that are not durable, by key, for the length of a run.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};

use engine_base::{Datum, Key};
use flow_graph::Value;

use crate::element::Ports;

/// Results by key. The newest are held up to a budget; older ones only as long as somebody else
/// still holds them, so that a run of 100,000 nodes does not keep 100,000 results.
#[derive(Default)]
pub(crate) struct Memo {
    by_key: HashMap<Key, Weak<Ports>>,
    held: VecDeque<(Arc<Ports>, usize)>,
    held_bytes: usize,
    sweep_at: usize,
}

impl Memo {
    /// Held results together weigh at most this much.
    const MAX_BYTES: usize = 32 * 1024 * 1024;
    /// At most this many are held: handles weigh nothing here and may be large.
    const MAX_HELD: usize = 64;

    /// The result of `key`, if it is still there.
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Ports>> {
        self.by_key.get(key).and_then(Weak::upgrade)
    }

    /// Remember a result.
    pub(crate) fn put(&mut self, key: Key, ports: &Arc<Ports>) {
        let bytes = weight(ports);
        self.by_key.insert(key, Arc::downgrade(ports));
        if bytes <= Self::MAX_BYTES {
            self.held.push_back((Arc::clone(ports), bytes));
            self.held_bytes += bytes;
        }
        while self.held.len() > Self::MAX_HELD || self.held_bytes > Self::MAX_BYTES {
            let Some((_oldest, bytes)) = self.held.pop_front() else {
                break;
            };
            self.held_bytes -= bytes;
        }
        if self.by_key.len() >= self.sweep_at.max(1024) {
            self.by_key.retain(|_, ports| ports.strong_count() > 0);
            self.sweep_at = self.by_key.len() * 2;
        }
    }
}

fn weight(ports: &Ports) -> usize {
    let of_value = |value: &Value| match value {
        Value::Data(datum) => 64 + datum_weight(datum),
        Value::Blob(_) | Value::Handle(_) | Value::Blocked(_) => 128,
    };
    ports.iter().flatten().map(of_value).sum()
}

fn datum_weight(datum: &Datum) -> usize {
    match datum {
        Datum::Text(text) => text.len(),
        Datum::List(items) => items.iter().map(|item| 32 + datum_weight(item)).sum(),
        Datum::Map(map) => map
            .iter()
            .map(|(name, item)| 64 + name.len() + datum_weight(item))
            .sum(),
        Datum::Null | Datum::Bool(_) | Datum::Int(_) | Datum::Uint(_) | Datum::Float(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_results_are_let_go_and_shared_ones_are_found() {
        let mut memo = Memo::default();
        let key = |n: u64| Key::of_canonical(&n.to_le_bytes());
        let ports = |n: u64| Arc::new(vec![vec![Value::data(n)]]);
        let kept = ports(0);
        memo.put(key(0), &kept);
        for n in 1..10_000 {
            memo.put(key(n), &ports(n));
        }
        assert!(memo.get(&key(0)).is_some(), "somebody still holds it");
        assert!(memo.get(&key(1)).is_none(), "nobody holds it any more");
        assert!(memo.get(&key(9_999)).is_some(), "the newest is held");
        assert!(memo.by_key.len() < 4096, "{} names kept", memo.by_key.len());
    }
}

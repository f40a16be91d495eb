//! Cutting a graph: which nodes go into one job.

use std::collections::{BTreeMap, BTreeSet};

/// What a link carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carries {
    /// A stored value: another machine can fetch it.
    Stored,
    /// A model or another handle, or frames that are never stored whole: made again, or streamed,
    /// in the job that needs it.
    Passing,
}

/// A node, as cutting sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Piece {
    /// Predicted cost on a usual device, in seconds.
    pub secs: f64,
    /// Whether somebody wants its result: an output of the graph.
    pub wanted: bool,
}

/// A link between two pieces, by their indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Joint {
    /// Gives.
    pub from: usize,
    /// Takes.
    pub to: usize,
    /// What.
    pub carries: Carries,
}

/// A job: pieces that run together.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphJob {
    /// Indices of its pieces, ascending. Pieces that only pass something may be in several jobs.
    pub pieces: Vec<usize>,
    /// Indices of the pieces in it whose results it stores, ascending.
    pub stores: Vec<usize>,
    /// Indices of the jobs it needs, ascending.
    pub needs: Vec<usize>,
    /// Predicted cost, in seconds.
    pub secs: f64,
}

/// Why a graph cannot be cut.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SplitError {
    /// A link names a piece that is not there.
    #[error("cannot split a graph of {pieces} pieces: a link goes from {from} to {to}")]
    NoSuchPiece {
        /// How many there are.
        pieces: usize,
        /// Link's start.
        from: usize,
        /// Link's end.
        to: usize,
    },
    /// Pieces need each other.
    #[error("cannot split a graph: piece {piece} needs itself, by way of others")]
    Circle {
        /// One of them.
        piece: usize,
    },
}

struct Links {
    into: Vec<Vec<Joint>>,
    out: Vec<Vec<Joint>>,
}

/// Pieces in an order in which each comes after what it takes from.
fn order(links: &Links) -> Result<Vec<usize>, SplitError> {
    let mut open: Vec<usize> = links.into.iter().map(Vec::len).collect();
    let free = open.iter().enumerate().filter(|(_, open)| **open == 0);
    let mut next: BTreeSet<usize> = free.map(|(at, _)| at).collect();
    let mut order = Vec::with_capacity(open.len());
    while let Some(at) = next.pop_first() {
        order.push(at);
        for joint in links.out.get(at).into_iter().flatten() {
            if let Some(open) = open.get_mut(joint.to) {
                *open -= 1;
                if *open == 0 {
                    next.insert(joint.to);
                }
            }
        }
    }
    match open.iter().position(|open| *open > 0) {
        Some(piece) => Err(SplitError::Circle { piece }),
        None => Ok(order),
    }
}

/// Cut a graph into jobs, in an order in which each comes after what it needs.
///
/// A piece is cut off where its result is stored: each such piece is a job, together with what
/// only passes something to it. A job cheaper than `least_secs` all of whose results go to one
/// other job is done there, so that handing it out does not cost more than doing it. A piece is
/// never cut: a sampling is one piece.
///
/// # Errors
/// When links name no piece or go in a circle.
pub fn jobs(
    pieces: &[Piece],
    joints: &[Joint],
    least_secs: f64,
) -> Result<Vec<GraphJob>, SplitError> {
    let mut links = Links {
        into: vec![Vec::new(); pieces.len()],
        out: vec![Vec::new(); pieces.len()],
    };
    for joint in joints {
        match (links.into.get_mut(joint.to), links.out.get_mut(joint.from)) {
            (Some(into), Some(out)) => {
                into.push(*joint);
                out.push(*joint);
            }
            _ => {
                return Err(SplitError::NoSuchPiece {
                    pieces: pieces.len(),
                    from: joint.from,
                    to: joint.to,
                });
            }
        }
    }
    let order = order(&links)?;
    let roots: BTreeSet<usize> = order
        .iter()
        .copied()
        .filter(|at| {
            let wanted = pieces.get(*at).is_some_and(|piece| piece.wanted);
            let mut out = links.out.get(*at).into_iter().flatten();
            wanted || out.any(|joint| joint.carries == Carries::Stored)
        })
        .collect();
    let mut groups: BTreeMap<usize, Group> = roots
        .iter()
        .map(|root| (*root, Group::around(*root, &links, pieces)))
        .collect();
    merge_cheap(&mut groups, &order, pieces, least_secs);
    Ok(finish(&groups, &order, pieces))
}

/// A job in the making, known by the piece that gives its result.
#[derive(Debug, Clone)]
struct Group {
    pieces: BTreeSet<usize>,
    stores: BTreeSet<usize>,
    /// Pieces of other jobs whose stored results it takes.
    takes: BTreeSet<usize>,
}

impl Group {
    fn around(root: usize, links: &Links, pieces: &[Piece]) -> Self {
        let mut group = Self {
            pieces: BTreeSet::new(),
            stores: BTreeSet::from([root]),
            takes: BTreeSet::new(),
        };
        let mut list = vec![root];
        while let Some(at) = list.pop() {
            if at >= pieces.len() || !group.pieces.insert(at) {
                continue;
            }
            for joint in links.into.get(at).into_iter().flatten() {
                match joint.carries {
                    Carries::Stored => {
                        group.takes.insert(joint.from);
                    }
                    Carries::Passing => list.push(joint.from),
                }
            }
        }
        group.takes.retain(|take| !group.pieces.contains(take));
        group
    }

    fn secs(&self, pieces: &[Piece]) -> f64 {
        let pieces = self.pieces.iter().filter_map(|at| pieces.get(*at));
        pieces.map(|piece| piece.secs).sum()
    }
}

/// Later pieces first, so that a row of cheap jobs falls into the job at its end.
fn merge_cheap(
    groups: &mut BTreeMap<usize, Group>,
    order: &[usize],
    pieces: &[Piece],
    least_secs: f64,
) {
    for root in order.iter().rev() {
        let Some(group) = groups.get(root) else {
            continue;
        };
        let wanted = pieces.get(*root).is_some_and(|piece| piece.wanted);
        if wanted || group.secs(pieces) >= least_secs {
            continue;
        }
        let mut takers = groups
            .iter()
            .filter(|(_, other)| other.takes.iter().any(|take| group.stores.contains(take)));
        let (Some((taker, _)), None) = (takers.next(), takers.next()) else {
            continue;
        };
        let (taker, Some(group)) = (*taker, groups.remove(root)) else {
            continue;
        };
        if let Some(taker) = groups.get_mut(&taker) {
            taker.pieces.extend(group.pieces);
            taker.takes.extend(group.takes);
            taker.takes.retain(|take| !group.stores.contains(take));
        }
    }
}

fn finish(groups: &BTreeMap<usize, Group>, order: &[usize], pieces: &[Piece]) -> Vec<GraphJob> {
    let mut at_of: BTreeMap<usize, usize> = BTreeMap::new();
    let mut jobs = Vec::with_capacity(groups.len());
    for root in order {
        let Some(group) = groups.get(root) else {
            continue;
        };
        let needs: BTreeSet<usize> = group
            .takes
            .iter()
            .filter_map(|take| at_of.get(take).copied())
            .collect();
        at_of.extend(group.stores.iter().map(|stored| (*stored, jobs.len())));
        jobs.push(GraphJob {
            pieces: group.pieces.iter().copied().collect(),
            stores: group.stores.iter().copied().collect(),
            needs: needs.into_iter().collect(),
            secs: group.secs(pieces),
        });
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn piece(secs: f64) -> Piece {
        Piece {
            secs,
            wanted: false,
        }
    }

    fn wanted(secs: f64) -> Piece {
        Piece { secs, wanted: true }
    }

    fn stored(from: usize, to: usize) -> Joint {
        Joint {
            from,
            to,
            carries: Carries::Stored,
        }
    }

    fn passing(from: usize, to: usize) -> Joint {
        Joint {
            from,
            to,
            carries: Carries::Passing,
        }
    }

    #[test]
    fn a_model_is_loaded_where_it_is_used_and_samplings_stay_apart() {
        // loader -> two samplings -> a decode each (latents stored) -> one film.
        let pieces = [
            piece(5.0),
            piece(60.0),
            piece(60.0),
            piece(9.0),
            piece(9.0),
            wanted(3.0),
        ];
        let joints = [
            passing(0, 1),
            passing(0, 2),
            stored(1, 3),
            stored(2, 4),
            stored(3, 5),
            stored(4, 5),
        ];
        let cut = jobs(&pieces, &joints, 1.0).unwrap();
        let of: Vec<_> = cut.iter().map(|job| job.pieces.clone()).collect();
        assert_eq!(of, [vec![0, 1], vec![0, 2], vec![3], vec![4], vec![5]]);
        assert_eq!(cut[4].needs, [2, 3]);
        // With decodes below the least, each joins the only job that takes it.
        let cut = jobs(&pieces, &joints, 10.0).unwrap();
        assert_eq!(cut.len(), 3, "{cut:?}");
        assert_eq!(cut[2].pieces, [3, 4, 5]);
        assert_eq!(cut[2].needs, [0, 1]);
    }

    #[test]
    fn streamed_frames_stay_in_the_job_that_encodes_them() {
        let pieces = [piece(100.0), piece(20.0), piece(20.0), wanted(30.0)];
        let joints = [stored(0, 1), passing(1, 2), passing(2, 3)];
        let cut = jobs(&pieces, &joints, 1.0).unwrap();
        let of: Vec<_> = cut.iter().map(|job| job.pieces.clone()).collect();
        assert_eq!(of, [vec![0], vec![1, 2, 3]]);
    }

    #[test]
    fn what_is_cheap_but_shared_is_made_once() {
        let pieces = [piece(0.1), wanted(50.0), wanted(50.0)];
        let joints = [stored(0, 1), stored(0, 2)];
        assert_eq!(jobs(&pieces, &joints, 1.0).unwrap().len(), 3);
    }

    #[test]
    fn faults_are_named() {
        let two = [piece(1.0), wanted(1.0)];
        assert_eq!(
            jobs(&two, &[stored(0, 1), stored(1, 0)], 1.0),
            Err(SplitError::Circle { piece: 0 })
        );
        assert!(jobs(&two, &[stored(0, 7)], 1.0).is_err());
        assert_eq!(jobs(&[], &[], 1.0), Ok(Vec::new()));
    }

    proptest! {
        #[test]
        fn every_wanted_result_is_stored_once_after_what_it_needs(
            secs in proptest::collection::vec(0.0_f64..20.0, 1..24),
            links in proptest::collection::vec((0_usize..24, 0_usize..24, any::<bool>()), 0..60),
        ) {
            let count = secs.len();
            let pieces: Vec<Piece> = secs
                .iter()
                .enumerate()
                .map(|(at, secs)| Piece { secs: *secs, wanted: at + 1 == count || at % 7 == 0 })
                .collect();
            let joints: Vec<Joint> = links
                .iter()
                .filter(|(from, to, _)| from < to && *to < count)
                .map(|(from, to, is_stored)| match is_stored {
                    true => stored(*from, *to),
                    false => passing(*from, *to),
                })
                .collect();
            let cut = jobs(&pieces, &joints, 4.0).unwrap();
            for (at, job) in cut.iter().enumerate() {
                prop_assert!(job.needs.iter().all(|need| *need < at), "{cut:?}");
                // All that a piece takes is in its job or stored by one that the job needs.
                for joint in joints.iter().filter(|joint| job.pieces.contains(&joint.to)) {
                    let here = job.pieces.contains(&joint.from);
                    let there = || job.needs.iter().any(|need| cut[*need].stores.contains(&joint.from));
                    prop_assert!(here || (joint.carries == Carries::Stored && there()), "{joint:?} {cut:?}");
                }
            }
            for (at, piece) in pieces.iter().enumerate() {
                let stores = cut.iter().filter(|job| job.stores.contains(&at)).count();
                prop_assert!(stores <= 1);
                prop_assert!(!piece.wanted || stores == 1);
            }
        }
    }
}

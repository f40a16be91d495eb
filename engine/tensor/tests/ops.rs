//! Every case of every op: fast paths against their plain references, on every instruction set
//! this machine has and on several threads, and that all of these give the same bits.

use std::sync::Arc;

use engine_tensor::ops::{Bound, OPS};
use engine_tensor::{Cpu, Simd, Threads};

#[test]
fn every_case_keeps_its_bound_with_the_same_bits_everywhere() {
    let mut cases = 0;
    for op in OPS {
        for case in (op.cases)() {
            let mut first: Option<Vec<u32>> = None;
            for simd in Simd::available() {
                for threads in [1, 3] {
                    let cpu = Cpu::with(Arc::new(Threads::new(threads).unwrap()), simd);
                    let outcome = (case.run)(&cpu).unwrap();
                    let name = format!("{}: {} on {simd}, {threads} threads", op.name, case.name);
                    let bound = case.bound;
                    assert!(
                        outcome.keeps(bound),
                        "{name}: error {:e}, {bound:?}",
                        outcome.error()
                    );
                    let bits: Vec<u32> = outcome.fast.iter().map(|v| v.to_bits()).collect();
                    assert!(
                        first.get_or_insert_with(|| bits.clone()) == &bits,
                        "{name}: other bits than the plain path"
                    );
                }
            }
            cases += 1;
        }
    }
    assert!(cases > 100, "{cases} cases");
}

#[test]
fn ops_have_names_of_their_own_and_cases() {
    for (at, op) in OPS.iter().enumerate() {
        assert!(OPS[..at].iter().all(|other| other.name != op.name));
        assert!(!(op.cases)().is_empty() && !op.about.is_empty());
    }
    let outcome = engine_tensor::ops::Outcome {
        fast: vec![1.0, 2.0],
        reference: vec![1.0, 2.1],
    };
    assert!(!outcome.keeps(Bound::Equal) && !outcome.keeps(Bound::Relative(1e-3)));
}

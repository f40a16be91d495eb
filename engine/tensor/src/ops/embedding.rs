//! Rows of a table of weights.

use super::case::{Bound, Case, Op, Outcome};
use super::matmul::test_matrix;
use crate::error::expect;
use crate::{Cpu, DType, PackedMatrix, TensorError};

pub(super) const OP: Op = Op {
    name: "embedding",
    about: "rows of a packed table, as f32",
    cases,
};

/// `out: [ids, cols]` = rows `ids` of `table: [rows, cols]`, decoded.
///
/// # Errors
/// `Shape` when an id is not a row, or for another length of `out`.
pub fn embedding(
    cpu: &Cpu,
    table: &PackedMatrix,
    ids: &[u32],
    out: &mut [f32],
) -> Result<(), TensorError> {
    const OP: &str = "embedding";
    expect(OP, "length of out", out.len(), ids.len() * table.cols())?;
    let ids: Vec<usize> = ids.iter().map(|id| *id as usize).collect();
    if let Some(id) = ids.iter().find(|id| **id >= table.rows()) {
        return Err(TensorError::Shape {
            op: OP,
            what: "an id",
            got: *id,
            expected: table.rows() - 1,
        });
    }
    let out = crate::shared::SharedSlice::new(out);
    let cols = table.cols();
    let one = |at: usize| {
        // SAFETY: each task writes its own row.
        table.decode_row(ids[at], unsafe { out.part(at * cols..(at + 1) * cols) });
    };
    if ids.len() < 8 {
        (0..ids.len()).for_each(one);
    } else {
        cpu.threads().run(ids.len(), &one);
    }
    Ok(())
}

fn cases() -> Vec<Case> {
    [DType::F32, DType::BF16, DType::Q8_0, DType::Q6_K]
        .into_iter()
        .map(|dtype| {
            Case::new(dtype.name(), Bound::Equal, move |cpu| {
                let table = test_matrix(dtype, 40, 256, 7)?;
                let ids: Vec<u32> = (0..20).map(|at| (at * 7 + 3) % 40).collect();
                let mut fast = vec![0.0; 20 * 256];
                embedding(cpu, &table, &ids, &mut fast)?;
                let mut reference = vec![0.0; 20 * 256];
                for (id, row) in ids.iter().zip(reference.chunks_exact_mut(256)) {
                    table.decode_row(*id as usize, row);
                }
                Ok(Outcome { fast, reference })
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_outside_is_refused() {
        let cpu = Cpu::new(1).unwrap();
        let table = test_matrix(DType::F32, 4, 32, 1).unwrap();
        let error = embedding(&cpu, &table, &[4], &mut [0.0; 32]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot run embedding: an id is 4, expected 3"
        );
    }
}

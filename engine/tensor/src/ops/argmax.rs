//! Where the largest value is.

use super::case::{Bound, Case, Op, Outcome, numbers};

pub(super) const OP: Op = Op {
    name: "argmax",
    about: "index of the largest value, the first of equals",
    cases,
};

/// Index of the largest of `values`, the first of equals; values that are no number are passed
/// over. `None` when there is none.
pub fn argmax(values: &[f32]) -> Option<usize> {
    let mut best: Option<(usize, f32)> = None;
    for (chunk, part) in values.chunks(64).enumerate() {
        let most = part
            .iter()
            .fold(f32::NEG_INFINITY, |a, b| if *b > a { *b } else { a });
        if best.is_none_or(|(_, value)| most > value)
            && let Some(at) = part.iter().position(|value| *value == most)
        {
            best = Some((64 * chunk + at, most));
        }
    }
    best.map(|(at, _)| at)
}

fn cases() -> Vec<Case> {
    let mut tied = numbers(3, 200);
    tied[70] = 2.0;
    tied[130] = 2.0;
    let mut holes = numbers(4, 130);
    holes[0] = f32::NAN;
    holes[129] = 3.0;
    let least = vec![f32::NAN, f32::NEG_INFINITY];
    [numbers(5, 1), numbers(6, 1000), tied, holes, least]
        .into_iter()
        .map(|values| {
            Case::new(
                format!("{} values", values.len()),
                Bound::Equal,
                move |_| {
                    let reference = values
                        .iter()
                        .enumerate()
                        .filter(|(_, value)| !value.is_nan());
                    let reference = reference.rev().max_by(|a, b| a.1.total_cmp(b.1));
                    Ok(Outcome {
                        fast: argmax(&values).map(|at| at as f32).into_iter().collect(),
                        reference: reference.map(|(at, _)| at as f32).into_iter().collect(),
                    })
                },
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::argmax;

    #[test]
    fn nothing_has_no_largest() {
        assert_eq!(argmax(&[]), None);
        assert_eq!(argmax(&[f32::NAN]), None);
    }
}

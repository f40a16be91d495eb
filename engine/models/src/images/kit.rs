//! Steps that several networks of pictures share.

use engine_tensor::ops::{
    AttentionSpec, Conv2d, ConvEnd, KvKind, KvRows, QueryRow, attention, conv2d, silu_mul,
    upsample_nearest,
};
use engine_tensor::{Cpu, Planes, TensorError};

/// `conv` of all of `input`, on top of `residual` where there is one.
pub(crate) fn convolved(
    cpu: &Cpu,
    conv: &Conv2d,
    input: &Planes,
    residual: Option<&Planes>,
) -> Result<Planes, TensorError> {
    let mut out = Planes::zeros(conv.out_blocks(), input.height(), input.width())?;
    let end = ConvEnd {
        residual: residual.map(|residual| (1.0, residual.all())),
    };
    conv2d(cpu, conv, input.all(), end, out.all_mut())?;
    Ok(out)
}

/// `conv` of `input` at twice its size.
pub(crate) fn doubled(cpu: &Cpu, conv: &Conv2d, input: &Planes) -> Result<Planes, TensorError> {
    let mut large = Planes::zeros(input.blocks(), 2 * input.height(), 2 * input.width())?;
    upsample_nearest(cpu, input.all(), large.all_mut())?;
    convolved(cpu, conv, &large, None)
}

/// `conv` of `input` with stride 2, from pixel `first` on (see [`every_second`]); `channels` come out of it.
pub(crate) fn halved(
    cpu: &Cpu,
    conv: &Conv2d,
    input: &Planes,
    (channels, first): (usize, usize),
) -> Result<Planes, TensorError> {
    let whole = convolved(cpu, conv, input, None)?;
    let half = every_second(&whole, channels, first)?;
    let mut out = Planes::zeros(whole.blocks(), whole.height() / 2, whole.width() / 2)?;
    out.fill(&half)?;
    Ok(out)
}

/// `input` with `by[channel]` added to every pixel of a channel.
pub(crate) fn raised(input: &Planes, by: &[f32]) -> Result<Planes, TensorError> {
    let pixels = (input.height() * input.width()).max(1);
    let mut values = input.values(by.len())?;
    for (plane, by) in values.chunks_exact_mut(pixels).zip(by) {
        plane.iter_mut().for_each(|value| *value += by);
    }
    let mut out = Planes::zeros(input.blocks(), input.height(), input.width())?;
    out.fill(&values)?;
    Ok(out)
}

/// The first `counts.0` channels of `a`, then the first `counts.1` of `b`, which has the same size.
pub(crate) fn joined(
    (a, b): (&Planes, &Planes),
    counts: (usize, usize),
) -> Result<Planes, TensorError> {
    let mut values = a.values(counts.0)?;
    values.extend(b.values(counts.1)?);
    let blocks = (counts.0 + counts.1).div_ceil(16);
    let mut out = Planes::zeros(blocks, a.height(), a.width())?;
    out.fill(&values)?;
    Ok(out)
}

/// Every second pixel of the first `channels` from pixel `first` (0 or 1) on: `[channels, height / 2,
/// width / 2]`. A convolution of stride 2 stands on odd pixels where its border is below and to the right
/// only, on even ones where it is all around.
pub(crate) fn every_second(
    planes: &Planes,
    channels: usize,
    first: usize,
) -> Result<Vec<f32>, TensorError> {
    let (height, width) = (planes.height(), planes.width());
    let (rows, columns) = (height / 2, width / 2);
    let all = planes.values(channels)?;
    let kept = (0..channels * rows * columns).map(|at| {
        let (column, row) = (at % columns, at / columns);
        let (row, channel) = (row % rows, row / rows);
        all[(channel * height + 2 * row + first) * width + 2 * column + first]
    });
    Ok(kept.collect())
}

/// Squares of four pixels of `planes: [channels, 2 * height, 2 * width]` as tokens: `[height * width, channels
/// * 4]`, each channel's four together.
pub(crate) fn packed(planes: &[f32], (height, width): (usize, usize)) -> Vec<f32> {
    let pixels = 4 * height * width;
    let channels = planes.len().checked_div(pixels).unwrap_or(0);
    let mut out = Vec::with_capacity(planes.len());
    for token in 0..height * width {
        let (row, column) = (token / width, token % width);
        for at in 0..4 * channels {
            let (channel, y, x) = (at / 4, 2 * row + at % 4 / 2, 2 * column + at % 2);
            out.push(planes[channel * pixels + y * 2 * width + x]);
        }
    }
    out
}

/// Attention in which every row sees every row. `q`, `k`, `v`, result: `[rows, heads, head_dim]`.
pub(crate) fn full_attention(
    cpu: &Cpu,
    (heads, head_dim): (usize, usize),
    q: &[f32],
    k: &[f32],
    v: &[f32],
) -> Result<Vec<f32>, TensorError> {
    some_attention(cpu, (heads, head_dim), (q, k, v), |_, last| last)
}

/// Attention in which every row sees itself and the rows before it.
pub(crate) fn causal_attention(
    cpu: &Cpu,
    (heads, head_dim): (usize, usize),
    q: &[f32],
    k: &[f32],
    v: &[f32],
) -> Result<Vec<f32>, TensorError> {
    some_attention(cpu, (heads, head_dim), (q, k, v), |row, _| row)
}

fn some_attention(
    cpu: &Cpu,
    (heads, head_dim): (usize, usize),
    (q, k, v): (&[f32], &[f32], &[f32]),
    sees: impl Fn(usize, usize) -> usize,
) -> Result<Vec<f32>, TensorError> {
    let width = (heads * head_dim).max(1);
    let mut kv = KvRows::new(KvKind::F32, heads, head_dim);
    for (key, value) in k.chunks_exact(width).zip(v.chunks_exact(width)) {
        kv.push(key, value)?;
    }
    let spec = AttentionSpec {
        heads,
        kv_heads: heads,
        head_dim,
        scale: (1.0 / (head_dim as f64).sqrt()) as f32,
        window: None,
    };
    let rows = q.len() / width;
    let queries: Vec<QueryRow<'_>> = (0..rows)
        .map(|row| QueryRow {
            kv: &kv,
            position: sees(row, kv.positions().saturating_sub(1)),
        })
        .collect();
    let mut out = vec![0.0; q.len()];
    attention(cpu, &spec, q, &queries, &mut out)?;
    Ok(out)
}

/// `silu(first half) * second half` of each row of `x: [rows, 2 * inner]`.
pub(crate) fn gated_halves(cpu: &Cpu, x: &[f32], inner: usize) -> Result<Vec<f32>, TensorError> {
    let (mut gate, mut up) = (Vec::new(), Vec::new());
    for row in x.chunks_exact((2 * inner).max(1)) {
        gate.extend_from_slice(&row[..inner]);
        up.extend_from_slice(&row[inner..]);
    }
    silu_mul(cpu, &mut gate, &up)?;
    Ok(gate)
}

/// Columns `range` of each row of `x: [rows, cols]`.
pub(crate) fn columns(x: &[f32], cols: usize, range: std::ops::Range<usize>) -> Vec<f32> {
    x.chunks_exact(cols.max(1))
        .flat_map(|row| &row[range.clone()])
        .copied()
        .collect()
}

/// `Ok` when a remainder or difference is 0.
pub(crate) fn expect_zero(
    op: &'static str,
    what: &'static str,
    got: usize,
) -> Result<(), TensorError> {
    if got == 0 {
        return Ok(());
    }
    Err(TensorError::Shape {
        op,
        what,
        got,
        expected: 0,
    })
}

//! Adapters: small changes of a model's weights (LoRA, Hu et al., arXiv 2106.09685; LoKr, Yeh et al., arXiv
//! 2309.14859), merged in f32 as tensors are read, whatever the model's weights are packed in.
//!
//! Names are understood as diffusers and PEFT write them (`transformer.NAME.lora_A.weight`), and as kohya's
//! scripts do (`lora_unet_NAME.lora_down.weight`, with `_` for every `.`).

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};

use engine_base::Code;
use engine_tensor::DType;

use crate::{Checkpoint, CheckpointKind, Metadata, TensorRef, WeightFile, WeightsError};

/// Most rank that is taken for real.
const RANK_CAP: usize = 1 << 16;

/// Why adapters do not go with a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdapterError {
    /// A file that cannot be read.
    #[error("cannot open the adapter: {0}")]
    Weights(#[from] WeightsError),
    /// A file without adapters, or of a kind that is not merged here.
    #[error("cannot use the adapter: {what}, expected LoRA or LoKr; at {}", path.display())]
    Kind {
        /// What there is.
        what: String,
        /// The file.
        path: PathBuf,
    },
    /// Parts of one change that do not go together.
    #[error("the adapter is broken: {what}, at {}", path.display())]
    Broken {
        /// What is wrong.
        what: String,
        /// The file.
        path: PathBuf,
    },
    /// Made for another model.
    #[error("the adapter is of another model: {what}, at {}", path.display())]
    Other {
        /// What has no place, and which model it looks like.
        what: String,
        /// The file.
        path: PathBuf,
    },
}

impl AdapterError {
    /// The kind of failure.
    pub fn code(&self) -> Code {
        match self {
            Self::Weights(error) => error.code(),
            Self::Kind { .. } | Self::Other { .. } => Code::BadInput,
            Self::Broken { .. } => Code::Corrupt,
        }
    }
}

/// A matrix, or a convolution's kernel with its taps in the columns.
#[derive(Debug, Clone)]
struct Matrix {
    rows: usize,
    cols: usize,
    values: Vec<f32>,
}

impl Matrix {
    fn of(tensor: &TensorRef) -> Option<Self> {
        let rows = *tensor.shape.first()?;
        let values = tensor.to_f32().ok()?;
        let cols = values.len().checked_div(rows)?;
        let finite = values.iter().all(|value| value.is_finite());
        (cols > 0 && finite).then_some(Self { rows, cols, values })
    }

    /// `self * other`.
    fn times(&self, other: &Self) -> Option<Self> {
        if self.cols != other.rows {
            return None;
        }
        let len = self.rows.checked_mul(other.cols)?;
        let mut values = vec![0.0f32; len];
        for (row, out) in values.chunks_exact_mut(other.cols).enumerate() {
            let factors = &self.values[row * self.cols..][..self.cols];
            for (factor, from) in factors.iter().zip(other.values.chunks_exact(other.cols)) {
                out.iter_mut()
                    .zip(from)
                    .for_each(|(out, x)| *out += factor * x);
            }
        }
        Some(Self {
            rows: self.rows,
            cols: other.cols,
            values,
        })
    }

    /// Kronecker's product; `taps` columns of `other` belong together (1 for matrices).
    fn kron(&self, other: &Self, taps: usize) -> Option<Self> {
        let (rows, cols) = (
            self.rows.checked_mul(other.rows)?,
            self.cols.checked_mul(other.cols)?,
        );
        let inner = other.cols / taps.max(1);
        let mut values = vec![0.0; rows.checked_mul(cols)?];
        for (at, value) in values.iter_mut().enumerate() {
            let (row, col) = (at / cols, at % cols);
            let (pair, tap) = (col / taps, col % taps);
            let a = self.values[row / other.rows * self.cols + pair / inner];
            let b = other.values[row % other.rows * other.cols + pair % inner * taps + tap];
            *value = a * b;
        }
        Some(Self { rows, cols, values })
    }
}

/// The change of one matrix, as it lies in the file.
#[derive(Debug, Clone)]
enum Change {
    Lora { down: TensorRef, up: TensorRef },
    Lokr { first: Factor, second: Factor },
}

/// A factor of LoKr: whole, or as a product.
#[derive(Debug, Clone)]
enum Factor {
    Whole(TensorRef),
    Product(TensorRef, TensorRef),
}

impl Factor {
    fn rank(&self) -> Option<usize> {
        match self {
            Self::Whole(_) => None,
            Self::Product(_, b) => b.shape.first().copied(),
        }
    }

    fn matrix(&self) -> Option<Matrix> {
        match self {
            Self::Whole(tensor) => Matrix::of(tensor),
            Self::Product(a, b) => Matrix::of(a)?.times(&Matrix::of(b)?),
        }
    }

    /// Taps of a kernel.
    fn taps(&self) -> usize {
        let (Self::Whole(tensor) | Self::Product(_, tensor)) = self;
        tensor.shape.iter().skip(2).product()
    }
}

#[derive(Debug, Clone)]
struct Module {
    change: Change,
    alpha: Option<f32>,
}

impl Module {
    /// The change in f32, with its own scale.
    fn delta(&self) -> Option<Matrix> {
        let (mut delta, rank) = match &self.change {
            Change::Lora { down, up } => {
                let down = Matrix::of(down)?;
                let rank = down.rows;
                (Matrix::of(up)?.times(&down)?, Some(rank))
            }
            Change::Lokr { first, second } => {
                let whole = first.matrix()?.kron(&second.matrix()?, second.taps())?;
                (whole, first.rank().or(second.rank()))
            }
        };
        if let (Some(alpha), Some(rank)) = (self.alpha, rank) {
            let scale = alpha / rank.max(1) as f32;
            delta.values.iter_mut().for_each(|value| *value *= scale);
        }
        Some(delta)
    }
}

/// An adapter's file.
#[derive(Debug)]
pub struct Adapter {
    modules: BTreeMap<String, Module>,
    path: PathBuf,
}

/// What names of parts end with, and which part each is.
const ENDS: &[(&str, &str)] = &[
    (".lora_A.weight", "down"),
    (".lora_A.default.weight", "down"),
    (".lora_down.weight", "down"),
    (".lora.down.weight", "down"),
    (".lora_B.weight", "up"),
    (".lora_B.default.weight", "up"),
    (".lora_up.weight", "up"),
    (".lora.up.weight", "up"),
    (".alpha", "alpha"),
    (".lokr_w1", "w1"),
    (".lokr_w2", "w2"),
    (".lokr_w1_a", "w1_a"),
    (".lokr_w1_b", "w1_b"),
    (".lokr_w2_a", "w2_a"),
    (".lokr_w2_b", "w2_b"),
];

impl Adapter {
    /// Opens a safetensors file.
    ///
    /// # Errors
    /// [`AdapterError`]: a file that is no adapter, one of a kind that is not merged here by name, or parts
    /// that do not go together.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, AdapterError> {
        let path = path.as_ref();
        Self::of(crate::open(path)?.as_ref(), path)
    }

    /// Of an open checkpoint; `path` is only named in errors.
    ///
    /// # Errors
    /// As [`Adapter::open`].
    pub fn of(file: &dyn Checkpoint, path: &Path) -> Result<Self, AdapterError> {
        let kind = |what: String| AdapterError::Kind {
            what,
            path: path.to_owned(),
        };
        let mut parts: BTreeMap<String, BTreeMap<&str, TensorRef>> = BTreeMap::new();
        for name in file.names() {
            let Some(tensor) = file.tensor(name) else {
                continue;
            };
            let found = ENDS
                .iter()
                .find_map(|(end, part)| Some((name.strip_suffix(end)?, *part)));
            let (module, part) = found.ok_or_else(|| {
                kind(format!("it holds a tensor {:?}", crate::table::short(name)))
            })?;
            parts
                .entry(module.to_owned())
                .or_default()
                .insert(part, tensor);
        }
        if parts.is_empty() {
            return Err(kind("it is empty".to_owned()));
        }
        let mut modules = BTreeMap::new();
        for (name, parts) in parts {
            let module = Self::module(&name, parts, path)?;
            modules.insert(name, module);
        }
        Ok(Self {
            modules,
            path: path.to_owned(),
        })
    }

    fn module(
        name: &str,
        mut parts: BTreeMap<&str, TensorRef>,
        path: &Path,
    ) -> Result<Module, AdapterError> {
        let broken = |what: &str| AdapterError::Broken {
            what: format!("{:?} {what}", crate::table::short(name)),
            path: path.to_owned(),
        };
        let alpha = match parts.remove("alpha") {
            None => None,
            Some(tensor) => {
                let value = tensor.to_f32().ok().filter(|values| values.len() == 1);
                let value = value.and_then(|values| values.first().copied());
                let value = value.filter(|value| value.is_finite());
                Some(value.ok_or_else(|| broken("has an alpha that is not one number"))?)
            }
        };
        let mut factor = |whole: &str, a: &str, b: &str| {
            let product = parts.remove(a).zip(parts.remove(b));
            match (parts.remove(whole), product) {
                (Some(whole), None) => Some(Factor::Whole(whole)),
                (None, Some((a, b))) => Some(Factor::Product(a, b)),
                _ => None,
            }
        };
        let factors = (factor("w1", "w1_a", "w1_b"), factor("w2", "w2_a", "w2_b"));
        let change = match (parts.remove("down").zip(parts.remove("up")), factors) {
            (Some((down, up)), (None, None)) => Change::Lora { down, up },
            (None, (Some(first), Some(second))) => Change::Lokr { first, second },
            _ => return Err(broken("lacks a part")),
        };
        let module = Module { change, alpha };
        module.check().map_err(|what| broken(&what))?;
        Ok(module)
    }

    /// Names of what it changes, as the file has them.
    pub fn modules(&self) -> impl Iterator<Item = &str> {
        self.modules.keys().map(String::as_str)
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Module {
    /// `Ok` when the factors multiply and are of a sound size.
    fn check(&self) -> Result<(), String> {
        let shape = self.shape();
        let shape = shape.ok_or_else(|| "has factors that cannot be multiplied".to_owned())?;
        match shape.0.checked_mul(shape.1) {
            Some(size) if size <= u32::MAX as usize => Ok(()),
            _ => Err(format!("would be of {} x {} values", shape.0, shape.1)),
        }
    }

    /// Rows and columns of the change, from the shapes alone.
    fn shape(&self) -> Option<(usize, usize)> {
        let of = |tensor: &TensorRef| {
            let rows = *tensor.shape.first()?;
            let cols = tensor.elements().checked_div(rows)?;
            (rows > 0 && cols > 0).then_some((rows, cols))
        };
        let product = |a: &TensorRef, b: &TensorRef| {
            let ((rows, inner), (rank, cols)) = (of(a)?, of(b)?);
            (inner == rank && rank <= RANK_CAP).then_some((rows, cols))
        };
        match &self.change {
            Change::Lora { down, up } => product(up, down),
            Change::Lokr { first, second } => {
                let factor = |factor: &Factor| match factor {
                    Factor::Whole(tensor) => of(tensor),
                    Factor::Product(a, b) => product(a, b),
                };
                let ((a, b), (c, d)) = (factor(first)?, factor(second)?);
                Some((a.checked_mul(c)?, b.checked_mul(d)?))
            }
        }
    }
}

/// What stands before names of modules of a part of a model, in adapters.
#[derive(Debug, Clone, Copy)]
pub struct AdapterPart {
    /// The part, for people.
    pub part: &'static str,
    /// Prefixes, the longest first; a file without any is of the network itself.
    pub prefixes: &'static [&'static str],
    /// Whether names without any prefix are of this part.
    pub bare: bool,
}

/// The network that draws.
pub const NETWORK_PART: AdapterPart = AdapterPart {
    part: "network",
    prefixes: &[
        "base_model.model.",
        "model.diffusion_model.",
        "diffusion_model.",
        "transformer.",
        "unet.",
        "lora_transformer_",
        "lora_unet_",
        "lycoris_",
    ],
    bare: true,
};

/// The (first) text encoder.
pub const TEXT_PART: AdapterPart = AdapterPart {
    part: "text encoder",
    prefixes: &["text_encoder.", "lora_te1_", "lora_te_"],
    bare: false,
};

/// The second text encoder.
pub const SECOND_TEXT_PART: AdapterPart = AdapterPart {
    part: "second text encoder",
    prefixes: &["text_encoder_2.", "lora_te2_"],
    bare: false,
};

/// An adapter and how much of it is taken.
#[derive(Debug, Clone, Copy)]
pub struct AdapterUse<'a> {
    /// The adapter.
    pub adapter: &'a Adapter,
    /// 1 for as it was trained.
    pub weight: f32,
}

/// A checkpoint with adapters merged into its tensors.
pub struct Adapted {
    base: Box<dyn Checkpoint>,
    /// By the name of a tensor.
    changes: HashMap<String, Vec<(Module, f32)>>,
}

impl fmt::Debug for Adapted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Adapted({:?}, {} tensors)",
            self.base,
            self.changes.len()
        )
    }
}

/// A module's name in the form in which all ways of writing it are alike.
fn plain(name: &str) -> String {
    name.replace('.', "_")
}

impl Adapted {
    /// `base`, one part of a model of `family`, with what `uses` change in it. `aliases`: other names of its
    /// modules (without `.weight`). Modules that belong to `part` by their prefix and have no place in it are
    /// refused.
    ///
    /// # Errors
    /// `Other`: names or shapes that `base` does not have, with the family that they look like.
    pub fn new(
        base: Box<dyn Checkpoint>,
        uses: &[AdapterUse<'_>],
        (part, family): (AdapterPart, &str),
        aliases: &[(String, String)],
    ) -> Result<Self, AdapterError> {
        let mut places: HashMap<String, String> = HashMap::new();
        for name in base.names() {
            if let Some(module) = name.strip_suffix(".weight") {
                places.insert(plain(module), name.to_owned());
            }
        }
        for (other, module) in aliases {
            let name = format!("{module}.weight");
            if base.tensor(&name).is_some() {
                places.entry(plain(other)).or_insert(name);
            }
        }
        let mut changes: HashMap<String, Vec<(Module, f32)>> = HashMap::new();
        for used in uses {
            let (mut lost, mut of_part) = (Vec::new(), 0);
            for (name, module) in &used.adapter.modules {
                let Some(bare) = part.of(name) else {
                    continue;
                };
                of_part += 1;
                let Some(place) = places.get(&plain(bare)) else {
                    lost.push(name.as_str());
                    continue;
                };
                Self::check(base.as_ref(), (place, name), module, (used.adapter, family))?;
                let list = changes.entry(place.clone()).or_default();
                list.push((module.clone(), used.weight));
            }
            if let Some(first) = lost.first() {
                let guess = match family_of_modules(used.adapter.modules()) {
                    Some(found) if found != family => format!("; it looks like one for {found}"),
                    _ => String::new(),
                };
                return Err(AdapterError::Other {
                    what: format!(
                        "{} of {of_part} changes of the {}, such as {:?}, have no place in a model of \
                         {family}{guess}",
                        lost.len(),
                        part.part,
                        crate::table::short(first)
                    ),
                    path: used.adapter.path.clone(),
                });
            }
        }
        Ok(Self { base, changes })
    }

    fn check(
        base: &dyn Checkpoint,
        (place, name): (&str, &str),
        module: &Module,
        (adapter, family): (&Adapter, &str),
    ) -> Result<(), AdapterError> {
        let tensor = base.tensor(place);
        let shape = tensor.map(|tensor| (tensor.shape.first().copied(), tensor.elements()));
        let (rows, cols) = module.shape().unwrap_or_default();
        if shape == Some((Some(rows), rows.saturating_mul(cols))) {
            return Ok(());
        }
        let found = base
            .tensor(place)
            .map(|tensor| tensor.shape)
            .unwrap_or_default();
        Err(AdapterError::Other {
            what: format!(
                "{:?} changes a matrix of {rows} x {cols}, and that of this model of {family} is {found:?}: \
                 it was made for one of another size",
                crate::table::short(name)
            ),
            path: adapter.path.clone(),
        })
    }

    /// How many tensors are changed.
    pub fn changed(&self) -> usize {
        self.changes.len()
    }
}

impl AdapterPart {
    /// The name of a module without its prefix, when it belongs here.
    fn of<'a>(&self, name: &'a str) -> Option<&'a str> {
        let found = self
            .prefixes
            .iter()
            .find_map(|prefix| name.strip_prefix(prefix));
        if found.is_some() {
            // PEFT puts one prefix before another.
            let again = |bare: &'a str| self.prefixes.iter().find_map(|p| bare.strip_prefix(p));
            return found.map(|bare| again(bare).unwrap_or(bare));
        }
        let others = [NETWORK_PART, TEXT_PART, SECOND_TEXT_PART];
        let elsewhere = others
            .iter()
            .any(|part| part.prefixes.iter().any(|prefix| name.starts_with(prefix)));
        (self.bare && !elsewhere).then_some(name)
    }
}

/// Marks of families in names of modules, the plainest first.
const MARKS: &[(&str, &[&str])] = &[
    ("qwen_image_21", &["img_mlp_gate_layer", "img_mlp_proj"]),
    ("qwen_image", &["txt_mlp", "img_mod", "txt_mod"]),
    ("flux3", &["txt_mode_blocks", "mode_blocks_image"]),
    (
        "flux2",
        &[
            "single_transformer_blocks",
            "double_blocks",
            "single_blocks",
        ],
    ),
    (
        "z_image",
        &["noise_refiner", "context_refiner", "feed_forward_w1"],
    ),
    (
        "stable_diffusion",
        &[
            "down_blocks",
            "up_blocks",
            "mid_block",
            "input_blocks",
            "output_blocks",
        ],
    ),
    (
        "wan",
        &["self_attn_norm_q", "cross_attn_k", "blocks_0_cross_attn"],
    ),
];

/// The family that names of modules look like.
pub fn family_of_modules<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'static str> {
    let names: Vec<String> = names.map(plain).collect();
    let found = MARKS.iter().find(|(_, marks)| {
        names
            .iter()
            .any(|name| marks.iter().any(|mark| name.contains(mark)))
    });
    found.map(|(family, _)| *family)
}

impl Checkpoint for Adapted {
    fn kind(&self) -> CheckpointKind {
        self.base.kind()
    }

    fn names(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        self.base.names()
    }

    /// Changed tensors are f32, and computed at every call.
    fn tensor(&self, name: &str) -> Option<TensorRef> {
        let tensor = self.base.tensor(name)?;
        let Some(changes) = self.changes.get(name) else {
            return Some(tensor);
        };
        let mut values = tensor.to_f32().ok()?;
        for (module, weight) in changes {
            let delta = module.delta()?;
            if delta.values.len() != values.len() {
                return None;
            }
            for (value, delta) in values.iter_mut().zip(&delta.values) {
                *value += weight * delta;
            }
        }
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        TensorRef::new(DType::F32, tensor.shape, bytes.into())
    }

    fn metadata(&self) -> &Metadata {
        self.base.metadata()
    }

    fn files(&self) -> &[WeightFile] {
        self.base.files()
    }

    fn notes(&self) -> &[String] {
        self.base.notes()
    }
}

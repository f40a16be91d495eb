//! Tiny models of every family, laid out like the real repositories: the networks of the reference's
//! fixtures, whose text sides are made as wide as the tiny text encoders beside them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use engine_tensor::DType;
use engine_tensor::ops::numbers;
use engine_weights::{Checkpoint as _, SafeTensors, TensorRef, write_safetensors};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Families, each in one form at least.
pub(crate) const MODELS: &[&str] = &[
    "qwen_image_21",
    "qwen_image",
    "flux2",
    "flux3",
    "z_image",
    "sd15",
    "sdxl",
];

const HIDDEN: usize = 64;

pub(crate) fn fixtures(path: &str) -> PathBuf {
    // Two or one folder above, by the crate that builds this.
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let roots = [own.join("../../tests/fixtures"), own.join("fixtures")];
    let found = roots.into_iter().find(|root| root.is_dir());
    found.unwrap_or_default().join(path)
}

pub(crate) fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

pub(crate) fn floats(shape: &[usize], seed: u64, scale: f32) -> TensorRef {
    let values = numbers(seed, shape.iter().product());
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|v| (v * scale).to_le_bytes())
        .collect();
    TensorRef::new(DType::F32, shape.to_vec(), bytes.into()).unwrap()
}

pub(crate) type Tensors = BTreeMap<String, TensorRef>;

pub(crate) fn tensors_of(path: &Path) -> Tensors {
    let file = SafeTensors::open(path).unwrap();
    let names: Vec<String> = file.names().map(str::to_owned).collect();
    names
        .into_iter()
        .map(|name| {
            let tensor = file.tensor(&name).unwrap();
            (name, tensor)
        })
        .collect()
}

fn write(folder: &Path, file: &str, tensors: &Tensors, config: &Value) {
    std::fs::create_dir_all(folder).unwrap();
    write_safetensors(&folder.join(file), tensors, &[]).unwrap();
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
}

/// A model's folder.
pub(crate) struct Tiny {
    pub(crate) folder: TempDir,
}

impl Tiny {
    pub(crate) fn new(model: &str) -> Self {
        let tiny = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        match model {
            "qwen_image_21" => tiny.qwen_image_21(),
            "qwen_image" => tiny.qwen_image(),
            "flux2" => tiny.flux2(),
            "flux3" => tiny.flux3(),
            "z_image" => tiny.z_image(),
            "sd15" => tiny.stable_diffusion(false),
            "sdxl" => tiny.stable_diffusion(true),
            other => panic!("no tiny model {other:?}"),
        }
        tiny
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn part(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Writes a JSON file.
    pub(crate) fn put(&self, name: &str, value: &Value) {
        let path = self.part(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, value.to_string()).unwrap();
    }

    /// Changes the JSON file `name`.
    pub(crate) fn change(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut value = read(&self.part(name));
        change(&mut value);
        self.put(name, &value);
    }

    fn copy(&self, from: &str, to: &str) {
        let to = self.part(to);
        std::fs::create_dir_all(&to).unwrap();
        for entry in fixtures(from).read_dir().unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let wanted = ["config.json", "scheduler_config.json"].contains(&name)
                || name.starts_with("tokenizer")
                || (name.ends_with(".safetensors")
                    && !["inputs.safetensors", "expected.safetensors"].contains(&name));
            if path.is_file() && wanted {
                std::fs::copy(&path, to.join(name)).unwrap();
            }
        }
    }

    /// The network of a fixture with some tensors and configuration values of its own.
    fn network(
        &self,
        (from, to): (&str, &str),
        own: &[(&str, &[usize])],
        config: &[(&str, Value)],
    ) {
        let folder = fixtures(from);
        let mut tensors = tensors_of(&folder);
        for (index, (name, shape)) in own.iter().enumerate() {
            assert!(tensors.contains_key(*name), "{name}");
            let scale = if shape.len() == 1 { 1.0 } else { 0.2 };
            tensors.insert((*name).to_owned(), floats(shape, index as u64 + 1, scale));
        }
        let mut json = read(&folder.join("config.json"));
        for (key, value) in config {
            json[*key] = value.clone();
        }
        let file = "diffusion_pytorch_model.safetensors";
        write(&self.part(to), file, &tensors, &json);
    }

    fn index(&self, class: &str, more: &Value) {
        let mut index = json!({"_class_name": class, "_diffusers_version": "0.42.1"});
        if let (Some(index), Some(more)) = (index.as_object_mut(), more.as_object()) {
            index.extend(more.clone());
        }
        self.put("model_index.json", &index);
    }

    fn qwen_image_21(&self) {
        self.network(
            ("qwen_image_21/transformer", "transformer"),
            &[
                ("txt_in.text_norm.weight", &[HIDDEN]),
                ("txt_in.in_layer.weight", &[48, HIDDEN]),
            ],
            &[("context_in_dim", json!(HIDDEN))],
        );
        self.copy("qwen_image_21/vae", "vae");
        self.copy("qwen_image_21/scheduler", "scheduler");
        self.copy("qwen3_vl", "text_encoder");
        self.copy("tokenizers/bpe_qwen", "processor");
        self.index("QwenImage21Pipeline", &json!({"sample_sigmas": null}));
    }

    fn qwen_image(&self) {
        self.network(
            ("qwen_image/transformer", "transformer"),
            &[
                ("txt_norm.weight", &[HIDDEN]),
                ("txt_in.weight", &[48, HIDDEN]),
            ],
            &[("joint_attention_dim", json!(HIDDEN))],
        );
        self.copy("qwen_image/vae", "vae");
        self.copy("qwen_image/scheduler", "scheduler");
        self.copy("qwen2_5_vl", "text_encoder");
        self.copy("tokenizers/bpe_qwen", "tokenizer");
        self.index("QwenImageEditPlusPipeline", &json!({}));
    }

    fn flux2(&self) {
        self.network(
            ("flux2_klein/transformer", "transformer"),
            &[("context_embedder.weight", &[48, 3 * HIDDEN])],
            &[("joint_attention_dim", json!(3 * HIDDEN))],
        );
        self.copy("flux2_klein/vae", "vae");
        self.copy("flux2_klein/scheduler", "scheduler");
        self.copy("qwen3", "text_encoder");
        self.copy("tokenizers/bpe_qwen", "tokenizer");
        self.index("Flux2KleinPipeline", &json!({"is_distilled": true}));
    }

    fn flux3(&self) {
        self.network(
            ("flux3/transformer", "transformer"),
            &[("context_embedder.weight", &[48, 8 * HIDDEN])],
            &[("joint_attention_dim", json!(8 * HIDDEN))],
        );
        self.copy("flux3/vae", "vae");
        self.copy("flux3/scheduler", "scheduler");
        self.copy("qwen3_vl", "text_encoder");
        self.copy("tokenizers/bpe_qwen", "tokenizer");
        self.index("Flux3DistilledModularPipeline", &json!({}));
    }

    fn z_image(&self) {
        self.network(
            ("z_image/transformer", "transformer"),
            &[
                ("cap_embedder.0.weight", &[HIDDEN]),
                ("cap_embedder.1.weight", &[48, HIDDEN]),
            ],
            &[("cap_feat_dim", json!(HIDDEN))],
        );
        self.copy("sd15_unet/vae", "vae");
        self.change("vae/config.json", |config| {
            config["scaling_factor"] = json!(0.3611);
            config["shift_factor"] = json!(0.1159);
        });
        self.put(
            "scheduler/scheduler_config.json",
            &json!({"_class_name": "FlowMatchEulerDiscreteScheduler", "shift": 3.0,
                    "use_dynamic_shifting": false}),
        );
        self.copy("qwen3", "text_encoder");
        self.copy("tokenizers/bpe_qwen", "tokenizer");
        self.index("ZImagePipeline", &json!({}));
    }

    fn stable_diffusion(&self, large: bool) {
        let from = fixtures(if large {
            "sd15_unet/unet_xl"
        } else {
            "sd15_unet/unet"
        });
        let mut tensors = tensors_of(&from);
        let mut config = read(&from.join("config.json"));
        let width = if large { 2 * HIDDEN } else { HIDDEN };
        config["cross_attention_dim"] = json!(width);
        let names: Vec<String> = tensors.keys().cloned().collect();
        for (index, name) in names.iter().enumerate() {
            if name.ends_with("attn2.to_k.weight") || name.ends_with("attn2.to_v.weight") {
                let rows = tensors[name].shape[0];
                tensors.insert(name.clone(), floats(&[rows, width], index as u64, 0.2));
            }
        }
        if large {
            tensors.remove("time_embedding.cond_proj.weight");
            config["time_cond_proj_dim"] = Value::Null;
            config["projection_class_embeddings_input_dim"] = json!(6 * 8 + 48);
            let name = "add_embedding.linear_1.weight";
            tensors.insert(name.to_owned(), floats(&[64, 6 * 8 + 48], 5, 0.1));
        }
        let file = "diffusion_pytorch_model.safetensors";
        write(&self.part("unet"), file, &tensors, &config);
        self.copy("sd15_unet/vae", "vae");
        for (name, number) in [("text_encoder", ""), ("text_encoder_2", "_2")] {
            if !large && !number.is_empty() {
                continue;
            }
            let from = fixtures("clip_text").join(name);
            let mut tensors = tensors_of(&from);
            let key = tensors
                .keys()
                .find(|name| name.ends_with("token_embedding.weight"));
            let key = key.cloned().unwrap();
            tensors.insert(key, floats(&[634, HIDDEN], 9, 0.7));
            let mut config = read(&from.join("config.json"));
            config["vocab_size"] = json!(634);
            config["eos_token_id"] = json!(633);
            write(&self.part(name), "model.safetensors", &tensors, &config);
            let tokenizer = format!("tokenizer{number}");
            self.copy("tokenizers/bpe_clip", &tokenizer);
            self.put(
                &format!("{tokenizer}/tokenizer_config.json"),
                &json!({"bos_token": "<|startoftext|>", "eos_token": "<|endoftext|>",
                        "pad_token": "<|endoftext|>"}),
            );
        }
        self.copy("sd15_unet/taesd", "taesd");
        self.put(
            "scheduler/scheduler_config.json",
            &json!({"_class_name": "PNDMScheduler", "beta_start": 0.00085, "beta_end": 0.012,
                    "beta_schedule": "scaled_linear", "steps_offset": 1,
                    "num_train_timesteps": 1000}),
        );
        self.index(
            if large {
                "StableDiffusionXLPipeline"
            } else {
                "StableDiffusionPipeline"
            },
            &json!({}),
        );
    }
}

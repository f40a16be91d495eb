//! Whole generation recipes over the engine's models: text, speech, pictures and larger pictures.
//!
//! Entry points: [`TextPipeline`] (tokenizer, chat template and a language model together),
//! [`Tokenizer`], [`ChatTemplate`], [`Constraint`], [`TextStream`]; [`SpeechPipeline`]; [`Upscaler`]
//! (pictures at twice their size); [`ImagePipeline`] (pictures from prompts).
//!
//! Must not know: workflows, projects, servers; how a model computes its logits.
//!
//! Invariants: a reply depends on the request and the model only. It is the same when the model's
//! KV cache was reused or fresh, when forced tokens were skipped over or asked for, and whatever
//! else the pipeline made before.

mod constraint;
mod device;
mod image;
mod inspect;
mod speech;
mod stream;
mod template;
mod text;
mod tokenizer;
mod upscale;

pub use engine_models::Affinity;
/// Opens a checkpoint file or folder by its content.
pub use engine_weights::open as open_checkpoint;
pub use engine_weights::{DtypeUse, Inspection, WeightsError};

pub use constraint::{Constraint, ConstraintError, GrammarSet, Guide};
pub use device::{DEVICE_VARIABLE, DeviceChoice, DeviceError};
pub use engine_onnx::runtime_path;
pub use image::{
    GivenPicture, IMAGE_FAMILIES, ImageError, ImageLimits, ImageOptions, ImagePipeline,
    ImageRequest, ImageStep, InitPicture, KeptLatent, Latent, RgbaImage,
};
pub use inspect::{ModelInspection, inspect_model};
pub use speech::{
    Accent, English, LeftOut, Pause, Sentence, Speech, SpeechError, SpeechFiles, SpeechPipeline,
    SpeechRequest, SpokenSentence, SpokenWord, UnknownWords, VoiceInfo, Word, foreign_letters,
    foreign_script, printed_text, spoken_text,
};
pub use stream::TextStream;
pub use template::{ChatMessage, ChatTemplate, Place, TemplateError, TemplateInput, TemplateTime};
pub use text::{
    FinishReason, TextError, TextOptions, TextPipeline, TextPrompt, TextReply, TextRequest,
};
pub use tokenizer::{GgufVocabulary, Tokenizer, TokenizerError};
pub use upscale::{Raster, Samples, UpscaleError, Upscaler};

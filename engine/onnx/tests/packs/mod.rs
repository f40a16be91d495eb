//! The packs that `cargo xtask setup` fetches.

use std::path::PathBuf;

use engine_onnx::OnnxRuntime;

fn models() -> PathBuf {
    let data = || {
        let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
        std::env::var_os("XDG_DATA_HOME")
            .map_or_else(|| home.join(".local/share"), PathBuf::from)
            .join("longtake/models")
    };
    std::env::var_os("LONGTAKE_MODELS").map_or_else(data, PathBuf::from)
}

pub(crate) fn model(name: &str) -> PathBuf {
    let path = models().join(name);
    assert!(
        path.is_file(),
        "{path:?} is not there: fetch it with `cargo xtask setup`"
    );
    path
}

pub(crate) fn runtime() -> OnnxRuntime {
    OnnxRuntime::open(&model("onnxruntime/libonnxruntime.so.1.32.0")).unwrap()
}

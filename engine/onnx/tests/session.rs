//! Networks of the default voice: needs the packs that `cargo xtask setup` fetches.
#![allow(
    clippy::unwrap_used,
    reason = "a failed step of a test ends it; helpers count as test code"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use engine_base::{CancelToken, Code};
use engine_onnx::{OnnxError, OnnxOptions, OnnxRuntime, OnnxSession, OnnxTensor, runtime_path};

fn models() -> PathBuf {
    let data = || {
        let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
        std::env::var_os("XDG_DATA_HOME")
            .map_or_else(|| home.join(".local/share"), PathBuf::from)
            .join("longtake/models")
    };
    std::env::var_os("LONGTAKE_MODELS").map_or_else(data, PathBuf::from)
}

fn model(name: &str) -> PathBuf {
    let path = models().join(name);
    assert!(
        path.is_file(),
        "{path:?} is not there: fetch it with `cargo xtask setup`"
    );
    path
}

fn runtime() -> OnnxRuntime {
    OnnxRuntime::open(&model("onnxruntime/libonnxruntime.so.1.32.0")).unwrap()
}

#[test]
fn the_library_named_first_is_taken() {
    let path = |text: &str| Some(PathBuf::from(text));
    assert_eq!(runtime_path(path("a"), path("b")).unwrap(), Path::new("a"));
    if std::env::var_os("LONGTAKE_ONNXRUNTIME").is_none() {
        assert_eq!(runtime_path(None, path("b")).unwrap(), Path::new("b"));
        assert!(matches!(
            runtime_path(None, None),
            Err(OnnxError::NoRuntime)
        ));
    }
}

fn hibari(runs: usize) -> OnnxSession {
    let options = OnnxOptions {
        runs,
        inner_outputs: vec!["/Clip_output_0".into()],
    };
    OnnxSession::load(&runtime(), &model("hibari-0.2.1/hibari.onnx"), &options).unwrap()
}

fn tokens(count: usize) -> (&'static str, OnnxTensor) {
    let ids = (0..count).map(|at| 43 + (at as i64 * 7) % 30).collect();
    ("ids", OnnxTensor::i64(&[1, count], ids).unwrap())
}

fn speed() -> (&'static str, OnnxTensor) {
    ("speed", OnnxTensor::f32(&[1], vec![1.0]).unwrap())
}

#[test]
fn runs_beside_each_other_give_what_one_alone_gives() {
    let wanted = ["lh", "phi", "f0", "/Clip_output_0"];
    let cancel = CancelToken::new();
    let run = |session: &OnnxSession, count: usize| {
        let outputs = session.run(vec![tokens(count), speed()], &wanted, &cancel);
        outputs.unwrap()
    };
    let one = hibari(1);
    let first = run(&one, 60);
    assert_eq!(first[3].shape(), [60]);
    assert_eq!(first[0].shape()[1], 601);
    assert!(first == run(&one, 60), "a second run differs");
    let two = hibari(2);
    std::thread::scope(|scope| {
        let beside = [0; 4].map(|_| scope.spawn(|| run(&two, 60)));
        for work in beside {
            assert!(work.join().unwrap() == first, "a run beside others differs");
        }
    });
}

#[test]
fn inputs_that_do_not_fit_are_refused_by_name() {
    let session = hibari(1);
    let names: Vec<_> = session
        .inputs()
        .iter()
        .map(|port| port.name.as_str())
        .collect();
    assert_eq!(names, ["ids", "speed"]);
    let cancel = CancelToken::new();
    let floats = OnnxTensor::f32(&[1, 2], vec![1.0, 2.0]).unwrap();
    let rows = OnnxTensor::i64(&[2, 1], vec![1, 2]).unwrap();
    let flat = OnnxTensor::i64(&[2], vec![1, 2]).unwrap();
    for (inputs, reason) in [
        (vec![tokens(3)], "\"speed\": it is missing"),
        (vec![tokens(3), speed(), tokens(3)], "given twice"),
        (
            vec![tokens(3), speed(), ("x", flat.clone())],
            "the model takes ids, speed",
        ),
        (
            vec![("ids", floats), speed()],
            "expected i64 values, got f32",
        ),
        (
            vec![("ids", rows), speed()],
            "expected the shape [1, any], got [2, 1]",
        ),
        (
            vec![("ids", flat), speed()],
            "expected the shape [1, any], got [2]",
        ),
    ] {
        let error = session.run(inputs, &["f0"], &cancel).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
    let wanted = session.run(vec![tokens(3), speed()], &["f1"], &cancel);
    assert!(matches!(wanted, Err(OnnxError::BadOutput { .. })));
    // A number that the model's table does not have: the library says so.
    let beyond = OnnxTensor::i64(&[1, 1], vec![1 << 40]).unwrap();
    let error = session.run(vec![("ids", beyond), speed()], &["f0"], &cancel);
    assert!(matches!(error, Err(OnnxError::Failed { .. })), "{error:?}");
}

#[test]
fn a_run_stops_when_told() {
    let session = hibari(1);
    let cancel = CancelToken::new();
    let began = Instant::now();
    let ended = std::thread::scope(|scope| {
        let work = scope.spawn(|| session.run(vec![tokens(500), speed()], &["lh"], &cancel));
        std::thread::sleep(Duration::from_millis(30));
        cancel.cancel();
        work.join().unwrap()
    });
    // A fast machine may be done before.
    if let Err(error) = ended {
        assert_eq!(error.code(), Code::Cancelled, "{error}");
    }
    println!("{:?}", began.elapsed());
    let error = session.run(vec![tokens(3), speed()], &["f0"], &cancel);
    assert_eq!(error.unwrap_err().code(), Code::Cancelled);
}

#[test]
fn files_that_are_no_models_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(model("hibari-0.2.1/oov_gb.onnx")).unwrap();
    let runtime = runtime();
    let load = |name: &str, bytes: &[u8], options: &OnnxOptions| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        OnnxSession::load(&runtime, &path, options).unwrap_err()
    };
    let plain = OnnxOptions::default();
    let inner = OnnxOptions {
        runs: 1,
        inner_outputs: vec!["/no/such/value".into()],
    };
    for error in [
        load("text.onnx", b"this is no model", &plain),
        load("empty.onnx", b"", &plain),
        load("cut.onnx", &whole[..whole.len() / 2], &plain),
        load("whole.onnx", &whole, &inner),
    ] {
        println!("{error}");
        assert!(matches!(error, OnnxError::BadModel { .. }), "{error}");
    }
    let none = OnnxSession::load(&runtime, &folder.path().join("none.onnx"), &plain);
    assert_eq!(none.unwrap_err().code(), Code::NotFound);
}

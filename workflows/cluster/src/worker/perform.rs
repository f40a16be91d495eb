//! One job from its message to its result.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_nats::jetstream::{AckKind, Message};
use engine_base::{CancelToken, Code};
use flow_executor::{FarCall, FarError, FarMade};
use flow_store::{Exactness, StoredValue};

use super::hold::{Held, Progress};
use super::{AGAIN, Shared};
use crate::artifacts::{ArtifactError, Fetched, Holder};
use crate::dispatch::Done;
use crate::job::Output;
use crate::lease::{Failure, Lease};
use crate::transport::{
    CallBody, CallText, JobMessage, Outcome, ResultMessage, ports_to_text, result_subject,
};

/// Leases that are remembered.
pub(super) const REMEMBERED: usize = 4096;

/// Run the job in `message` under its lease; the message is acknowledged when the result is safe.
pub(super) async fn perform(shared: Arc<Shared>, message: Message) {
    let Ok(job) = serde_json::from_slice::<JobMessage>(&message.payload) else {
        tracing::warn!("a message in the queue of jobs is none; it was thrown away");
        drop(message.ack_with(AckKind::Term).await);
        return;
    };
    let name = (job.owner.clone(), job.lease.id.0);
    if !shared.take(name.clone()) {
        if !shared.held().contains_key(&name) {
            drop(message.ack().await);
        }
        return;
    }
    let cancel = CancelToken::new();
    let progress = Arc::new(Progress::default());
    let now = shared.clock.monotonic();
    let (node, node_type) = match &job.call {
        CallBody::Here(text) => text.about(),
        CallBody::File(_) => (String::new(), String::new()),
    };
    let held = Held {
        lease: job.lease.clone(),
        owner: job.owner.clone(),
        node,
        node_type,
        cancel: cancel.clone(),
        progress: Arc::clone(&progress),
        began: now,
        reached: now,
        finished: false,
    };
    shared.held().insert(name.clone(), held);
    shared.changed.notify_one();
    let renewing = {
        let every = shared.lease / 3;
        let acker = Acker::of(&message);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(every).await;
                drop(acker.ack_with(AckKind::Progress).await);
            }
        })
    };
    let result = run(&shared, &job, &cancel, progress).await;
    // What is made is delivered even when its lease was lost meanwhile: the owner takes what comes
    // first, and what is finished is not to be made again.
    let is_made = matches!(result.outcome, Outcome::Done { .. });
    let wanted = is_made || !cancel.is_cancelled();
    if wanted {
        if let Some(held) = shared.held().get_mut(&name) {
            held.finished = true;
        }
        shared.changed.notify_one();
        if is_made {
            shared.keep_result(name.clone(), result.clone());
        }
        deliver(&shared, &job, &result).await;
    }
    renewing.abort();
    // The owner has the result, or wants none: the message has done its work.
    let acked = if !wanted {
        message.ack_with(AckKind::Term).await
    } else {
        message.ack().await
    };
    if let Err(error) = acked {
        tracing::debug!(%error, "a job was not acknowledged; its lease keeps it from running again");
    }
    if wanted {
        shared.done.fetch_add(1, Ordering::Relaxed);
    }
    shared.held().remove(&name);
    shared.changed.notify_one();
}

/// Publish a result once more for an owner that does not know of it. The server drops it where
/// it has it.
pub(super) async fn tell_again(shared: &Arc<Shared>, owner: &str, result: &ResultMessage) {
    let payload = serde_json::to_vec(result).unwrap_or_default();
    let subject = result_subject(owner, result.lease.id);
    let id = format!("{owner}.{}", result.lease.id);
    if let Err(error) = shared.link.publish("a result", subject, &id, payload).await {
        tracing::debug!(%error, "a result was not told again");
    }
}

/// Publish the result until the server has it. Somebody who wants this worker to leave waits for
/// that as long as a lease lasts.
async fn deliver(shared: &Arc<Shared>, job: &JobMessage, result: &ResultMessage) {
    let payload = serde_json::to_vec(result).unwrap_or_default();
    let subject = result_subject(&job.owner, job.lease.id);
    let id = format!("{}.{}", job.owner, job.lease.id);
    let mut tries = 0u32;
    let mut asked_to_leave = None;
    loop {
        let now = shared.clock.monotonic();
        if shared.leave.is_cancelled() {
            let since = *asked_to_leave.get_or_insert(now);
            if now.saturating_sub(since) > shared.lease {
                tracing::warn!("a result was not delivered: the server is away");
                return;
            }
        }
        let sent = shared
            .link
            .publish("a result", subject.clone(), &id, payload.clone())
            .await;
        match sent {
            Ok(_) => return,
            Err(error @ crate::transport::ClusterError::TooLarge { .. }) => {
                let failure = Failure::Node {
                    code: Code::Refused,
                    text: error.to_string(),
                };
                let short = ResultMessage {
                    outcome: Outcome::Failed { failure },
                    ..result.clone()
                };
                let payload = serde_json::to_vec(&short).unwrap_or_default();
                let sent = shared
                    .link
                    .publish("a failure", subject.clone(), &id, payload);
                if sent.await.is_ok() {
                    return;
                }
            }
            Err(error) => {
                tries += 1;
                if tries == 1 {
                    tracing::warn!("{error}; trying again");
                }
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn run(
    shared: &Arc<Shared>,
    job: &JobMessage,
    cancel: &CancelToken,
    progress: Arc<Progress>,
) -> ResultMessage {
    let failed = |lease: &Lease, failure: Failure| ResultMessage {
        lease: lease.clone(),
        node_type: String::new(),
        exactness: Exactness::Tolerant,
        inputs: Vec::new(),
        outcome: Outcome::Failed { failure },
    };
    let holders: Vec<Holder> = job.holders.iter().filter_map(|one| one.holder()).collect();
    let began = shared.clock.monotonic();
    let call = match read_call(shared, &job.call, &holders, cancel).await {
        Ok(call) => call,
        Err(failure) => return failed(&job.lease, failure),
    };
    if let Some(held) = shared.held().get_mut(&(job.owner.clone(), job.lease.id.0)) {
        held.node.clone_from(&call.node);
        held.node_type.clone_from(&call.node_type);
    }
    let fetched = match fetch_all(shared, &call, &holders, cancel).await {
        Ok(fetched) => fetched,
        Err(error) => return failed(&job.lease, error.failure()),
    };
    // Others gave bytes that are not what they said: the owner has to know, whoever it was.
    let corrupt = fetched.iter().flat_map(|one| &one.corrupt);
    for one in corrupt {
        tracing::warn!("{} gave other bytes than announced", one.from);
    }
    let exactness = shared.executor.exactness_of(&call.node_type);
    let inputs = call.files().map(|blob| blob.hash).collect();
    let node_type = call.node_type.clone();
    let ran = {
        let (shared, cancel) = (Arc::clone(shared), cancel.clone());
        let threads = shared.threads;
        tokio::task::spawn_blocking(move || {
            shared
                .executor
                .run_call(&call, threads, &cancel, &*progress)
        })
        .await
    };
    drop(fetched);
    let outcome = match ran {
        Ok(Ok(made)) => {
            let run_secs = made.wall.as_secs_f64();
            done(made, run_secs)
        }
        Ok(Err(error)) => Outcome::Failed {
            failure: failure_of(&error, shared),
        },
        Err(panicked) => Outcome::Failed {
            failure: Failure::Node {
                code: Code::Internal,
                text: panicked.to_string(),
            },
        },
    };
    tracing::debug!(
        secs = shared.clock.monotonic().saturating_sub(began).as_secs_f64(),
        "a job ended"
    );
    ResultMessage {
        lease: job.lease.clone(),
        node_type,
        exactness,
        inputs,
        outcome,
    }
}

fn done(made: FarMade, run_secs: f64) -> Outcome {
    let outputs = made.ports.iter().flat_map(|port| &port.elements);
    let outputs = outputs.enumerate().filter_map(|(port, value)| match value {
        StoredValue::Blob(blob) => Some(Output {
            port: u32::try_from(port).unwrap_or(u32::MAX),
            content: blob.hash,
            bytes: blob.bytes,
        }),
        StoredValue::Small(_) | StoredValue::Blocked(_) => None,
    });
    // What was found says nothing about how long it takes to make.
    let run_secs = if made.reused { f64::NAN } else { run_secs };
    let outputs = outputs.collect();
    match ports_to_text(&made.ports) {
        Ok(ports) => Outcome::Done {
            done: Done {
                outputs,
                run_secs: if run_secs.is_nan() { -1.0 } else { run_secs },
                load_secs: None,
            },
            ports,
            wall_millis: u64::try_from(made.wall.as_millis()).unwrap_or(u64::MAX),
            engine_build: made.engine_build,
            device_class: made.device_class,
            reused: made.reused,
        },
        Err(text) => Outcome::Failed {
            failure: Failure::Node {
                code: Code::Internal,
                text,
            },
        },
    }
}

fn failure_of(error: &FarError, shared: &Shared) -> Failure {
    match error {
        FarError::Node(node) if node.code == Code::DiskFull => Failure::Node {
            code: Code::DiskFull,
            text: format!("on worker {}: {}", shared.name(), node.message),
        },
        FarError::Node(node) => Failure::Node {
            code: node.code,
            text: node.message.clone(),
        },
        // Another worker may have the right model, font or version.
        FarError::NoSuchType { .. } | FarError::Version { .. } | FarError::OtherKey { .. } => {
            Failure::Node {
                code: Code::NotPermitted,
                text: format!("worker {}: {error}", shared.name()),
            }
        }
    }
}

async fn read_call(
    shared: &Arc<Shared>,
    body: &CallBody,
    holders: &[Holder],
    cancel: &CancelToken,
) -> Result<FarCall, Failure> {
    let damaged = |text: String| Failure::Node {
        code: Code::BadInput,
        text: format!("cannot read a job: {text}"),
    };
    match body {
        CallBody::Here(text) => text.call().map_err(damaged),
        CallBody::File(file) => {
            let fetched = shared
                .artifacts
                .fetch(&file.content, file.bytes, holders, cancel)
                .await
                .map_err(|error| error.failure())?;
            let bytes = tokio::fs::read(&fetched.path).await;
            let bytes = bytes.map_err(|error| damaged(error.to_string()))?;
            let text: CallText =
                serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
            text.call().map_err(damaged)
        }
    }
}

/// Bring every file that the call reads into our store.
async fn fetch_all(
    shared: &Arc<Shared>,
    call: &FarCall,
    holders: &[Holder],
    cancel: &CancelToken,
) -> Result<Vec<Fetched>, ArtifactError> {
    let mut files: Vec<_> = call.files().map(|blob| (blob.hash, blob.bytes)).collect();
    files.sort_unstable();
    files.dedup();
    let mut fetched = Vec::with_capacity(files.len());
    for (hash, bytes) in files {
        fetched.push(
            shared
                .artifacts
                .fetch(&hash, bytes, holders, cancel)
                .await?,
        );
    }
    Ok(fetched)
}

/// The part of a message that says that work goes on.
struct Acker {
    reply: Option<async_nats::Subject>,
    client: async_nats::Client,
}

impl Acker {
    fn of(message: &Message) -> Self {
        Self {
            reply: message.reply.clone(),
            client: message.context.client(),
        }
    }

    async fn ack_with(&self, kind: AckKind) -> Result<(), async_nats::PublishError> {
        match &self.reply {
            Some(reply) => self.client.publish(reply.clone(), kind.into()).await,
            None => Ok(()),
        }
    }
}

//! The server's configuration file and certificate.

use std::net::SocketAddr;
use std::path::Path;

use super::secrets::{Secrets, write_private};
use crate::names::WorkerId;
use crate::transport::{
    BUCKET, CARDS, ClusterError, JOBS, RESULTS, beat_subject, consumer_of_worker, control_subject,
    job_filter, stop_subject,
};

/// The configuration file.
pub(super) const NAME: &str = "nats.conf";
/// The server's log.
pub(super) const LOG: &str = "nats.log";
const CERTIFICATE: &str = "certificate.pem";
const PRIVATE_KEY: &str = "private-key.pem";

/// A certificate for this cluster, made once; gives its fingerprint.
pub(super) fn certificate(dir: &Path) -> Result<String, ClusterError> {
    let (cert, key) = (dir.join(CERTIFICATE), dir.join(PRIVATE_KEY));
    let shown = dir.join("fingerprint");
    if let Ok(known) = std::fs::read_to_string(&shown)
        && cert.is_file()
        && key.is_file()
    {
        return Ok(known.trim().to_owned());
    }
    let failed = |error: rcgen::Error| ClusterError::System {
        what: "make a certificate",
        why: error.to_string(),
    };
    let made = rcgen::generate_simple_self_signed(vec!["longtake-cluster".to_owned()]);
    let made = made.map_err(failed)?;
    let fingerprint = crate::transport::fingerprint(made.cert.der());
    write_private(&key, made.signing_key.serialize_pem().as_bytes())?;
    write_private(&cert, made.cert.pem().as_bytes())?;
    write_private(&shown, fingerprint.as_bytes())?;
    Ok(fingerprint)
}

/// What a worker may say and hear; `*` for any worker.
struct Rights {
    publish: Vec<String>,
    subscribe: Vec<String>,
}

fn rights(worker: Option<&WorkerId>, user: &str) -> Rights {
    let name = worker.map_or("*", WorkerId::as_str);
    let own = |of: fn(&WorkerId) -> String, any: &str| worker.map_or_else(|| any.to_owned(), of);
    let consumer = own(consumer_of_worker, "*");
    let jobs = own(job_filter, ">");
    let mut publish = Vec::new();
    for bucket in [CARDS, BUCKET] {
        // A wildcard stands for a whole word only: each stream is named.
        publish.push(format!("$JS.API.STREAM.INFO.KV_{bucket}"));
        publish.push(format!("$JS.API.DIRECT.GET.KV_{bucket}.>"));
        publish.push(format!("$JS.API.STREAM.MSG.GET.KV_{bucket}"));
    }
    publish.extend([
        beat_subject(name),
        "lt.results.*.*".to_owned(),
        "$JS.API.INFO".to_owned(),
        format!("$JS.API.STREAM.INFO.{JOBS}"),
        format!("$JS.API.STREAM.INFO.{RESULTS}"),
        format!("$JS.API.CONSUMER.INFO.{JOBS}.{consumer}"),
        format!("$JS.API.CONSUMER.CREATE.{JOBS}.{consumer}.{jobs}"),
        format!("$JS.API.CONSUMER.MSG.NEXT.{JOBS}.{consumer}"),
        format!("$JS.ACK.{JOBS}.{consumer}.>"),
        // As newer servers name it: with domain and account before the stream.
        format!("$JS.ACK.*.*.{JOBS}.{consumer}.>"),
        format!("$KV.{CARDS}.{name}"),
    ]);
    Rights {
        publish,
        subscribe: vec![
            format!("_INBOX_{user}.>"),
            own(stop_subject, "lt.stop.*"),
            own(control_subject, "lt.control.*"),
            beat_subject(name),
        ],
    }
}

fn list(subjects: &[String]) -> String {
    let quoted: Vec<String> = subjects.iter().map(|s| format!("\"{s}\"")).collect();
    quoted.join(", ")
}

fn user(out: &mut String, user: &str, password: &str, rights: Option<&Rights>) {
    let rights = rights.map_or_else(String::new, |rights| {
        format!(
            ", permissions: {{ publish: {{ allow: [{}] }}, subscribe: {{ allow: [{}] }} }}",
            list(&rights.publish),
            list(&rights.subscribe)
        )
    });
    out.push_str(&format!(
        "    {{ user: \"{user}\", password: \"{password}\"{rights} }}\n"
    ));
}

/// The configuration as text.
fn text(dir: &Path, address: SocketAddr, tls: bool, secrets: &Secrets) -> String {
    let quoted = |path: &Path| serde_json::Value::from(path.to_string_lossy()).to_string();
    let mut out = String::new();
    let host = address.ip();
    let store = quoted(&dir.join("jetstream"));
    let pid_file = quoted(&dir.join("nats.pid"));
    let log = quoted(&dir.join(LOG));
    // Acknowledged means on disk: the default would lose two minutes at a loss of power.
    out.push_str(&format!(
        "# Written by `longtake cluster up`, again at every start.\n\
         host: \"{host}\"\nport: {}\nserver_name: \"longtake\"\n\
         max_payload: 1MB\npid_file: {pid_file}\nlog_file: {log}\nlogfile_size_limit: 16MB\n\
         ping_interval: \"5s\"\nping_max: 3\nwrite_deadline: \"10s\"\n\
         jetstream {{\n  store_dir: {store}\n  sync_interval: always\n  \
         max_memory_store: 64MB\n  max_file_store: 8GB\n}}\n",
        address.port()
    ));
    if tls {
        let cert = quoted(&dir.join(CERTIFICATE));
        let key = quoted(&dir.join(PRIVATE_KEY));
        out.push_str(&format!(
            "tls {{\n  cert_file: {cert}\n  key_file: {key}\n  timeout: 5\n}}\n"
        ));
    }
    out.push_str("authorization {\n  timeout: 5\n  users = [\n");
    user(&mut out, "owner", &secrets.owner, None);
    let any = rights(None, "worker");
    user(&mut out, "worker", &secrets.worker, Some(&any));
    for (worker, secret) in &secrets.named {
        let name = format!("w-{worker}");
        let own = rights(Some(worker), &name);
        user(&mut out, &name, secret, Some(&own));
    }
    out.push_str("  ]\n}\n");
    out
}

/// Write the configuration into the folder, for this user only.
pub(super) fn write(
    dir: &Path,
    address: SocketAddr,
    tls: bool,
    secrets: &Secrets,
) -> Result<(), ClusterError> {
    let text = text(dir, address, tls, secrets);
    write_private(&dir.join(NAME), text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_worker_has_its_own_jobs_and_no_others() {
        let name = WorkerId::new("spark-1").unwrap();
        let own = rights(Some(&name), "w-spark-1");
        for subject in own.publish.iter().chain(&own.subscribe) {
            let open = subject.contains("lt.jobs.>") || subject == ">" || subject == "lt.>";
            assert!(!open, "{subject}");
        }
        assert!(own.publish.iter().any(|s| s.ends_with("lt.jobs.spark-1.*")));
        assert!(!own.publish.iter().any(|s| s.starts_with("lt.jobs")));
        let any = rights(None, "worker");
        assert!(
            !any.publish
                .iter()
                .any(|s| s.contains("STREAM.DELETE") || s.contains("STREAM.CREATE"))
        );
    }

    #[test]
    fn the_configuration_syncs_always_and_listens_where_it_was_told() {
        let secrets = Secrets {
            owner: "o".into(),
            worker: "w".into(),
            ..Secrets::default()
        };
        let text = text(
            Path::new("/x \"y"),
            "127.0.0.1:4222".parse().unwrap(),
            false,
            &secrets,
        );
        assert!(text.contains("sync_interval: always"));
        assert!(text.contains("host: \"127.0.0.1\"") && !text.contains("tls"));
        assert!(text.contains("\"/x \\\"y/jetstream\""), "{text}");
    }
}

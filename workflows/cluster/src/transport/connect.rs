//! A connection to the cluster's server, and what is looked at before it is used.

use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream;
use async_nats::{Client, ConnectErrorKind, ConnectOptions};

use super::error::ClusterError;
use super::tls;
use crate::join::JoinLine;
use crate::version::{Version, check_nats};

/// How long a server may take to answer.
const CONNECT: Duration = Duration::from_secs(5);

/// Signs of life between us and the server: two missing ones are a cut link.
const PING: Duration = Duration::from_secs(2);

/// Longest wait before another attempt to reach the server again.
const RECONNECT_MOST: Duration = Duration::from_secs(1);

/// A connection that comes back by itself when the server does.
#[derive(Debug, Clone)]
pub struct Link {
    /// The connection.
    pub client: Client,
    /// Streams over it.
    pub streams: jetstream::Context,
    /// Where the server is.
    pub address: String,
    /// What it says it is.
    pub version: Version,
}

impl Link {
    /// Connect, and check that the server will do.
    ///
    /// # Errors
    /// [`ClusterError::Unreachable`], [`ClusterError::Refused`], [`ClusterError::Certificate`],
    /// [`ClusterError::Version`] with both versions, [`ClusterError::NoJetStream`].
    pub async fn connect(line: &JoinLine, name: &str) -> Result<Self, ClusterError> {
        let address = line.address.clone();
        let (user, password) = line
            .token
            .split_once(':')
            .unwrap_or(("worker", &line.token));
        let mut options = ConnectOptions::with_user_and_password(user.into(), password.into())
            .name(name)
            .custom_inbox_prefix(format!("_INBOX_{user}"))
            .connection_timeout(CONNECT)
            .request_timeout(Some(CONNECT))
            .ping_interval(PING)
            .reconnect_delay_callback(|attempts| {
                let millis = 50 * u64::try_from(attempts).unwrap_or(u64::MAX).min(1000);
                Duration::from_millis(millis).min(RECONNECT_MOST)
            });
        if !line.fingerprint.is_empty() {
            let config = tls::pinned(&line.fingerprint).map_err(|why| ClusterError::System {
                what: "set up TLS",
                why,
            })?;
            options = options.tls_client_config(config).require_tls(true);
        }
        let servers: Vec<String> = address
            .split(',')
            .map(|one| format!("nats://{}", one.trim()))
            .collect();
        let client = options.connect(servers).await.map_err(|error| {
            let address = address.clone();
            match error.kind() {
                ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
                    ClusterError::Refused { address }
                }
                _ if !line.fingerprint.is_empty()
                    && error.to_string().to_lowercase().contains("certificate") =>
                {
                    let expected = line.fingerprint.chars().take(16).collect();
                    ClusterError::Certificate { address, expected }
                }
                _ => {
                    let why = error.to_string();
                    ClusterError::Unreachable { address, why }
                }
            }
        })?;
        let info = client.server_info();
        let version = check_nats(&info.version, &address)?;
        if !info.jetstream {
            return Err(ClusterError::NoJetStream { address });
        }
        let streams = jetstream::new(client.clone());
        Ok(Self {
            client,
            streams,
            address,
            version,
        })
    }

    /// Whether the server is there at the moment.
    pub fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Largest message the server takes, in bytes.
    pub fn most_bytes(&self) -> usize {
        self.client.max_payload()
    }

    /// Wait until the server has what was told.
    ///
    /// # Errors
    /// [`ClusterError::Stream`].
    pub async fn flush(&self) -> Result<(), ClusterError> {
        let flushed = self.client.flush().await;
        flushed.map_err(|error| ClusterError::stream("reach the server", &error))
    }

    /// Publish without waiting for anybody to hear it: for what is said again soon anyway.
    pub async fn tell<T: serde::Serialize + Sync>(&self, subject: String, message: &T) {
        let payload = serde_json::to_vec(message).unwrap_or_default();
        if let Err(error) = self.client.publish(subject, payload.into()).await {
            tracing::debug!(%error, "a message was not sent");
        }
    }

    /// Publish into a stream and wait until the server has it on disk. `id` keeps it from being
    /// taken in twice. Gives its place in the stream.
    ///
    /// # Errors
    /// [`ClusterError::TooLarge`] before anything is sent; [`ClusterError::Stream`].
    pub async fn publish(
        &self,
        what: &str,
        subject: String,
        id: &str,
        payload: Vec<u8>,
    ) -> Result<u64, ClusterError> {
        // The header counts too.
        let got_bytes = payload.len() + id.len() + 64;
        let most_bytes = self.most_bytes();
        if got_bytes > most_bytes {
            return Err(ClusterError::TooLarge {
                what: what.to_owned(),
                got_bytes,
                most_bytes,
            });
        }
        let message = jetstream::message::PublishMessage::build()
            .payload(payload.into())
            .message_id(id);
        let failed =
            |error: &dyn std::fmt::Display| ClusterError::stream(format!("send {what}"), error);
        let ack = self.streams.send_publish(subject, message).await;
        let ack = ack.map_err(|error| failed(&error))?.await;
        Ok(ack.map_err(|error| failed(&error))?.sequence)
    }
}

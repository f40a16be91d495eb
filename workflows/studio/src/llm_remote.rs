//! A language model behind any server that speaks the OpenAI chat protocol.

mod reply;

use std::fmt;
use std::time::Duration;

use engine_base::{CancelToken, Cancelled, Code};
use flow_story::{Llm, LlmError, LlmKind, LlmReply, LlmRequest, Role};
use reqwest::header::RETRY_AFTER;
use reqwest::{Client, Response, StatusCode, Url};
use serde_json::{Value, json};

use crate::error::StudioError;
use reply::{Reply, ReplyError};

/// Largest reply that is read, in bytes.
const REPLY_BYTES_MAX: usize = 4_000_000;
/// How often a waiting request looks whether it was cancelled.
const CANCEL_MILLIS: u64 = 50;

/// How to reach the server.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// `http://host:port/v1`, with `#model` behind it where the server has several.
    pub url: String,
    /// Key sent as a bearer token; never logged, stored or shown.
    pub key: Option<Key>,
    /// Longest wait for a connection.
    pub connect: Duration,
    /// Longest silence of the server.
    pub silence: Duration,
    /// Tries of one request.
    pub tries: u32,
    /// Wait before the second try; doubled before each further one.
    pub pause: Duration,
    /// Longest wait that a server may ask for.
    pub pause_max: Duration,
}

impl RemoteOptions {
    /// Usual patience with the server at `url`.
    pub fn new(url: impl Into<String>, key: Option<Key>) -> Self {
        Self {
            url: url.into(),
            key,
            connect: Duration::from_secs(10),
            silence: Duration::from_secs(120),
            tries: 4,
            pause: Duration::from_millis(500),
            pause_max: Duration::from_secs(60),
        }
    }
}

/// A secret that shows itself nowhere but in the request.
#[derive(Clone)]
pub struct Key(String);

impl Key {
    /// Keep `text` secret.
    pub const fn new(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(...)")
    }
}

/// What a server takes as the shape of the reply, from the most to the least it may know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Schema,
    Object,
    Plain,
}

/// A language model behind a server.
pub struct RemoteLlm {
    options: RemoteOptions,
    client: Client,
    runtime: tokio::runtime::Runtime,
    base: Url,
    model: String,
    name: String,
    shape: Shape,
}

/// How a try ended without a reply.
enum Trouble {
    Cancelled,
    /// Worth another try after a wait; `None` waits as usual.
    Again(LlmError, Option<Duration>),
    /// The server does not know this shape of reply.
    Shape(LlmError),
    Final(LlmError),
}

impl From<Cancelled> for Trouble {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

impl RemoteLlm {
    /// Reach for the server; without a model in the URL its first one is taken.
    ///
    /// # Errors
    /// A URL that is none, a server that is not there.
    pub fn connect(options: RemoteOptions, cancel: &CancelToken) -> Result<Self, StudioError> {
        let (base, model) = address(&options.url)?;
        let internal = |error: &dyn fmt::Display| {
            let message = format!("cannot set up the connection: {error}");
            StudioError::new(Code::Internal, message)
        };
        let local = base
            .host_str()
            .is_some_and(|host| host == "localhost" || host.starts_with("127.") || host == "[::1]");
        let mut client = Client::builder()
            .connect_timeout(options.connect)
            .read_timeout(options.silence)
            // A redirect could carry the key to somebody else.
            .redirect(reqwest::redirect::Policy::none());
        if local {
            client = client.no_proxy();
        }
        let client = client
            .build()
            .map_err(|error| internal(&error.without_url()))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| internal(&error))?;
        let host = match (base.host_str(), base.port()) {
            (Some(host), Some(port)) => format!("{host}:{port}"),
            (host, _) => host.unwrap_or("").to_owned(),
        };
        let mut llm = Self {
            options,
            client,
            runtime,
            base,
            model: model.clone().unwrap_or_default(),
            name: String::new(),
            shape: Shape::Schema,
        };
        if model.is_none() {
            let models = llm.tried(cancel, Self::models);
            llm.model = models.map_err(|error| StudioError::new(error.code, error.message))?;
        }
        llm.name = format!("{}@{host}", llm.model);
        Ok(llm)
    }

    /// Try `what` again and again, as the options say.
    fn tried<T>(
        &mut self,
        cancel: &CancelToken,
        mut what: impl FnMut(&Self, &CancelToken) -> Result<T, Trouble>,
    ) -> Result<T, LlmError> {
        // Timers are bound to their runtime where they are made, not where they are waited for.
        let runtime = self.runtime.handle().clone();
        let _inside = runtime.enter();
        let mut tries = 0;
        let mut pause = self.options.pause;
        loop {
            let error = match what(self, cancel) {
                Ok(done) => return Ok(done),
                Err(Trouble::Cancelled) => return Err(Cancelled.into()),
                Err(Trouble::Final(error)) => return Err(error),
                Err(Trouble::Shape(error)) => {
                    // Not a failure of the server: it is only older than the request.
                    self.shape = match self.shape {
                        Shape::Schema => Shape::Object,
                        Shape::Object => Shape::Plain,
                        Shape::Plain => return Err(error),
                    };
                    continue;
                }
                Err(Trouble::Again(error, asked)) => (error, asked),
            };
            tries += 1;
            let (error, asked) = error;
            if tries >= self.options.tries.max(1) {
                return Err(error);
            }
            let wait = asked.unwrap_or(pause).min(self.options.pause_max);
            let message = &error.message;
            tracing::debug!(tries, ?wait, "asking the language model again: {message}");
            pause *= 2;
            let waited = self.wait(tokio::time::sleep(wait), cancel);
            if waited.is_err() {
                return Err(Cancelled.into());
            }
        }
    }

    /// What `future` gives, unless `cancel` is raised before.
    fn wait<F: Future>(&self, future: F, cancel: &CancelToken) -> Result<F::Output, Cancelled> {
        self.runtime.block_on(async {
            let mut future = std::pin::pin!(future);
            loop {
                cancel.check()?;
                let look = Duration::from_millis(CANCEL_MILLIS);
                if let Ok(done) = tokio::time::timeout(look, &mut future).await {
                    return Ok(done);
                }
            }
        })
    }

    fn endpoint(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        let whole = format!("{}/{path}", url.path().trim_end_matches('/'));
        url.set_path(&whole);
        url
    }

    /// Status and body of the answer to a request.
    fn send(
        &self,
        request: reqwest::RequestBuilder,
        cancel: &CancelToken,
    ) -> Result<(Response, Vec<u8>), Trouble> {
        let request = match &self.options.key {
            Some(Key(key)) => request.bearer_auth(key),
            None => request,
        };
        let unreachable = |error: reqwest::Error| {
            let silence = self.options.silence.as_secs_f64();
            let why = if error.is_timeout() {
                format!("no answer within {silence} s")
            } else if error.is_connect() {
                "nobody answers there".to_owned()
            } else {
                format!("the answer was cut off ({})", error.without_url())
            };
            let message = format!("cannot ask the language model at {}: {why}", self.shown());
            Trouble::Again(LlmError::new(Code::Io, message), None)
        };
        let mut response = self.wait(request.send(), cancel)?.map_err(unreachable)?;
        let mut body = Vec::new();
        while let Some(piece) = self.wait(response.chunk(), cancel)?.map_err(unreachable)? {
            if body.len() + piece.len() > REPLY_BYTES_MAX {
                let message = format!("the reply is larger than {REPLY_BYTES_MAX} bytes");
                return Err(Trouble::Final(LlmError::passing(Code::BadInput, message)));
            }
            body.extend_from_slice(&piece);
            if reply::is_finished(&body) {
                break;
            }
        }
        Ok((response, body))
    }

    /// The server without what might be secret in its URL.
    fn shown(&self) -> String {
        let host = self.base.host_str().unwrap_or("");
        self.base
            .port()
            .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    fn models(&self, cancel: &CancelToken) -> Result<String, Trouble> {
        let (response, body) = self.send(self.client.get(self.endpoint("models")), cancel)?;
        if !response.status().is_success() {
            return Err(self.refused(&response, &body));
        }
        let value: Value = serde_json::from_slice(&body).unwrap_or_default();
        let first = value["data"][0]["id"]
            .as_str()
            .or(value["models"][0]["name"].as_str());
        first.map(str::to_owned).ok_or_else(|| {
            let message = format!(
                "{} names no model: expected one behind the URL, as in http://host:port/v1#model",
                self.shown()
            );
            Trouble::Final(LlmError::new(Code::NotFound, message))
        })
    }

    fn refused(&self, response: &Response, body: &[u8]) -> Trouble {
        let status = response.status();
        let said = reply::server_message(body);
        let shown = self.shown();
        let message = format!("the language model at {shown} answered {status}: {said}");
        let secs = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.trim().parse::<u64>().ok());
        match status {
            StatusCode::TOO_MANY_REQUESTS => Trouble::Again(
                LlmError::new(Code::Busy, message),
                secs.map(Duration::from_secs),
            ),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let message = format!("{message}; set LONGTAKE_LLM_KEY to a key it takes");
                Trouble::Final(LlmError::new(Code::NotPermitted, message))
            }
            StatusCode::NOT_FOUND => Trouble::Final(LlmError::new(Code::NotFound, message)),
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => {
                Trouble::Shape(LlmError::new(Code::BadInput, message))
            }
            _ if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT => {
                Trouble::Again(
                    LlmError::new(Code::Io, message),
                    secs.map(Duration::from_secs),
                )
            }
            _ => Trouble::Final(LlmError::new(Code::Refused, message)),
        }
    }

    fn ask(&self, request: &LlmRequest, cancel: &CancelToken) -> Result<LlmReply, Trouble> {
        let body = self.body(request);
        let sent = self
            .client
            .post(self.endpoint("chat/completions"))
            .json(&body);
        let (response, bytes) = self.send(sent, cancel)?;
        if !response.status().is_success() {
            return Err(self.refused(&response, &bytes));
        }
        match reply::read(&bytes) {
            Ok(Reply { text, tokens }) => Ok(LlmReply {
                text,
                tokens,
                mean_logprob: None,
            }),
            Err(ReplyError::Cut) => {
                let message = format!("the reply of {} was cut off", self.shown());
                Err(Trouble::Again(LlmError::passing(Code::Io, message), None))
            }
            Err(ReplyError::Refusal(said)) => {
                let message = format!("the language model refused: {said}");
                Err(Trouble::Final(LlmError::passing(Code::Refused, message)))
            }
            Err(ReplyError::Nonsense(got)) => {
                let message = format!("expected a chat completion, got {got:?}");
                Err(Trouble::Final(LlmError::passing(Code::BadInput, message)))
            }
        }
    }

    fn body(&self, request: &LlmRequest) -> Value {
        let mut messages = vec![json!({ "role": "system", "content": request.system })];
        for message in &request.messages {
            let role = match message.role {
                Role::User => "user",
                Role::Assistant => "assistant",
            };
            messages.push(json!({ "role": role, "content": message.text }));
        }
        let mut body = json!({
            "model": self.model,
            "messages": messages,
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            // Servers differ in how large a seed they take.
            "seed": request.seed & 0x7fff_ffff,
            "stream": true,
        });
        if !request.stop.is_empty() {
            body["stop"] = json!(request.stop);
        }
        if let Some(schema) = &request.schema {
            match self.shape {
                Shape::Schema => {
                    body["response_format"] = json!({
                        "type": "json_schema",
                        "json_schema": { "name": "reply", "strict": true, "schema": schema },
                    });
                }
                Shape::Object => body["response_format"] = json!({ "type": "json_object" }),
                Shape::Plain => {}
            }
        }
        body
    }
}

impl Llm for RemoteLlm {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> LlmKind {
        LlmKind::Remote
    }

    fn complete(
        &mut self,
        request: &LlmRequest,
        cancel: &CancelToken,
    ) -> Result<LlmReply, LlmError> {
        self.tried(cancel, |llm, cancel| llm.ask(request, cancel))
    }
}

/// The server's address and the model behind `#`.
fn address(url: &str) -> Result<(Url, Option<String>), StudioError> {
    let refused = |why: &str| {
        // The text is not repeated: it may hold a password.
        let message =
            format!("--llm: expected a URL such as http://127.0.0.1:8080/v1#model, {why}");
        StudioError::new(Code::BadInput, message)
    };
    let mut parsed = Url::parse(url).map_err(|error| refused(&format!("got none: {error}")))?;
    if !matches!(parsed.scheme(), "http" | "https") || parsed.host_str().is_none() {
        return Err(refused("got one that is not http or https"));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err(refused(
            "got a password in it: set LONGTAKE_LLM_KEY in its place",
        ));
    }
    let model = parsed
        .fragment()
        .filter(|model| !model.is_empty())
        .map(str::to_owned);
    parsed.set_fragment(None);
    parsed.set_query(None);
    Ok((parsed, model))
}

#[cfg(test)]
mod tests;

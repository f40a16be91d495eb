//! Who may ask: token, host and origin.

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use engine_base::ContentHash;
use serde_json::json;

/// A secret that a request has to carry.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// A new one: 256 random bits as hexadecimal digits.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn random() -> Result<Self, String> {
        let mut bytes = [0u8; 32];
        getrandom::fill(&mut bytes).map_err(|error| format!("cannot draw a token: {error}"))?;
        Ok(Self(ContentHash::of(&bytes).to_hex()))
    }

    /// The one kept in the file at `path`, else a new one that is put there for this user only:
    /// who was let in before a restart still is after it.
    ///
    /// # Errors
    /// The file can neither be read nor written; the system gives no randomness.
    pub fn kept(path: &Path) -> Result<Self, String> {
        let failed =
            |what: &str, error: std::io::Error| format!("cannot {what}: {error}: {path:?}");
        match std::fs::read_to_string(path) {
            Ok(text) if is_token(text.trim()) => return Ok(Self(text.trim().to_owned())),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("read the token", error)),
        }
        let new = Self::random()?;
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed("replace the token", error));
            }
            _ => {}
        }
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        // Its mode is set when it is made, before the token is in it.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options
            .open(path)
            .and_then(|mut file| file.write_all(new.0.as_bytes()))
            .map_err(|error| failed("keep the token", error))?;
        Ok(new)
    }

    /// Its text, for the one line that tells the owner.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The token with this text, as [`Token::as_str`] gave it; nothing for any other text.
    pub fn from_text(text: &str) -> Option<Self> {
        is_token(text).then(|| Self(text.to_owned()))
    }

    /// Compares hashes, so that the time taken says nothing about how much was right.
    pub(crate) fn is(&self, got: &str) -> bool {
        ContentHash::of(got.as_bytes()) == ContentHash::of(self.0.as_bytes())
    }
}

fn is_token(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Why a request is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It carries no token, or another.
    #[error("expected the token that the server printed when it started")]
    Token,
    /// It was sent to another name than the server's: a foreign page may be behind it.
    #[error("the request names another host than this server")]
    Host,
    /// It comes from a page of another server.
    #[error("the request comes from a page of another server")]
    Origin,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match self {
            Self::Token => StatusCode::UNAUTHORIZED,
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
        };
        let error = json!({ "code": "not_permitted", "message": self.to_string() });
        (status, axum::Json(json!({ "error": error }))).into_response()
    }
}

/// How a request showed the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// In a header or the cookie.
    Carried,
    /// In the address: the answer should set the cookie and lead to the address without it.
    InAddress,
}

/// Holds what a request must carry.
#[derive(Debug, Clone)]
pub struct Gate {
    token: Token,
    bound: SocketAddr,
    /// Names besides loopback ones, lower case, without port.
    names: Vec<String>,
}

impl Gate {
    /// A gate for a server bound to `bound`, which people also call by `names`.
    pub fn new(token: Token, bound: SocketAddr, names: &[String]) -> Self {
        let names = names.iter().map(|name| name.to_lowercase()).collect();
        Self {
            token,
            bound,
            names,
        }
    }

    /// The token.
    pub const fn token(&self) -> &Token {
        &self.token
    }

    /// Name of the cookie: cookies know no ports, so each server has one of its own.
    pub fn cookie_name(&self) -> String {
        format!("longtake_{}", self.bound.port())
    }

    /// The header that gives a browser the cookie.
    pub fn set_cookie(&self) -> String {
        let (name, token) = (self.cookie_name(), self.token.as_str());
        format!("{name}={token}; HttpOnly; SameSite=Strict; Path=/")
    }

    /// Whether a request may be answered.
    ///
    /// # Errors
    /// [`Refusal::Host`], [`Refusal::Origin`], [`Refusal::Token`], looked at in this order.
    pub fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<Pass, Refusal> {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let host = text(HOST).or_else(|| uri.authority().map(|authority| authority.as_str()));
        if !host.is_some_and(|host| self.is_ours(host)) {
            return Err(Refusal::Host);
        }
        if let Some(origin) = headers.get(ORIGIN) {
            let origin = origin.to_str().unwrap_or_default();
            let from = origin
                .split_once("://")
                .filter(|(scheme, _)| matches!(*scheme, "http" | "https"));
            if !from.is_some_and(|(_, host)| self.is_ours(host)) {
                return Err(Refusal::Origin);
            }
        }
        let bearer = text(AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        if bearer.is_some_and(|got| self.token.is(got.trim())) || self.has_cookie(headers) {
            return Ok(Pass::Carried);
        }
        let given = uri.query().and_then(|query| {
            let mut fields = query.split('&').filter_map(|field| field.split_once('='));
            fields
                .find(|(name, _)| *name == "token")
                .map(|(_, got)| got)
        });
        if uri.path() == "/" && given.is_some_and(|got| self.token.is(got)) {
            return Ok(Pass::InAddress);
        }
        Err(Refusal::Token)
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let name = self.cookie_name();
        let cookies = headers.get_all(COOKIE).iter();
        cookies
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|cookie| cookie.trim().split_once('='))
            .any(|(key, got)| key == name && self.token.is(got))
    }

    /// Whether `host`, with or without a port, is this server.
    fn is_ours(&self, host: &str) -> bool {
        let (name, port) = split_host(host);
        if port.is_some_and(|port| port != Some(self.bound.port())) {
            return false;
        }
        // A name without a port means the scheme's own, which this server may stand behind.
        let name = name.to_lowercase();
        if name == "localhost" || self.names.contains(&name) {
            return true;
        }
        let address: Option<IpAddr> = name.trim_matches(['[', ']']).parse().ok();
        address.is_some_and(|address| address.is_loopback() || address == self.bound.ip())
    }
}

/// Name and port of `name`, `name:port`, `[v6]`, `[v6]:port`; `Some(None)` for a port that is no
/// number.
fn split_host(host: &str) -> (&str, Option<Option<u16>>) {
    let after = host.rfind(']').map_or(0, |at| at + 1);
    let Some(rest) = host.get(after..) else {
        return (host, None);
    };
    match rest.rfind(':') {
        Some(at) => {
            let (name, port) = host.split_at(after + at);
            (name, Some(port.trim_start_matches(':').parse().ok()))
        }
        None => (host, None),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn gate() -> Gate {
        let bound = "127.0.0.1:4711".parse().unwrap();
        Gate::new(Token("secret".into()), bound, &["studio.lan".into()])
    }

    fn asked(pairs: &[(&'static str, &str)], uri: &str) -> Result<Pass, Refusal> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        gate().check(&headers, &uri.parse().unwrap())
    }

    #[cfg(unix)]
    #[test]
    fn a_kept_token_stays_and_is_for_this_user_only() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let first = Token::kept(&path).unwrap();
        assert_eq!(Token::kept(&path).unwrap(), first);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::write(&path, "short").unwrap();
        assert_ne!(Token::kept(&path).unwrap(), first);
    }

    #[test]
    fn only_our_own_names_are_answered() {
        let with = |host: &str| asked(&[("host", host), ("authorization", "Bearer secret")], "/x");
        for ours in [
            "127.0.0.1:4711",
            "localhost:4711",
            "LOCALHOST:4711",
            "[::1]:4711",
            "127.9.9.9:4711",
            "studio.lan:4711",
            "localhost",
        ] {
            assert_eq!(with(ours), Ok(Pass::Carried), "{ours}");
        }
        for foreign in [
            "evil.example:4711",
            "127.0.0.1.evil.example:4711",
            "localhost:80",
            "localhost:x",
            "192.168.0.7:4711",
            "",
            ":4711",
        ] {
            assert_eq!(with(foreign), Err(Refusal::Host), "{foreign}");
        }
        assert_eq!(
            asked(&[("authorization", "Bearer secret")], "/x"),
            Err(Refusal::Host)
        );
    }

    #[test]
    fn pages_of_other_servers_are_refused_even_with_the_token() {
        let from = |origin: &str| {
            let headers = [
                ("host", "localhost:4711"),
                ("authorization", "Bearer secret"),
                ("origin", origin),
            ];
            asked(&headers, "/x")
        };
        assert_eq!(from("http://localhost:4711"), Ok(Pass::Carried));
        for foreign in [
            "http://evil.example",
            "null",
            "http://localhost:4712",
            "file://",
            "",
        ] {
            assert_eq!(from(foreign), Err(Refusal::Origin), "{foreign}");
        }
    }

    #[test]
    fn the_token_is_taken_from_header_cookie_and_once_from_the_address() {
        let host = ("host", "localhost:4711");
        let cookie = |text| asked(&[host, ("cookie", text)], "/x");
        assert_eq!(cookie("a=b; longtake_4711=secret"), Ok(Pass::Carried));
        assert_eq!(cookie("longtake_4712=secret"), Err(Refusal::Token));
        assert_eq!(cookie("longtake_4711=secre"), Err(Refusal::Token));
        assert_eq!(asked(&[host], "/?token=secret"), Ok(Pass::InAddress));
        assert_eq!(asked(&[host], "/?x=1&token=wrong"), Err(Refusal::Token));
        assert_eq!(asked(&[host], "/api?token=secret"), Err(Refusal::Token));
        assert_eq!(asked(&[host], "/x"), Err(Refusal::Token));
        assert!(gate().set_cookie().contains("HttpOnly; SameSite=Strict"));
        assert!(!format!("{:?}", gate()).contains("secret"));
    }
}

//! The studio over HTTP: commands, events, media and the pages of a browser.
//!
//! One server is one desk behind a token. Everything is answered on this machine's loopback unless
//! a person asks for more; requests with a foreign `Host` or `Origin` are refused whatever they
//! carry.

mod pages;
mod routes;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use engine_base::Code;
use flow_http::{Gate, Token};
use tokio::sync::watch;

use crate::desk::{Desk, DeskOptions};
use crate::error::StudioError;
use crate::join::{self, Announced};

/// Time that answers get to end when the server stops.
const GRACE: Duration = Duration::from_millis(700);

/// File of the data folder that keeps the token.
const TOKEN_FILE: &str = "token";

/// Where the pages come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Pages {
    /// Those that were built into the program; without them a page that says how to build them.
    #[default]
    BuiltIn,
    /// A folder of built pages.
    Folder(PathBuf),
    /// None: commands, events and media only.
    Off,
}

/// How to serve a desk.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Address to listen on; port 0 takes a free one.
    pub bind: SocketAddr,
    /// Names besides `localhost` and addresses by which people call this machine.
    pub names: Vec<String>,
    /// Where the pages come from.
    pub pages: Pages,
}

impl Default for ServeOptions {
    /// A free port of this machine alone, with the pages that were built in.
    fn default() -> Self {
        Self {
            bind: (std::net::Ipv4Addr::LOCALHOST, 0).into(),
            names: Vec::new(),
            pages: Pages::default(),
        }
    }
}

/// A desk and the server before it, for as long as it lives: what a window or a terminal starts.
#[derive(Debug)]
pub struct Shell {
    desk: Arc<Desk>,
    server: Server,
}

impl Shell {
    /// Open a desk and serve it; gives it once it listens.
    ///
    /// # Errors
    /// As [`Desk::open`] and [`Server::start`].
    pub fn start(desk: DeskOptions, options: &ServeOptions) -> Result<Self, StudioError> {
        let desk = Desk::open(desk)?;
        match Server::start(Arc::clone(&desk), options) {
            Ok(server) => Ok(Self { desk, server }),
            Err(error) => {
                desk.stop();
                Err(error)
            }
        }
    }

    /// The desk.
    pub const fn desk(&self) -> &Arc<Desk> {
        &self.desk
    }

    /// The server.
    pub const fn server(&self) -> &Server {
        &self.server
    }

    /// The address that lets a browser in, with the token. For the owner's eyes only.
    pub fn url(&self) -> String {
        self.server.url()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.server.end();
        self.desk.stop();
    }
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    token: Token,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
    /// Others on this machine find it, as long as it runs.
    announced: Option<Announced>,
}

impl Server {
    /// Begin to serve `desk`.
    ///
    /// # Errors
    /// The address cannot be taken; the system gives no randomness or thread.
    pub fn start(desk: Arc<Desk>, options: &ServeOptions) -> Result<Self, StudioError> {
        let bind = options.bind;
        let taken = |error: std::io::Error| {
            let message = format!("cannot listen on {bind}: {error}");
            StudioError::new(Code::of_io(&error), message)
        };
        let listener = TcpListener::bind(bind).map_err(taken)?;
        listener.set_nonblocking(true).map_err(taken)?;
        let address = listener.local_addr().map_err(taken)?;
        let internal = |what: String| StudioError::new(Code::Internal, what);
        let token = Token::kept(&desk.data_folder().join(TOKEN_FILE)).map_err(internal)?;
        let gate = Gate::new(token.clone(), address, &options.names);
        let (stop, stopped) = watch::channel(false);
        let pages = options.pages != Pages::Off;
        let announced = join::announce(desk.data_folder(), desk.program(), address, pages)?;
        let app = routes::router(desk, gate, options.pages.clone(), stopped.clone());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("http")
            .enable_all()
            .build()
            .map_err(|error| internal(format!("cannot start the server: {error}")))?;
        let thread = std::thread::Builder::new()
            .name("http-server".into())
            .spawn(move || {
                runtime.block_on(run(listener, app, stopped));
                // A command in the middle of its work ends by itself; nobody waits for it.
                runtime.shutdown_timeout(GRACE);
            })
            .map_err(|error| internal(format!("cannot start the server's thread: {error}")))?;
        Ok(Self {
            address,
            token,
            stop,
            thread: Some(thread),
            announced: Some(announced),
        })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What a request has to carry, as `Authorization: Bearer TOKEN`.
    pub fn token(&self) -> &str {
        self.token.as_str()
    }

    /// The address that lets a browser in, with the token. For the owner's eyes only.
    pub fn url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(if address.is_ipv4() {
                std::net::Ipv4Addr::LOCALHOST.into()
            } else {
                std::net::Ipv6Addr::LOCALHOST.into()
            });
        }
        format!("http://{address}/?token={}", self.token.as_str())
    }

    /// Stop: answers get a moment to end, event streams are closed.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        drop(self.announced.take());
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the server's thread panicked");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

async fn run(listener: TcpListener, app: axum::Router, mut stopped: watch::Receiver<bool>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%error, "the server cannot listen");
            return;
        }
    };
    let mut graceful = stopped.clone();
    let serving = axum::serve(listener, app).with_graceful_shutdown(async move {
        drop(graceful.wait_for(|stop| *stop).await);
    });
    let over = async move {
        drop(stopped.wait_for(|stop| *stop).await);
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        ended = serving => {
            if let Err(error) = ended {
                tracing::error!(%error, "the server ended");
            }
        }
        () = over => {}
    }
}

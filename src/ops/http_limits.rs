//! Bounds what strangers can take from the HTTP port: few connections, each for a few seconds.
//! Used by `http` alone. A connection serves one request, so its deadline is the request's timeout.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;

/// A scraper and two probes need three at a time.
const CONNECTIONS: usize = 64;

/// Prometheus itself gives up after ten seconds by default.
const DEADLINE: Duration = Duration::from_secs(10);

/// A listener that leaves further connections in the kernel's queue while [`CONNECTIONS`] are open.
pub(super) struct Limited {
    listener: TcpListener,
    free: Arc<Semaphore>,
    deadline: Duration,
}

impl Limited {
    pub(super) fn new(listener: TcpListener) -> Limited {
        Limited::with(listener, CONNECTIONS, DEADLINE)
    }

    pub(super) fn with(listener: TcpListener, connections: usize, deadline: Duration) -> Limited {
        Limited {
            listener,
            free: Arc::new(Semaphore::new(connections)),
            deadline,
        }
    }
}

impl Listener for Limited {
    type Io = Limit;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Limit, SocketAddr) {
        let permit = Arc::clone(&self.free)
            .acquire_owned()
            .await
            .expect("the semaphore is never closed");
        let (stream, addr) = Listener::accept(&mut self.listener).await;
        let deadline = Box::pin(tokio::time::sleep(self.deadline));
        (
            Limit {
                stream,
                deadline,
                _permit: permit,
            },
            addr,
        )
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that fails at its deadline, whatever the other side does.
pub(super) struct Limit {
    stream: TcpStream,
    deadline: Pin<Box<Sleep>>,
    _permit: OwnedSemaphorePermit,
}

impl Limit {
    /// The stream while there is time left.
    fn alive(&mut self, cx: &mut Context<'_>) -> io::Result<Pin<&mut TcpStream>> {
        match self.deadline.as_mut().poll(cx) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(Pin::new(&mut self.stream)),
        }
    }
}

impl AsyncRead for Limit {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.alive(cx)?.poll_read(cx, buf)
    }
}

impl AsyncWrite for Limit {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.alive(cx)?.poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.alive(cx)?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.alive(cx)?.poll_shutdown(cx)
    }
}

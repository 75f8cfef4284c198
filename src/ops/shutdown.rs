//! One flag that stops the whole process, for tokio tasks and for plain threads alike.
//! Set by signals or by a part that cannot go on; everybody who waits must wait on it too.

#[cfg(test)]
mod tests;

use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// The exit code of a shell for "ended by SIGINT".
const LEFT_AT_ONCE: i32 = 130;

/// Set once, never reset. Clones are the same flag.
#[derive(Debug, Clone)]
pub struct StopFlag {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    set: AtomicBool,
    /// Threads that wait elsewhere than in [`StopFlag::wait`]. The lock also guards the bell.
    parked: Mutex<Vec<Thread>>,
    bell: Condvar,
    tasks: watch::Sender<bool>,
}

impl Default for StopFlag {
    fn default() -> StopFlag {
        StopFlag::new()
    }
}

impl StopFlag {
    /// Not set.
    pub fn new() -> StopFlag {
        let shared = Shared {
            set: AtomicBool::new(false),
            parked: Mutex::new(Vec::new()),
            bell: Condvar::new(),
            tasks: watch::Sender::new(false),
        };
        StopFlag {
            shared: Arc::new(shared),
        }
    }

    /// Sets the flag and wakes everybody who waits for it.
    pub fn stop(&self) {
        let mut parked = self.lock();
        self.shared.set.store(true, Ordering::SeqCst);
        self.shared.bell.notify_all();
        parked.drain(..).for_each(|thread| thread.unpark());
        self.shared.tasks.send_replace(true);
    }

    /// Costs one atomic load: fit for every turn of a loop.
    pub fn is_set(&self) -> bool {
        self.shared.set.load(Ordering::SeqCst)
    }

    /// Sleeps on a plain thread for `at_most`, less if stopped. True if stopped.
    pub fn wait(&self, at_most: Duration) -> bool {
        let asleep = |_: &mut Vec<Thread>| !self.is_set();
        let woken = self
            .shared
            .bell
            .wait_timeout_while(self.lock(), at_most, asleep);
        drop(woken.unwrap_or_else(PoisonError::into_inner));
        self.is_set()
    }

    /// Has `thread` unparked when the flag is set: for loops that park because a Kafka callback unparks them too.
    pub fn unpark_on_stop(&self, thread: Thread) {
        let mut parked = self.lock();
        if self.is_set() {
            thread.unpark();
        } else {
            parked.push(thread);
        }
    }

    /// Resolves when the flag is set, at once if it is. Borrows nothing, so it can be handed to a spawned task.
    pub fn stopped(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut tasks = self.shared.tasks.subscribe();
        let keep = self.clone();
        async move {
            tasks.wait_for(|set| *set).await.ok();
            drop(keep); // a flag that nobody else holds can still not be taken for set
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Thread>> {
        self.shared
            .parked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first SIGTERM or SIGINT sets the flag; the second one ends the process on the spot. Never returns otherwise.
///
/// # Errors
/// The handlers could not be installed.
pub async fn signals(stop: StopFlag) -> io::Result<()> {
    let mut signals = Signals::install()?;
    let signal = signals.next().await;
    tracing::info!(
        signal,
        "stopping: finishing what is in flight; signal again to leave at once"
    );
    stop.stop();
    let signal = signals.next().await;
    tracing::warn!(
        signal,
        "left at once: what was in flight is delivered after the next start"
    );
    std::process::exit(LEFT_AT_ONCE);
}

struct Signals {
    term: Signal,
    int: Signal,
}

impl Signals {
    fn install() -> io::Result<Signals> {
        Ok(Signals {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.term.recv() => "SIGTERM",
            _ = self.int.recv() => "SIGINT",
        }
    }
}

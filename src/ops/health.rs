//! Whether the process lives (nothing hangs) and is ready (everything works), and why not.
//! Told by every long-lived part through its [`Component`], asked by `http`; must not try to mend anything.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A component that beats at least once a second and has been silent this long hangs.
pub const SILENCE: Duration = Duration::from_secs(60);

/// The health of all components of a process.
#[derive(Debug, Default)]
pub struct Health {
    components: Mutex<BTreeMap<String, Component>>,
}

/// One part's own view of its health: cheap to clone, used from any thread.
#[derive(Debug, Clone)]
pub struct Component {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    name: String,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// `None` is ready.
    fault: Option<String>,
    /// Starting is not news to worry about; falling back is.
    was_ready: bool,
    last_beat: Option<Instant>,
}

impl Health {
    /// No component yet: alive and ready.
    pub fn new() -> Health {
        Health::default()
    }

    /// The component of this name, not ready before it says so; the same one for the same name.
    pub fn component(&self, name: &str) -> Component {
        let mut components = lock(&self.components);
        components
            .entry(name.to_owned())
            .or_insert_with(|| Component::starting(name))
            .clone()
    }

    /// # Errors
    /// A line for each component that used to beat and has been silent for [`SILENCE`].
    pub fn livez(&self, now: Instant) -> Result<(), Vec<String>> {
        self.collect(|component| component.silence(now))
    }

    /// # Errors
    /// A line for each component that is not ready: why, and what to do.
    pub fn readyz(&self) -> Result<(), Vec<String>> {
        self.collect(Component::fault)
    }

    fn collect(&self, check: impl Fn(&Component) -> Option<String>) -> Result<(), Vec<String>> {
        let faults: Vec<String> = lock(&self.components).values().filter_map(check).collect();
        if faults.is_empty() {
            Ok(())
        } else {
            Err(faults)
        }
    }
}

impl Component {
    fn starting(name: &str) -> Component {
        let state = Mutex::new(State {
            fault: Some("starting".to_owned()),
            was_ready: false,
            last_beat: None,
        });
        Component {
            shared: Arc::new(Shared {
                name: name.to_owned(),
                state,
            }),
        }
    }

    /// It works. Logged if it did not before.
    pub fn ready(&self) {
        if self.change(None) {
            tracing::info!(component = self.shared.name, "ready");
        }
    }

    /// It does not work: `why`, and what to do. Logged if that is news, so `why` must not hold counters or times.
    pub fn not_ready(&self, why: impl Into<String>) {
        let why = why.into();
        if !self.change(Some(why.clone())) {
            return;
        }
        if lock(&self.shared.state).was_ready {
            tracing::warn!(component = self.shared.name, why, "not ready");
        } else {
            tracing::info!(component = self.shared.name, why, "not ready yet");
        }
    }

    /// It is not stuck. Call it once per turn of the loop.
    pub fn beat(&self) {
        lock(&self.shared.state).last_beat = Some(Instant::now());
    }

    /// True if this is news.
    fn change(&self, fault: Option<String>) -> bool {
        let mut state = lock(&self.shared.state);
        let news = state.fault != fault;
        state.was_ready |= fault.is_none();
        state.fault = fault;
        news
    }

    fn fault(&self) -> Option<String> {
        let state = lock(&self.shared.state);
        state
            .fault
            .as_ref()
            .map(|why| format!("{}: {why}", self.shared.name))
    }

    fn silence(&self, now: Instant) -> Option<String> {
        let silent = now.saturating_duration_since(lock(&self.shared.state).last_beat?);
        (silent >= SILENCE).then(|| {
            format!(
                "{}: no sign of life for {} s; restart the process",
                self.shared.name,
                silent.as_secs()
            )
        })
    }
}

/// A panic elsewhere leaves whole values behind, so the lock is taken over.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! A worker: one OS thread with a consumer and a producer of its own. Started by `app`, runs the
//! router's or the scanner's loop until told to stop, and builds its clients anew after a fault.
//! No other thread touches them, and no tokio thread ever waits for Kafka.

use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use tracing::{error, info, warn};

use super::{router, scanner};
use crate::config::Config;
use crate::core::ingress::OwnTopics;
use crate::core::level::LevelTable;
use crate::core::record::Partition;
use crate::core::route::Rules;
use crate::kafka::clock::BrokerClock;
use crate::kafka::consumer::Fenced;
use crate::kafka::log::Log;
use crate::kafka::settings::Role;
use crate::ops::health::{Component, Health};
use crate::ops::metrics::Metrics;
use crate::ops::shutdown::StopFlag;

/// The longest that a worker sleeps without looking around.
pub const LONGEST_PARK: Duration = Duration::from_secs(1);
const FIRST_BACKOFF: Duration = Duration::from_millis(500);
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);

/// What all workers of a process share.
#[derive(Debug)]
pub struct Shared {
    /// As it was read at start.
    pub config: Config,
    /// Routes and the level table; replaced at a reload.
    pub rules: RwLock<Arc<Rules>>,
    /// The broker's clock.
    pub clock: BrokerClock,
    /// For questions about partitions: its answers do not wait behind a fetch.
    pub log: Log,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// What `/readyz` says.
    pub health: Arc<Health>,
    /// Set once, to end everything.
    pub stop: StopFlag,
    /// Where each level queue stands, for those who look from outside.
    pub queues: super::housekeeping::Board,
    /// Why the process must end, if a worker says so.
    pub fatal: OnceLock<String>,
}

impl Shared {
    /// The rules in force now.
    pub fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The level table in force now.
    pub fn table(&self) -> Arc<LevelTable> {
        Arc::clone(&self.rules().table)
    }

    /// Puts a level table in force from now on.
    pub fn put_in_force(&self, table: LevelTable) {
        let table = match self.clock.now() {
            Some(now) => table.in_force_since(now),
            None => table,
        };
        let mut rules = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = Rules::clone(&rules);
        changed.table = Arc::new(table);
        *rules = Arc::new(changed);
    }

    /// Retention or a person deleted what was still waiting: never silently.
    pub fn report_loss(&self, queue: &Partition, from: i64, to: i64) {
        self.metrics.lost(u64::try_from(to - from).unwrap_or(0));
        error!(%queue, from, to, "records were deleted before they were delivered: check the retention of the schedule topic");
    }

    /// The topics that are never a target.
    pub fn own_topics(&self) -> OwnTopics {
        self.rules().own.clone()
    }
}

/// A worker's place in the process.
#[derive(Debug, Clone)]
pub struct Place {
    /// What it does.
    pub role: Role,
    /// Which of its kind, from 0.
    pub number: usize,
    /// Its line in `/readyz`.
    pub component: Component,
}

impl Place {
    /// `scanner-0`, as it stands in logs and ids.
    pub fn name(&self) -> String {
        name(self.role, self.number)
    }

    /// Says whether this worker can work, and if not, why.
    pub fn report(&self, trouble: Option<String>) {
        match trouble {
            Some(why) => self.component.not_ready(why),
            None => self.component.ready(),
        }
    }
}

/// Takes turns until told to stop; `step` says how long there is nothing to do after it.
pub fn take_turns(
    shared: &Shared,
    place: &Place,
    mut step: impl FnMut() -> anyhow::Result<Duration>,
) -> anyhow::Result<()> {
    while !shared.stop.is_set() {
        place.component.beat();
        let idle = step()?;
        if !idle.is_zero() {
            // Woken by new messages, rebalances and the stop flag.
            std::thread::park_timeout(idle.min(LONGEST_PARK));
        }
    }
    Ok(())
}

/// A worker's name.
pub fn name(role: Role, number: usize) -> String {
    format!("{}-{number}", role.name())
}

/// Starts a worker.
///
/// # Errors
/// If the system gives no thread.
pub fn start(shared: &Arc<Shared>, role: Role, number: usize) -> std::io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    let component = shared
        .health
        .component(&format!("{}-{number}", role.name()));
    let place = Place {
        role,
        number,
        component,
    };
    std::thread::Builder::new()
        .name(place.name())
        .spawn(move || run(&shared, &place))
}

fn run(shared: &Shared, place: &Place) {
    shared.stop.unpark_on_stop(std::thread::current());
    let mut backoff = FIRST_BACKOFF;
    while !shared.stop.is_set() {
        let started = std::time::Instant::now();
        let result = match place.role {
            Role::Router => router::run(shared, place),
            Role::Scanner => scanner::run(shared, place),
        };
        let Err(fault) = result else { break };
        if fault.is::<Fenced>() {
            return give_up(shared, place);
        }
        if started.elapsed() > LONGEST_BACKOFF {
            backoff = FIRST_BACKOFF;
        }
        let again_in = humantime::format_duration(backoff).to_string();
        warn!(
            worker = place.name(),
            error = format!("{fault:#}"),
            again_in,
            "worker failed, starting anew"
        );
        place.component.not_ready(format!("{fault:#}"));
        shared.stop.wait(backoff);
        backoff = (backoff * 2).min(LONGEST_BACKOFF);
    }
    info!(worker = place.name(), "worker stopped");
}

/// The instance id is somebody else's now: going on would take it back from them, and so on for ever.
fn give_up(shared: &Shared, place: &Place) {
    let id = shared.config.instance_id.as_deref().unwrap_or_default();
    let why = format!(
        "instance id {id:?} is used by another process: give each process an --instance-id of its own"
    );
    error!(worker = place.name(), instance_id = id, "{why}");
    shared.fatal.set(why).ok();
    shared.stop.stop();
}

//! Looks at the level queues from outside: how much is pending, what is overdue, what has been
//! lost, and which delivered records are old enough to delete. A thread of its own, started by
//! `app`; a slow answer of Kafka never holds up a delivery.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tracing::{debug, warn};

use super::worker::Shared;
use crate::core::level::Level;
use crate::core::record::Partition;
use crate::core::time::Timestamp;
use crate::kafka::log::Log;
use crate::kafka::topics::Topics;
use crate::ops::metrics::QueueView;

/// How often the queues are measured.
const EVERY: Duration = Duration::from_secs(10);

/// Where a queue stands: settled offset and next due time.
pub type Standing = (Option<i64>, Option<Timestamp>);

/// Where all level queues of this process stand.
#[derive(Debug, Default)]
pub struct Board {
    queues: Mutex<BTreeMap<Partition, Standing>>,
    reloads: AtomicU64,
    /// Up to where a loss has been reported.
    lost: Mutex<BTreeMap<Partition, i64>>,
}

impl Board {
    /// Shows the queues of one worker.
    pub fn post(&self, standings: impl IntoIterator<Item = (Partition, Standing)>) {
        self.lock().extend(standings);
    }

    /// Takes a queue off that is no longer ours.
    pub fn remove(&self, partition: &Partition) {
        self.lock().remove(partition);
    }

    /// All queues of this process.
    pub fn standings(&self) -> BTreeMap<Partition, Standing> {
        self.lock().clone()
    }

    /// Tells all scanners that the schedule topic may have new partitions.
    pub fn note_reload(&self) {
        self.reloads.fetch_add(1, Ordering::Relaxed);
    }

    /// How many reloads there have been.
    pub fn reloads(&self) -> u64 {
        self.reloads.load(Ordering::Relaxed)
    }

    /// Whether a loss up to `first` has not been reported yet.
    fn is_news(&self, partition: &Partition, first: i64) -> bool {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.insert(partition.clone(), first) != Some(first)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Partition, Standing>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Measures and cleans until told to stop.
pub fn run(shared: &Shared, topics: &Topics, runtime: &tokio::runtime::Handle) {
    let log = &shared.log;
    let mut known: Vec<u32> = Vec::new();
    let mut cleaned = Instant::now();
    while !shared.stop.wait(
        EVERY
            .min(shared.config.keep / 2)
            .max(Duration::from_millis(500)),
    ) {
        let standings = shared.queues.standings();
        let levels: Vec<u32> = standings
            .keys()
            .filter_map(|p| Level::of_partition(p.partition))
            .map(Level::number)
            .collect();
        known
            .iter()
            .filter(|level| !levels.contains(level))
            .for_each(|level| shared.metrics.forget_queue(*level));
        known = levels;
        for (partition, standing) in &standings {
            if let Err(error) = measure(shared, log, partition, *standing) {
                debug!(queue = %partition, error = format!("{error:#}"), "cannot measure the queue");
            }
        }
        if cleaned.elapsed() >= pause(shared.config.keep) {
            cleaned = Instant::now();
            if let Err(error) = clean(shared, log, topics, runtime, standings.keys()) {
                warn!(
                    error = format!("{error:#}"),
                    "delivered records are kept longer"
                );
            }
        }
    }
}

fn measure(
    shared: &Shared,
    log: &Log,
    partition: &Partition,
    (settled, next_due): Standing,
) -> anyhow::Result<()> {
    let Some(level) = Level::of_partition(partition.partition) else {
        return Ok(());
    };
    let (first, end) = log.ends(partition)?;
    let settled = settled.unwrap_or(first);
    if first > settled {
        report_loss(shared, partition, settled, first);
    }
    let pending = u64::try_from(end - settled.max(first)).unwrap_or(0);
    let overdue = shared
        .clock
        .now()
        .filter(|now| next_due.is_some_and(|due| due < *now));
    let due_unsent = match overdue.zip(shared.table().delay(level)) {
        None => 0,
        // What was appended before this moment is due now.
        Some((now, delay)) => {
            let due_end = log.offset_at(partition, now.minus(delay))?.unwrap_or(end);
            u64::try_from(due_end - settled).unwrap_or(0).max(1)
        }
    };
    let view = QueueView {
        pending,
        due_unsent,
        next_due: next_due.map(|due| due.0),
    };
    shared.metrics.queue(level.number(), view);
    Ok(())
}

/// What is gone below a queue's head is lost, unless the scanner has moved on meanwhile.
fn report_loss(shared: &Shared, partition: &Partition, settled: i64, first: i64) {
    let standings = shared.queues.standings();
    let now = standings.get(partition).and_then(|(settled, _)| *settled);
    if now == Some(settled) && shared.queues.is_news(partition, first) {
        shared.report_loss(partition, settled, first);
    }
}

fn pause(keep: Duration) -> Duration {
    (keep / 10).clamp(Duration::from_secs(1), Duration::from_secs(600))
}

/// Deletes what is delivered and older than `keep`.
fn clean<'a>(
    shared: &Shared,
    log: &Log,
    topics: &Topics,
    runtime: &tokio::runtime::Handle,
    queues: impl Iterator<Item = &'a Partition>,
) -> anyhow::Result<()> {
    let Some(now) = shared.clock.now() else {
        return Ok(());
    };
    let mut below = BTreeMap::new();
    for partition in queues {
        let Some(committed) = log.committed(partition)? else {
            continue;
        };
        let (first, end) = log.ends(partition)?;
        let old = log
            .offset_at(partition, now.minus(shared.config.keep))?
            .unwrap_or(end);
        let bound = committed.min(old);
        if bound > first {
            below.insert(partition.clone(), bound);
        }
    }
    if below.is_empty() {
        return Ok(());
    }
    debug!(queues = below.len(), "deleting delivered records");
    runtime.block_on(topics.delete_records(&below))
}

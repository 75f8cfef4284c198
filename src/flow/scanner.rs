//! The scanner: holds the heads of its level queues, sleeps until one is due, and republishes
//! everything that is. Run by `worker`. Never waits inside a poll, never pauses a partition, and
//! reads no further than the first record that is not due.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::{debug, info};

use super::dispatch::{Dispatched, Dispatcher};
use super::worker::{self, LONGEST_PARK, Place as Worker, Shared};
use crate::core::fate::Shipment;
use crate::core::level::LevelTable;
use crate::core::level_queue::{LevelQueue, Waiting};
use crate::core::planner::{Limits, Planner};
use crate::core::record::Partition;
use crate::core::time::Timestamp;
use crate::kafka::consumer::{Change, GroupConsumer};
use crate::kafka::settings::{self, Role};

/// The largest batch: about 50 ms of a broker's time, and within what is prefetched.
const LIMITS: Limits = Limits {
    records: 8_000,
    bytes: 8 << 20,
};
/// A batch that takes longer than a quarter of the transaction timeout was too large.
const TOO_SLOW: Duration = Duration::from_millis(2_500);
/// How many records one queue is asked for before the next one has its turn.
const CHUNK: usize = 256;

struct Scanner<'s> {
    shared: &'s Shared,
    worker: &'s Worker,
    // Dropped in this order: a producer never outlives the membership that its offsets name.
    dispatcher: Dispatcher<'s>,
    consumer: GroupConsumer,
    planner: Planner,
    limits: Limits,
    table: Arc<LevelTable>,
    reload: u64,
}

/// Scans until told to stop.
///
/// # Errors
/// If a client is beyond repair; everything in hand is then still in Kafka.
pub fn run(shared: &Shared, worker: &Worker) -> anyhow::Result<()> {
    worker.component.not_ready("opening a producer");
    let dispatcher = Dispatcher::open(shared, worker)?;
    let config = settings::consumer(&shared.config, Role::Scanner, worker.number);
    let consumer =
        GroupConsumer::join(&config, std::slice::from_ref(&shared.own_topics().schedule))?;
    let planner = Planner::default();
    let mut scanner = Scanner {
        shared,
        worker,
        dispatcher,
        consumer,
        planner,
        limits: LIMITS,
        table: shared.table(),
        reload: 0,
    };
    let result = worker::take_turns(shared, worker, || scanner.step());
    scanner.leave();
    result
}

impl Scanner<'_> {
    /// One turn: what is due goes out. Says how long there is nothing to do.
    fn step(&mut self) -> anyhow::Result<Duration> {
        self.follow_reload();
        let changes = self.consumer.turn()?;
        self.follow_rebalance(changes)?;
        let Some(now) = self.shared.clock.now() else {
            self.worker
                .component
                .not_ready("waiting for the broker's clock");
            return Ok(LONGEST_PARK / 10);
        };
        self.fill(now)?;
        let batch = self.planner.take_due(now, self.limits);
        if batch.waiting.is_empty() {
            let trouble = self.consumer.trouble(&self.shared.own_topics().schedule);
            self.worker.report(trouble);
            let until_due = self.planner.next_due().map(|due| due.since(now));
            return Ok(self.consumer.may_sleep(until_due.unwrap_or(LONGEST_PARK)));
        }
        self.send(batch.waiting)?;
        Ok(Duration::ZERO)
    }

    fn send(&mut self, batch: Vec<Waiting>) -> anyhow::Result<()> {
        let started = Instant::now();
        let offsets = Planner::offsets_after(&batch);
        let rules = self.shared.rules();
        let shipments = batch
            .iter()
            .map(|waiting| Shipment::due(waiting, &rules))
            .collect();
        match self
            .dispatcher
            .dispatch(shipments, &offsets, &self.consumer)?
        {
            Dispatched::Done => {
                debug!(records = batch.len(), took = ?started.elapsed(), "batch delivered");
                self.planner.settle(&offsets);
                self.worker.component.ready();
                self.limits = if started.elapsed() > TOO_SLOW {
                    self.limits.halved()
                } else {
                    self.limits.grown(LIMITS)
                };
            }
            Dispatched::RolledBack => {
                self.planner.roll_back(batch);
                self.limits = self.limits.halved();
            }
        }
        self.post();
        Ok(())
    }

    /// Reads on where the last record read is due: a head that waits is enough to know.
    fn fill(&mut self, now: Timestamp) -> anyhow::Result<()> {
        let table = self.follow_table();
        let mut progress = true;
        let mut changed = false;
        while progress && !self.planner.is_full(now, self.limits) {
            progress = false;
            for queue in self.planner.queues_mut() {
                for _ in 0..CHUNK {
                    if !queue.wants_more(now) {
                        break;
                    }
                    let Some(arrival) = self.consumer.next(queue.partition())? else {
                        break;
                    };
                    let disorder = queue.push(arrival, &table, self.shared.config.pending);
                    if !disorder.is_zero() {
                        self.shared.metrics.disorder(disorder);
                    }
                    progress = true;
                }
            }
            changed |= progress;
        }
        if changed {
            self.post();
        }
        Ok(())
    }

    fn follow_rebalance(&mut self, changes: Vec<Change>) -> anyhow::Result<()> {
        let mut ours = Vec::new();
        for change in changes {
            match change {
                Change::Assigned(partition) => ours.push(partition),
                Change::Revoked(partition) => {
                    info!(worker = self.worker.name(), queue = %partition, "level queue given up");
                    ours.retain(|p| *p != partition);
                    self.planner.remove(&partition);
                    self.shared.queues.remove(&partition);
                }
            }
        }
        self.take_over(ours)
    }

    fn take_over(&mut self, partitions: Vec<Partition>) -> anyhow::Result<()> {
        if partitions.is_empty() {
            return Ok(());
        }
        // Offsets of a transaction under way are not known yet: reading starts all the same, once
        // they are, and nothing may hold up the other queues meanwhile.
        let committed = self.consumer.committed(partitions.iter());
        let committed = committed.unwrap_or_else(|error| {
            debug!(
                error = format!("{error:#}"),
                "committed offsets are not known yet"
            );
            BTreeMap::new()
        });
        for partition in partitions {
            info!(worker = self.worker.name(), queue = %partition, "level queue taken over");
            let committed = committed.get(&partition).copied().flatten();
            let first = self.first_offset(&partition, committed);
            self.planner.add(LevelQueue::new(partition, first));
        }
        self.post();
        Ok(())
    }

    /// Where reading starts, if Kafka says. Says loudly if messages that were not delivered are gone.
    fn first_offset(&self, partition: &Partition, committed: Option<i64>) -> Option<i64> {
        let (first, _) = self.shared.log.ends(partition).ok()?;
        match committed {
            Some(committed) if committed >= first => return Some(committed),
            Some(committed) => self.shared.report_loss(partition, committed, first),
            None => {}
        }
        Some(first)
    }

    /// The level table in force; one that is new also decides about what is held.
    fn follow_table(&mut self) -> Arc<LevelTable> {
        let table = self.shared.table();
        if !Arc::ptr_eq(&table, &self.table) {
            self.table = Arc::clone(&table);
            let pending = self.shared.config.pending;
            self.planner
                .queues_mut()
                .for_each(|queue| queue.follow(&table, pending));
        }
        table
    }

    /// After a reload the schedule topic may have new partitions.
    fn follow_reload(&mut self) {
        let reload = self.shared.queues.reloads();
        if reload != self.reload {
            self.reload = reload;
            debug!("looking for new level queues");
            self.consumer.refresh_topics();
        }
    }

    /// Shows the queues to those who look from outside.
    fn post(&self) {
        let views: BTreeMap<Partition, _> = self
            .planner
            .queues()
            .map(|q| (q.partition().clone(), (q.settled(), q.next_due())))
            .collect();
        self.shared.queues.post(views);
    }

    fn leave(&mut self) {
        self.consumer.commit_progress();
        if self.shared.config.leave {
            self.consumer.leave();
        }
        for queue in self.planner.queues() {
            self.shared.queues.remove(queue.partition());
        }
    }
}

//! What librdkafka calls during a rebalance, on the worker's own thread from within its safe point.
//! Leaves events for the worker to pick up; must not touch what the worker holds.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::Thread;
use std::time::{Duration, Instant};

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::base_consumer::PartitionQueue;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::KafkaError;
use rdkafka::{ClientContext, TopicPartitionList};
use tracing::debug;

use crate::core::record::Partition;
use crate::kafka::{acks, convert};

/// How often offsets are committed in the background. Heartbeats queue behind commits: some
/// hundred a second cost the member its place.
pub(super) const COMMIT_EVERY: Duration = Duration::from_millis(50);

pub(super) enum Event {
    Assigned(Partition, Box<PartitionQueue<GroupContext>>),
    Revoked(Partition),
}

/// What librdkafka's callbacks leave for the worker.
pub(super) struct GroupContext {
    pub(super) consumer: OnceLock<Weak<BaseConsumer<GroupContext>>>,
    worker: Thread,
    pub(super) joined: AtomicBool,
    pub(super) events: Mutex<Vec<Event>>,
    /// How many callbacks there have been.
    served: AtomicUsize,
    /// What is delivered, of the partitions that are ours (at-least-once only). Kept after a
    /// commit in the background, which may fail; the last one, at a revocation, is waited for.
    pub(super) progress: Mutex<HashMap<Partition, i64>>,
    /// Whether there is progress since the last commit.
    pub(super) uncommitted: AtomicBool,
    /// When offsets were last committed in the background.
    committed: Mutex<Option<Instant>>,
}

impl GroupContext {
    /// A context that wakes the calling thread.
    pub(super) fn of_this_thread() -> GroupContext {
        GroupContext {
            consumer: OnceLock::new(),
            worker: std::thread::current(),
            joined: AtomicBool::new(false),
            events: Mutex::default(),
            served: AtomicUsize::new(0),
            progress: Mutex::default(),
            uncommitted: AtomicBool::new(false),
            committed: Mutex::default(),
        }
    }

    /// How many callbacks there have been.
    pub(super) fn served(&self) -> usize {
        self.served.load(Ordering::Relaxed)
    }

    fn count(&self) {
        self.served.fetch_add(1, Ordering::Relaxed);
    }

    /// Splits the queues here, before the assignment takes effect: later, a first message could
    /// already have gone to the main queue.
    fn assigned(&self, partitions: &TopicPartitionList) {
        self.joined.store(true, Ordering::Relaxed);
        let Some(consumer) = self.consumer.get().and_then(Weak::upgrade) else {
            return;
        };
        for element in partitions.elements() {
            let Some(mut queue) =
                consumer.split_partition_queue(element.topic(), element.partition())
            else {
                continue;
            };
            let worker = self.worker.clone();
            queue.set_nonempty_callback(move || worker.unpark());
            let partition = Partition {
                topic: element.topic().into(),
                partition: element.partition(),
            };
            lock(&self.events).push(Event::Assigned(partition, Box::new(queue)));
        }
        self.worker.unpark();
    }

    fn revoked(&self, consumer: &BaseConsumer<GroupContext>, partitions: &TopicPartitionList) {
        if !consumer.assignment_lost() {
            self.commit(consumer, CommitMode::Sync);
        }
        lock(&self.progress).clear();
        self.uncommitted.store(false, Ordering::Relaxed);
        for element in partitions.elements() {
            let partition = Partition {
                topic: element.topic().into(),
                partition: element.partition(),
            };
            lock(&self.events).push(Event::Revoked(partition));
        }
        self.worker.unpark();
    }

    /// Commits in the background what is delivered, unless that was done just now.
    pub(super) fn commit_soon(&self, consumer: &BaseConsumer<GroupContext>) {
        let mut last = lock(&self.committed);
        let recent = last.is_some_and(|last| last.elapsed() < COMMIT_EVERY);
        if self.uncommitted.load(Ordering::Relaxed) && !recent {
            *last = Some(Instant::now());
            self.commit(consumer, CommitMode::Async);
        }
    }

    pub(super) fn commit(&self, consumer: &BaseConsumer<GroupContext>, mode: CommitMode) {
        self.uncommitted.store(false, Ordering::Relaxed);
        let progress = lock(&self.progress);
        if progress.is_empty() {
            return;
        }
        if let Err(error) = consumer.commit(&convert::offsets(progress.iter()), mode) {
            debug!(%error, "cannot commit offsets");
            self.uncommitted.store(true, Ordering::Relaxed);
        }
    }
}

impl ClientContext for GroupContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        self.count();
        acks::log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.count();
        debug!(target: "librdkafka", %error, reason);
    }
}

impl ConsumerContext for GroupContext {
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        self.count();
        match rebalance {
            Rebalance::Assign(partitions) => self.assigned(partitions),
            Rebalance::Revoke(partitions) => self.revoked(consumer, partitions),
            Rebalance::Error(error) => debug!(%error, "rebalance"),
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

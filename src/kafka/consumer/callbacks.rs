//! What librdkafka calls during a rebalance, on the worker's own thread from within its safe point.
//! Leaves events for the worker to pick up; must not touch what the worker holds.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::Thread;

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::base_consumer::PartitionQueue;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::{ClientContext, TopicPartitionList};
use tracing::debug;

use crate::core::record::Partition;
use crate::kafka::{acks, convert};

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
    /// Whether a commit is under way: only one is, since heartbeats queue behind commits, and
    /// some hundred of them cost the member its place.
    committing: AtomicBool,
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
            committing: AtomicBool::new(false),
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

    /// Commits in the background what is delivered, unless a commit is under way.
    pub(super) fn commit_soon(&self, consumer: &BaseConsumer<GroupContext>) {
        let due = self.uncommitted.load(Ordering::Relaxed);
        if due && !self.committing.load(Ordering::Relaxed) {
            let under_way = self.commit(consumer, CommitMode::Async);
            self.committing.store(under_way, Ordering::Relaxed);
        }
    }

    /// Whether there was anything to commit, and Kafka was asked to.
    pub(super) fn commit(&self, consumer: &BaseConsumer<GroupContext>, mode: CommitMode) -> bool {
        self.uncommitted.store(false, Ordering::Relaxed);
        let progress = lock(&self.progress);
        if progress.is_empty() {
            return false;
        }
        let asked = consumer.commit(&convert::offsets(progress.iter()), mode);
        if let Err(error) = &asked {
            debug!(%error, "cannot commit offsets");
            self.uncommitted.store(true, Ordering::Relaxed);
        }
        asked.is_ok()
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
    fn commit_callback(&self, result: KafkaResult<()>, _offsets: &TopicPartitionList) {
        self.count();
        self.committing.store(false, Ordering::Relaxed);
        if let Err(error) = result {
            self.uncommitted.store(true, Ordering::Relaxed);
            debug!(%error, "cannot commit offsets");
        }
    }

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

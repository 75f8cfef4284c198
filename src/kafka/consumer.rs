//! A member of a consumer group whose partitions are read one by one, each from its own queue.
//! Called by `flow`. The main queue is polled only in `turn`, the worker's safe point, so a
//! rebalance never happens inside a transaction.

mod callbacks;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rdkafka::consumer::base_consumer::PartitionQueue;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerGroupMetadata};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{ClientConfig, TopicPartitionList};
use tracing::debug;

use callbacks::{COMMIT_EVERY, Event, GroupContext, lock};

use super::convert;
use crate::core::record::{Arrival, Partition};

/// How long a question to Kafka may take at a safe point.
const ASK: Duration = Duration::from_secs(1);

/// What a rebalance changed.
pub enum Change {
    /// This partition is now ours.
    Assigned(Partition),
    /// This partition is no longer ours.
    Revoked(Partition),
}

/// Another process uses the same `--instance-id`.
#[derive(Debug, thiserror::Error)]
#[error("another process has taken over this instance id")]
pub struct Fenced;

/// A consumer, with a queue of its own for each partition.
pub struct GroupConsumer {
    consumer: Arc<BaseConsumer<GroupContext>>,
    queues: BTreeMap<Partition, PartitionQueue<GroupContext>>,
    trouble: Option<String>,
}

impl fmt::Debug for GroupConsumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupConsumer")
            .field("queues", &self.queues.keys())
            .finish_non_exhaustive()
    }
}

impl GroupConsumer {
    /// Joins the group that `config` names and reads `topics`. The calling thread is the worker
    /// that new messages and rebalances wake.
    pub fn join(config: &ClientConfig, topics: &[String]) -> anyhow::Result<GroupConsumer> {
        let context = GroupContext::of_this_thread();
        let mut consumer: BaseConsumer<GroupContext> = config
            .create_with_context(context)
            .context("cannot create a consumer")?;
        let worker = std::thread::current();
        consumer.set_nonempty_callback(move || worker.unpark());
        let consumer = Arc::new(consumer);
        // A callback gets no Arc, and splitting a queue needs one.
        consumer
            .context()
            .consumer
            .set(Arc::downgrade(&consumer))
            .ok();
        let names: Vec<&str> = topics.iter().map(String::as_str).collect();
        consumer.subscribe(&names).context("cannot subscribe")?;
        Ok(GroupConsumer {
            consumer,
            queues: BTreeMap::new(),
            trouble: None,
        })
    }

    /// The safe point: serves rebalances, errors and logs, and says what changed.
    pub fn turn(&mut self) -> anyhow::Result<Vec<Change>> {
        loop {
            let served = self.consumer.context().served();
            match self.consumer.poll(Duration::ZERO) {
                Some(Ok(_)) => {
                    bail!("a message came through the main queue: a bug, please report it")
                }
                Some(Err(error)) => self.note(error)?,
                // A poll serves one event and then says "nothing": only two such in a row mean it.
                None if self.consumer.context().served() == served => break,
                None => {}
            }
        }
        self.consumer.context().commit_soon(&self.consumer);
        let events = std::mem::take(&mut *lock(&self.consumer.context().events));
        Ok(events.into_iter().map(|event| self.apply(event)).collect())
    }

    fn apply(&mut self, event: Event) -> Change {
        self.trouble = None;
        match event {
            Event::Assigned(partition, queue) => {
                self.queues.insert(partition.clone(), *queue);
                Change::Assigned(partition)
            }
            Event::Revoked(partition) => {
                self.queues.remove(&partition);
                Change::Revoked(partition)
            }
        }
    }

    fn note(&mut self, error: KafkaError) -> anyhow::Result<()> {
        let code = error.rdkafka_error_code();
        if code == Some(RDKafkaErrorCode::FencedInstanceId) {
            return Err(Fenced.into());
        }
        if matches!(error, KafkaError::MessageConsumptionFatal(_)) {
            return Err(error).context("the consumer has failed");
        }
        debug!(%error, "consumer");
        self.trouble = Some(error.to_string());
        Ok(())
    }

    /// Why this member cannot work just now; `None` if it can. Asks Kafka again after trouble.
    pub fn trouble(&mut self, topic: &str) -> Option<String> {
        if self.trouble.is_some()
            && self
                .consumer
                .fetch_metadata(Some(topic), Duration::from_secs(1))
                .is_ok()
        {
            self.trouble = None;
        }
        match &self.trouble {
            Some(trouble) => Some(trouble.clone()),
            None if self.consumer.context().joined.load(Ordering::Relaxed) => None,
            None => Some("joining the consumer group".to_owned()),
        }
    }

    /// The next record of one of our partitions, if it has been fetched.
    pub fn next(&mut self, partition: &Partition) -> anyhow::Result<Option<Arrival>> {
        let Some(queue) = self.queues.get(partition) else {
            return Ok(None);
        };
        match queue.poll(Duration::ZERO) {
            None => Ok(None),
            Some(Ok(message)) => {
                let arrival = convert::arrival(&message, &partition.topic);
                self.trouble = None;
                Ok(Some(arrival))
            }
            Some(Err(error)) => self.note(error).map(|()| None),
        }
    }

    /// The partitions that are ours.
    pub fn partitions(&self) -> impl Iterator<Item = &Partition> {
        self.queues.keys()
    }

    /// This member as a transaction must name it; only after `turn`.
    pub(super) fn group(&self) -> anyhow::Result<ConsumerGroupMetadata> {
        self.consumer
            .group_metadata()
            .context("not a member of the group")
    }

    /// The group's committed offsets. Waits for transactions under way: that is `read_committed`.
    pub fn committed<'a>(
        &self,
        partitions: impl Iterator<Item = &'a Partition>,
    ) -> anyhow::Result<BTreeMap<Partition, Option<i64>>> {
        let mut asked = TopicPartitionList::new();
        let by_name: HashMap<_, _> = partitions
            .map(|p| ((p.topic.to_string(), p.partition), p))
            .collect();
        for partition in by_name.values() {
            asked.add_partition(&partition.topic, partition.partition);
        }
        let answer = self
            .consumer
            .committed_offsets(asked, ASK)
            .context("cannot read committed offsets")?;
        let mut offsets = BTreeMap::new();
        for element in answer.elements() {
            element.error().context("cannot read a committed offset")?;
            if let Some(partition) = by_name.get(&(element.topic().to_owned(), element.partition()))
            {
                offsets.insert((*partition).clone(), convert::known(element.offset()));
            }
        }
        Ok(offsets)
    }

    /// Looks for new partitions of the topics now, not at the next regular refresh.
    pub fn refresh_topics(&self) {
        if let Err(error) = self.consumer.fetch_metadata(None, ASK) {
            debug!(%error, "cannot refresh metadata");
        }
    }

    /// Notes what is delivered, to be committed in the background (at-least-once).
    pub fn progress(&self, offsets: &BTreeMap<Partition, i64>) {
        let context = self.consumer.context();
        lock(&context.progress).extend(offsets.iter().map(|(p, offset)| (p.clone(), *offset)));
        context.uncommitted.store(true, Ordering::Relaxed);
        context.commit_soon(&self.consumer);
    }

    /// How long a worker that would sleep for `idle` may do so: a commit can be due before.
    pub fn may_sleep(&self, idle: Duration) -> Duration {
        let uncommitted = &self.consumer.context().uncommitted;
        if uncommitted.load(Ordering::Relaxed) {
            return idle.min(COMMIT_EVERY);
        }
        idle
    }

    /// Commits what is delivered, and waits for it (at-least-once, at the end).
    pub fn commit_progress(&self) {
        self.consumer
            .context()
            .commit(&self.consumer, CommitMode::Sync);
    }

    /// Gives the partitions back for good, also as a static member: that one only leaves a group
    /// whose topics it has given up, and only once that is settled.
    pub fn leave(&mut self) {
        self.consumer.unsubscribe();
        let deadline = Instant::now() + Duration::from_secs(2);
        while !self.queues.is_empty() && Instant::now() < deadline && self.turn().is_ok() {
            std::thread::sleep(Duration::from_millis(10));
        }
        // The request itself goes out in the background.
        std::thread::sleep(Duration::from_millis(200));
    }
}

impl Drop for GroupConsumer {
    fn drop(&mut self) {
        // Each queue holds the consumer: while one lives, the group is never left.
        self.queues.clear();
        lock(&self.consumer.context().events).clear();
    }
}

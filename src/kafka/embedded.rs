//! What the demo needs beside the service: an in-process Kafka, and a plain producer and reader.
//! Called by `demo` only. The embedded Kafka is rdkafka's mock: a try-out, never more; it knows no
//! transactions that hold, no LogAppendTime, and forgets everything with the process.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, DefaultProducerContext, Producer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use super::topics::Needed;
use super::{convert, headers};
use crate::core::record::Arrival;

/// An in-process Kafka.
pub struct Embedded {
    cluster: MockCluster<'static, DefaultProducerContext>,
}

impl std::fmt::Debug for Embedded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Embedded")
            .field("address", &self.address())
            .finish()
    }
}

impl Embedded {
    /// Starts it, with these topics.
    pub fn start(topics: &[Needed]) -> anyhow::Result<Embedded> {
        let cluster = MockCluster::new(1).context("cannot start the embedded Kafka")?;
        for topic in topics {
            cluster
                .create_topic(&topic.name, topic.partitions, 1)
                .with_context(|| format!("cannot create topic {}", topic.name))?;
        }
        Ok(Embedded { cluster })
    }

    /// Its `bootstrap.servers`.
    pub fn address(&self) -> String {
        self.cluster.bootstrap_servers()
    }
}

/// A producer like anybody's.
pub struct Sender {
    producer: BaseProducer,
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl Sender {
    /// A producer with these settings.
    pub fn new(config: &ClientConfig) -> anyhow::Result<Sender> {
        Ok(Sender {
            producer: config.create().context("cannot create a producer")?,
        })
    }

    /// Sends one message with text headers, and waits for nothing.
    pub fn send(
        &self,
        topic: &str,
        key: &str,
        value: &str,
        with: &[(&str, String)],
    ) -> anyhow::Result<()> {
        let list: Vec<_> = with
            .iter()
            .map(|(name, value)| (name.as_bytes(), Some(value.as_bytes().into())))
            .collect();
        let record = BaseRecord::to(topic)
            .key(key)
            .payload(value)
            .headers(headers::write(&list));
        self.producer
            .send(record)
            .map_err(|(error, _)| error)
            .context("cannot send an order")?;
        self.producer.poll(Duration::ZERO);
        Ok(())
    }

    /// Waits until everything sent is acknowledged.
    pub fn finish(&self) -> anyhow::Result<()> {
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.producer.in_flight_count() > 0 {
            anyhow::ensure!(
                Instant::now() < deadline,
                "Kafka did not acknowledge the orders within 10 s"
            );
            self.producer.poll(Duration::ZERO);
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

/// A reader like anybody's, of one topic from its end on.
pub struct Reader {
    consumer: BaseConsumer,
    topic: std::sync::Arc<str>,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("topic", &self.topic)
            .finish_non_exhaustive()
    }
}

impl Reader {
    /// Reads what comes into `topic` from now on.
    pub fn new(config: &ClientConfig, topic: &str) -> anyhow::Result<Reader> {
        let consumer: BaseConsumer = config.create().context("cannot create a reader")?;
        let metadata = consumer.fetch_metadata(Some(topic), Duration::from_secs(10))?;
        let mut partitions = TopicPartitionList::new();
        for found in metadata
            .topics()
            .iter()
            .flat_map(rdkafka::metadata::MetadataTopic::partitions)
        {
            let (_, end) = consumer.fetch_watermarks(topic, found.id(), Duration::from_secs(10))?;
            partitions.add_partition_offset(topic, found.id(), Offset::Offset(end))?;
        }
        consumer.assign(&partitions)?;
        Ok(Reader {
            consumer,
            topic: topic.into(),
        })
    }

    /// The next message, if one comes in time.
    pub fn next(&self, wait: Duration) -> anyhow::Result<Option<Arrival>> {
        match self.consumer.poll(wait) {
            None => Ok(None),
            Some(Ok(message)) => Ok(Some(convert::arrival(&message, &self.topic))),
            Some(Err(error)) => {
                tracing::debug!(%error, "reader");
                Ok(None)
            }
        }
    }
}

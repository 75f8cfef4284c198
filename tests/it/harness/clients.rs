//! Plain rdkafka clients of the tests: topics, a producer that reports where each message went, a `read_committed` reader.
//! Called by `World` and by tests. They must stay independent of delayd's own code: they judge it.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::{ClientContext, DefaultClientContext};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, Headers, Message as _, OwnedHeaders};
use rdkafka::producer::{
    BaseRecord, DeliveryResult, NoCustomPartitioner, Producer as _, ProducerContext,
    ThreadedProducer,
};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::eventually::{ensure, eventually, now_ms, seconds};

/// A message as a test writes it.
#[derive(Clone, Debug, Default)]
pub struct Message {
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    pub partition: Option<i32>,
}

impl Message {
    pub fn new(key: &str, value: &str) -> Message {
        Message {
            key: Some(key.into()),
            value: Some(value.into()),
            ..Message::default()
        }
    }

    pub fn header(mut self, key: &str, value: &str) -> Message {
        self.headers.push((key.to_owned(), Some(value.into())));
        self
    }

    pub fn null_header(mut self, key: &str) -> Message {
        self.headers.push((key.to_owned(), None));
        self
    }

    pub fn level(self, level: impl ToString) -> Message {
        self.header("delayLevel", &level.to_string())
    }

    pub fn target(self, topic: &str) -> Message {
        self.header("REAL_TOPIC", topic)
    }
}

/// Where Kafka put a message, and when if the topic has LogAppendTime.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    pub partition: i32,
    pub offset: i64,
    pub timestamp: i64,
}

#[derive(Default)]
struct Reports(Mutex<Vec<(usize, Result<Placed, String>)>>);

impl ClientContext for Reports {}

impl ProducerContext for Reports {
    type DeliveryOpaque = Box<usize>;

    fn delivery(&self, result: &DeliveryResult<'_>, index: Box<usize>) {
        let placed = match result {
            Ok(message) => Ok(Placed {
                partition: message.partition(),
                offset: message.offset(),
                timestamp: message.timestamp().to_millis().unwrap_or(-1),
            }),
            Err((error, _)) => Err(error.to_string()),
        };
        self.0.lock().unwrap().push((*index, placed));
    }
}

pub struct Producer(ThreadedProducer<Reports, NoCustomPartitioner>);

impl Producer {
    pub fn new(bootstrap: &str) -> Producer {
        let producer = ClientConfig::new()
            .set("bootstrap.servers", bootstrap)
            .set("enable.idempotence", "true")
            .set("linger.ms", "2")
            .set("partitioner", "murmur2_random")
            .create_with_context(Reports::default());
        Producer(producer.unwrap())
    }

    /// Returns when Kafka has taken all of them; in the order of `messages`.
    pub fn send(&mut self, topic: &str, messages: &[Message]) -> Vec<Placed> {
        for (index, message) in messages.iter().enumerate() {
            self.enqueue(topic, index, message);
        }
        self.0.flush(seconds(60)).unwrap();
        let reports = std::mem::take(&mut *self.0.context().0.lock().unwrap());
        let mut placed: HashMap<_, _> = reports.into_iter().collect();
        (0..messages.len())
            .map(|index| placed.remove(&index).expect("a report").expect(topic))
            .collect()
    }

    fn enqueue(&self, topic: &str, index: usize, message: &Message) {
        let headers = message
            .headers
            .iter()
            .fold(OwnedHeaders::new(), |all, (key, value)| {
                all.insert(Header {
                    key,
                    value: value.as_ref(),
                })
            });
        let mut record = BaseRecord::with_opaque_to(topic, Box::new(index)).headers(headers);
        record.key = message.key.as_deref();
        record.payload = message.value.as_deref();
        record.partition = message.partition;
        while let Err((error, back)) = self.0.send(record) {
            let full = error.rdkafka_error_code() == Some(RDKafkaErrorCode::QueueFull);
            assert!(full, "{topic}: {error}");
            std::thread::sleep(Duration::from_millis(5));
            record = back;
        }
    }
}

/// A record as a reader saw it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub topic: String,
    pub partition: i32,
    pub offset: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    /// The broker's, when it took the record.
    pub timestamp: i64,
    /// This host's, when the reader got it.
    pub seen_at: i64,
}

impl Seen {
    /// The last header of that name, as text.
    pub fn header(&self, key: &str) -> Option<String> {
        let (_, value) = self.headers.iter().rev().find(|(name, _)| name == key)?;
        Some(String::from_utf8_lossy(value.as_deref()?).into_owned())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.value.as_deref().unwrap_or_default()).into_owned()
    }
}

/// Reads every partition of some topics from the beginning, committed records only, in no group.
pub struct Reader {
    consumer: BaseConsumer,
    pub seen: Vec<Seen>,
}

impl Reader {
    pub fn new(bootstrap: &str, topics: &[&str]) -> Reader {
        let consumer = consumer(bootstrap, "delayd-test-reader");
        let mut all = TopicPartitionList::new();
        for topic in topics {
            for partition in 0..partitions(&consumer, topic) {
                all.add_partition_offset(topic, partition, Offset::Beginning)
                    .unwrap();
            }
        }
        consumer.assign(&all).unwrap();
        Reader {
            consumer,
            seen: Vec::new(),
        }
    }

    /// Reads until `done` holds; false if that was not so by `deadline`.
    pub fn until(&mut self, deadline: Duration, done: impl Fn(&[Seen]) -> bool) -> bool {
        let end = Instant::now() + deadline;
        while !done(&self.seen) {
            if Instant::now() >= end {
                return false;
            }
            self.poll();
        }
        true
    }

    /// Reads `count` records in all, or panics with what came.
    #[track_caller]
    pub fn wait_for(&mut self, count: usize, deadline: Duration) -> &[Seen] {
        let enough = self.until(deadline, |seen| seen.len() >= count);
        assert!(enough, "{} of {count}: {:#?}", self.seen.len(), self.seen);
        &self.seen
    }

    pub fn read_for(&mut self, time: Duration) -> &[Seen] {
        self.until(time, |_| false);
        &self.seen
    }

    fn poll(&mut self) {
        let Some(Ok(message)) = self.consumer.poll(Duration::from_millis(20)) else {
            return; // errors are librdkafka's to retry; what is missing shows in the verdict
        };
        let headers = message
            .headers()
            .map(|headers| headers.iter().map(owned).collect());
        self.seen.push(Seen {
            topic: message.topic().to_owned(),
            partition: message.partition(),
            offset: message.offset(),
            key: message.key().map(Into::into),
            value: message.payload().map(Into::into),
            headers: headers.unwrap_or_default(),
            timestamp: message.timestamp().to_millis().unwrap_or(-1),
            seen_at: now_ms(),
        });
    }
}

fn owned(header: Header<'_, &[u8]>) -> (String, Option<Vec<u8>>) {
    (header.key.to_owned(), header.value.map(Into::into))
}

/// A consumer that looks at a group without joining it.
pub fn consumer(bootstrap: &str, group: &str) -> BaseConsumer {
    ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", group)
        .set("enable.auto.commit", "false")
        .set("isolation.level", "read_committed")
        .set("auto.offset.reset", "earliest")
        .set("topic.metadata.refresh.interval.ms", "1000")
        .set("reconnect.backoff.max.ms", "500")
        .set("fetch.wait.max.ms", "50")
        .set("log_level", "0")
        .create()
        .unwrap()
}

fn partitions(consumer: &BaseConsumer, topic: &str) -> i32 {
    eventually(seconds(20), || {
        let metadata = consumer.fetch_metadata(Some(topic), seconds(5));
        let metadata = metadata.map_err(|error| error.to_string())?;
        let count = metadata.topics()[0].partitions().len();
        ensure(count > 0, || format!("{topic} has no partitions"))?;
        Ok(i32::try_from(count).unwrap())
    })
}

/// The leader of one partition as the brokers report it, -1 for none.
pub fn leader(consumer: &BaseConsumer, topic: &str, partition: usize) -> Result<i32, KafkaError> {
    let metadata = consumer.fetch_metadata(Some(topic), seconds(2))?;
    let partitions = metadata.topics()[0].partitions();
    Ok(partitions
        .get(partition)
        .map_or(-1, rdkafka::metadata::MetadataPartition::leader))
}

/// Creates a topic; LogAppendTime unless `configs` says otherwise.
pub fn create_topic(
    bootstrap: &str,
    name: &str,
    replication: TopicReplication<'_>,
    partitions: i32,
    configs: &[(&str, &str)],
) {
    let mut topic = NewTopic::new(name, partitions, replication);
    topic = topic.set("message.timestamp.type", "LogAppendTime");
    for (key, value) in configs {
        topic = topic.set(key, value);
    }
    let admin: AdminClient<DefaultClientContext> = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .create()
        .unwrap();
    let options = AdminOptions::new().operation_timeout(Some(seconds(30)));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let results = runtime
        .block_on(admin.create_topics([&topic], &options))
        .unwrap();
    results[0]
        .as_ref()
        .unwrap_or_else(|error| panic!("create {name}: {error:?}"));
}

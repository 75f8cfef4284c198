//! What the tests stand on. A test makes a `World` (its own names on a Kafka), starts delayd in it, sends, reads, judges.
//! Called by every file of `tests/it`. It must not know any scenario.

pub mod clients;
pub mod delayd;
pub mod eventually;
pub mod kafka;
pub mod oracle;
pub mod ports;
pub mod tools;

use std::fs;

use rdkafka::admin::TopicReplication;
use tempfile::TempDir;

pub use clients::{Message, Reader, Seen};
pub use delayd::{Delayd, Launch};
pub use eventually::{ensure, eventually, long, millis, now_ms, seconds};
pub use oracle::Oracle;

use clients::{Placed, Producer};

/// One test's own names, files and topics on a Kafka.
pub struct World {
    pub name: String,
    pub bootstrap: String,
    dir: TempDir,
}

impl World {
    /// On the Kafka that all tests share.
    pub fn new(test: &str, levels: &str) -> World {
        World::on(kafka::shared(), test, levels)
    }

    pub fn on(bootstrap: &str, test: &str, levels: &str) -> World {
        let unique = format!("{:x}{:x}", std::process::id(), now_ms() & 0xff_ffff);
        let world = World {
            name: format!("{test}-{unique}"),
            bootstrap: bootstrap.to_owned(),
            dir: tempfile::Builder::new()
                .prefix("delayd-test-")
                .tempdir()
                .unwrap(),
        };
        world.levels(levels);
        world
    }

    /// Writes `levels.toml`: what a later start or SIGHUP reads.
    pub fn levels(&self, table: &str) {
        let entries: Vec<_> = table.split(' ').map(|delay| format!("{delay:?}")).collect();
        let text = format!("levels = [{}]\n", entries.join(", "));
        fs::write(self.dir.path().join("levels.toml"), text).unwrap();
    }

    /// The full name of a topic of this test.
    pub fn named(&self, short: &str) -> String {
        format!("{}-{short}", self.name)
    }

    pub fn ingress(&self) -> String {
        self.named("ingress")
    }

    pub fn dead_letter(&self) -> String {
        self.named("dead-letter")
    }

    pub fn schedule(&self) -> String {
        self.named("schedule")
    }

    pub fn topic(&self, short: &str, partitions: i32) -> String {
        self.topic_with(short, partitions, &[])
    }

    pub fn topic_with(&self, short: &str, partitions: i32, configs: &[(&str, &str)]) -> String {
        let one = TopicReplication::Fixed(1);
        clients::create_topic(
            &self.bootstrap,
            &self.named(short),
            one,
            partitions,
            configs,
        );
        self.named(short)
    }

    /// One partition, on one broker.
    pub fn topic_on(&self, short: &str, broker: i32) -> String {
        let there = [&[broker][..]];
        let there = TopicReplication::Variable(&there);
        clients::create_topic(&self.bootstrap, &self.named(short), there, 1, &[]);
        self.named(short)
    }

    /// delayd with this test's names; a dead member of its groups is missed after Kafka's shortest time.
    pub fn delayd(&self) -> Launch {
        Launch {
            dir: self.dir.path().to_owned(),
            bootstrap: self.bootstrap.clone(),
            name: self.name.clone(),
            keys: String::new(),
            tables: format!(
                "[topics]\nschedule = {:?}\nreplication_factor = 1\n",
                self.schedule()
            ),
            args: Vec::new(),
        }
        .table("[kafka.consumer]\nsession.timeout.ms = 6000\nheartbeat.interval.ms = 1000")
    }

    pub fn reader(&self, topics: &[&str]) -> Reader {
        Reader::new(&self.bootstrap, topics)
    }

    /// Sends to the ingress topic and remembers it for the verdict.
    pub fn sender(&self, levels: &str) -> Sender {
        Sender {
            producer: Producer::new(&self.bootstrap),
            ingress: self.ingress(),
            oracle: Oracle::new(levels),
        }
    }

    pub fn producer(&self) -> Producer {
        Producer::new(&self.bootstrap)
    }
}

/// A producer to one ingress topic, with the judge of what it sent.
pub struct Sender {
    producer: Producer,
    ingress: String,
    pub oracle: Oracle,
}

impl Sender {
    pub fn send(&mut self, messages: &[Message]) -> Vec<Placed> {
        let placed = self.producer.send(&self.ingress, messages);
        self.oracle.remember(messages, &placed);
        placed
    }
}

/// An order with an id for the judge; level 0 is none.
pub fn order(id: impl ToString, level: usize, target: &str) -> Message {
    let id = id.to_string();
    let message = Message::new(&format!("key-{id}"), &format!("order {id}")).header("test-id", &id);
    match level {
        0 => message.target(target),
        level => message.level(level).target(target),
    }
}

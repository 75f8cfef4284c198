//! The figures of README: lateness at 500 messages a second, and the drain of one level beside a
//! plain consume-produce loop. Run by hand with `cargo bench --bench figures`, on a quiet machine;
//! it prints, and fails only where something was lost, repeated or early.
#![allow(clippy::unwrap_used, clippy::print_stdout)]
#![allow(dead_code, unused_imports, unreachable_pub)] // the harness has more than this needs

#[path = "../it/harness/mod.rs"]
mod harness;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Header, Message as _, OwnedHeaders};
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer as _, ThreadedProducer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use harness::{Message, World, now_ms, seconds};

const GUARANTEES: [&str; 2] = ["at-least-once", "exactly-once"];
const RECORDS: usize = 200_000;
const PAIRS: usize = 3;

fn main() {
    for guarantee in GUARANTEES {
        lateness(guarantee);
    }
    for guarantee in GUARANTEES {
        let ratios: Vec<f64> = (0..PAIRS).map(|_| drain(guarantee)).collect();
        let mut sorted = ratios.clone();
        sorted.sort_by(f64::total_cmp);
        println!(
            "drain, {guarantee}: median {:.2} of the plain loop, {sorted:.2?}",
            sorted[PAIRS / 2]
        );
    }
}

fn value() -> String {
    "x".repeat(1_000)
}

fn lateness(guarantee: &str) {
    let world = World::new("lateness", "1s");
    let orders = world.topic_with("orders", 4, &[("message.timestamp.type", "LogAppendTime")]);
    let delayd = world.delayd().arg("--guarantee", guarantee).start();
    let total = send_for(&world, &orders, seconds(24));
    let mut reader = world.reader(&[&orders]);
    reader.wait_for(total, seconds(60));
    let ids: HashSet<_> = reader
        .seen
        .iter()
        .filter_map(|seen| seen.header("test-id"))
        .collect();
    assert_eq!(
        (ids.len(), reader.seen.len()),
        (total, total),
        "lost or repeated"
    );
    drop(delayd);
    let mut late: Vec<i64> = reader
        .seen
        .iter()
        .filter(|seen| seen.header("test-id").unwrap().parse::<usize>().unwrap() > 2_000)
        .map(|seen| seen.timestamp - seen.header("delayd-due").unwrap().parse::<i64>().unwrap())
        .collect();
    late.sort_unstable();
    let at = |share: f64| late[((late.len() - 1) as f64 * share) as usize];
    println!(
        "lateness at 500 msg/s, 1 KB, {guarantee}: p50 {} ms, p90 {} ms, p99 {} ms, max {} ms",
        at(0.5),
        at(0.9),
        at(0.99),
        at(1.0)
    );
}

/// 500 messages a second, as evenly as a thread can; returns how many.
fn send_for(world: &World, target: &str, time: Duration) -> usize {
    let producer: ThreadedProducer<DefaultProducerContext> =
        config(world).set("linger.ms", "1").create().unwrap();
    let (started, value, mut sent) = (Instant::now(), value(), 0);
    while started.elapsed() < time {
        while sent < started.elapsed().as_millis() as usize / 2 {
            let (key, id) = (format!("key-{sent}"), sent.to_string());
            let headers = [
                ("delayLevel", "1"),
                ("REAL_TOPIC", target),
                ("test-id", &id),
            ];
            let headers = headers
                .iter()
                .fold(OwnedHeaders::new(), |all, (key, value)| {
                    all.insert(Header {
                        key,
                        value: Some(*value),
                    })
                });
            producer
                .send(
                    BaseRecord::to(&world.ingress())
                        .key(&key)
                        .payload(&value)
                        .headers(headers),
                )
                .map_err(|(error, _)| error)
                .unwrap();
            sent += 1;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    producer.flush(seconds(30)).unwrap();
    sent
}

/// Drains one level that is all due, then forwards the same records with a plain loop; the ratio of the rates.
fn drain(guarantee: &str) -> f64 {
    let world = World::new("drain", "1s");
    let by_delayd = world.topic_with("delayd", 4, &[("message.timestamp.type", "LogAppendTime")]);
    let by_loop = world.topic_with("loop", 4, &[("message.timestamp.type", "LogAppendTime")]);
    world.delayd().start().terminate(); // its topics exist from here on
    fill(&world, &by_delayd);
    let delayd = world.delayd().arg("--guarantee", guarantee).start();
    let ours = rate(&world, &by_delayd);
    drop(delayd);
    forward(&world, &by_loop);
    let plain = rate(&world, &by_loop);
    println!("drain of {RECORDS} x 1 KB, {guarantee}: {ours:.0}/s, plain loop {plain:.0}/s");
    ours / plain
}

/// Records as the router writes them, all due.
fn fill(world: &World, target: &str) {
    let past = (now_ms() - 60_000).to_string();
    let due = (now_ms() - 59_000).to_string();
    let value = value();
    let records = (0..RECORDS).map(|n| {
        let mut message = Message::new(&format!("key-{n}"), &value)
            .level(1)
            .target(target);
        for (name, text) in [
            ("delayd-id", n.to_string().as_str()),
            ("delayd-accepted-at", &past),
            ("delayd-timestamp", &past),
            ("delayd-due", &due),
            ("delayd-queued-at", &past),
        ] {
            message = message.header(name, text);
        }
        message.partition = Some(0);
        message
    });
    let all: Vec<_> = records.collect();
    let mut producer = world.producer();
    for chunk in all.chunks(10_000) {
        producer.send(&world.schedule(), chunk);
    }
}

/// Messages a second, by the broker's stamps.
fn rate(world: &World, topic: &str) -> f64 {
    let consumer: BaseConsumer = config(world)
        .set("group.id", format!("{topic}-rate"))
        .set("isolation.level", "read_committed")
        .create()
        .unwrap();
    assign(&consumer, topic, 4);
    let (mut first, mut last, mut count) = (i64::MAX, 0, 0);
    let deadline = Instant::now() + seconds(120);
    while count < RECORDS {
        assert!(
            Instant::now() < deadline,
            "{count} of {RECORDS} arrived in {topic}"
        );
        let Some(Ok(message)) = consumer.poll(seconds(1)) else {
            continue;
        };
        let at = message.timestamp().to_millis().unwrap();
        (first, last, count) = (first.min(at), last.max(at), count + 1);
    }
    RECORDS as f64 * 1_000.0 / (last - first) as f64
}

/// The plain loop: no transactions, no delays, nothing decided.
fn forward(world: &World, target: &str) {
    let consumer: BaseConsumer = config(world)
        .set("group.id", format!("{target}-forward"))
        .create()
        .unwrap();
    assign(&consumer, &world.schedule(), 1);
    let producer: ThreadedProducer<DefaultProducerContext> = config(world)
        .set("enable.idempotence", "true")
        .set("linger.ms", "5")
        .set("queue.buffering.max.messages", "1000000")
        .create()
        .unwrap();
    let mut count = 0;
    while count < RECORDS {
        let Some(Ok(message)) = consumer.poll(seconds(1)) else {
            continue;
        };
        let record = BaseRecord::to(target)
            .key(message.key().unwrap())
            .payload(message.payload().unwrap());
        let record = record.headers(message.headers().unwrap().detach());
        if producer.send(record).is_ok() {
            count += 1;
        }
    }
    producer.flush(seconds(60)).unwrap();
}

fn config(world: &World) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &world.bootstrap);
    config
}

fn assign(consumer: &BaseConsumer, topic: &str, partitions: i32) {
    let mut list = TopicPartitionList::new();
    for partition in 0..partitions {
        list.add_partition_offset(topic, partition, Offset::Beginning)
            .unwrap();
    }
    consumer.assign(&list).unwrap();
}

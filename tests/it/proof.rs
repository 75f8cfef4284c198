//! The harness itself, without delayd: it reads what it wrote, and its judge sees every kind of fault.
//! Called by cargo test. It must not start the binary.

use crate::harness::clients::{Placed, consumer, leader};
use crate::harness::kafka::Cluster;
use crate::harness::{
    Message, Oracle, Seen, World, eventually, millis, now_ms, order, seconds, tools,
};

#[test]
fn the_harness_reads_what_it_wrote() {
    let world = World::new("the_harness", "1s");
    let topic = world.topic("orders", 3);
    let odd = Message {
        key: None,
        value: Some(Vec::new()),
        partition: Some(2),
        ..Message::default()
    };
    let odd = odd
        .header("a", "1")
        .null_header("b")
        .header("a", "")
        .header("c", "ü");
    let before = now_ms();
    let placed = world
        .producer()
        .send(&topic, &[Message::new("k", "v"), odd.clone()]);

    let mut reader = world.reader(&[&topic]);
    let seen = reader.wait_for(2, seconds(20)).to_vec();

    let odd_one = seen
        .iter()
        .find(|seen| seen.partition == 2 && seen.key.is_none())
        .unwrap();
    assert_eq!(odd_one.headers, odd.headers);
    assert_eq!(odd_one.value, Some(Vec::new()));
    assert_eq!(
        odd_one.timestamp, placed[1].timestamp,
        "the report carries the append time"
    );
    assert!((before - 5_000..now_ms() + 5_000).contains(&odd_one.timestamp));
    let plain = seen.iter().find(|seen| seen.text() == "v").unwrap();
    assert_eq!(
        (plain.partition, plain.offset),
        (placed[0].partition, placed[0].offset)
    );
}

#[test]
fn the_harness_speaks_through_the_console_tools() {
    let world = World::new("the_console", "1s");
    let topic = world.topic("orders", 1);
    tools::produce(
        &world.bootstrap,
        &topic,
        &["a:1,b:2\tkey\tvalue".to_owned()],
    );

    let lines = tools::consume(&world.bootstrap, &topic, 1);

    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].headers, ["a:1", "b:2"]);
    assert_eq!(
        (lines[0].key.as_str(), lines[0].value.as_str()),
        ("key", "value")
    );
    assert!((lines[0].timestamp - now_ms()).abs() < 60_000);
}

/// Two messages of level 1 (one second) that Kafka took at 1 000 and 1 001.
fn two_sent() -> (Oracle, [Message; 2], [Seen; 2]) {
    let messages = [order("a", 1, "orders"), order("b", 1, "orders")];
    let placed = [0, 1].map(|offset| Placed {
        partition: 0,
        offset,
        timestamp: 1_000 + offset,
    });
    let mut oracle = Oracle::new("1s 2s");
    oracle.remember(&messages, &placed);
    let seen = [0, 1].map(|index: usize| delivered(&messages[index], placed[index]));
    (oracle, messages, seen)
}

fn delivered(message: &Message, placed: Placed) -> Seen {
    let ours = message
        .clone()
        .header("delayd-accepted-at", &placed.timestamp.to_string());
    Seen {
        topic: "orders".to_owned(),
        partition: 0,
        offset: placed.offset,
        key: message.key.clone(),
        value: message.value.clone(),
        headers: ours.header("delayd-due", "0").headers,
        timestamp: placed.timestamp + 1_003,
        seen_at: 0,
    }
}

#[test]
fn the_judge_accepts_a_clean_delivery() {
    let (oracle, _, seen) = two_sent();
    let verdict = oracle.verdict(&seen);
    verdict.assert_clean();
    assert_eq!(verdict.late(99.0), 3);
}

#[test]
fn the_judge_sees_each_kind_of_fault() {
    let (oracle, _, [a, b]) = two_sent();
    let faults = |seen: &[Seen]| {
        let v = oracle.verdict(seen);
        [
            &v.lost,
            &v.repeated,
            &v.early,
            &v.disordered,
            &v.changed,
            &v.strange,
        ]
        .map(Vec::len)
    };
    let with = |change: fn(&mut Seen)| {
        let mut other = a.clone();
        change(&mut other);
        [other, b.clone()]
    };
    assert_eq!(faults(std::slice::from_ref(&a)), [1, 0, 0, 0, 0, 0], "lost");
    assert_eq!(
        faults(&[a.clone(), b.clone(), b.clone()]),
        [0, 1, 0, 0, 0, 0],
        "repeated"
    );
    assert_eq!(
        faults(&with(|seen| seen.timestamp = 1_999)),
        [0, 0, 1, 0, 0, 0],
        "early"
    );
    assert_eq!(
        faults(&with(|seen| seen.offset = 9)),
        [0, 0, 0, 1, 0, 0],
        "order"
    );
    assert_eq!(
        faults(&with(|seen| seen.key = None)),
        [0, 0, 0, 0, 1, 0],
        "key"
    );
    assert_eq!(
        faults(&with(|seen| seen.value = None)),
        [0, 0, 0, 0, 1, 0],
        "value"
    );
    assert_eq!(
        faults(&with(|seen| seen.headers.swap(0, 1))),
        [0, 0, 0, 0, 1, 0],
        "headers"
    );
    assert_eq!(
        faults(&with(|seen| seen.headers.truncate(3))),
        [0, 0, 0, 0, 2, 0],
        "ours"
    );
    assert_eq!(
        faults(&with(|seen| seen.headers.clear())),
        [1, 0, 0, 0, 0, 1],
        "strange"
    );
}

#[test]
fn the_harness_kills_and_restarts_one_broker_of_two() {
    let mut cluster = Cluster::start(2);
    let world = World::on(&cluster.bootstrap(), "the_cluster", "1s");
    let (stays, goes) = (world.topic_on("stays", 1), world.topic_on("goes", 2));
    let client = consumer(&world.bootstrap, "delayd-test-metadata");
    assert_eq!(
        (leader(&client, &stays, 0), leader(&client, &goes, 0)),
        (Ok(1), Ok(2))
    );
    world.producer().send(&goes, &[Message::new("k", "before")]);

    cluster.kill9(2);
    eventually(seconds(30), || match leader(&client, &goes, 0) {
        Ok(-1) => Ok(()),
        other => Err(format!("leader {other:?}")),
    });
    world
        .producer()
        .send(&stays, &[Message::new("k", "meanwhile")]);
    cluster.restart(2);

    let mut reader = world.reader(&[&stays, &goes]);
    let mut texts: Vec<_> = reader
        .wait_for(2, seconds(30))
        .iter()
        .map(Seen::text)
        .collect();
    texts.sort();
    assert_eq!(texts, ["before", "meanwhile"]);
}

/// What delayd does, without any of its care: enough for the judge to have something to judge.
fn relay(world: &World, count: usize, delays: [i64; 2]) {
    let mut reader = world.reader(&[&world.ingress()]);
    let mut records = reader.wait_for(count, seconds(20)).to_vec();
    let due = |seen: &Seen| {
        let level = seen
            .header("delayLevel")
            .map_or(0, |level| level.parse().unwrap());
        seen.timestamp + [0, delays[0], delays[1]][level]
    };
    records.sort_by_key(|seen| (due(seen), seen.partition, seen.offset));
    let mut producer = world.producer();
    for seen in records {
        let wait = u64::try_from(due(&seen) + 1 - now_ms()).unwrap_or(0);
        std::thread::sleep(millis(wait));
        let message = Message {
            key: seen.key.clone(),
            value: seen.value.clone(),
            headers: seen.headers.clone(),
            partition: None,
        };
        let message = message.header("delayd-due", &due(&seen).to_string());
        let message = message.header("delayd-accepted-at", &seen.timestamp.to_string());
        producer.send(&seen.header("REAL_TOPIC").unwrap(), &[message]);
    }
}

#[test]
fn the_judge_follows_a_relay_on_a_real_broker() {
    let world = World::new("the_relay", "300ms 1s");
    let orders = world.topic("orders", 3);
    world.topic("ingress", 2);
    let mut sender = world.sender("300ms 1s");
    sender.send(
        &(0..60)
            .map(|n| order(n, n % 3, &orders))
            .collect::<Vec<_>>(),
    );

    relay(&world, 60, [300, 1_000]);

    let mut reader = world.reader(&[&orders]);
    let verdict = sender.oracle.watch(&mut reader, seconds(20));
    verdict.assert_clean();
    relay(&world, 60, [300, 1_000]);
    let verdict = sender.oracle.watch(&mut reader, seconds(5));
    verdict.assert_nothing_lost();
    assert_eq!(verdict.repeated.len(), 60);
}

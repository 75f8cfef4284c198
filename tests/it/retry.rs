//! A level never stops for one message: an absent target waits its turn, an oversized record is buried alone.
//! Called by cargo test. Neighbours of the bad message must be in the same level and on time.

use crate::harness::{Message, World, ensure, eventually, order, seconds};

const TABLE: &str = "300ms 1s";

#[test]
fn a_message_to_a_missing_topic_is_delivered_once_the_topic_exists() {
    let world = World::new("missing", TABLE);
    let orders = world.topic("orders", 2);
    let later = world.named("later");
    let delayd = world.delayd().key("retry = \"1s\"").start();
    let (mut waiting, mut neighbours) = (world.sender(TABLE), world.sender(TABLE));
    waiting.send(&[order("waits", 1, &later), order("at once", 0, &later)]);
    let batch: Vec<_> = (0..100).map(|n| order(n, n % 3, &orders)).collect();
    neighbours.send(&batch);

    let mut reader = world.reader(&[&orders]);
    let verdict = neighbours.oracle.watch(&mut reader, seconds(30));
    verdict.assert_clean();
    assert!(verdict.late(100.0) < 2_000, "{}", verdict.summary());
    eventually(seconds(20), || {
        let count = delayd.metric("delayd_reparked_total")?;
        ensure(count >= 2.0, || format!("{count} re-parked"))
    });

    world.topic("later", 1);
    let mut reader = world.reader(&[&later]);
    waiting
        .oracle
        .watch(&mut reader, seconds(30))
        .assert_clean_in_any_order();
    let attempt = reader
        .seen
        .iter()
        .any(|seen| seen.header("delayd-attempt").is_some());
    assert!(!attempt, "delayd-attempt is for the schedule topic only");
    assert_eq!(delayd.metric("delayd_dead_letter_total"), Ok(0.0));
}

#[test]
fn a_target_that_stays_away_is_a_dead_letter_in_the_end() {
    let world = World::new("gives_up", TABLE);
    let _delayd = world
        .delayd()
        .key("retry = \"1s\"")
        .key("retry_for = \"4s\"")
        .start();
    let message = order("never", 1, &world.named("nowhere"));
    world.producer().send(&world.ingress(), &[message]);

    let mut reader = world.reader(&[&world.dead_letter()]);
    let seen = reader.wait_for(1, seconds(40));
    assert_eq!(
        seen[0].header("delayd-error").as_deref(),
        Some("target_unavailable")
    );
    assert_eq!(seen[0].text(), "order never");
}

#[test]
fn only_the_record_that_is_too_large_is_buried() {
    let world = World::new("too_large", TABLE);
    let orders = world.topic_with("orders", 1, &[("max.message.bytes", "2000")]);
    let delayd = world.delayd().start();
    let mut sender = world.sender(TABLE);
    let large = Message {
        value: Some(noise(5_000)),
        ..order("large", 1, &orders)
    };
    let small = |n: usize| order(n, 1, &orders);
    sender.send(&(0..50).map(small).collect::<Vec<_>>());
    world
        .producer()
        .send(&world.ingress(), std::slice::from_ref(&large));
    sender.send(&(50..100).map(small).collect::<Vec<_>>());

    let mut reader = world.reader(&[&orders]);
    let verdict = sender.oracle.watch(&mut reader, seconds(30));
    verdict.assert_clean();
    assert!(verdict.late(100.0) < 3_000, "{}", verdict.summary());
    let mut reader = world.reader(&[&world.dead_letter()]);
    let dead = reader.wait_for(1, seconds(10));
    assert_eq!(dead[0].header("delayd-error").as_deref(), Some("too_large"));
    assert_eq!(dead[0].value, large.value);
    assert_eq!(delayd.metric("delayd_dead_letter_total"), Ok(1.0));
}

/// Bytes that do not compress.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    (0..count).map(|_| next()).collect()
}

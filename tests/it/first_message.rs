//! The main story, typed with Kafka's own console tools: one header, and the message arrives later.
//! Called by cargo test. It must use nothing that a user with the Kafka download lacks.

use crate::harness::tools::{self, Line};
use crate::harness::{World, seconds};

fn send(world: &World, lines: &[&str]) -> Vec<Line> {
    let lines: Vec<_> = lines
        .iter()
        .map(|line| line.replace("orders", &world.named("orders")))
        .collect();
    tools::produce(&world.bootstrap, &world.ingress(), &lines);
    let mut sent = tools::consume(&world.bootstrap, &world.ingress(), lines.len());
    sent.sort_by(|a, b| a.key.cmp(&b.key));
    sent
}

/// The headers that are not delayd's.
fn own(line: &Line) -> Vec<String> {
    line.headers
        .iter()
        .filter(|header| !header.starts_with("delayd-"))
        .cloned()
        .collect()
}

#[test]
fn level_three_arrives_ten_seconds_after_kafka_took_it() {
    let world = World::new("first", "1s 5s 10s");
    let orders = world.topic("orders", 1);
    let _delayd = world.delayd().start();

    let sent = send(
        &world,
        &["delayLevel:3,REAL_TOPIC:orders,trace:7\tkey\tvalue"],
    );
    let got = tools::consume(&world.bootstrap, &orders, 1);

    assert_eq!(got.len(), 1, "nothing came");
    assert_eq!((&got[0].key, &got[0].value), (&sent[0].key, &sent[0].value));
    assert_eq!(own(&got[0]), own(&sent[0]));
    let took = got[0].timestamp - sent[0].timestamp;
    assert!((10_000..12_000).contains(&took), "took {took} ms");
    assert!(
        got[0]
            .headers
            .contains(&format!("delayd-accepted-at:{}", sent[0].timestamp))
    );
}

#[test]
fn level_99_waits_as_long_as_the_last_level() {
    let world = World::new("clamped", "1s 2s 4s");
    let orders = world.topic("orders", 1);
    let _delayd = world.delayd().start();

    let sent = send(&world, &["delayLevel:99,REAL_TOPIC:orders\tkey\tvalue"]);
    let got = tools::consume(&world.bootstrap, &orders, 1);

    let took = got[0].timestamp - sent[0].timestamp;
    assert!((4_000..6_000).contains(&took), "took {took} ms");
    assert_eq!(
        own(&got[0]),
        ["delayLevel:3", &format!("REAL_TOPIC:{orders}")]
    );
}

#[test]
fn without_a_level_it_arrives_at_once_and_nonsense_is_a_dead_letter() {
    let world = World::new("at_once", "1s 5s 10s");
    let orders = world.topic("orders", 1);
    let delayd = world.delayd().start();

    let sent = send(
        &world,
        &[
            "REAL_TOPIC:orders\ta\tnow",
            "delayLevel:abc,REAL_TOPIC:orders\tb\tnonsense",
        ],
    );
    let got = tools::consume(&world.bootstrap, &orders, 1);
    let dead = tools::consume(&world.bootstrap, &world.dead_letter(), 1);

    assert_eq!(got[0].value, "now");
    let took = got[0].timestamp - sent[0].timestamp;
    assert!((0..1_000).contains(&took), "took {took} ms");
    assert_eq!(
        (dead[0].key.as_str(), dead[0].value.as_str()),
        ("b", "nonsense")
    );
    assert!(
        dead[0]
            .headers
            .contains(&"delayd-error:bad_level".to_owned()),
        "{dead:?}"
    );
    assert!(
        dead[0].headers.contains(&"delayLevel:abc".to_owned()),
        "{dead:?}"
    );
    let counted = crate::harness::eventually(seconds(5), || {
        let metrics = delayd.metrics()?;
        let one = metrics
            .iter()
            .find(|(name, _)| name.contains("reason=\"bad_level\""));
        one.map(|(_, count)| *count).ok_or(format!("{metrics:#?}"))
    });
    assert_eq!(counted, 1.0);
}

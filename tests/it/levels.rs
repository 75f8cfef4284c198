//! The level table is edited while messages wait: longer, shorter, more levels, fewer.
//! Called by cargo test. Due times must come from the ingress record and the table of that moment.

use crate::harness::{Delayd, Message, Seen, World, ensure, eventually, order, seconds};

/// SIGHUP, then waits until the process says that it has another table.
fn reload(delayd: &Delayd) {
    let before = delayd.metrics().unwrap();
    let hash = |metrics: &std::collections::BTreeMap<String, f64>| -> Vec<(String, f64)> {
        let of_levels = metrics
            .iter()
            .filter(|(name, _)| name.starts_with("delayd_levels_hash"));
        of_levels
            .map(|(name, value)| (name.clone(), *value))
            .collect()
    };
    delayd.signal("-HUP");
    eventually(seconds(20), || {
        let now = hash(&delayd.metrics()?);
        ensure(now != hash(&before), || {
            format!("the table is still {now:?}")
        })
    });
}

/// The one message is parked.
fn wait_until_scheduled(delayd: &Delayd) {
    eventually(seconds(10), || {
        let count = delayd.metric("delayd_scheduled_total")?;
        ensure(count == 1.0, || format!("{count} scheduled"))
    });
}

/// Sends one message; returns when Kafka took it.
fn send(world: &World, message: Message) -> i64 {
    world.producer().send(&world.ingress(), &[message])[0].timestamp
}

/// The delivered order with that id.
fn arrival(world: &World, id: &str) -> Seen {
    let text = format!("order {id}");
    let mut reader = world.reader(&[&world.named("orders")]);
    reader.until(seconds(40), |seen| {
        seen.iter().any(|seen| seen.text() == text)
    });
    let mut found = reader.seen.into_iter().filter(|seen| seen.text() == text);
    let first = found.next().expect(id);
    assert!(found.next().is_none(), "{id} came twice");
    first
}

#[test]
fn a_level_added_by_sighup_is_used_and_pending_messages_keep_theirs() {
    let world = World::new("grow", "4s");
    let orders = world.topic("orders", 1);
    let delayd = world.delayd().start();
    let pending = send(&world, order("pending", 1, &orders));
    world.levels("4s 500ms");
    reload(&delayd);
    let added = send(&world, order("added", 2, &orders));

    let seen = arrival(&world, "added");
    let took = seen.timestamp - added;
    assert!((500..20_000).contains(&took), "took {took} ms");
    assert_eq!(
        seen.header("delayLevel").as_deref(),
        Some("2"),
        "not clamped"
    );
    let took = arrival(&world, "pending").timestamp - pending;
    assert!((4_000..20_000).contains(&took), "took {took} ms");
}

#[test]
fn a_removed_level_is_emptied_and_new_messages_clamp() {
    let world = World::new("shrink", "500ms 4s");
    let orders = world.topic("orders", 1);
    let launch = world.delayd();
    let mut delayd = launch.start();
    let old = send(&world, order("old", 2, &orders));
    wait_until_scheduled(&delayd);
    assert_eq!(delayd.terminate().code, Some(0));
    world.levels("500ms");
    let _delayd = launch.start();
    let new = send(&world, order("new", 2, &orders));

    let seen = arrival(&world, "new");
    let took = seen.timestamp - new;
    assert!((500..3_500).contains(&took), "took {took} ms");
    assert_eq!(seen.header("delayLevel").as_deref(), Some("1"), "clamped");
    let took = arrival(&world, "old").timestamp - old;
    assert!((4_000..15_000).contains(&took), "took {took} ms");
}

#[test]
fn a_shorter_delay_pulls_pending_messages_in() {
    let world = World::new("shorter", "1h");
    let orders = world.topic("orders", 1);
    let delayd = world.delayd().start();
    let accepted = send(&world, order("pulled in", 1, &orders));
    wait_until_scheduled(&delayd);
    world.levels("2s");
    reload(&delayd);
    let took = arrival(&world, "pulled in").timestamp - accepted;
    assert!((2_000..20_000).contains(&took), "took {took} ms");
}

#[test]
fn pending_keep_leaves_pending_messages_alone() {
    let world = World::new("pending_keep", "8s");
    let orders = world.topic("orders", 1);
    let launch = world.delayd().key("pending = \"keep\"");
    let mut delayd = launch.start();
    let accepted = send(&world, order("kept", 1, &orders));
    wait_until_scheduled(&delayd);
    assert_eq!(delayd.terminate().code, Some(0));
    world.levels("500ms");
    let _delayd = launch.start();
    let took = arrival(&world, "kept").timestamp - accepted;
    assert!((8_000..15_000).contains(&took), "took {took} ms");
}

//! One message, or one topic, that nobody can deliver to: the others of its level go on.
//! Called by cargo test. Each was seen to stop a level once.

use crate::harness::{Message, World, ensure, eventually, millis, now_ms, order, seconds, tools};

const TABLE: &str = "200ms 1s";

/// Everybody may look, nobody may write.
const NO_WRITE: [&str; 7] = [
    "--add",
    "--deny-principal",
    "User:*",
    "--operation",
    "Write",
    "--deny-host",
    "*",
];

#[test]
fn a_topic_that_must_not_be_written_holds_nobody_up() {
    let world = World::new("forbidden", TABLE);
    let (orders, forbidden) = (world.topic("orders", 2), world.topic("forbidden", 1));
    let allow_look = [
        "--add",
        "--allow-principal",
        "User:*",
        "--operation",
        "Describe",
    ];
    tools::acls(&world.bootstrap, &forbidden, &allow_look);
    tools::acls(&world.bootstrap, &forbidden, &NO_WRITE);
    let delayd = world.delayd().key("retry = \"1s\"").start();
    let mut sender = world.sender(TABLE);
    let mut kept_out = world.sender(TABLE);
    kept_out.send(&[order("kept-out", 1, &forbidden)]);
    for n in 0..40 {
        sender.send(&[order(n, n % 2 + 1, &orders)]);
    }
    let verdict = sender
        .oracle
        .watch(&mut world.reader(&[&orders]), seconds(30));
    verdict.assert_clean();
    assert!(verdict.late(100.0) < 5_000, "{}", verdict.summary());
    eventually(seconds(20), || {
        let reparked = delayd.metric("delayd_reparked_total")?;
        ensure(reparked >= 1.0, || format!("{reparked} re-parked"))
    });

    tools::acls(&world.bootstrap, &forbidden, &["--remove", "--force"]);
    let mut reader = world.reader(&[&forbidden]);
    let verdict = kept_out.oracle.watch(&mut reader, seconds(60));
    verdict.assert_clean_in_any_order();
}

#[test]
fn a_schedule_record_that_names_an_internal_topic_is_a_dead_letter() {
    let world = World::new("foreign", TABLE);
    let orders = world.topic("orders", 1);
    let delayd = world.delayd().start();
    let past = (now_ms() - 5_000).to_string();
    let targets = [
        "__consumer_offsets".to_owned(),
        world.ingress(),
        world.schedule(),
    ];
    let foreign: Vec<_> = targets
        .iter()
        .map(|target| waiting(target, &past))
        .collect();
    world.producer().send(&world.schedule(), &foreign);
    let mut sender = world.sender(TABLE);
    sender.send(&(0..10).map(|n| order(n, 1, &orders)).collect::<Vec<_>>());
    sender
        .oracle
        .watch(&mut world.reader(&[&orders]), seconds(30))
        .assert_clean();

    let mut reader = world.reader(&[&world.dead_letter()]);
    let mut reasons: Vec<_> = reader
        .wait_for(3, seconds(20))
        .iter()
        .filter_map(|seen| seen.header("delayd-error"))
        .collect();
    reasons.sort();
    assert_eq!(
        reasons,
        [
            "target_is_ingress",
            "target_is_internal",
            "target_is_internal"
        ]
    );
    assert_eq!(delayd.metric("delayd_dead_letter_total"), Ok(3.0));
}

/// A record as the router writes it, but by somebody else.
fn waiting(target: &str, due: &str) -> Message {
    let mut message = order("foreign", 1, target);
    for name in ["accepted-at", "timestamp", "due", "queued-at"] {
        message = message.header(&format!("delayd-{name}"), due);
    }
    message = message.header("delayd-id", "foreign");
    message.partition = Some(0);
    message
}

#[test]
fn a_topic_that_takes_only_small_batches_gets_all_its_messages() {
    let world = World::new("small", TABLE);
    let small = world.topic_with("small", 1, &[("max.message.bytes", "20000")]);
    let orders = world.topic("orders", 1);
    let delayd = world.delayd().start();
    let (mut to_small, mut to_orders) = (world.sender(TABLE), world.sender(TABLE));
    let padded = |n: usize| order(n, 2, &small).header("pad", &"x".repeat(500));
    to_small.send(&(0..3_000).map(padded).collect::<Vec<_>>());
    std::thread::sleep(millis(100));
    to_orders.send(&(0..20).map(|n| order(n, 2, &orders)).collect::<Vec<_>>());

    let verdict = to_small
        .oracle
        .watch(&mut world.reader(&[&small]), seconds(60));
    verdict.assert_clean();
    let verdict = to_orders
        .oracle
        .watch(&mut world.reader(&[&orders]), seconds(30));
    verdict.assert_clean();
    println!("small batches: neighbours {}", verdict.summary());
    assert_eq!(delayd.metric("delayd_dead_letter_total"), Ok(0.0));
    assert_eq!(delayd.metric("delayd_reparked_total"), Ok(0.0));
}

#[test]
fn many_messages_that_are_too_large_do_not_hold_up_their_neighbours() {
    let world = World::new("large", TABLE);
    let small = world.topic_with("small", 1, &[("max.message.bytes", "2000")]);
    let orders = world.topic("orders", 1);
    let delayd = world.delayd().start();
    let mut sender = world.sender(TABLE);
    let large = |n: usize| order(n, 2, &small).header("pad", &"x".repeat(5_000));
    world
        .producer()
        .send(&world.ingress(), &(0..200).map(large).collect::<Vec<_>>());
    let mut fitting = world.sender(TABLE);
    fitting.send(&(200..230).map(|n| order(n, 2, &small)).collect::<Vec<_>>());
    sender.send(&(300..330).map(|n| order(n, 2, &orders)).collect::<Vec<_>>());

    let verdict = sender
        .oracle
        .watch(&mut world.reader(&[&orders]), seconds(60));
    verdict.assert_clean();
    println!("too large: neighbours {}", verdict.summary());
    assert!(verdict.late(100.0) < 5_000, "{}", verdict.summary());
    fitting
        .oracle
        .watch(&mut world.reader(&[&small]), seconds(60))
        .assert_clean();
    let mut reader = world.reader(&[&world.dead_letter()]);
    assert_eq!(reader.wait_for(200, seconds(30)).len(), 200);
    eventually(seconds(5), || {
        let dead = delayd.metric("delayd_dead_letter_total")?;
        ensure(dead == 200.0, || format!("{dead} dead letters"))
    });
}

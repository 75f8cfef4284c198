//! The other guarantee: nothing lost and none early after kills; repeats only in the window of a kill.
//! Called by cargo test. It must not assert exactly once.

use std::thread;

use crate::harness::{World, ensure, eventually, millis, order, seconds};

const TABLE: &str = "200ms 500ms 1s";

#[test]
fn at_least_once_loses_nothing_when_killed() {
    let world = World::new("at_least_once", TABLE);
    let orders = world.topic("orders", 4);
    let launch = world
        .delayd()
        .instance("one")
        .arg("--guarantee", "at-least-once");
    let mut delayd = launch.start();
    let mut sender = world.sender(TABLE);
    for pause in [200, 50, 400] {
        let first = sender.oracle.len();
        let batch: Vec<_> = (first..first + 2_000)
            .map(|n| order(n, n % 4, &orders))
            .collect();
        sender.send(&batch);
        eventually(seconds(30), || {
            let count = delayd.metric("delayd_delivered_total")?;
            ensure(count > 0.0, || "it delivers nothing".to_owned())
        });
        thread::sleep(millis(pause));
        delayd.kill9();
        delayd = launch.start();
    }
    let mut reader = world.reader(&[&orders]);
    sender
        .oracle
        .watch(&mut reader, seconds(60))
        .assert_nothing_lost();
}

#[test]
fn at_least_once_repeats_nothing_without_a_crash() {
    let world = World::new("at_least_once_calm", TABLE);
    let orders = world.topic("orders", 4);
    let launch = world.delayd().arg("--guarantee", "at-least-once");
    let mut delayd = launch.start();
    let mut sender = world.sender(TABLE);
    sender.send(
        &(0..1_000)
            .map(|n| order(n, n % 4, &orders))
            .collect::<Vec<_>>(),
    );
    assert_eq!(delayd.terminate().code, Some(0));
    let _delayd = launch.start();
    let mut reader = world.reader(&[&orders]);
    sender.oracle.watch(&mut reader, seconds(60)).assert_clean();
}

#[test]
fn at_least_once_repeats_nothing_that_was_delivered_a_second_before_a_kill() {
    let world = World::new("at_least_once_settled", TABLE);
    let orders = world.topic("orders", 4);
    let launch = world
        .delayd()
        .instance("one")
        .arg("--guarantee", "at-least-once");
    let mut delayd = launch.start();
    let mut sender = world.sender(TABLE);
    let batch: Vec<_> = (0..3_000).map(|n| order(n, n % 4, &orders)).collect();
    sender.send(&batch);
    eventually(seconds(30), || {
        let count = delayd.metric("delayd_delivered_total")?;
        ensure(count == 3_000.0, || format!("{count} delivered"))
    });
    thread::sleep(seconds(1));
    delayd.kill9();
    let _delayd = launch.start();
    thread::sleep(seconds(3)); // a repeat would come now
    let mut reader = world.reader(&[&orders]);
    reader.read_for(seconds(3));
    sender.oracle.verdict(&reader.seen).assert_clean();
}

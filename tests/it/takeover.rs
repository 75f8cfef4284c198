//! Two processes share the levels; one dies, the other takes over in the time that README promises.
//! Called by cargo test. It must kill only after both were seen to work.

use std::time::{Duration, Instant};

use crate::harness::{Delayd, Sender, World, ensure, eventually, now_ms, order, seconds};

const TABLE: &str = "200ms 300ms 400ms 500ms";

/// One message of every level to every ingress partition.
fn probe(sender: &mut Sender, target: &str) {
    let first = sender.oracle.len();
    let round = (0..16).map(|n| {
        let mut message = order(first + n, n % 4 + 1, target);
        message.partition = Some(i32::try_from(n / 4).unwrap());
        message
    });
    sender.send(&round.collect::<Vec<_>>());
}

fn delivered(delayd: &Delayd) -> Result<f64, String> {
    delayd.metric("delayd_delivered_total")
}

/// Traffic until both have delivered something.
fn until_both_work(sender: &mut Sender, target: &str, both: [&Delayd; 2]) {
    eventually(seconds(60), || {
        probe(sender, target);
        let counts = [delivered(both[0])?, delivered(both[1])?];
        ensure(counts.iter().all(|count| *count > 0.0), || {
            format!("delivered {counts:?}")
        })
    });
}

#[test]
fn the_survivor_takes_over_when_the_other_is_killed() {
    let world = World::new("takeover", TABLE);
    let orders = world.topic("orders", 2);
    let launch = world.delayd();
    let (mut one, two) = (launch.start(), launch.start());
    let mut sender = world.sender(TABLE);
    let mut reader = world.reader(&[&orders]);
    until_both_work(&mut sender, &orders, [&one, &two]);
    sender.oracle.watch(&mut reader, seconds(30)).assert_clean();

    one.kill9();
    let killed = Instant::now();
    probe(&mut sender, &orders);
    // session timeout 6 s; or transaction timeout 10 s and the broker's sweep 10 s; and 2 s
    let limit = Duration::from_secs(22);
    sender
        .oracle
        .watch(&mut reader, limit + seconds(10))
        .assert_clean();
    assert!(
        killed.elapsed() < limit + seconds(2),
        "took {:?}",
        killed.elapsed()
    );
}

#[test]
fn a_restart_with_an_instance_id_resumes_within_two_seconds() {
    let world = World::new("resume", TABLE);
    let orders = world.topic("orders", 2);
    let launch = world.delayd().instance("one");
    let mut delayd = launch.start();
    let mut sender = world.sender(TABLE);
    let mut reader = world.reader(&[&orders]);
    probe(&mut sender, &orders);
    sender.oracle.watch(&mut reader, seconds(30)).assert_clean();

    delayd.kill9();
    probe(&mut sender, &orders);
    let due = now_ms() + 500;
    let restarted = now_ms();
    let _delayd = launch.start();
    let verdict = sender.oracle.watch(&mut reader, seconds(30));

    verdict.assert_clean();
    let last = reader.seen.iter().map(|seen| seen.seen_at).max().unwrap();
    assert!(
        last - restarted.max(due) < 2_000,
        "resumed after {} ms",
        last - restarted
    );
}

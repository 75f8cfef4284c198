//! A target partition loses its leader: the others of the same levels go on, its own messages wait, nothing is lost or twice.
//! Called by cargo test. The broker that dies must hold nothing but that partition, so delayd starts before it exists.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::harness::clients::{consumer, leader};
use crate::harness::kafka::Cluster;
use crate::harness::{Reader, Seen, Sender, World, eventually, millis, now_ms, order, seconds};

const TABLE: &str = "300ms 1s";

/// Which targets get traffic now.
#[derive(Default)]
struct Switch {
    away: AtomicBool,
    stop: AtomicBool,
}

/// 40 messages a second to each target that is switched on.
fn traffic(switch: &Switch, healthy: (&mut Sender, &str), away: (&mut Sender, &str)) {
    let mut id = 0;
    while !switch.stop.load(Ordering::Relaxed) {
        let mut batch = |target: &str| -> Vec<_> {
            id += 4;
            (id - 4..id).map(|n| order(n, n % 2 + 1, target)).collect()
        };
        healthy.0.send(&batch(healthy.1));
        if switch.away.load(Ordering::Relaxed) {
            away.0.send(&batch(away.1));
        }
        thread::sleep(millis(100));
    }
}

fn read_until_stopped(mut reader: Reader, switch: &Switch, into: &Mutex<Vec<Seen>>) {
    while !switch.stop.load(Ordering::Relaxed) {
        reader.read_for(millis(100));
    }
    *into.lock().unwrap() = reader.seen;
}

/// Kills broker 2 while nothing is on its way to it; returns when it died and when the metadata showed it.
fn lose_the_leader(cluster: &mut Cluster, away: &str, switch: &Switch) -> (i64, i64) {
    thread::sleep(seconds(4));
    switch.away.store(false, Ordering::Relaxed);
    thread::sleep(seconds(3)); // what was on its way is delivered: a leader lost mid-transaction is another story
    cluster.kill9(2);
    let killed = now_ms();
    switch.away.store(true, Ordering::Relaxed);
    let client = consumer(&cluster.bootstrap(), "delayd-test-metadata");
    eventually(seconds(30), || match leader(&client, away, 0) {
        Ok(-1) => Ok(()),
        other => Err(format!("leader of {away}: {other:?}")),
    });
    (killed, now_ms())
}

#[test]
fn other_targets_go_on_while_one_partition_has_no_leader() {
    let mut cluster = Cluster::start(1);
    let world = World::on(&cluster.bootstrap(), "leaderless", TABLE);
    let healthy = world.topic_on("healthy", 1);
    let _delayd = world.delayd().key("retry = \"1s\"").start(); // internal topics are on broker 1 from here on
    cluster.add_broker();
    let away = world.topic_on("away", 2);

    let switch = Switch {
        away: AtomicBool::new(true),
        stop: AtomicBool::new(false),
    };
    let (mut to_healthy, mut to_away) = (world.sender(TABLE), world.sender(TABLE));
    let seen = Mutex::new(Vec::new());
    let reader = world.reader(&[&healthy]);
    let (killed, shown) = thread::scope(|scope| {
        scope.spawn(|| traffic(&switch, (&mut to_healthy, &healthy), (&mut to_away, &away)));
        scope.spawn(|| read_until_stopped(reader, &switch, &seen));
        let _stop = StopAtEnd(&switch);
        let times = lose_the_leader(&mut cluster, &away, &switch);
        thread::sleep(seconds(10));
        times
    });
    healthy_went_on(&to_healthy, &seen.lock().unwrap(), killed, shown);

    cluster.restart(2);
    let mut reader = world.reader(&[&away]);
    to_away
        .oracle
        .watch(&mut reader, seconds(90))
        .assert_clean_in_any_order();
    let mut reader = world.reader(&[&healthy]);
    to_healthy
        .oracle
        .watch(&mut reader, seconds(30))
        .assert_clean();
}

/// Within 20 s of the kill, and within 2 s of the metadata showing it.
fn healthy_went_on(sent: &Sender, seen: &[Seen], killed: i64, shown: i64) {
    let at: HashMap<_, _> = seen.iter().map(|seen| (id(seen), seen.seen_at)).collect();
    let arrival = |(id, due)| (due, at.get(id).copied().unwrap_or(i64::MAX));
    let window = killed..shown + 7_000;
    let all: Vec<(i64, i64)> = sent.oracle.dues().map(arrival).collect();
    let all = all.iter().filter(|(due, _)| window.contains(due));
    let (during, after): (Vec<_>, Vec<_>) = all.partition(|(due, _)| *due < shown + 2_000);
    let last = during.iter().map(|(_, at)| at - killed).max().unwrap();
    let late = after.iter().map(|(due, at)| at - due).max().unwrap();
    println!(
        "leaderless: metadata after {} ms, stalled until {last} ms",
        shown - killed
    );
    let resumed = during
        .iter()
        .any(|(_, at)| (shown..shown + 2_000).contains(at));
    assert!(resumed, "nothing within 2 s of the metadata");
    assert!(last < 20_000, "stalled until {last} ms after the kill");
    assert!(late < 2_000, "late by {late} ms afterwards");
}

fn id(seen: &Seen) -> String {
    seen.header("test-id").unwrap()
}

/// Ends the other threads even if this one panics, else the test would hang.
struct StopAtEnd<'a>(&'a Switch);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
}

//! kill -9 in the middle of traffic: each message exactly once, none early, in order.
//! Called by cargo test. Kills must fall while the process works, so each waits until it has delivered something.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::harness::{
    Delayd, Launch, Sender, World, ensure, eventually, long, millis, order, seconds,
};

const TABLE: &str = "200ms 500ms 1s 2s";

/// When each kill comes, after the first delivery of that run.
const PAUSES: [u64; 5] = [150, 700, 320, 50, 480];

/// Kills and restarts; the last process goes on.
fn kill_and_restart(launch: &Launch, pauses: &[u64]) -> Delayd {
    let mut delayd = launch.start();
    for pause in pauses {
        eventually(seconds(60), || {
            let delivered = delayd.metric("delayd_delivered_total")?;
            ensure(delivered > 0.0, || "it delivers nothing".to_owned())
        });
        thread::sleep(millis(*pause));
        delayd.kill9();
        delayd = launch.start();
    }
    delayd
}

/// At least `count` messages, 100 every 50 ms, until `stop`.
fn traffic(sender: &mut Sender, target: &str, count: usize, stop: &AtomicBool) {
    while sender.oracle.len() < count || !stop.load(Ordering::Relaxed) {
        let first = sender.oracle.len();
        let batch: Vec<_> = (first..first + 100)
            .map(|n| order(n, n % 4 + 1, target))
            .collect();
        sender.send(&batch);
        thread::sleep(millis(50));
    }
}

/// Traffic beside kills, then the verdict.
fn exactly_once(world: &World, launch: &Launch, count: usize, pauses: &[u64]) {
    let orders = world.topic("orders", 4);
    launch.start().terminate(); // its topics exist from here on
    let mut sender = world.sender(TABLE);
    let stop = AtomicBool::new(false);
    let _delayd = thread::scope(|scope| {
        scope.spawn(|| traffic(&mut sender, &orders, count, &stop));
        let _stop = StopAtEnd(&stop);
        kill_and_restart(launch, pauses)
    });
    let mut reader = world.reader(&[&orders]);
    sender.oracle.watch(&mut reader, seconds(90)).assert_clean();
}

/// Ends the traffic even if the kills panic, else the test would hang.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn twenty_thousand_messages_survive_five_kills_exactly_once() {
    let world = World::new("crash", TABLE);
    let count = if long() { 200_000 } else { 20_000 };
    exactly_once(&world, &world.delayd().instance("one"), count, &PAUSES);
}

#[test]
fn a_process_without_an_instance_id_survives_kills_exactly_once() {
    let world = World::new("crash_dynamic", TABLE);
    let pauses = if long() { &PAUSES[..] } else { &PAUSES[..2] };
    exactly_once(&world, &world.delayd(), 4_000, pauses);
}

//! Waiting costs nothing: every level holds a head that is not due, and the process sleeps.
//! Called by cargo test. It reads the child's own figures from /proc, so other tests do not disturb it.

use std::fs;

use crate::harness::{World, ensure, eventually, order, seconds};

/// As many levels as RocketMQ has, none due while the test looks.
const TABLE: &str = "10m 11m 12m 13m 14m 15m 16m 17m 18m 19m 20m 25m 30m 40m 50m 1h 2h 3h";

/// CPU time in hundredths of a second (Linux reports it so on every architecture).
fn cpu(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, after_name) = stat.rsplit_once(')').unwrap();
    let fields: Vec<_> = after_name.split_whitespace().collect();
    fields[11..13]
        .iter()
        .map(|ticks| ticks.parse::<u64>().unwrap())
        .sum()
}

fn resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim_end_matches("kB").trim().parse().unwrap()
}

#[test]
fn waiting_heads_cost_less_than_one_percent_of_a_core() {
    let world = World::new("idle", TABLE);
    let orders = world.topic("orders", 1);
    let delayd = world.delayd().start();
    let messages: Vec<_> = (1..=18).map(|level| order(level, level, &orders)).collect();
    world.producer().send(&world.ingress(), &messages);
    eventually(seconds(20), || {
        let scheduled = delayd.metric("delayd_scheduled_total")?;
        ensure(scheduled == 18.0, || format!("{scheduled} scheduled"))
    });
    std::thread::sleep(seconds(3));

    let before = cpu(delayd.pid());
    std::thread::sleep(seconds(20));
    let used = cpu(delayd.pid()) - before;
    let resident = resident_kib(delayd.pid());

    println!("idle: {used} ms x 10 of CPU in 20 s, {resident} KiB resident");
    assert!(used < 20, "{used} hundredths of a second in 20 s");
    assert!(resident < 100 * 1024, "{resident} KiB");
    let log = delayd.log();
    let loud = ["WARN", "ERROR"].iter().any(|word| log.contains(word));
    assert!(!loud, "waiting is not news:\n{log}");
}

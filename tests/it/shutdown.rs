//! Ends: in order, at once, and with the right exit code when it cannot start.
//! Called by cargo test. Each test here must look at the exit code.

use crate::harness::kafka::Cluster;
use crate::harness::ports::Port;
use crate::harness::{Launch, Sender, World, ensure, eventually, order, seconds};

const TABLE: &str = "200ms 400ms";

fn send_some(sender: &mut Sender, target: &str) {
    let first = sender.oracle.len();
    let batch: Vec<_> = (first..first + 20)
        .map(|n| order(n, n % 2 + 1, target))
        .collect();
    sender.send(&batch);
}

#[test]
fn sigterm_ends_it_and_the_other_process_has_the_levels_at_once() {
    let world = World::new("sigterm", TABLE);
    let orders = world.topic("orders", 2);
    let mut one = world.delayd().start();
    let _two = world.delayd().start();
    let mut sender = world.sender(TABLE);
    let mut reader = world.reader(&[&orders]);
    send_some(&mut sender, &orders);
    sender.oracle.watch(&mut reader, seconds(30)).assert_clean();

    send_some(&mut sender, &orders);
    let ended = one.terminate();
    send_some(&mut sender, &orders);
    let verdict = sender.oracle.watch(&mut reader, seconds(30));

    assert_eq!(ended.code, Some(0), "{}", one.log());
    assert!(ended.took < seconds(5), "{ended:?}");
    verdict.assert_clean();
    assert!(
        verdict.late(100.0) < 5_000,
        "{}: a session timeout passed",
        verdict.summary()
    );
}

#[test]
fn a_second_signal_ends_it_immediately_even_if_kafka_hangs() {
    let cluster = Cluster::start(1);
    let world = World::on(&cluster.bootstrap(), "hang", TABLE);
    let mut delayd = world.delayd().start();
    cluster.freeze(1);

    delayd.signal("-TERM");
    std::thread::sleep(seconds(1));
    if delayd.is_running() {
        delayd.signal("-TERM"); // else the first one was enough
    }
    let ended = delayd.ended(seconds(10));
    assert!(ended.took < seconds(1), "{ended:?}");
}

/// Runs until it ends by itself: exit code and what it wrote.
#[track_caller]
fn fails(launch: &Launch) -> (Option<i32>, String) {
    let mut delayd = launch.spawn();
    let ended = delayd.ended(seconds(30));
    (ended.code, delayd.log())
}

#[test]
fn an_unreachable_kafka_is_exit_69_after_the_wait() {
    let world = World::new("unreachable", TABLE);
    let nobody = Port::reserve();
    let launch = world
        .delayd()
        .bootstrap(&nobody.address())
        .arg("--wait", "2s");
    let (code, log) = fails(&launch);
    assert_eq!(code, Some(69), "{log}");
    assert!(log.contains(&nobody.address()), "names the address: {log}");
}

#[test]
fn bad_configuration_is_exit_78_with_every_fault_named() {
    let world = World::new("bad_config", TABLE);
    let launch = world
        .delayd()
        .key("guarante = \"exactly-once\"")
        .key("wrokers = 2");
    let (code, log) = fails(&launch);
    assert_eq!(code, Some(78), "{log}");
    for word in ["guarante", "guarantee", "wrokers", "workers"] {
        assert!(log.contains(word), "{word} is not in {log}");
    }
}

#[test]
fn a_setting_that_would_break_a_guarantee_is_exit_78() {
    let world = World::new("bad_setting", TABLE);
    let launch = world
        .delayd()
        .table("[kafka.producer]\nenable.idempotence = false");
    let (code, log) = fails(&launch);
    assert_eq!(code, Some(78), "{log}");
    assert!(log.contains("enable.idempotence"), "{log}");
}

#[test]
fn bad_usage_is_exit_64() {
    let world = World::new("bad_usage", TABLE);
    let (code, log) = fails(&world.delayd().flag("--bootstrapserver"));
    assert_eq!(code, Some(64), "{log}");
    assert!(
        log.contains("--bootstrap-server"),
        "suggests the flag: {log}"
    );
}

#[test]
fn a_duplicate_instance_id_is_exit_78_that_names_it() {
    let world = World::new("duplicate", TABLE);
    let launch = world.delayd().instance("twin-7");
    let mut both = [launch.start(), launch.spawn()];
    // Kafka fences the older one, delayd may refuse the younger: one of them must say so.
    let loser = eventually(seconds(60), || {
        let ended = both.iter_mut().position(|delayd| !delayd.is_running());
        ended.ok_or_else(|| "both still run".to_owned())
    });
    let ended = both[loser].ended(seconds(1));
    assert_eq!(ended.code, Some(78), "{}", both[loser].log());
    assert!(
        both[loser].log().contains("twin-7"),
        "{}",
        both[loser].log()
    );
    let other = &both[1 - loser];
    eventually(seconds(30), || {
        let (status, body) = other.get("/readyz")?;
        ensure(status == 200, || body)
    });
}

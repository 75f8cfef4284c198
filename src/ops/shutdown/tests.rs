//! The flag, for threads and for tasks.

use std::thread;
use std::time::Instant;

use super::*;

const LONG: Duration = Duration::from_secs(30);

fn assert_quick(since: Instant) {
    assert!(
        since.elapsed() < Duration::from_secs(5),
        "waited {:?}",
        since.elapsed()
    );
}

#[test]
fn wait_ends_early_when_stopped() {
    let stop = StopFlag::new();
    let waiter = stop.clone();
    let started = Instant::now();
    let thread = thread::spawn(move || waiter.wait(LONG));
    thread::sleep(Duration::from_millis(20));
    stop.stop();
    assert!(thread.join().unwrap());
    assert_quick(started);
}

#[test]
fn wait_takes_its_time_when_not_stopped() {
    let stop = StopFlag::new();
    let started = Instant::now();
    assert!(!stop.wait(Duration::from_millis(50)));
    assert!(started.elapsed() >= Duration::from_millis(50));
}

#[test]
fn wait_returns_at_once_when_already_stopped() {
    let stop = StopFlag::new();
    stop.stop();
    stop.stop();
    let started = Instant::now();
    assert!(stop.is_set() && stop.wait(LONG));
    assert_quick(started);
}

#[test]
fn parked_threads_are_woken_whether_they_register_before_or_after() {
    let stop = StopFlag::new();
    let started = Instant::now();
    let park = |stop: StopFlag| {
        move || {
            stop.unpark_on_stop(thread::current());
            while !stop.is_set() {
                thread::park_timeout(LONG);
            }
        }
    };
    let before = thread::spawn(park(stop.clone()));
    thread::sleep(Duration::from_millis(20));
    stop.stop();
    before.join().unwrap();
    stop.unpark_on_stop(thread::current());
    thread::park_timeout(LONG);
    assert_quick(started);
}

#[tokio::test]
async fn tasks_are_told_before_and_after() {
    let stop = StopFlag::new();
    let early = tokio::spawn(stop.stopped());
    tokio::task::yield_now().await;
    assert!(!early.is_finished());
    stop.stop();
    tokio::time::timeout(LONG, early).await.unwrap().unwrap();
    tokio::time::timeout(LONG, stop.stopped()).await.unwrap();
}

#[tokio::test]
async fn dropping_every_other_clone_does_not_count_as_a_stop() {
    let stopped = StopFlag::new().stopped();
    assert!(
        tokio::time::timeout(Duration::from_millis(50), stopped)
            .await
            .is_err()
    );
}

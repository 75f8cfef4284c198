//! The model: routers and scanners over a simulated Kafka, through crashes, rebalances, moved
//! clocks and edits of the level table. No history may lose, repeat, reorder or hurry a message.
#![allow(clippy::unwrap_used)]

mod kafka;
mod landing;
mod message;
mod scenarios;
mod shape;
mod steps;
mod worker;
mod world;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use steps::{Setting, setting, step};
use world::play;

/// How many histories; twenty times as many with `DELAYD_TEST_LONG`.
fn config(cases: u32) -> Config {
    let times = if std::env::var_os("DELAYD_TEST_LONG").is_some() {
        20
    } else {
        1
    };
    Config {
        cases: cases * times,
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..Config::default()
    }
}

/// The same histories every time, so that a failure can be repeated; new ones in the long form.
fn runner(cases: u32) -> TestRunner {
    if std::env::var_os("DELAYD_TEST_LONG").is_some() {
        return TestRunner::new(config(cases));
    }
    TestRunner::new_with_rng(
        config(cases),
        TestRng::deterministic_rng(RngAlgorithm::ChaCha),
    )
}

fn check(cases: u32, setting: impl Strategy<Value = Setting>, steps: usize) {
    let history = (setting, proptest::collection::vec(step(), 1..steps));
    let result = runner(cases).run(&history, |(setting, steps)| {
        play(&setting, &steps).map_err(TestCaseError::fail)
    });
    match result {
        Ok(()) => {}
        Err(TestError::Fail(why, (setting, steps))) => {
            let steps: Vec<String> = steps
                .iter()
                .enumerate()
                .map(|(number, step)| format!("{number:3}  {step:?}"))
                .collect();
            panic!("{why}\n{setting:?}\n{}\n", steps.join("\n"));
        }
        Err(abort) => panic!("{abort}"),
    }
}

#[test]
fn no_history_loses_repeats_reorders_or_hurries_a_message() {
    check(4_096, setting(), 60);
}

#[test]
fn long_histories_hold_as_well() {
    check(512, setting(), 400);
}

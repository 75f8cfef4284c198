//! Waiting for a state instead of sleeping; called by every test.
//! It must never swallow the last state: a test that times out says what it saw.

use std::time::{Duration, Instant};

/// Repeats `look` until it is `Ok`; panics with its last `Err` after `deadline`.
#[track_caller]
pub fn eventually<T>(deadline: Duration, mut look: impl FnMut() -> Result<T, String>) -> T {
    let end = Instant::now() + deadline;
    loop {
        match look() {
            Ok(value) => return value,
            Err(state) if Instant::now() >= end => panic!("not within {deadline:?}: {state}"),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// `Ok` if it holds, else what was seen.
pub fn ensure(holds: bool, state: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(state()) }
}

/// True under `tests/run --long`.
pub fn long() -> bool {
    std::env::var_os("DELAYD_TEST_LONG").is_some_and(|value| value == "1")
}

/// Unix time in ms of this host.
pub fn now_ms() -> i64 {
    let since = std::time::UNIX_EPOCH.elapsed().expect("a clock after 1970");
    i64::try_from(since.as_millis()).expect("a clock before the year 292 million")
}

pub fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

pub fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

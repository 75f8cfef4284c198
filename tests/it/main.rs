//! delayd against a real Kafka: one test binary, one file per story.
//! Run by `tests/run`. Tests run side by side on one broker and must share nothing but that.
#![allow(clippy::unwrap_used)] // a test that cannot go on stops here
#![allow(unreachable_pub)] // nothing here is reached from outside

mod harness;

mod at_least_once;
mod crash;
mod fidelity;
mod first_message;
mod hostile;
mod idle;
mod keep;
mod leaderless;
mod levels;
mod proof;
mod retry;
mod shutdown;
mod takeover;
mod tidy;

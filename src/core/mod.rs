//! The pure heart of delayd: what happens to a message, and when.
//! Called by `flow`; must not know tokio, rdkafka, a clock or any I/O: `now` is an argument.

pub mod dead_letter;
pub mod envelope;
pub mod fate;
pub mod ingress;
pub mod level;
pub mod level_queue;
pub mod merge;
pub mod partitioner;
pub mod planner;
pub mod record;
pub mod route;
pub mod time;

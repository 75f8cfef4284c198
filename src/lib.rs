//! delayd gives Apache Kafka the delay levels of Apache RocketMQ: a producer sets one header,
//! `delayLevel: 3`, and ten seconds later the message is on its real topic.
//!
//! # The road of one message
//!
//! ```text
//! producer → ingress topic → router → SCHEDULE_TOPIC_XXXX → scanner → real topic → consumer
//!                              │        partition = level - 1   waits until due
//!                              ├─ no level, or 0 ─────────────────────→ real topic, at once
//!                              └─ unusable ───────────────────────────→ dead-letter topic, with the reason
//! ```
//!
//! To follow it through the code, open in this order and never go back:
//! [`core::route`] decides about an ingress record, [`flow::router`] carries that out,
//! [`core::level_queue`] knows when the head of a queue may leave, [`core::planner`] chooses what
//! leaves next, [`flow::scanner`] sends it.
//!
//! # Code map
//!
//! - [`core`]: pure. Levels, records, envelopes, decisions. No clock, no I/O; `now` is an argument.
//! - [`kafka`]: the only place that names rdkafka. Clients, transactions, topics, the broker's clock.
//! - [`flow`]: the two loops and what gets a batch out.
//! - [`ops`]: HTTP, metrics, health, logs, signals.
//! - [`config`], [`cli`], [`app`], [`demo`], [`commands`]: how the program is told what to do.
//!
//! Dependencies point one way, core ← kafka ← flow ← app ← main; `tests/it/tidy.rs` holds that.
//!
//! # Invariants
//!
//! - A consumer's main queue is never polled inside a transaction, so no rebalance happens there.
//! - Offsets are committed only by the transaction that holds the records (exactly-once), or after
//!   every record before them is acknowledged (at-least-once).
//! - A queue's committed offset never passes a record that is not delivered, re-parked or dead-lettered.
//! - Nothing is produced to a real topic before its due time by the broker's clock.
//! - No call of rdkafka that can block runs on a tokio worker thread while messages flow.
//! - Every wait has a stop flag and a deadline; a worker parks for at most a second.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod app;
pub mod cli;
pub mod commands;
pub mod config;
pub mod core;
pub mod demo;
pub mod flow;
pub mod kafka;
pub mod ops;

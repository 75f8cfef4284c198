//! The only place that names rdkafka: consumers, transactions, topics and the broker's clock.
//! Called by `flow` and `app`; decides nothing about messages.

pub mod accepts;
pub mod acks;
pub mod clock;
pub mod consumer;
mod convert;
pub mod delivery;
pub mod embedded;
pub mod error;
mod headers;
pub mod log;
mod lots;
pub mod producer;
pub mod settings;
pub mod targets;
pub mod topics;
pub mod txn;

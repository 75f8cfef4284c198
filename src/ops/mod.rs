//! What an operator sees and touches: metrics, health, logs, stopping.
//! Called by `app` and told things by `flow`; must not know Kafka and never decides about a message.

pub mod health;
pub mod http;
mod http_limits;
pub mod metrics;
pub mod shutdown;
pub mod telemetry;

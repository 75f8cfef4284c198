//! The two loops that move messages, and what they share. Started by `app`; all decisions about
//! messages are made in `core`, all calls to Kafka in `kafka`.

pub mod dispatch;
pub mod housekeeping;
pub mod router;
pub mod scanner;
pub mod worker;

//! Asks librdkafka whether it takes a setting, before any client exists.
//! Called by `config` with one key at a time; must not open a connection nor print a value.

use rdkafka::config::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaConfRes;

/// Why librdkafka refused a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It has no such key.
    Unknown,
    /// It has the key but not this value. Its own words may quote the value: not for secrets.
    Invalid(String),
}

/// Whether librdkafka takes `value` for `key`.
///
/// # Errors
/// librdkafka's reason.
pub fn accepts(key: &str, value: &str) -> Result<(), Refusal> {
    // One throw-away configuration for each key: librdkafka stops at its first complaint.
    let mut config = ClientConfig::new();
    config.set(key, value);
    match config.create_native_config() {
        Ok(_) => Ok(()),
        Err(KafkaError::ClientConfig(RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN, ..)) => {
            Err(Refusal::Unknown)
        }
        Err(KafkaError::ClientConfig(_, reason, ..)) => Err(Refusal::Invalid(reason)),
        Err(other) => Err(Refusal::Invalid(other.to_string())),
    }
}

/// Whether librdkafka's regular expressions, which are POSIX and not Rust's, take this pattern.
///
/// # Errors
/// librdkafka's reason.
pub fn accepts_pattern(pattern: &str) -> Result<(), Refusal> {
    // The one setting that compiles patterns when it is set. It splits at commas, and its escape
    // for them does not work, so that a pattern with a comma is left to the subscription.
    if pattern.contains(',') {
        return Ok(());
    }
    accepts("topic.blacklist", pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn librdkafka_tells_unknown_keys_from_bad_values() {
        assert_eq!(accepts("linger.ms", "5"), Ok(()));
        assert_eq!(accepts("lingr.ms", "5"), Err(Refusal::Unknown));
        let bad = accepts("linger.ms", "soon");
        assert!(
            matches!(&bad, Err(Refusal::Invalid(why)) if why.contains("Invalid value")),
            "{bad:?}"
        );
        assert!(matches!(
            accepts("client.id", "a\0b"),
            Err(Refusal::Invalid(_))
        ));
    }

    #[test]
    fn librdkafka_tells_whether_it_can_read_a_pattern() {
        assert_eq!(accepts_pattern("^(.+)-delayed$"), Ok(()));
        assert!(accepts_pattern("^(.+").is_err());
    }
}

//! Points in time as Kafka stores them: milliseconds since 1970, UTC.
//! Used everywhere; arithmetic saturates, so a hostile timestamp never wraps into the past.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Milliseconds since the Unix epoch, by the broker's clock unless said otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// This time plus `delay`, at most the largest timestamp.
    pub fn plus(self, delay: Duration) -> Timestamp {
        Timestamp(self.0.saturating_add(millis(delay)))
    }

    /// This time minus `delay`, at least the smallest timestamp.
    pub fn minus(self, delay: Duration) -> Timestamp {
        Timestamp(self.0.saturating_sub(millis(delay)))
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub fn since(self, earlier: Timestamp) -> Duration {
        let distance = self.0.saturating_sub(earlier.0);
        Duration::from_millis(u64::try_from(distance).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for Timestamp {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Timestamp, Self::Err> {
        text.parse().map(Timestamp)
    }
}

fn millis(delay: Duration) -> i64 {
    i64::try_from(delay.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_and_never_wraps() {
        let day = Duration::from_secs(86_400);
        assert_eq!(Timestamp(i64::MAX - 1).plus(day), Timestamp(i64::MAX));
        assert_eq!(Timestamp(i64::MIN + 1).minus(day), Timestamp(i64::MIN));
        assert_eq!(Timestamp(5).plus(Duration::MAX), Timestamp(i64::MAX));
        assert_eq!(
            Timestamp(i64::MIN).since(Timestamp(i64::MAX)),
            Duration::ZERO
        );
        assert_eq!(
            Timestamp(1_500).since(Timestamp(500)),
            Duration::from_secs(1)
        );
    }
}

//! The broker's clock, as far as this host can know it: a lower bound, so that nothing is early.
//! `app` runs the probe; `flow` reads the time. Never looks at this host's wall clock to judge a
//! due time: that may be wrong, and may be set.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use rdkafka::ClientConfig;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use tracing::{info, warn};

use super::acks::Acks;
use crate::core::record::Stamp;
use crate::core::time::Timestamp;
use crate::ops::shutdown::StopFlag;

/// How often the broker is asked.
const EVERY: Duration = Duration::from_secs(10);
/// How many answers count: older ones may have drifted.
const KEPT: usize = 3;
/// What two clocks may drift apart, in parts per million.
const DRIFT_PPM: i64 = 100;

/// One answer: at some moment between `sent` and `acked` the broker's clock showed `stamp`.
#[derive(Debug, Clone, Copy)]
struct Sample {
    stamp: i64,
    sent: Instant,
    acked: Instant,
}

impl Sample {
    /// The least that the broker's clock can show at `at`.
    fn least(&self, at: Instant) -> i64 {
        let micros = i64::try_from(at.saturating_duration_since(self.acked).as_micros())
            .unwrap_or(i64::MAX / 2);
        self.stamp + (micros - micros / 1_000_000 * DRIFT_PPM) / 1_000
    }

    /// The most that it can show.
    fn most(&self, at: Instant) -> i64 {
        let micros = i64::try_from(at.saturating_duration_since(self.sent).as_micros())
            .unwrap_or(i64::MAX / 2);
        self.stamp + 1 + (micros + micros / 1_000_000 * DRIFT_PPM) / 1_000 + 1
    }
}

/// The broker's clock. Cheap to clone; all clones are one clock.
#[derive(Debug, Clone, Default)]
pub struct BrokerClock {
    samples: Arc<Mutex<VecDeque<Sample>>>,
    host: bool,
}

impl BrokerClock {
    /// This host's own clock, for a broker in the same process (the demo).
    pub fn of_this_host() -> BrokerClock {
        BrokerClock {
            samples: Arc::default(),
            host: true,
        }
    }

    /// The time by the broker's clock, or a little earlier; `None` before the first answer.
    pub fn now(&self) -> Option<Timestamp> {
        if self.host {
            return Some(wall());
        }
        self.at(Instant::now())
    }

    fn at(&self, at: Instant) -> Option<Timestamp> {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        samples
            .iter()
            .map(|sample| sample.least(at))
            .max()
            .map(Timestamp)
    }

    fn add(&self, sample: Sample) {
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        // The broker's clock has been set back: what was true before is true no longer.
        samples.retain(|old| old.least(sample.acked) <= sample.most(sample.acked));
        samples.push_back(sample);
        while samples.len() > KEPT {
            samples.pop_front();
        }
    }
}

/// Asks the broker for its time until `stop`; `skew` hears broker minus host, in seconds.
pub fn probe(
    config: &ClientConfig,
    topic: &str,
    clock: &BrokerClock,
    stop: &StopFlag,
    skew: impl Fn(f64),
) {
    let mut answered = false;
    while !stop.is_set() {
        let wait = match ask_until_stopped(config, topic, clock, stop, &skew, &mut answered) {
            Ok(()) => return,
            Err(error) => {
                warn!(
                    topic,
                    error = format!("{error:#}"),
                    "clock probe failed, trying again"
                );
                Duration::from_secs(2)
            }
        };
        stop.wait(wait);
    }
}

fn ask_until_stopped(
    config: &ClientConfig,
    topic: &str,
    clock: &BrokerClock,
    stop: &StopFlag,
    skew: &impl Fn(f64),
    answered: &mut bool,
) -> anyhow::Result<()> {
    let producer: BaseProducer<Acks> = config.create_with_context(Acks::default())?;
    // The first answer includes connecting; a second one soon after bounds the clock far better.
    for pause in [Duration::from_millis(200), Duration::from_secs(1)]
        .into_iter()
        .chain(std::iter::repeat(EVERY))
    {
        if stop.is_set() {
            return Ok(());
        }
        let sample = ask(&producer, topic)?;
        clock.add(sample);
        let distance = (sample.least(Instant::now()) - wall().0) as f64 / 1_000.0;
        skew(distance);
        if !*answered {
            info!(skew_seconds = distance, "the broker's clock is known");
            *answered = true;
        }
        stop.wait(pause);
    }
    Ok(())
}

fn ask(producer: &BaseProducer<Acks>, topic: &str) -> anyhow::Result<Sample> {
    let sent = Instant::now();
    let record = BaseRecord::<(), [u8], usize>::with_opaque_to(topic, 0)
        .payload(b"clock".as_slice())
        .partition(0);
    producer
        .send(record)
        .map_err(|(error, _)| error)
        .context("cannot send a clock probe")?;
    while sent.elapsed() < Duration::from_secs(10) {
        producer.poll(Duration::ZERO);
        let acked = Instant::now();
        match producer.context().take().pop() {
            Some((_, Ok(Stamp::Append(stamp)))) => {
                return Ok(Sample {
                    stamp: stamp.0,
                    sent,
                    acked,
                });
            }
            Some((_, Ok(_))) => bail!(
                "topic {topic} must have message.timestamp.type=LogAppendTime: set it with kafka-configs"
            ),
            Some((_, Err(blame))) => bail!("topic {topic} cannot be written: {blame:?}"),
            None => std::thread::sleep(Duration::from_micros(500)),
        }
    }
    producer.purge(rdkafka::producer::PurgeConfig::default().queue().inflight());
    bail!("no answer within 10 s")
}

fn wall() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn sample(stamp: i64, sent: Instant, round_trip: u64) -> Sample {
        Sample {
            stamp,
            sent,
            acked: sent + MS(round_trip),
        }
    }

    #[test]
    fn the_clock_is_unknown_before_the_first_answer() {
        assert_eq!(BrokerClock::default().now(), None);
    }

    #[test]
    fn a_slow_answer_never_makes_the_clock_run_ahead() {
        let (clock, start) = (BrokerClock::default(), Instant::now());
        clock.add(sample(1_000_000, start, 400));
        assert_eq!(clock.at(start + MS(400)), Some(Timestamp(1_000_000)));
        clock.add(sample(1_001_000, start + MS(1_000), 2));
        assert_eq!(clock.at(start + MS(1_002)), Some(Timestamp(1_001_000)));
        // A slow one after a quick one changes nothing.
        clock.add(sample(1_002_000, start + MS(2_000), 500));
        assert!(clock.at(start + MS(2_500)) >= Some(Timestamp(1_002_497)));
        assert!(clock.at(start + MS(2_500)) <= Some(Timestamp(1_002_500)));
    }

    #[test]
    fn a_broker_clock_set_back_is_followed_at_the_next_answer() {
        let (clock, start) = (BrokerClock::default(), Instant::now());
        clock.add(sample(1_000_000, start, 2));
        clock.add(sample(400_000, start + MS(10_000), 2));
        assert_eq!(clock.at(start + MS(10_002)), Some(Timestamp(400_000)));
    }

    #[test]
    fn a_broker_clock_set_forward_is_followed_at_the_next_answer() {
        let (clock, start) = (BrokerClock::default(), Instant::now());
        clock.add(sample(1_000_000, start, 2));
        clock.add(sample(5_000_000, start + MS(10_000), 2));
        assert_eq!(clock.at(start + MS(10_002)), Some(Timestamp(5_000_000)));
    }

    #[test]
    fn drift_is_allowed_for() {
        let (clock, start) = (BrokerClock::default(), Instant::now());
        clock.add(sample(0, start, 0));
        let after = clock.at(start + Duration::from_secs(100)).map(|t| t.0);
        assert_eq!(after, Some(100_000 - 10));
    }
}

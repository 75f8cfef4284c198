//! All figures that delayd publishes, as typed methods: no caller spells a metric's name.
//! Called by `flow` after a transaction has committed, and by `http` to print; must not read a clock or know Kafka.

mod queues;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry, Unit};

pub use queues::QueueView;
use queues::Queues;

/// The level label of a message that did not wait.
pub const AT_ONCE: u32 = 0;

/// From a good day (a millisecond) to a bad one (an hour), in seconds.
const BUCKETS: [f64; 18] = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0,
    900.0, 3600.0,
];

/// Prometheus keeps every value as a float, which is exact up to here.
const LARGEST_EXACT: i64 = (1 << 53) - 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LevelLabel {
    level: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

type Seconds = Gauge<f64, AtomicU64>;

/// The figures of one process. Share it with an `Arc`; every method takes `&self` from any thread.
///
/// Labels are plain numbers and static texts, so recording never allocates once a series exists.
#[derive(Debug)]
pub struct Metrics {
    accepted: Counter,
    scheduled: Family<LevelLabel, Counter>,
    delivered: Family<LevelLabel, Counter>,
    lateness: Family<LevelLabel, Histogram>,
    dead_letter: Family<ReasonLabel, Counter>,
    clamped: Counter,
    reparked: Counter,
    lost: Counter,
    disorder: Histogram,
    clock_skew: Seconds,
    clock_implausible: Counter,
    levels_hash: Gauge,
    transactions_aborted: Counter,
    producers_replaced: Counter,
    queues: Arc<Queues>,
    registry: Registry,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl Metrics {
    /// All figures at zero; series with a label appear with their first event (see [`Metrics::announce`]).
    pub fn new() -> Metrics {
        let mut registry = Registry::with_prefix("delayd");
        let r = &mut registry;
        let lateness = Family::new_with_constructor(histogram as fn() -> Histogram);
        Metrics {
            accepted: add(r, "accepted", "Messages read from ingress topics"),
            scheduled: add(r, "scheduled", "Messages parked in a level queue"),
            delivered: add(
                r,
                "delivered",
                "Messages sent to their real topic; level 0: at once",
            ),
            lateness: add_seconds(r, "lateness", "Delivery after the due time", lateness),
            dead_letter: add(r, "dead_letter", "Messages sent to the dead-letter topic"),
            clamped: add(
                r,
                "clamped",
                "Messages whose level was above the table's last",
            ),
            reparked: add(
                r,
                "reparked",
                "Messages parked again because their target was away",
            ),
            lost: add(
                r,
                "lost",
                "Messages that Kafka no longer had when their turn came",
            ),
            disorder: add_seconds(r, "disorder", "Wait behind a later due time", histogram()),
            clock_skew: add_seconds(
                r,
                "clock_skew",
                "Broker's clock minus this host's",
                Gauge::default(),
            ),
            clock_implausible: add(r, "clock_implausible", "CreateTimes that were not believed"),
            levels_hash: add(r, "levels_hash", "Differs where the level table differs"),
            transactions_aborted: add(
                r,
                "transactions_aborted",
                "Transactions given up and redone",
            ),
            producers_replaced: add(
                r,
                "producers_replaced",
                "Producers replaced, as their transaction could not end",
            ),
            queues: add_queues(r),
            registry, // last, because all of the above are entered into it first
        }
    }

    /// Makes the series of these levels and reasons exist at zero, so that `rate()` sees even the first event.
    pub fn announce(&self, levels: impl IntoIterator<Item = u32>, reasons: &[&'static str]) {
        for level in levels {
            self.scheduled(level, 0);
            self.delivered_many(level, &[]);
        }
        self.delivered_many(AT_ONCE, &[]);
        for reason in reasons {
            drop(self.dead_letter.get_or_create(&ReasonLabel { reason }));
        }
    }

    /// So many messages were read from ingress topics.
    pub fn accepted(&self, messages: u64) {
        self.accepted.inc_by(messages);
    }

    /// So many messages were parked in this level's queue.
    pub fn scheduled(&self, level: u32, messages: u64) {
        self.scheduled
            .get_or_create(&LevelLabel { level })
            .inc_by(messages);
    }

    /// One message reached its real topic; [`AT_ONCE`] if it did not wait.
    pub fn delivered(&self, level: u32, lateness: Duration) {
        self.delivered_many(level, &[lateness]);
    }

    /// A committed batch reached real topics: one lookup for all of it.
    pub fn delivered_many(&self, level: u32, lateness: &[Duration]) {
        let label = LevelLabel { level };
        self.delivered
            .get_or_create(&label)
            .inc_by(lateness.len() as u64);
        let histogram = self.lateness.get_or_create_owned(&label);
        for late in lateness {
            histogram.observe(late.as_secs_f64());
        }
    }

    /// One message went to the dead-letter topic.
    pub fn dead_letter(&self, reason: &'static str) {
        self.dead_letter
            .get_or_create(&ReasonLabel { reason })
            .inc();
    }

    /// One message asked for a level above the table and got its last.
    pub fn clamped(&self) {
        self.clamped.inc();
    }

    /// One message was parked again because its target was away.
    pub fn reparked(&self) {
        self.reparked.inc();
    }

    /// So many messages were gone from Kafka before their turn (retention, a deleted topic).
    pub fn lost(&self, messages: u64) {
        self.lost.inc_by(messages);
    }

    /// One message stood this long behind a later one.
    pub fn disorder(&self, waited: Duration) {
        self.disorder.observe(waited.as_secs_f64());
    }

    /// The broker's clock minus this host's, in seconds.
    pub fn skew(&self, seconds: f64) {
        self.clock_skew.set(seconds);
    }

    /// What [`Metrics::skew`] was told last; zero before.
    pub fn skew_seconds(&self) -> f64 {
        self.clock_skew.get()
    }

    /// One message's CreateTime was not plausible; the broker's clock was used instead.
    pub fn clock_implausible(&self) {
        self.clock_implausible.inc();
    }

    /// A fingerprint of the level table; shortened to what a float holds exactly.
    pub fn levels_hash(&self, hash: i64) {
        self.levels_hash.set(hash & LARGEST_EXACT);
    }

    /// One transaction was aborted.
    pub fn transaction_aborted(&self) {
        self.transactions_aborted.inc();
    }

    /// A transaction could not be finished, so its producer was replaced.
    pub fn producer_replaced(&self) {
        self.producers_replaced.inc();
    }

    /// How this level's queue looks to the worker that owns it.
    pub fn queue(&self, level: u32, view: QueueView) {
        self.queues.set(level, view);
    }

    /// The level was revoked: its gauges disappear here, and appear at the next owner.
    pub fn forget_queue(&self, level: u32) {
        self.queues.forget(level);
    }

    /// Everything as OpenMetrics text; `now` is the broker's clock, for the time until the next due message.
    pub fn encode(&self, now_unix_ms: i64) -> String {
        self.queues.at(now_unix_ms);
        let mut text = String::with_capacity(8 * 1024);
        text::encode(&mut text, &self.registry).expect("writing to a String does not fail");
        text
    }
}

fn histogram() -> Histogram {
    Histogram::new(BUCKETS)
}

fn add<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

/// The unit becomes the end of the name: `clock_skew` is printed as `delayd_clock_skew_seconds`.
fn add_seconds<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register_with_unit(name, help, Unit::Seconds, metric.clone());
    metric
}

fn add_queues(registry: &mut Registry) -> Arc<Queues> {
    let queues = Arc::new(Queues::default());
    registry.register_collector(Box::new(Arc::clone(&queues)));
    queues
}

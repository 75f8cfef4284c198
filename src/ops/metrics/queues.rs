//! The gauges of the level queues that this process owns, printed from one map.
//! Called by `metrics` alone; a map and not gauge families, so that a revoked level leaves nothing behind.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use super::LevelLabel;

/// One level queue at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueView {
    /// Messages that are not delivered yet.
    pub pending: u64,
    /// Those of them whose time has come.
    pub due_unsent: u64,
    /// When the head is due, in ms since 1970; `None` if the queue is empty.
    pub next_due: Option<i64>,
}

#[derive(Debug, Default)]
pub(super) struct Queues {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    now: i64,
    views: BTreeMap<u32, QueueView>,
}

impl Queues {
    pub(super) fn set(&self, level: u32, view: QueueView) {
        self.lock().views.insert(level, view);
    }

    pub(super) fn forget(&self, level: u32) {
        self.lock().views.remove(&level);
    }

    /// The moment of the next print; a collector is not told it otherwise.
    pub(super) fn at(&self, now: i64) {
        self.lock().now = now;
    }

    /// A panic elsewhere leaves whole values behind, so the lock is taken over.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collector for Queues {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let state = self.lock();
        let views = || state.views.iter().map(|(level, view)| (*level, view));
        let gauges = &mut encoder;
        gauge(
            gauges,
            "pending",
            "Messages that wait in the level's queue",
            None,
            views().map(|(l, v)| (l, v.pending)),
        )?;
        gauge(
            gauges,
            "due_unsent",
            "Waiting messages whose time has come",
            None,
            views().map(|(l, v)| (l, v.due_unsent)),
        )?;
        let until_due = |(level, view): (u32, &QueueView)| {
            view.next_due
                .map(|due| (level, seconds(due.saturating_sub(state.now))))
        };
        let help = "Time until the head is due; negative if overdue; absent if the queue is empty";
        gauge(
            gauges,
            "next_due",
            help,
            Some(&Unit::Seconds),
            views().filter_map(until_due),
        )
    }
}

fn gauge<V>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    series: impl Iterator<Item = (u32, V)>,
) -> fmt::Result
where
    V: EncodeGaugeValue + Copy,
{
    let mut metric = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
    for (level, value) in series {
        ConstGauge::new(value).encode(metric.encode_family(&LevelLabel { level })?)?;
    }
    Ok(())
}

fn seconds(millis: i64) -> f64 {
    millis as f64 / 1_000.0
}

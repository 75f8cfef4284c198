//! What may happen in a history, and how often.

use delayd::core::level_queue::PendingMode;
use proptest::prelude::*;

use crate::kafka::{Ending, TARGETS};
use crate::message::{Message, message};

/// Longer, shorter, more and fewer levels.
pub(crate) const TABLES: [&[&str]; 5] = [
    &["1s", "5s", "10s"],
    &["2s", "8s", "20s"],
    &["500ms", "3s", "4s"],
    &["1s", "5s", "10s", "30s", "60s"],
    &["1s", "5s"],
];

/// What happens next.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Append(Vec<Message>),
    Pass {
        ms: i64,
    },
    Route {
        worker: usize,
        ending: Ending,
    },
    Scan {
        worker: usize,
        ending: Ending,
    },
    Crash {
        worker: usize,
    },
    /// Bit n says who owns partition n from now on.
    Rebalance {
        owners: u16,
    },
    /// The worker's partitions go to the other one, and it does not hear of it at once.
    Stall {
        worker: usize,
    },
    BrokerClock {
        ms: i64,
    },
    /// The workers' lower bound of the broker's clock is so far behind it.
    Behind {
        ms: i64,
    },
    Away {
        target: usize,
        leaderless: bool,
    },
    Back {
        target: usize,
    },
    /// `late` hears of it only at the next edit or its restart.
    Edit {
        table: usize,
        late: Option<usize>,
    },
}

/// What does not change in a history.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub exactly_once: bool,
    pub pending: PendingMode,
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![
        12 => Just(Ending::Commit),
        2 => Just(Ending::RollBack),
        2 => (0..9_usize).prop_map(Ending::CrashBefore),
        2 => Just(Ending::CrashAfter),
        2 => any::<bool>().prop_map(|committed| Ending::AnswerLost { committed }),
    ]
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let worker = 0..2_usize;
    let target = 0..TARGETS.len();
    prop_oneof![
        8 => proptest::collection::vec(message(), 1..5).prop_map(Step::Append),
        6 => prop_oneof![Just(499), Just(500), 1..3_000_i64, 1..20_000_i64].prop_map(|ms| Step::Pass { ms }),
        8 => (worker.clone(), ending()).prop_map(|(worker, ending)| Step::Route { worker, ending }),
        12 => (worker.clone(), ending()).prop_map(|(worker, ending)| Step::Scan { worker, ending }),
        1 => worker.clone().prop_map(|worker| Step::Crash { worker }),
        2 => any::<u16>().prop_map(|owners| Step::Rebalance { owners }),
        1 => worker.clone().prop_map(|worker| Step::Stall { worker }),
        2 => (-15_000..15_000_i64).prop_map(|ms| Step::BrokerClock { ms }),
        1 => (0..2_000_i64).prop_map(|ms| Step::Behind { ms }),
        1 => (target.clone(), any::<bool>()).prop_map(|(target, leaderless)| Step::Away { target, leaderless }),
        1 => target.prop_map(|target| Step::Back { target }),
        2 => (0..TABLES.len(), proptest::option::of(worker)).prop_map(|(table, late)| Step::Edit { table, late }),
    ]
}

pub(crate) fn setting() -> impl Strategy<Value = Setting> {
    let pending = prop_oneof![3 => Just(PendingMode::Shorten), 1 => Just(PendingMode::Keep)];
    (any::<bool>(), pending).prop_map(|(exactly_once, pending)| Setting {
        exactly_once,
        pending,
    })
}

//! The order in which records of several ingress partitions go on: that of time, best effort.
//! Called by `flow::router` for each batch it has read.

use std::collections::HashMap;

use super::record::{Arrival, Partition};
use super::time::Timestamp;

/// Merges partitions by timestamp. Within a partition the order stays, also where its timestamps
/// go back: each record counts as late as the latest before it.
pub fn merged(arrivals: Vec<Arrival>) -> Vec<Arrival> {
    let mut latest: HashMap<Partition, Timestamp> = HashMap::new();
    let mut keyed: Vec<(Timestamp, Arrival)> = Vec::with_capacity(arrivals.len());
    for arrival in arrivals {
        let stamp = arrival.stamp.time().unwrap_or(Timestamp(0));
        let key = latest
            .entry(arrival.source.partition.clone())
            .or_insert(stamp);
        *key = stamp.max(*key);
        keyed.push((*key, arrival));
    }
    keyed.sort_by_key(|(key, _)| *key);
    keyed.into_iter().map(|(_, arrival)| arrival).collect()
}

//! The small parts of `src/flow` that the workers of the model repeat.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use delayd::core::envelope::HeaderMode;
use delayd::core::fate::{Fate, RetryPolicy, Shipment};
use delayd::core::ingress::{Ingress, Route, TargetPartition};
use delayd::core::record::{Arrival, Header, Partition, Record};
use delayd::core::route::{Decision, Rules};
use delayd::core::time::Timestamp;

use crate::kafka::{Kafka, SCHEDULE, own};

pub(crate) fn is_queue(partition: &Partition) -> bool {
    &*partition.topic == SCHEDULE
}

pub(crate) fn policy() -> RetryPolicy {
    RetryPolicy {
        ladder: [2, 5, 10].map(Duration::from_secs).to_vec(),
        retry_for: Duration::from_secs(30),
    }
}

pub(crate) fn rules(kafka: &Kafka, version: usize) -> Rules {
    let route = |from: &str, to: Option<&str>| Route {
        from: Ingress::Topic(from.to_owned()),
        to: to.map(str::to_owned),
        level: None,
        partition: TargetPartition::Key,
    };
    Rules {
        routes: vec![
            route("orders-delayed", Some("orders")),
            route("delayd-ingress", None),
            route("created", Some("audit")),
        ],
        table: Arc::clone(&kafka.tables[version]),
        own: own(),
        retention: HashMap::new(),
    }
}

pub(crate) fn outgoing(shipment: &Shipment<'_>) -> Record {
    let (key, value) = shipment.key_and_value();
    let headers = shipment.headers(HeaderMode::Keep).into_iter();
    let headers = headers.map(|(key, value)| Header {
        key: key.to_vec(),
        value: value.map(|v| v.into_owned()),
    });
    Record {
        key: key.map(|key| key.into_owned()),
        value: value.map(<[u8]>::to_vec),
        headers: headers.collect(),
    }
}

pub(crate) fn shipment<'a>(arrival: &'a Arrival, decision: &Decision) -> Shipment<'a> {
    let fate = match decision {
        Decision::Schedule {
            level, envelope, ..
        } => Fate::Schedule(*level, envelope.clone()),
        Decision::Deliver(envelope) => Fate::Deliver(envelope.clone()),
        Decision::Refuse(obituary) => Fate::Refuse(obituary.clone()),
    };
    Shipment::new(&arrival.source, &arrival.record, fate)
}

/// As `flow::router::merged`.
pub(crate) fn merged(arrivals: Vec<Arrival>) -> Vec<Arrival> {
    let mut latest: HashMap<Partition, Timestamp> = HashMap::new();
    let mut keyed = Vec::new();
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

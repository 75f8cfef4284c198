//! What the workers of the model are set up with: rules, retry policy, and records as they go out.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use delayd::core::envelope::HeaderMode;
use delayd::core::fate::{RetryPolicy, Shipment};
use delayd::core::ingress::{Ingress, Route, TargetPartition};
use delayd::core::record::{Header, Partition, Record};
use delayd::core::route::Rules;

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

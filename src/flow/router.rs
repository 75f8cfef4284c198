//! The router: reads ingress topics, decides about each message, and writes it to its level
//! queue, its real topic or the dead-letter topic. Run by `worker`; the decision itself is `core::route`.

use std::collections::BTreeMap;
use std::time::Duration;

use super::dispatch::{Dispatched, Dispatcher};
use super::worker::{self, LONGEST_PARK, Place as Worker, Shared};
use crate::core::fate::Shipment;
use crate::core::ingress::Ingress;
use crate::core::merge::merged;
use crate::core::record::{Arrival, Partition};
use crate::core::route::{Decision, Routed, Rules};
use crate::core::time::Timestamp;
use crate::kafka::consumer::{Change, GroupConsumer};
use crate::kafka::settings::{self, Role};

/// The largest batch.
const RECORDS: usize = 4_000;
const BYTES: usize = 8 << 20;
/// How many records one partition is asked for before the next one has its turn.
const CHUNK: usize = 256;

struct Router<'s> {
    shared: &'s Shared,
    worker: &'s Worker,
    dispatcher: Dispatcher<'s>,
    consumer: GroupConsumer,
    /// Decided and not yet out, in the order in which it goes out.
    held: Vec<(Arrival, Routed)>,
    /// How many of them go out together.
    limit: usize,
    /// The partition that is read first, so that none always is.
    turn: usize,
}

/// Routes until told to stop.
///
/// # Errors
/// If a client is beyond repair; everything in hand is then still in Kafka.
pub fn run(shared: &Shared, worker: &Worker) -> anyhow::Result<()> {
    worker.component.not_ready("opening a producer");
    let dispatcher = Dispatcher::open(shared, worker)?;
    let config = settings::consumer(&shared.config, Role::Router, worker.number);
    let consumer = GroupConsumer::join(&config, &ingress_topics(&shared.rules()))?;
    let mut router = Router {
        shared,
        worker,
        dispatcher,
        consumer,
        held: Vec::new(),
        limit: RECORDS,
        turn: 0,
    };
    let result = worker::take_turns(shared, worker, || router.step());
    router.consumer.commit_progress();
    if shared.config.leave {
        router.consumer.leave();
    }
    result
}

fn ingress_topics(rules: &Rules) -> Vec<String> {
    let name = |from: &Ingress| match from {
        Ingress::Topic(name) => name.clone(),
        Ingress::Pattern(pattern) => pattern.as_str().to_owned(),
    };
    rules.routes.iter().map(|route| name(&route.from)).collect()
}

impl Router<'_> {
    /// One turn: what has come in goes on. Says how long there is nothing to do.
    fn step(&mut self) -> anyhow::Result<Duration> {
        for change in self.consumer.turn()? {
            // What is held of it belongs to its new owner now.
            if let Change::Revoked(partition) = change {
                self.held
                    .retain(|(arrival, _)| arrival.source.partition != partition);
            }
        }
        let Some(now) = self.shared.clock.now() else {
            self.worker
                .component
                .not_ready("waiting for the broker's clock");
            return Ok(LONGEST_PARK / 10);
        };
        if self.held.is_empty() {
            self.collect(now)?;
        }
        if self.held.is_empty() {
            let trouble = self.consumer.trouble(&self.shared.own_topics().schedule);
            self.worker.report(trouble);
            return Ok(self.consumer.may_sleep(LONGEST_PARK));
        }
        self.send()?;
        Ok(Duration::ZERO)
    }

    /// Reads a batch, decides, and brings it into the order of time.
    fn collect(&mut self, now: Timestamp) -> anyhow::Result<()> {
        let arrivals = self.read_batch()?;
        let rules = self.shared.rules();
        for mut arrival in merged(arrivals) {
            let routed = rules.decide(&arrival.source, arrival.stamp, &mut arrival.record, now);
            self.held.push((arrival, routed));
        }
        Ok(())
    }

    fn read_batch(&mut self) -> anyhow::Result<Vec<Arrival>> {
        let mut partitions: Vec<Partition> = self.consumer.partitions().cloned().collect();
        self.turn = (self.turn + 1) % partitions.len().max(1);
        partitions.rotate_left(self.turn);
        let chunk = CHUNK.min(RECORDS / partitions.len().max(1)).max(1);
        let (mut batch, mut bytes) = (Vec::new(), 0);
        loop {
            let before = batch.len();
            for partition in &partitions {
                for _ in 0..chunk {
                    if batch.len() >= RECORDS || bytes >= BYTES {
                        return Ok(batch);
                    }
                    let Some(arrival) = self.consumer.next(partition)? else {
                        break;
                    };
                    bytes += arrival.record.size();
                    batch.push(arrival);
                }
            }
            if batch.len() == before {
                return Ok(batch);
            }
        }
    }

    fn send(&mut self) -> anyhow::Result<()> {
        let batch = &self.held[..self.limit.min(self.held.len())];
        let mut offsets: BTreeMap<Partition, i64> = BTreeMap::new();
        for (arrival, _) in batch {
            let next = offsets.entry(arrival.source.partition.clone()).or_insert(0);
            *next = arrival.source.offset.saturating_add(1).max(*next);
        }
        let shipments = batch
            .iter()
            .map(|(arrival, routed)| Shipment::routed(arrival, &routed.decision))
            .collect();
        let sent = batch.len();
        match self
            .dispatcher
            .dispatch(shipments, &offsets, &self.consumer)?
        {
            Dispatched::Done => {
                self.count(sent);
                self.held.drain(..sent);
                self.limit = (self.limit * 2).min(RECORDS);
                self.worker.component.ready();
            }
            Dispatched::RolledBack => self.limit = (sent / 2).max(1),
        }
        Ok(())
    }

    fn count(&self, sent: usize) {
        let metrics = &self.shared.metrics;
        metrics.accepted(sent as u64);
        for (_, routed) in &self.held[..sent] {
            if matches!(routed.decision, Decision::Schedule { clamped: true, .. }) {
                metrics.clamped();
            }
            if routed.implausible {
                metrics.clock_implausible();
            }
        }
    }
}

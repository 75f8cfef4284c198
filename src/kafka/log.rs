//! Questions about partitions that need no membership: their ends, offsets at a time, a group's
//! progress. Called by `flow::housekeeping`, and by the scanner when it takes a queue over: its
//! answers do not wait behind a fetch, as those of a consumer would.

use std::time::Duration;

use anyhow::Context as _;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use super::acks::Quiet;
use super::convert;
use super::settings::{self, Role};
use crate::config::Config;
use crate::core::record::Partition;
use crate::core::time::Timestamp;

const ASK: Duration = Duration::from_secs(1);

/// A client that only asks.
pub struct Log {
    consumer: BaseConsumer<Quiet>,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").finish_non_exhaustive()
    }
}

impl Log {
    /// A client that sees the progress of the scanners' group, without being a member.
    pub fn new(config: &Config) -> anyhow::Result<Log> {
        let mut client: ClientConfig = settings::consumer(config, Role::Scanner, 0);
        client.remove("group.instance.id");
        Ok(Log {
            consumer: client
                .create_with_context(Quiet)
                .context("cannot create a consumer")?,
        })
    }

    /// The first offset that is left, and the one that the next record will get.
    pub fn ends(&self, partition: &Partition) -> anyhow::Result<(i64, i64)> {
        let ask = || {
            self.consumer
                .fetch_watermarks(&partition.topic, partition.partition, ASK)
        };
        let ends = ask().or_else(|_| {
            // A partition that was just added is unknown to this client until it looks again.
            self.consumer.fetch_metadata(Some(&partition.topic), ASK)?;
            ask()
        });
        ends.with_context(|| format!("cannot read the ends of {partition}"))
    }

    /// The first offset at or after `time`; `None` if all records are older.
    pub fn offset_at(&self, partition: &Partition, time: Timestamp) -> anyhow::Result<Option<i64>> {
        let mut asked = TopicPartitionList::new();
        asked.add_partition_offset(
            &partition.topic,
            partition.partition,
            Offset::Offset(time.0),
        )?;
        let answer = self
            .consumer
            .offsets_for_times(asked, ASK)
            .with_context(|| format!("cannot search {partition}"))?;
        Ok(answer
            .elements()
            .first()
            .and_then(|e| convert::known(e.offset())))
    }

    /// The offset that the scanners have committed.
    pub fn committed(&self, partition: &Partition) -> anyhow::Result<Option<i64>> {
        let mut asked = TopicPartitionList::new();
        asked.add_partition(&partition.topic, partition.partition);
        let answer = self
            .consumer
            .committed_offsets(asked, ASK)
            .context("cannot read committed offsets")?;
        Ok(answer
            .elements()
            .first()
            .and_then(|e| convert::known(e.offset())))
    }
}

//! Between rdkafka's messages and plain records. Called by the consumer and the producers;
//! copies bytes and decides nothing.

use std::sync::Arc;

use rdkafka::Message;
use rdkafka::message::{BorrowedMessage, OwnedHeaders, Timestamp as KafkaTimestamp};
use rdkafka::{Offset, TopicPartitionList};

use super::headers;
use crate::core::envelope::HeaderMode;
use crate::core::fate::Shipment;
use crate::core::record::{Arrival, Partition, Record, Source, Stamp};
use crate::core::time::Timestamp;

/// The record of a message read from `topic`, whose name is shared by all records of it.
pub(super) fn arrival(message: &BorrowedMessage<'_>, topic: &Arc<str>) -> Arrival {
    Arrival {
        source: Source {
            partition: Partition {
                topic: Arc::clone(topic),
                partition: message.partition(),
            },
            offset: message.offset(),
        },
        stamp: stamp(message.timestamp()),
        record: Record {
            key: message.key().map(<[u8]>::to_vec),
            value: message.payload().map(<[u8]>::to_vec),
            headers: headers::read(message),
        },
    }
}

/// The timestamp of a message, with who gave it.
pub(super) fn stamp(timestamp: KafkaTimestamp) -> Stamp {
    match timestamp {
        KafkaTimestamp::LogAppendTime(time) if time >= 0 => Stamp::Append(Timestamp(time)),
        KafkaTimestamp::CreateTime(time) if time >= 0 => Stamp::Create(Timestamp(time)),
        _ => Stamp::Missing,
    }
}

/// The headers of a record that goes out.
pub(super) fn headers_of(shipment: &Shipment<'_>, mode: HeaderMode) -> OwnedHeaders {
    headers::write(&shipment.headers(mode))
}

/// An offset, where there is one.
pub(super) fn known(offset: Offset) -> Option<i64> {
    match offset {
        Offset::Offset(offset) => Some(offset),
        Offset::Beginning
        | Offset::End
        | Offset::Stored
        | Offset::Invalid
        | Offset::OffsetTail(_) => None,
    }
}

/// Offsets as librdkafka takes them.
pub(super) fn offsets<'a>(
    offsets: impl Iterator<Item = (&'a Partition, &'a i64)>,
) -> TopicPartitionList {
    let mut list = TopicPartitionList::new();
    for (partition, offset) in offsets {
        let offset = Offset::Offset(*offset);
        // Fails only for offsets that no record can have.
        list.add_partition_offset(&partition.topic, partition.partition, offset)
            .ok();
    }
    list
}

//! Delivered records leave the schedule topic after `keep`, and only those.
//! Called by cargo test. It looks at the group's committed offsets without joining the group.

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use crate::harness::clients::consumer;
use crate::harness::{World, ensure, eventually, order, seconds};

fn low(client: &BaseConsumer, topic: &str, partition: i32) -> Result<i64, String> {
    let marks = client.fetch_watermarks(topic, partition, seconds(5));
    marks.map(|(low, _)| low).map_err(|error| error.to_string())
}

fn committed(client: &BaseConsumer, topic: &str, partition: i32) -> Result<i64, String> {
    let mut list = TopicPartitionList::new();
    list.add_partition(topic, partition);
    let list = client
        .committed_offsets(list, seconds(5))
        .map_err(|error| error.to_string())?;
    match list.elements()[0].offset() {
        Offset::Offset(offset) => Ok(offset),
        _ => Ok(0),
    }
}

#[test]
fn delivered_records_are_deleted_and_pending_ones_are_not() {
    let table = "200ms 1h";
    let world = World::new("keep", table);
    let orders = world.topic("orders", 1);
    let _delayd = world.delayd().key("keep = \"2s\"").start();
    let mut sender = world.sender(table);
    world
        .producer()
        .send(&world.ingress(), &[order("pending", 2, &orders)]);
    let mut reader = world.reader(&[&orders]);
    let group = consumer(&world.bootstrap, &world.named("scanner"));
    let topic = world.schedule();

    let mut next = 0;
    let reached = eventually(seconds(60), || {
        sender.send(&[order(next, 1, &orders)]);
        next += 1;
        reader.read_for(seconds(1));
        let low = low(&group, &topic, 0)?; // first: what is committed only rises
        let committed = committed(&group, &topic, 0)?;
        assert!(
            low <= committed,
            "low watermark {low} is above the committed {committed}"
        );
        ensure(low >= 5, || {
            format!("low watermark {low}, committed {committed}")
        })?;
        Ok(low)
    });
    println!("low watermark {reached} after {next} messages");
    sender.oracle.watch(&mut reader, seconds(20)).assert_clean();
    assert_eq!(
        low(&group, &topic, 1),
        Ok(0),
        "the pending message is still there"
    );
}

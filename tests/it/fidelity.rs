//! What arrives is what was sent: bytes, nulls, headers, and the partition that Java's own producer would choose.
//! Called by cargo test. The twins must come from Kafka's own producer, not from librdkafka.

use std::collections::BTreeMap;

use crate::harness::{Message, World, order, seconds, tools};

const TABLE: &str = "200ms 500ms";

#[test]
fn nulls_empties_and_repeated_headers_arrive_as_they_were_sent() {
    let world = World::new("fidelity", TABLE);
    let orders = world.topic("orders", 3);
    let _delayd = world.delayd().start();
    let with = |id: &str, key: Option<&[u8]>, value: Option<&[u8]>| Message {
        key: key.map(Into::into),
        value: value.map(Into::into),
        ..order(id, 1, &orders)
    };
    let messages = [
        with("null key", None, Some(b"v")),
        with("null value", Some(b"k"), None),
        with("both null", None, None),
        with("empty key", Some(b""), Some(b"v")),
        with("empty value", Some(b"k"), Some(b"")),
        with("binary", Some(&[0, 255, 128]), Some(&[0, 159, 146, 150])),
        order("repeated", 1, &orders)
            .header("a", "1")
            .header("b", "2")
            .header("a", "3"),
        order("null header", 2, &orders)
            .null_header("a")
            .header("a", "")
            .null_header("ü"),
        order("at once", 0, &orders)
            .header("a", "1")
            .null_header("a"),
        order("last level counts", 1, &orders)
            .header("z", "1")
            .level(2)
            .header("a", "0"),
    ];
    let mut sender = world.sender(TABLE);
    sender.send(&messages);
    let mut reader = world.reader(&[&orders]);
    sender.oracle.watch(&mut reader, seconds(30)).assert_clean();
}

#[test]
fn a_key_goes_to_the_partition_that_the_java_producer_chooses() {
    let world = World::new("murmur2", TABLE);
    let (orders, twins) = (world.topic("orders", 12), world.topic("twins", 12));
    let _delayd = world.delayd().start();
    let keys: Vec<_> = (0..60)
        .map(|n| format!("{}-{n}", "k".repeat(n % 7)))
        .collect();

    let lines: Vec<_> = keys
        .iter()
        .map(|key| format!("a:1\t{key}\t{key}"))
        .collect();
    tools::produce(&world.bootstrap, &twins, &lines);
    let delayed = |key: &String| Message {
        key: Some(key.clone().into_bytes()),
        ..order(key, key.len() % 3, &orders)
    };
    let messages: Vec<_> = keys.iter().map(delayed).collect();
    let mut sender = world.sender(TABLE);
    sender.send(&messages);

    let mut reader = world.reader(&[&orders, &twins]);
    let seen = reader.wait_for(120, seconds(40));
    let places = |topic: &str| -> BTreeMap<_, _> {
        let of_topic = seen.iter().filter(|seen| seen.topic == topic);
        of_topic
            .map(|seen| (seen.key.clone(), seen.partition))
            .collect()
    };
    assert_eq!(places(&orders), places(&twins));
}

#[test]
fn a_fixed_partition_is_kept_and_a_wrong_one_is_a_dead_letter() {
    let world = World::new("fixed", TABLE);
    let orders = world.topic("orders", 12);
    let _delayd = world.delayd().start();
    let fixed = |id: &str, partition: &str| order(id, 1, &orders).header("REAL_QID", partition);
    let mut producer = world.producer();
    let messages = [
        fixed("good", "7"),
        fixed("beyond", "99"),
        fixed("text", "x"),
    ];
    producer.send(&world.ingress(), &messages);

    let mut reader = world.reader(&[&orders, &world.dead_letter()]);
    let seen = reader.wait_for(3, seconds(30));

    let find = |id: &str| {
        seen.iter()
            .find(|seen| seen.text() == format!("order {id}"))
            .expect(id)
    };
    assert_eq!((find("good").partition, &find("good").topic), (7, &orders));
    assert_eq!(
        find("beyond").header("delayd-error").as_deref(),
        Some("no_such_partition")
    );
    assert_eq!(
        find("text").header("delayd-error").as_deref(),
        Some("bad_partition")
    );
}

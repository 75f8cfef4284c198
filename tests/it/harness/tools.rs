//! Kafka's own console tools, run from its jars: what a user without a client would type.
//! Called by the tests that prove the first message and the Java partitioner. They must not use rdkafka.

use std::io::Write;
use std::process::{Command, Stdio};

use super::kafka::java;

/// Writes lines of `headers<TAB>key<TAB>value`, headers as `name:value,name:value`.
pub fn produce(bootstrap: &str, topic: &str, lines: &[String]) {
    let mut child = tool("org.apache.kafka.tools.ConsoleProducer", bootstrap, topic)
        .args([
            "--property",
            "parse.headers=true",
            "--property",
            "parse.key=true",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("java runs");
    let mut input = child.stdin.take().unwrap();
    input
        .write_all((lines.join("\n") + "\n").as_bytes())
        .unwrap();
    drop(input);
    assert!(
        child.wait().unwrap().success(),
        "the console producer failed"
    );
}

/// One record as the console consumer prints it.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub timestamp: i64,
    pub partition: i32,
    pub headers: Vec<String>,
    pub key: String,
    pub value: String,
}

/// Reads up to `count` committed records from the beginning; fewer if none comes for 30 s.
pub fn consume(bootstrap: &str, topic: &str, count: usize) -> Vec<Line> {
    let output = tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        bootstrap,
        topic,
    )
    .args(["--from-beginning", "--isolation-level", "read_committed"])
    .args([
        "--timeout-ms",
        "30000",
        "--max-messages",
        &count.to_string(),
    ])
    .args([
        "--property",
        "print.timestamp=true",
        "--property",
        "print.partition=true",
    ])
    .args([
        "--property",
        "print.headers=true",
        "--property",
        "print.key=true",
    ])
    .args(["--property", "headers.separator=,"])
    .stdin(Stdio::null())
    .output()
    .expect("java runs");
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(line).collect()
}

/// `LogAppendTime:1<TAB>Partition:0<TAB>a:1,b:2<TAB>key<TAB>value`
fn line(text: &str) -> Line {
    let parts: Vec<_> = text.split('\t').collect();
    let [time, partition, headers, key, value] = parts[..] else {
        panic!("the console consumer printed {text:?}");
    };
    let number = |part: &str| part.rsplit(':').next().unwrap_or_default().to_owned();
    Line {
        timestamp: number(time).parse().expect("a timestamp"),
        partition: number(partition).parse().expect("a partition"),
        headers: headers.split(',').map(str::to_owned).collect(),
        key: key.to_owned(),
        value: value.to_owned(),
    }
}

fn tool(class: &str, bootstrap: &str, topic: &str) -> Command {
    let mut command = java();
    command
        .args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m"])
        .arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
        .args([class, "--bootstrap-server", bootstrap, "--topic", topic]);
    command
}

/// Changes the rights of everybody on a topic: `rights` as `kafka-acls.sh` takes them.
pub fn acls(bootstrap: &str, topic: &str, rights: &[&str]) {
    let status = java()
        .arg("org.apache.kafka.tools.AclCommand")
        .args(["--bootstrap-server", bootstrap, "--topic", topic])
        .args(rights)
        .stdout(Stdio::null())
        .status()
        .expect("java runs");
    assert!(status.success(), "the rights were not changed");
}

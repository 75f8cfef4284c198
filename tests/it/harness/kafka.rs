//! A real Kafka for the tests, from the jars that `tests/run` fetches: one shared broker, and private clusters to break.
//! Called by `World` and by tests that kill brokers. It must never skip: no Kafka is a panic that names the fix.
//! A broker dies with the test process, however that ends: a shell holds the read end of a pipe and kills java when it closes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use tempfile::TempDir;

use super::eventually::{ensure, eventually, seconds};
use super::ports::Port;

/// $1 directory of the broker, $2 cluster id, $3 `remove` to remove the directory at the end.
const WRAPPER: &str = r#"
trap '' INT TERM
exec 3<&0
if [ ! -e "$1/data/meta.properties" ]; then
  java -XX:TieredStopAtLevel=1 kafka.tools.StorageTool format -t "$2" -c "$1/server.properties" 3<&- || exit 1
fi
java -Xms128m -Xmx512m -XX:+UseSerialGC -Dorg.slf4j.simpleLogger.defaultLogLevel=warn \
  kafka.Kafka "$1/server.properties" 3<&- &
java=$!
echo "$java" >"$1/pid"
(cat <&3 >/dev/null; kill -9 "$java" 2>/dev/null; sleep 0.2; [ "$3" = keep ] || rm -rf "$1") &
exec 3<&-
wait "$java"
"#;

const CLUSTER_ID: &str = "ZGVsYXlkLXRlc3Qta2Fma2";

/// The bootstrap address of the broker that all tests share.
pub fn shared() -> &'static str {
    static SHARED: OnceLock<(String, Option<Broker>)> = OnceLock::new();
    let (address, _broker) = SHARED.get_or_init(|| match std::env::var("KAFKA_BOOTSTRAP") {
        Ok(address) if !address.is_empty() => (address, None),
        _ => {
            jars();
            let dir = tempfile::Builder::new().prefix("delayd-kafka-").tempdir();
            let dir = dir.unwrap().keep();
            let controller = Port::reserve();
            let broker = Broker::start(1, dir, &controller.address(), Some(controller), "remove");
            (broker.address(), Some(broker))
        }
    });
    address
}

/// Where the jars are; panics with the command that fetches them.
pub fn jars() -> PathBuf {
    let cache = || {
        let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
        let cache = std::env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or(home);
        cache.expect("HOME is set").join("delayd/kafka-4.1.1")
    };
    let dir = std::env::var_os("KAFKA_LIBS").map_or_else(cache, PathBuf::from);
    assert!(
        dir.join(".complete").exists(),
        "no Kafka jars in {}: run `tests/run` once, it fetches them (needs Java 17 and Maven)",
        dir.display()
    );
    dir
}

/// `java` with Kafka's jars.
pub fn java() -> Command {
    let mut command = Command::new("java");
    command.env("CLASSPATH", jars().join("*"));
    command
}

/// Brokers of one test's own; the first is also the controller.
pub struct Cluster {
    dir: TempDir,
    controller: String,
    brokers: Vec<Broker>,
}

impl Cluster {
    pub fn start(brokers: usize) -> Cluster {
        let controller = Port::reserve();
        let mut cluster = Cluster {
            dir: tempfile::Builder::new()
                .prefix("delayd-cluster-")
                .tempdir()
                .unwrap(),
            controller: controller.address(),
            brokers: Vec::new(),
        };
        let dir = cluster.dir.path().join("1");
        let first = Broker::start(1, dir, &cluster.controller, Some(controller), "keep");
        cluster.brokers.push(first);
        (1..brokers).for_each(|_| cluster.add_broker());
        cluster
    }

    /// One more broker, with the next id.
    pub fn add_broker(&mut self) {
        let id = self.brokers.len() + 1;
        let dir = self.dir.path().join(id.to_string());
        let broker = Broker::start(id, dir, &self.controller, None, "keep");
        self.brokers.push(broker);
        self.wait_for_brokers(id);
    }

    /// The first broker: it outlives the others.
    pub fn bootstrap(&self) -> String {
        self.brokers[0].address()
    }

    pub fn kill9(&mut self, id: usize) {
        self.brokers[id - 1].kill9();
    }

    pub fn freeze(&self, id: usize) {
        signal("-STOP", self.brokers[id - 1].pid());
    }

    /// The same port and directory again.
    pub fn restart(&mut self, id: usize) {
        let count = self.brokers.len();
        self.brokers[id - 1].launch();
        self.wait_for_brokers(count);
    }

    fn wait_for_brokers(&self, count: usize) {
        eventually(seconds(90), || {
            let known = brokers_known(&self.bootstrap())?;
            ensure(known == count, || {
                format!("{known} of {count} brokers are registered")
            })
        });
    }
}

struct Broker {
    dir: PathBuf,
    port: Port,
    at_end: &'static str,
    _controller: Option<Port>,
    wrapper: Option<(Child, ChildStdin)>,
}

impl Broker {
    fn start(
        id: usize,
        dir: PathBuf,
        voter: &str,
        controller: Option<Port>,
        at_end: &'static str,
    ) -> Broker {
        fs::create_dir_all(&dir).unwrap();
        let port = Port::reserve();
        let properties = properties(id, &dir, &port.address(), voter);
        fs::write(dir.join("server.properties"), properties).unwrap();
        let mut broker = Broker {
            dir,
            port,
            at_end,
            _controller: controller,
            wrapper: None,
        };
        broker.launch();
        broker.wait_until_up();
        broker
    }

    fn address(&self) -> String {
        self.port.address()
    }

    fn launch(&mut self) {
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.log())
            .unwrap();
        let mut wrapper = Command::new("sh")
            .args(["-c", WRAPPER, "delayd-test-kafka"])
            .args([
                self.dir.as_os_str(),
                CLUSTER_ID.as_ref(),
                self.at_end.as_ref(),
            ])
            .env("CLASSPATH", jars().join("*"))
            .stdin(Stdio::piped())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .expect("sh runs");
        let pipe = wrapper.stdin.take().unwrap();
        self.wrapper = Some((wrapper, pipe));
    }

    fn wait_until_up(&mut self) {
        let end = Instant::now() + Duration::from_secs(90);
        while let Err(why) = brokers_known(&self.address()) {
            let (wrapper, _) = self.wrapper.as_mut().unwrap();
            let exited = wrapper.try_wait().unwrap();
            if exited.is_some() || Instant::now() > end {
                let log = fs::read_to_string(self.log()).unwrap_or_default();
                panic!("Kafka did not start ({why}, exit {exited:?}); its log:\n{log}");
            }
        }
    }

    /// Closing the pipe is what kills java.
    fn kill9(&mut self) {
        if let Some((mut wrapper, pipe)) = self.wrapper.take() {
            drop(pipe);
            wrapper.wait().unwrap();
        }
    }

    fn pid(&self) -> u32 {
        let pid = fs::read_to_string(self.dir.join("pid")).unwrap();
        pid.trim().parse().unwrap()
    }

    fn log(&self) -> PathBuf {
        self.dir.join("kafka.log")
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill9();
    }
}

/// Sends a signal to one process of ours, by number.
pub fn signal(name: &str, pid: u32) {
    let status = Command::new("kill").args([name, &pid.to_string()]).status();
    assert!(status.unwrap().success(), "kill {name} {pid}");
}

fn brokers_known(bootstrap: &str) -> Result<usize, String> {
    let client: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("log_level", "0")
        .create()
        .map_err(|error| error.to_string())?;
    let metadata = client.fetch_metadata(None, Duration::from_secs(1));
    Ok(metadata.map_err(|error| error.to_string())?.brokers().len())
}

/// Broker 1 is the controller too. Replication 1, one partition of each internal topic, no waiting for group members.
fn properties(id: usize, dir: &Path, address: &str, voter: &str) -> String {
    let (roles, controller) = match id {
        1 => ("broker,controller", format!(",CONTROLLER://{voter}")),
        _ => ("broker", String::new()),
    };
    format!(
        "process.roles={roles}
node.id={id}
controller.quorum.voters=1@{voter}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
listeners=PLAINTEXT://{address}{controller}
advertised.listeners=PLAINTEXT://{address}
inter.broker.listener.name=PLAINTEXT
log.dirs={dir}/data
auto.create.topics.enable=false
default.replication.factor=1
min.insync.replicas=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
group.coordinator.rebalance.protocols=classic
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
log.cleaner.enable=false
num.io.threads=4
num.network.threads=2
",
        dir = dir.display()
    )
}

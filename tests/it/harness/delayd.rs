//! The program under test as a child process: start, ready, metrics, signals, exit.
//! Called through `World::delayd`. It must use the built binary only, nothing of the library;
//! what the child wrote is shown when its test fails.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::eventually::{ensure, eventually, seconds};
use super::kafka::signal;
use super::ports::Port;

/// How to start delayd: grows by one call per setting.
#[derive(Clone)]
pub struct Launch {
    pub dir: PathBuf,
    pub bootstrap: String,
    pub name: String,
    pub keys: String,
    pub tables: String,
    pub args: Vec<String>,
}

impl Launch {
    /// A top-level line of `delayd.toml`, such as `keep = "2s"`.
    pub fn key(mut self, line: &str) -> Launch {
        self.keys += &format!("{line}\n");
        self
    }

    /// A whole table of `delayd.toml`, heading included.
    pub fn table(mut self, text: &str) -> Launch {
        self.tables += &format!("{text}\n");
        self
    }

    pub fn arg(mut self, flag: &str, value: &str) -> Launch {
        self.args.extend([flag.to_owned(), value.to_owned()]);
        self
    }

    pub fn flag(mut self, flag: &str) -> Launch {
        self.args.push(flag.to_owned());
        self
    }

    pub fn instance(self, id: &str) -> Launch {
        self.arg("--instance-id", id)
    }

    pub fn bootstrap(mut self, address: &str) -> Launch {
        address.clone_into(&mut self.bootstrap);
        self
    }

    /// Runs it and waits for `/readyz`.
    #[track_caller]
    pub fn start(&self) -> Delayd {
        let mut delayd = self.spawn();
        delayd.wait_until_ready();
        delayd
    }

    pub fn spawn(&self) -> Delayd {
        static RUNS: AtomicUsize = AtomicUsize::new(0);
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let config = self.dir.join(format!("delayd-{run}.toml"));
        let log = self.dir.join(format!("delayd-{run}.log"));
        fs::write(&config, format!("{}{}", self.keys, self.tables)).unwrap();
        let http = Arc::new(Port::reserve());
        let out = fs::File::create(&log).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_delayd"))
            .arg("run")
            .args(["--bootstrap-server", &self.bootstrap, "--name", &self.name])
            .args(["--http", &http.address(), "--create-topics"])
            .arg("--levels")
            .arg(self.dir.join("levels.toml"))
            .arg("--config")
            .arg(config)
            .args(&self.args)
            .stdin(std::process::Stdio::null())
            .stdout(out.try_clone().unwrap())
            .stderr(out)
            .spawn()
            .expect("the binary runs");
        Delayd { child, log, http }
    }
}

/// How a process ended.
#[derive(Debug)]
pub struct Ended {
    /// `None` for a signal.
    pub code: Option<i32>,
    pub took: Duration,
}

pub struct Delayd {
    child: Child,
    log: PathBuf,
    http: Arc<Port>,
}

impl Delayd {
    #[track_caller]
    pub fn wait_until_ready(&mut self) {
        let deadline = seconds(60);
        eventually(deadline, || {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("delayd ended before it was ready: {status}");
            }
            let (status, body) = self.get("/readyz")?;
            ensure(status == 200, || format!("/readyz {status}: {body}"))
        });
    }

    /// A plain HTTP GET: status and body.
    pub fn get(&self, path: &str) -> Result<(u16, String), String> {
        let text = |error: std::io::Error| error.to_string();
        let mut stream = TcpStream::connect(self.http.address()).map_err(text)?;
        stream.set_read_timeout(Some(seconds(5))).map_err(text)?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).map_err(text)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map_err(text)?;
        let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
        let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        Ok((status.ok_or(format!("no HTTP: {answer}"))?, body.to_owned()))
    }

    /// `/metrics`, by name with labels.
    pub fn metrics(&self) -> Result<BTreeMap<String, f64>, String> {
        let (_, body) = self.get("/metrics")?;
        let lines = body.lines().filter(|line| !line.starts_with('#'));
        let pairs = lines.filter_map(|line| line.rsplit_once(' '));
        Ok(pairs
            .filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?)))
            .collect())
    }

    /// One metric summed over its labels; an error if delayd does not answer.
    pub fn metric(&self, name: &str) -> Result<f64, String> {
        let of_that_name = |key: &str| key.split('{').next() == Some(name);
        let metrics = self.metrics()?;
        Ok(metrics
            .iter()
            .filter(|(key, _)| of_that_name(key))
            .map(|(_, value)| value)
            .sum())
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn kill9(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn signal(&self, name: &str) {
        signal(name, self.child.id());
    }

    /// SIGTERM, then waits for the end.
    #[track_caller]
    pub fn terminate(&mut self) -> Ended {
        self.signal("-TERM");
        self.ended(seconds(30))
    }

    /// Waits for the process to end by itself.
    #[track_caller]
    pub fn ended(&mut self, deadline: Duration) -> Ended {
        let start = Instant::now();
        let status = eventually(deadline, || {
            let status = self.child.try_wait().unwrap();
            status.ok_or_else(|| "delayd still runs".to_owned())
        });
        Ended {
            code: status.code(),
            took: start.elapsed(),
        }
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Delayd {
    fn drop(&mut self) {
        let status = self.child.try_wait();
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!(
                "--- delayd {} ({status:?}) wrote:\n{}",
                self.pid(),
                self.log()
            );
        }
    }
}

//! The endpoints over a real socket, with slow and greedy clients.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::super::metrics::QueueView;
use super::super::shutdown::StopFlag;
use super::*;

struct Server {
    addr: SocketAddr,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    stop: StopFlag,
    task: tokio::task::JoinHandle<()>,
}

async fn start() -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let (metrics, health, stop) = (
        Arc::new(Metrics::new()),
        Arc::new(Health::new()),
        StopFlag::new(),
    );
    let task = tokio::spawn(serve(
        listener,
        Arc::clone(&metrics),
        Arc::clone(&health),
        stop.stopped(),
    ));
    Server {
        addr,
        metrics,
        health,
        stop,
        task,
    }
}

/// The whole answer to `GET path`, headers and all; it ends because the server closes.
async fn get(addr: SocketAddr, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    send(addr, request).await
}

async fn send(addr: SocketAddr, request: String) -> String {
    let talk = move || {
        let mut stream = TcpStream::connect(addr).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    tokio::task::spawn_blocking(talk).await.unwrap()
}

#[tokio::test]
async fn probes_say_ok_when_all_is_well() {
    let server = start().await;
    for path in ["/livez", "/readyz"] {
        let answer = get(server.addr, path).await;
        assert!(
            answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\nok\n"),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn readyz_says_what_is_missing_in_its_body() {
    let server = start().await;
    server
        .health
        .component("router")
        .not_ready("topic orders is missing; create it");
    let answer = get(server.addr, "/readyz").await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(
        answer.ends_with("router: topic orders is missing; create it\n"),
        "{answer}"
    );
    assert!(
        get(server.addr, "/livez").await.starts_with("HTTP/1.1 200"),
        "not ready is not dead"
    );
}

#[tokio::test]
async fn metrics_are_openmetrics_by_the_brokers_clock() {
    let server = start().await;
    server.metrics.skew(-3_600.0);
    let due = broker_now(&Metrics::new());
    server.metrics.queue(
        1,
        QueueView {
            pending: 1,
            due_unsent: 0,
            next_due: Some(due),
        },
    );
    let answer = get(server.addr, "/metrics").await;
    assert!(
        answer.contains("content-type: application/openmetrics-text; version=1.0.0"),
        "{answer}"
    );
    assert!(answer.ends_with("# EOF\n"), "{answer}");
    let line = answer
        .lines()
        .find(|l| l.starts_with("delayd_next_due_seconds{"))
        .unwrap();
    let seconds: f64 = line.rsplit(' ').next().unwrap().parse().unwrap();
    assert!((3_590.0..=3_600.0).contains(&seconds), "{line}");
}

#[tokio::test]
async fn other_paths_and_methods_are_refused() {
    let server = start().await;
    assert!(get(server.addr, "/").await.starts_with("HTTP/1.1 404"));
    let post = "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n".to_owned();
    assert!(send(server.addr, post).await.starts_with("HTTP/1.1 405"));
}

#[tokio::test]
async fn stopping_does_not_wait_for_a_client_that_says_nothing() {
    let server = start().await;
    let silent = TcpStream::connect(server.addr).unwrap();
    assert!(get(server.addr, "/livez").await.starts_with("HTTP/1.1 200"));
    server.stop.stop();
    tokio::time::timeout(GRACE + Duration::from_secs(2), server.task)
        .await
        .unwrap()
        .unwrap();
    drop(silent);
}

#[tokio::test]
async fn silent_client_loses_its_place_at_the_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let limited = Limited::with(listener, 1, Duration::from_millis(200));
    let app = routes(Arc::new(Metrics::new()), Arc::new(Health::new()));
    tokio::spawn(async move { axum::serve(limited, app).await });
    let silent = TcpStream::connect(addr).unwrap();
    let answer = get(addr, "/livez").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    drop(silent);
}

//! `/livez`, `/readyz` and `/metrics` for orchestrators and Prometheus; the body of a 503 says why.
//! Started by `app`; must not reach Kafka or wait for anything, so that it answers while all else is stuck.

#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;

use super::health::Health;
use super::http_limits::Limited;
use super::metrics::Metrics;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How long open answers may take once the process stops.
const GRACE: Duration = Duration::from_secs(1);

/// Answers until `shutdown` resolves, and a second longer for what is under way.
pub async fn serve(
    listener: TcpListener,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) {
    let (told, heard) = tokio::sync::oneshot::channel::<()>();
    let stopping = async move {
        shutdown.await;
        drop(told);
    };
    let server = axum::serve(Limited::new(listener), routes(metrics, health))
        .with_graceful_shutdown(stopping);
    let patience = async {
        heard.await.ok();
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        result = server => if let Err(error) = result {
            tracing::warn!(%error, "http ended");
        },
        () = patience => {}
    }
}

fn routes(metrics: Arc<Metrics>, health: Arc<Health>) -> Router {
    let probes = Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .with_state(health);
    let figures = Router::new()
        .route("/metrics", get(encode))
        .with_state(metrics);
    probes
        .merge(figures)
        .layer(axum::middleware::map_response(one_request_per_connection))
}

async fn livez(State(health): State<Arc<Health>>) -> Response {
    answer(health.livez(Instant::now()))
}

async fn readyz(State(health): State<Arc<Health>>) -> Response {
    answer(health.readyz())
}

async fn encode(State(metrics): State<Arc<Metrics>>) -> Response {
    let text = metrics.encode(broker_now(&metrics));
    ([(header::CONTENT_TYPE, OPENMETRICS)], text).into_response()
}

fn answer(result: Result<(), Vec<String>>) -> Response {
    match result {
        Ok(()) => "ok\n".into_response(),
        Err(faults) => (StatusCode::SERVICE_UNAVAILABLE, faults.join("\n") + "\n").into_response(),
    }
}

/// Due times are by the broker's clock, and this host's may be far off.
fn broker_now(metrics: &Metrics) -> i64 {
    let host = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let skew = (metrics.skew_seconds() * 1_000.0) as i64;
    i64::try_from(host.as_millis())
        .unwrap_or(i64::MAX)
        .saturating_add(skew)
}

/// Ends the connection with its answer: see `http_limits`.
async fn one_request_per_connection(mut response: Response) -> Response {
    response.headers_mut().insert(
        header::CONNECTION,
        header::HeaderValue::from_static("close"),
    );
    response
}

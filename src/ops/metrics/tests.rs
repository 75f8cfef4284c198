//! Names, labels and values as Prometheus reads them.

use super::*;

fn text(metrics: &Metrics) -> String {
    metrics.encode(1_000_000)
}

fn lines_of<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    text.lines().filter(|line| line.starts_with(name)).collect()
}

#[test]
fn every_promised_name_is_printed_with_one_total_suffix() {
    let metrics = Metrics::new();
    metrics.announce([1, 2], &["bad_level"]);
    metrics.accepted(1);
    metrics.queue(
        1,
        QueueView {
            next_due: Some(0),
            ..QueueView::default()
        },
    );
    let text = text(&metrics);
    for name in [
        "delayd_accepted_total 1",
        "delayd_scheduled_total{level=\"1\"} 0",
        "delayd_delivered_total{level=\"0\"} 0",
        "delayd_delivered_total{level=\"2\"} 0",
        "delayd_dead_letter_total{reason=\"bad_level\"} 0",
        "delayd_clamped_total 0",
        "delayd_reparked_total 0",
        "delayd_lost_total 0",
        "delayd_clock_implausible_total 0",
        "delayd_transactions_aborted_total 0",
        "delayd_producers_replaced_total 0",
        "delayd_levels_hash 0",
        "delayd_clock_skew_seconds 0",
        "delayd_disorder_seconds_count 0",
        "delayd_lateness_seconds_count{level=\"1\"} 0",
        "delayd_pending{level=\"1\"} 0",
        "delayd_due_unsent{level=\"1\"} 0",
        "delayd_next_due_seconds{level=\"1\"} -1000",
    ] {
        assert!(
            !lines_of(&text, name).is_empty(),
            "no line {name:?} in\n{text}"
        );
    }
    assert!(
        !text.contains("_total_total") && !text.contains("_seconds_seconds"),
        "{text}"
    );
    assert!(text.ends_with("# EOF\n"), "{text}");
}

#[test]
fn next_due_counts_down_and_goes_below_zero() {
    let metrics = Metrics::new();
    metrics.queue(
        3,
        QueueView {
            pending: 2,
            due_unsent: 0,
            next_due: Some(10_500),
        },
    );
    assert_eq!(
        lines_of(&metrics.encode(8_000), "delayd_next_due"),
        ["delayd_next_due_seconds{level=\"3\"} 2.5"]
    );
    assert_eq!(
        lines_of(&metrics.encode(11_000), "delayd_next_due"),
        ["delayd_next_due_seconds{level=\"3\"} -0.5"]
    );
}

#[test]
fn empty_queue_has_no_next_due() {
    let metrics = Metrics::new();
    metrics.queue(3, QueueView::default());
    let text = text(&metrics);
    assert_eq!(
        lines_of(&text, "delayd_pending"),
        ["delayd_pending{level=\"3\"} 0"]
    );
    assert!(lines_of(&text, "delayd_next_due").is_empty(), "{text}");
}

#[test]
fn revoked_level_leaves_no_gauge_but_keeps_its_counters() {
    let metrics = Metrics::new();
    metrics.scheduled(4, 7);
    metrics.queue(
        4,
        QueueView {
            pending: 7,
            due_unsent: 1,
            next_due: Some(1),
        },
    );
    metrics.queue(
        5,
        QueueView {
            pending: 1,
            due_unsent: 0,
            next_due: Some(1),
        },
    );
    metrics.forget_queue(4);
    let text = text(&metrics);
    assert_eq!(
        lines_of(&text, "delayd_pending"),
        ["delayd_pending{level=\"5\"} 1"]
    );
    assert_eq!(lines_of(&text, "delayd_due_unsent").len(), 1);
    assert_eq!(lines_of(&text, "delayd_next_due").len(), 1);
    assert_eq!(
        lines_of(&text, "delayd_scheduled"),
        ["delayd_scheduled_total{level=\"4\"} 7"]
    );
}

#[test]
fn batch_counts_each_message_and_its_lateness() {
    let metrics = Metrics::new();
    metrics.delivered_many(1, &[Duration::from_millis(3), Duration::from_millis(400)]);
    metrics.delivered(1, Duration::from_secs(7200));
    let text = text(&metrics);
    assert_eq!(
        lines_of(&text, "delayd_delivered"),
        ["delayd_delivered_total{level=\"1\"} 3"]
    );
    for line in [
        "delayd_lateness_seconds_bucket{le=\"0.005\",level=\"1\"} 1",
        "delayd_lateness_seconds_bucket{le=\"0.5\",level=\"1\"} 2",
        "delayd_lateness_seconds_bucket{le=\"+Inf\",level=\"1\"} 3",
        "delayd_lateness_seconds_count{level=\"1\"} 3",
    ] {
        assert!(
            text.lines().any(|l| l == line),
            "no line {line:?} in\n{text}"
        );
    }
}

#[test]
fn dead_letters_are_counted_by_reason() {
    let metrics = Metrics::new();
    metrics.dead_letter("bad_level");
    metrics.dead_letter("bad_level");
    metrics.dead_letter("too_large");
    let text = text(&metrics);
    let mut lines = lines_of(&text, "delayd_dead_letter");
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "delayd_dead_letter_total{reason=\"bad_level\"} 2",
            "delayd_dead_letter_total{reason=\"too_large\"} 1"
        ]
    );
}

#[test]
fn levels_hash_survives_a_float() {
    let metrics = Metrics::new();
    metrics.levels_hash(-1);
    let text = text(&metrics);
    assert_eq!(
        lines_of(&text, "delayd_levels_hash"),
        [format!("delayd_levels_hash {LARGEST_EXACT}")]
    );
    assert_eq!((LARGEST_EXACT as f64) as i64, LARGEST_EXACT);
}

#[test]
fn metrics_are_shared_between_threads() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Arc<Metrics>>();
    let metrics = Metrics::new();
    std::thread::scope(|scope| {
        for level in 1..=4 {
            let metrics = &metrics;
            scope.spawn(move || (0..1_000).for_each(|_| metrics.delivered(level, Duration::ZERO)));
        }
    });
    assert_eq!(lines_of(&text(&metrics), "delayd_delivered").len(), 4);
}

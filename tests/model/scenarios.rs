//! Histories worth a name of their own: each says what arrives where, and how long after the first message.

use delayd::core::level_queue::PendingMode;

use crate::kafka::Ending;
use crate::landing::text;
use crate::message::Message;
use crate::steps::{Setting, Step};
use crate::world::{World, play};

const EXACTLY_ONCE: Setting = Setting {
    exactly_once: true,
    pending: PendingMode::Shorten,
};
const AT_LEAST_ONCE: Setting = Setting {
    exactly_once: false,
    ..EXACTLY_ONCE
};

/// One message to `orders` for each of these levels.
fn append(levels: &[&'static str]) -> Step {
    let message = |level: &&'static str| Message {
        ingress: Some(0),
        level: Some(level),
        target: None,
        qid: None,
        key: Some(1),
        ahead: 0,
        large: false,
    };
    Step::Append(levels.iter().map(message).collect())
}

fn route() -> [Step; 2] {
    both(Ending::Commit, |worker, ending| Step::Route {
        worker,
        ending,
    })
}

fn scan() -> [Step; 2] {
    scan_with(Ending::Commit)
}

fn scan_with(ending: Ending) -> [Step; 2] {
    both(ending, |worker, ending| Step::Scan { worker, ending })
}

fn both(ending: Ending, step: impl Fn(usize, Ending) -> Step) -> [Step; 2] {
    [step(0, ending), step(1, ending)]
}

fn pass(ms: i64) -> [Step; 1] {
    [Step::Pass { ms }]
}

/// Plays the steps; then what has arrived by then, as `message@ms` or `message!reason@ms`.
fn check(setting: &Setting, steps: &[&[Step]], expected: &[&str]) {
    let steps = steps.concat();
    let mut world = World::new(setting);
    let start = world.kafka.clock;
    for step in &steps {
        world.step(step).unwrap();
    }
    let mut arrived = Vec::new();
    for (partition, log) in &world.kafka.logs {
        let ended = ["orders", "audit", "delayd-dead-letter"].contains(&&*partition.topic);
        for entry in log.iter().flatten().filter(|_| ended) {
            let reason = text(&entry.record, "delayd-error")
                .map_or(String::new(), |reason| format!("!{reason}"));
            arrived.push(format!(
                "{}{reason}@{}",
                entry.number,
                entry.stamp.0 - start
            ));
        }
    }
    assert_eq!(arrived, expected);
    play(setting, &steps).unwrap();
}

#[test]
fn a_message_arrives_when_its_level_says_and_not_before() {
    let steps: &[&[Step]] = &[
        &[append(&["1", "0"])],
        &route(),
        &pass(999),
        &scan(),
        &pass(1),
        &scan(),
    ];
    check(&EXACTLY_ONCE, steps, &["1@0", "0@1000"]);
}

#[test]
fn router_downtime_does_not_lengthen_the_delay() {
    let steps: &[&[Step]] = &[&[append(&["1", "2"])], &pass(60_000), &route(), &scan()];
    check(&EXACTLY_ONCE, steps, &["0@60000", "1@60000"]);
}

#[test]
fn a_shorter_table_reaches_the_head_that_a_scanner_holds() {
    let edit = [Step::Edit {
        table: 2,
        late: None,
    }];
    let steps: &[&[Step]] = &[
        &[append(&["3"])],
        &route(),
        &scan(),
        &edit,
        &pass(4_000),
        &scan(),
    ];
    check(&EXACTLY_ONCE, steps, &["0@4000"]);
    check(
        &Setting {
            pending: PendingMode::Keep,
            ..EXACTLY_ONCE
        },
        steps,
        &[],
    );
}

#[test]
fn a_longer_table_changes_nothing_for_what_waits() {
    let edit = [Step::Edit {
        table: 1,
        late: None,
    }];
    let steps: &[&[Step]] = &[
        &[append(&["1"])],
        &route(),
        &scan(),
        &edit,
        &pass(1_000),
        &scan(),
    ];
    check(&EXACTLY_ONCE, steps, &["0@1000"]);
}

#[test]
fn the_queue_of_a_level_that_is_gone_is_scanned_until_it_is_empty() {
    let edit = [Step::Edit {
        table: 4,
        late: None,
    }];
    let steps: &[&[Step]] = &[
        &[append(&["3"])],
        &route(),
        &edit,
        &[append(&["3"])],
        &route(),
        &pass(10_000),
        &scan(),
    ];
    check(&EXACTLY_ONCE, steps, &["0@10000", "1@10000"]);
}

#[test]
fn a_crash_repeats_nothing_exactly_once_and_the_batch_at_least_once() {
    let crash = |landed| scan_with(Ending::CrashBefore(landed));
    let steps: &[&[Step]] = &[
        &[append(&["1", "1", "1"])],
        &route(),
        &pass(1_000),
        &crash(2),
        &scan(),
    ];
    check(&EXACTLY_ONCE, steps, &["0@1000", "1@1000", "2@1000"]);
    check(
        &AT_LEAST_ONCE,
        steps,
        &["0@1000", "1@1000", "0@1000", "1@1000", "2@1000"],
    );
}

#[test]
fn a_commit_whose_answer_is_lost_is_settled_by_asking() {
    for committed in [true, false] {
        let lost = scan_with(Ending::AnswerLost { committed });
        let steps: &[&[Step]] = &[
            &[append(&["1", "1"])],
            &route(),
            &pass(1_000),
            &lost,
            &scan(),
        ];
        check(&EXACTLY_ONCE, steps, &["0@1000", "1@1000"]);
    }
}

#[test]
fn a_worker_that_missed_the_rebalance_is_fenced() {
    let stall = [Step::Stall { worker: 0 }, Step::Stall { worker: 1 }];
    let steps: &[&[Step]] = &[
        &[append(&["1", "2"])],
        &route(),
        &pass(5_000),
        &stall,
        &scan(),
        &scan(),
    ];
    check(&EXACTLY_ONCE, steps, &["0@5000", "1@5000"]);
}

#[test]
fn a_target_that_is_away_holds_nobody_up_and_gets_its_message_later() {
    let away = [Step::Away {
        target: 0,
        leaderless: false,
    }];
    let back = [Step::Back { target: 0 }];
    let steps: &[&[Step]] = &[
        &[append(&["1"])],
        &route(),
        &away,
        &pass(1_000),
        &scan(),
        &back,
        &pass(999),
        &scan(),
        &pass(1),
        &scan(),
    ];
    check(&EXACTLY_ONCE, steps, &["0@2000"]);
}

#[test]
fn a_target_that_stays_away_ends_in_the_dead_letter_topic() {
    let away = [Step::Away {
        target: 0,
        leaderless: false,
    }];
    let later: Vec<Step> = (0..4)
        .flat_map(|_| [&pass(10_000)[..], &scan()].concat())
        .collect();
    let steps: &[&[Step]] = &[&[append(&["1"])], &route(), &away, &later];
    check(&EXACTLY_ONCE, steps, &["0!target_unavailable@40000"]);
}

#[test]
fn a_broker_clock_that_is_set_back_delays_a_queue_and_starves_no_other() {
    let back = [Step::BrokerClock { ms: -4_500 }];
    let fail = scan_with(Ending::RollBack);
    let many = append(&["2"; 8]);
    let other = append(&["1"]);
    // Level 2 is due and held when the clock goes back; level 1 becomes due while level 2 waits again.
    let owners = [Step::Rebalance { owners: 0 }];
    let steps: &[&[Step]] = &[
        &owners,
        &[many],
        &route(),
        &pass(5_000),
        &fail,
        &back,
        &[other],
        &route(),
        &pass(1_000),
        &scan(),
    ];
    check(&EXACTLY_ONCE, steps, &["8@1500"]);
}

//! Readiness and liveness, told and asked.

use super::*;

#[test]
fn a_component_is_not_ready_before_it_says_so() {
    let health = Health::new();
    assert_eq!(health.readyz(), Ok(()));
    let router = health.component("router");
    assert_eq!(health.readyz(), Err(vec!["router: starting".to_owned()]));
    router.ready();
    assert_eq!(health.readyz(), Ok(()));
}

#[test]
fn every_component_that_is_not_ready_says_why() {
    let health = Health::new();
    health
        .component("scanner-1")
        .not_ready("topic orders is missing; create it");
    health
        .component("scanner-0")
        .not_ready("no broker at localhost:9092; start Kafka");
    health.component("router").ready();
    let faults = health.readyz().unwrap_err();
    assert_eq!(
        faults,
        [
            "scanner-0: no broker at localhost:9092; start Kafka",
            "scanner-1: topic orders is missing; create it"
        ]
    );
}

#[test]
fn the_same_name_is_the_same_component() {
    let health = Health::new();
    health.component("router");
    health.component("router").ready();
    assert_eq!(health.readyz(), Ok(()));
}

#[test]
fn a_component_that_stops_beating_for_a_minute_is_dead() {
    let health = Health::new();
    let scanner = health.component("scanner-0");
    scanner.beat();
    let beaten = Instant::now();
    assert_eq!(
        health.livez(beaten + SILENCE - Duration::from_secs(1)),
        Ok(())
    );
    let faults = health.livez(beaten + SILENCE).unwrap_err();
    assert!(
        faults[0].starts_with("scanner-0: no sign of life for"),
        "{faults:?}"
    );
}

#[test]
fn a_component_that_never_beat_is_not_dead() {
    let health = Health::new();
    health.component("http");
    assert_eq!(health.livez(Instant::now() + 100 * SILENCE), Ok(()));
}

#[test]
fn a_clock_before_the_beat_is_no_silence() {
    let health = Health::new();
    let before = Instant::now();
    health.component("scanner-0").beat();
    assert_eq!(health.livez(before), Ok(()));
}

/// `ready` and `not_ready` log exactly when `change` says that it is news.
#[test]
fn only_a_change_of_readiness_or_of_its_reason_is_news() {
    let health = Health::new();
    let scanner = health.component("scanner-0");
    let fault = |why: &str| Some(why.to_owned());
    assert!(!scanner.change(fault("starting")));
    assert!(scanner.change(fault("waiting for Kafka")));
    assert!(!scanner.change(fault("waiting for Kafka")));
    assert!(scanner.change(fault("topic orders is missing")));
    assert!(scanner.change(None));
    assert!(!scanner.change(None));
    scanner.beat();
    assert!(!scanner.change(None), "a beat changes nothing");
}

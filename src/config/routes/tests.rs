//! Routes: what they may read, where they may lead, and the built-in one.

use super::*;
use crate::config::tests::{complaints, load};

fn route(from: &str, to: &str) -> String {
    format!("[[route]]\nfrom = '{from}'\nto = '{to}'\n")
}

#[test]
fn a_route_takes_its_options_and_the_built_in_one_comes_last() {
    let text = "[[route]]\nfrom = \"a\"\nto = \"b\"\nlevel = 3\npartition = \"same\"\n[[route]]\nfrom = '^(.+)-delayed$'\nto = '$1'";
    let routes = load(text).unwrap().routes;
    assert_eq!(routes.len(), 3);
    assert!(matches!(&routes[0].from, Ingress::Topic(topic) if topic == "a"));
    assert_eq!(
        (
            routes[0].to.as_deref(),
            routes[0].level,
            routes[0].partition
        ),
        (Some("b"), Level::new(3), TargetPartition::Same)
    );
    assert!(matches!(&routes[1].from, Ingress::Pattern(pattern) if pattern.is_match("x-delayed")));
    assert_eq!(
        (
            routes[1].to.as_deref(),
            routes[1].level,
            routes[1].partition
        ),
        (Some("$1"), None, TargetPartition::Key)
    );
    assert!(
        matches!(&routes[2].from, Ingress::Topic(topic) if topic == "delayd-ingress")
            && routes[2].to.is_none()
    );
}

#[test]
fn a_route_for_our_ingress_replaces_the_built_in_one() {
    let routes = load("name = \"n\"\n[[route]]\nfrom = \"n-ingress\"\nlevel = 2")
        .unwrap()
        .routes;
    assert_eq!((routes.len(), routes[0].level), (1, Level::new(2)));
}

#[test]
fn what_a_route_must_not_be_is_refused() {
    let cases = [
        (route("a b", "c"), "from: \"a b\" is not a topic name"),
        (route("__x", "c"), "from: \"__x\" is Kafka's own"),
        (route("SCHEDULE_TOPIC_XXXX", "c"), "delayd's schedule topic"),
        (
            route("delayd-dead-letter", "c"),
            "delayd's dead-letter topic",
        ),
        (route("^.*", "c"), "takes in delayd's schedule topic"),
        (route("^delayd-c", "c"), "delayd's clock topic"),
        (route("^(a", "c"), "is not a pattern"),
        (route(r"^\d+$", "c"), r"uses \d"),
        (route("^(?:a)$", "c"), "uses (?"),
        (route("^a+?$", "c"), "uses +?"),
        (route("a", "b c"), "to: \"b c\" is not a topic name"),
        (route("a", "$1"), "to: \"$1\" is not a topic name"),
        (route("a", "__consumer_offsets"), "is Kafka's own"),
        (
            route("a", "SCHEDULE_TOPIC_XXXX"),
            "is delayd's schedule topic",
        ),
        (
            route("a", "delayd-dead-letter"),
            "is delayd's dead-letter topic",
        ),
        (route("a", "delayd-clock"), "is delayd's clock topic"),
        (route("a", "a"), "is an ingress topic"),
        (route("a", "delayd-ingress"), "is an ingress topic"),
        (route("^(.+)-delayed$", "x-delayed"), "is an ingress topic"),
        (route("^(.+)-delayed$", "$2"), "refers to the group \"2\""),
        (
            route("^(.+)-delayed$", "$1_x"),
            "refers to the group \"1_x\"",
        ),
        (route("^(.+)-delayed$", "${1"), "refers to the group \"\""),
        (route("^(.+)-delayed$", "$1/x"), "is not a topic name"),
        (
            route("a", "b") + &route("a", "c"),
            "a second route from \"a\"",
        ),
        (
            route("^a.$", "b") + &route("^a.$", "c"),
            "a second route from",
        ),
        (
            route("a", "b") + &route("b", "c"),
            "to: \"b\" is an ingress topic",
        ),
        (route("a", "b") + "level = 0", "level: 0 is not a level"),
        (route("a", "b") + "level = -1", "level: -1 is not a level"),
        (
            route("a", "b") + "partition = \"sam\"",
            "did you mean \"same\"?",
        ),
    ];
    for (text, expected) in cases {
        let lines = complaints(&text);
        assert!(
            lines.len() == 1 && lines[0].contains(expected),
            "{text}: {lines:?}"
        );
        assert!(lines[0].starts_with("delayd.toml:"), "{lines:?}");
    }
}

#[test]
fn references_to_groups_work_in_both_spellings() {
    for to in ["$1", "${1}_x", "pre-$1.post", "$0.x", "plain"] {
        assert!(load(&route("^(.+)-delayed$", to)).is_ok(), "{to}");
    }
}

#[test]
fn a_level_beyond_the_table_is_a_warning() {
    let warnings = load(&(route("a", "b") + "level = 19")).unwrap().warnings;
    assert!(
        warnings.len() == 1 && warnings[0].contains("level 19, but 18 is the last"),
        "{warnings:?}"
    );
}

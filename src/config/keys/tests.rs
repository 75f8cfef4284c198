//! The table of keys agrees with itself.

use super::*;

#[test]
fn paths_and_variables_are_unique() {
    for (i, one) in KEYS.iter().enumerate() {
        assert!(one.variable.starts_with("DELAYD_") && !one.variable.starts_with("DELAYD_KAFKA_"));
        assert!(
            KEYS[i + 1..]
                .iter()
                .all(|two| one.path != two.path && one.variable != two.variable),
            "{one:?}"
        );
    }
}

#[test]
fn tables_know_what_may_stand_in_them() {
    assert_eq!(
        children("topics"),
        ["schedule", "partitions", "replication_factor"]
    );
    assert_eq!(children("http"), ["listen"]);
    assert!(children("").contains(&"topics") && children("").contains(&"route"));
    assert!(children("name").is_empty() && children("nothing").is_empty());
}

//! How problems are shown, and suggestions.

use super::*;

#[test]
fn problems_are_shown_by_file_and_line_then_variables_then_flags() {
    let at = |line, column| Origin::At {
        path: "delayd.toml".into(),
        line,
        column,
    };
    let mut problems = Problems::default();
    problems.add(Origin::Flag("--wait"), "d", "x");
    problems.add(Origin::Variable("DELAYD_WAIT".to_owned()), "c", "x");
    problems.add(at(10, 1), "b", "x");
    problems.add(at(9, 4), "a", "x");
    problems.add(at(9, 4), "a", "x");
    let shown = problems.or(()).unwrap_err().to_string();
    assert_eq!(
        shown,
        "delayd.toml:9:4: a; x\ndelayd.toml:10:1: b; x\nDELAYD_WAIT: c; x\n--wait: d; x"
    );
}

#[test]
fn the_nearest_known_word_is_suggested_if_it_is_near() {
    let known = ["name", "workers", "retry_for"];
    let cases = [
        ("nmae", "did you mean \"name\"?"),
        ("worker", "did you mean \"workers\"?"),
        ("retry-for", "did you mean \"retry_for\"?"),
        ("zzz", "none"),
        ("", "none"),
    ];
    for (word, expected) in cases {
        assert_eq!(
            suggest(word, known, || "none".to_owned()),
            expected,
            "{word}"
        );
    }
}

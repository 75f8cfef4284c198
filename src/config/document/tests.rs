//! Places in a file.

use super::*;

fn document(text: &str) -> Document {
    Document {
        path: "x.toml".into(),
        text: text.to_owned(),
    }
}

#[test]
fn columns_count_characters_and_lines_count_from_one() {
    let text = "a = \"é\"\nçb = 1";
    let at = document(text).origin(&(text.find('b').unwrap()..text.len()));
    assert_eq!(
        at,
        Origin::At {
            path: "x.toml".into(),
            line: 2,
            column: 2
        }
    );
}

#[test]
fn a_place_inside_a_string_counts_its_quotes_but_not_through_escapes() {
    let cases = [
        ("\"1s 5x\"", "x:1:5"),
        ("'1s 5x'", "x:1:5"),
        ("\"\"\"1s 5x\"\"\"", "x:1:7"),
        ("\"\"\"\n1s 5x\"\"\"", "x:2:4"),
        ("\"\\u0031s 5x\"", "x:1:1"),
    ];
    for (text, expected) in cases {
        let document = Document {
            path: "x".into(),
            text: text.to_owned(),
        };
        assert_eq!(
            document.origin_inside(&(0..text.len()), 3).to_string(),
            expected,
            "{text}"
        );
    }
}

#[test]
fn broken_toml_is_told_once_a_line_without_quoting_it() {
    let mut problems = Problems::default();
    assert!(
        document("a = secret\nb = = \nc = 1")
            .parse(&mut problems)
            .is_none()
    );
    let shown = problems.or(()).unwrap_err();
    let lines: Vec<_> = shown
        .problems()
        .iter()
        .map(|p| p.origin.to_string())
        .collect();
    assert_eq!(lines.len(), 2, "{shown}");
    assert!(
        lines[0].starts_with("x.toml:1:") && lines[1].starts_with("x.toml:2:"),
        "{shown}"
    );
    assert!(!shown.to_string().contains("secret"), "{shown}");
}

#[test]
fn scalars_become_text_as_librdkafka_wants_it() {
    let cases = [
        ("\"x\"", "x"),
        ("1_000", "1000"),
        ("0x10", "16"),
        ("-1", "-1"),
        ("0.5", "0.5"),
        ("true", "true"),
    ];
    for (toml, expected) in cases {
        let value = DeValue::parse(toml).unwrap();
        assert_eq!(scalar(value.get_ref()).as_deref(), Some(expected), "{toml}");
    }
    assert_eq!(scalar(DeValue::parse("[1]").unwrap().get_ref()), None);
}

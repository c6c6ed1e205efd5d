use perflab_model::study::TomlSource;

use super::*;

fn definition_with_rule(rule: &str) -> WorkloadDefinition {
    let text = format!(
        "title = \"a\"\nmeasures = \"b\"\nhomepage = \"c\"\nlicence = \"d\"\nargv = [\"e\"]\n\
         [[metric]]\nname = \"m\"\nunit = \"s\"\ndirection = \"lower\"\n{rule}\n"
    );
    WorkloadDefinition::read(&TomlSource::new("t.toml", text)).unwrap_or_else(|error| panic!("{error}"))
}

fn parse_single_value(text: &str, output: &str) -> Result<f64, String> {
    let measured = definition_with_rule(text).parse_metrics(output, "on stderr 9", Nanos(2_500_000_000));
    measured.map(|all| all[0].value).map_err(|error| error.to_string())
}

#[test]
fn several_finds_become_one() {
    let output = "v 1\nv 2\nv 9\nv 4\n";
    for (aggregate, expected) in [
        ("last", 4.0),
        ("first", 1.0),
        ("sum", 16.0),
        ("mean", 4.0),
        ("min", 1.0),
        ("max", 9.0),
        ("median", 3.0),
    ] {
        let text = format!("regex = '^v (?<value>\\d+)'\naggregate = \"{aggregate}\"");
        assert_eq!(parse_single_value(&text, output), Ok(expected), "{aggregate}");
    }
}

#[test]
fn every_kind_of_rule_finds() {
    assert_eq!(
        parse_single_value("json = \"/a/0/b\"\nscale = 0.5", "hello\n[not json\n{\"a\": [{\"b\": 4}]}\nbye"),
        Ok(2.0)
    );
    assert_eq!(parse_single_value("json = \"/a\"", "{\"a\": \"1e3\"}"), Ok(1000.0));
    assert_eq!(parse_single_value("csv = \"b\"\nseparator = \";\"", "a;b\n1;2\n3;4\n"), Ok(4.0));
    assert_eq!(parse_single_value("key = \"rate\"", "other: 1\n  rate : 1,234.5\n"), Ok(1234.5));
    assert_eq!(parse_single_value("time = \"wall\"", ""), Ok(2.5));
    assert_eq!(parse_single_value("from = \"stderr\"\nregex = 'stderr (?<value>.)'", ""), Ok(9.0));
}

#[test]
fn what_is_not_there_is_an_error_unless_it_may_be() {
    let said = parse_single_value("key = \"rate\"", "Segmentation fault\n").unwrap_err();
    assert_eq!(said, "metric `m`: key `rate` found nothing in stdout (it begins `Segmentation fault`)");
    assert_eq!(
        parse_single_value("csv = \"b\"", "").unwrap_err(),
        "metric `m`: csv column `b` found nothing in stdout (it is empty)"
    );
    let said = parse_single_value("json = \"/a\"", "{\"a\": 1").unwrap_err();
    assert!(said.starts_with("metric `m`: json `/a`: stdout is not understood: EOF"), "{said}");
    assert_eq!(
        definition_with_rule("key = \"rate\"\noptional = true").parse_metrics("", "", Nanos(1)),
        Ok(Vec::new())
    );
}

#[test]
fn numbers_are_finite_or_refused() {
    for text in ["NaN", "inf", "-inf", "1e999", "fast", ""] {
        let said = parse_single_value("key = \"rate\"", &format!("rate: {text}")).unwrap_err();
        assert!(said.ends_with(&format!("found `{text}`, which is not a finite number")), "{said}");
    }
    assert!(
        parse_single_value("key = \"rate\"\nscale = 1e300", "rate: 1e300").unwrap_err().contains("`inf`")
    );
    assert!(parse_single_value("json = \"/a\"", "{\"a\": null}").unwrap_err().contains("`null`"));
}

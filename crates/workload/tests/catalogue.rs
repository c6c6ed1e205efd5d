//! The embedded definitions: all of the folder, all read, all defaults resolve.

use indexmap::IndexMap;
use perflab_model::Value;
use perflab_model::expression::Scope;
use perflab_workload::{Catalogue, HostPaths};

fn host() -> Scope {
    let mut scope = Scope::default();
    for (name, value) in
        [("cpus", 4), ("cores", 2), ("memory", 8 << 30), ("numa_nodes", 1), ("page_size", 4096)]
    {
        scope.set(name, Value::Int(value));
    }
    scope
}

fn folder() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads")
}

#[test]
fn every_file_of_the_folder_is_embedded() {
    let catalogue = Catalogue::embedded().unwrap_or_else(|error| panic!("{error}"));
    let mut files: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .filter_map(|entry| {
            entry.unwrap().file_name().into_string().unwrap().strip_suffix(".toml").map(str::to_owned)
        })
        .collect();
    files.sort();
    assert_eq!(catalogue.names().collect::<Vec<_>>(), files);
}

#[test]
fn every_definition_can_be_run_with_its_defaults() {
    let paths = HostPaths {
        perflab: "/bin/perflab".into(),
        scratch: Some("/tmp/scratch".into()),
        kept: Some("/tmp/kept".into()),
    };
    for definition in Catalogue::embedded().unwrap().iter() {
        let values =
            definition.resolve(&IndexMap::new(), &host()).unwrap_or_else(|error| panic!("{error:?}"));
        let again = definition.resolve(&values, &host()).unwrap();
        assert_eq!(values, again, "{}: resolving twice changes values", definition.name);
        let invocation =
            definition.invocation(&values, &host(), &paths).unwrap_or_else(|error| panic!("{error}"));
        assert!(!invocation.argv.is_empty());
        assert!(
            definition.metrics().iter().any(|metric| metric.primary),
            "{} has no primary metric",
            definition.name
        );
    }
}

#[test]
fn known_operations_are_counted_from_parameters() {
    let catalogue = Catalogue::embedded().unwrap();
    let count = |channel: &str| {
        let definition = catalogue.get("hackbench").unwrap();
        let wanted = IndexMap::from([("channel".to_owned(), Value::Text(channel.into()))]);
        let values = definition.resolve(&wanted, &host()).unwrap();
        let scope = Scope::new(values.into_iter().collect());
        definition.operation_counts(&scope)["allocation"]
    };
    // Eight groups of 20 senders, each of which sends 100 messages to 20 receivers: two objects a message.
    assert_eq!((count("socket"), count("pipe")), (2.0 * 8.0 * 20.0 * 20.0 * 100.0, 0.0));
    for definition in catalogue.iter() {
        let values = definition.resolve(&IndexMap::new(), &host()).unwrap();
        let counts = definition.operation_counts(&Scope::new(values.into_iter().collect()));
        assert_eq!(
            counts.len(),
            definition.operations.len(),
            "{}: an operation that cannot be counted",
            definition.name
        );
    }
}

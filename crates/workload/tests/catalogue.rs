//! The embedded definitions: all of the folder, all read, all defaults resolve.

use indexmap::IndexMap;
use perflab_model::Scalar;
use perflab_model::expression::ExpressionScope;
use perflab_workload::{Catalogue, HostPaths, WorkloadDefinition};

fn host_scope() -> ExpressionScope {
    let mut scope = ExpressionScope::default();
    for (name, value) in
        [("cpus", 4), ("cores", 2), ("memory", 8 << 30), ("numa_nodes", 1), ("page_size", 4096)]
    {
        scope.set(name, Scalar::Int(value));
    }
    scope
}

fn definitions_folder() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads")
}

#[test]
fn every_file_of_the_folder_is_embedded() {
    let catalogue = Catalogue::embedded();
    let mut files: Vec<String> = std::fs::read_dir(definitions_folder())
        .unwrap()
        .filter_map(|entry| {
            entry.unwrap().file_name().into_string().unwrap().strip_suffix(".toml").map(str::to_owned)
        })
        .collect();
    files.sort();
    assert_eq!(catalogue.names().collect::<Vec<_>>(), files);
}

#[test]
fn every_embedded_definition_can_be_read() {
    let catalogue = Catalogue::embedded();
    for name in catalogue.names() {
        let read = WorkloadDefinition::read(catalogue.source(name).unwrap());
        read.unwrap_or_else(|problems| panic!("{name}: {problems}"));
    }
    assert_eq!(catalogue.iter().count(), catalogue.names().count());
}

#[test]
fn every_definition_can_be_run_with_its_defaults() {
    let paths = HostPaths {
        perflab: "/bin/perflab".into(),
        scratch: Some("/tmp/scratch".into()),
        kept: Some("/tmp/kept".into()),
        case: None,
        free_port: Some(4321),
    };
    for definition in Catalogue::embedded().iter() {
        let values = definition
            .resolve_parameters(&IndexMap::new(), &host_scope())
            .unwrap_or_else(|error| panic!("{error:?}"));
        let again = definition.resolve_parameters(&values, &host_scope()).unwrap();
        assert_eq!(values, again, "{}: resolving twice changes values", definition.name);
        let invocation = definition
            .build_invocation(&values, &host_scope(), &paths)
            .unwrap_or_else(|error| panic!("{error}"));
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
    let catalogue = Catalogue::embedded();
    let count = |channel: &str| {
        let definition = catalogue.get("hackbench").unwrap();
        let wanted = IndexMap::from([("channel".to_owned(), Scalar::Text(channel.into()))]);
        let values = definition.resolve_parameters(&wanted, &host_scope()).unwrap();
        let scope = ExpressionScope::new(values.into_iter().collect());
        definition.operation_counts(&scope)["allocation"]
    };
    // Eight groups of 20 senders, each of which sends 100 messages to 20 receivers: two objects a message.
    assert_eq!((count("socket"), count("pipe")), (2.0 * 8.0 * 20.0 * 20.0 * 100.0, 0.0));
    for definition in catalogue.iter() {
        let values = definition.resolve_parameters(&IndexMap::new(), &host_scope()).unwrap();
        let counts = definition.operation_counts(&ExpressionScope::new(values.into_iter().collect()));
        assert_eq!(
            counts.len(),
            definition.operations.len(),
            "{}: an operation that cannot be counted",
            definition.name
        );
    }
}

//! From a definition of the user's own to a command, and what can go wrong on the way.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::sync::atomic::AtomicBool;

use indexmap::IndexMap;
use perflab_model::expression::ExpressionScope;
use perflab_model::{Nanos, Scalar};
use perflab_workload::{
    Catalogue, CatalogueError, ExecutionEnd, HostPaths, Invocation, WorkloadDefinition, WorkloadError,
    execute_invocation,
};

const HEAD: &str = "title = \"a\"\nmeasures = \"b\"\nhomepage = \"c\"\nlicence = \"d\"\n";
const METRIC: &str =
    "\n[[metric]]\nname = \"rate\"\nunit = \"1\"\ndirection = \"higher\"\nprimary = true\nkey = \"rate\"\n";

fn extended_catalogue(files: &[(&str, &str)]) -> Result<Catalogue, CatalogueError> {
    let directory = tempfile::tempdir().unwrap();
    for (name, body) in files {
        fs::write(directory.path().join(name), format!("{HEAD}{body}{METRIC}")).unwrap();
    }
    let mut catalogue = Catalogue::embedded();
    catalogue.extend_from_folder(directory.path()).map(|()| catalogue)
}

fn read_definition(body: &str) -> WorkloadDefinition {
    extended_catalogue(&[("mine.toml", body)]).unwrap().get("mine").unwrap().clone()
}

fn invocation_with_parameters(
    definition: &WorkloadDefinition,
    given: &[(&str, &str)],
) -> Result<Invocation, WorkloadError> {
    let given: IndexMap<String, Scalar> =
        given.iter().map(|(name, value)| ((*name).to_owned(), Scalar::from(*value))).collect();
    let scope = ExpressionScope::default();
    let parameters = definition.resolve_parameters(&given, &scope).unwrap();
    let paths =
        HostPaths { perflab: "/bin/perflab".into(), scratch: None, kept: None, case: None, free_port: None };
    definition.build_invocation(&parameters, &scope, &paths)
}

fn run_definition(body: &str, limit: Nanos) -> (ExecutionEnd, Result<f64, String>) {
    let definition = read_definition(body);
    let invocation = invocation_with_parameters(&definition, &[]).unwrap();
    let finished = execute_invocation(&invocation, &[], limit, &AtomicBool::new(false)).unwrap();
    let measured =
        definition.parse_metrics(&finished.stdout.text(), &finished.stderr.text(), finished.wall_time());
    (finished.outcome, measured.map(|all| all[0].value).map_err(|error| error.to_string()))
}

#[test]
fn a_folder_adds_and_replaces() {
    let all = extended_catalogue(&[("mine.toml", "argv = [\"true\"]"), ("fio.toml", "argv = [\"myfio\"]")])
        .unwrap();
    assert_eq!(all.get("mine").unwrap().title, "a");
    assert_eq!(all.get("fio").unwrap().needs.programs, ["myfio"]);
    assert_eq!(all.names().count(), Catalogue::embedded().names().count() + 1);
    assert!(all.names().is_sorted());
}

#[test]
fn studies_may_lie_beside_definitions() {
    let study = "title = \"s\"\n[workload.fio]\n";
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("night.toml"), study).unwrap();
    let mut all = Catalogue::embedded();
    let known = all.names().count();
    let error = all.extend_from_folder(folder.path()).unwrap_err().to_string();
    assert!(error.ends_with("and night.toml is a study"), "{error}");
    let own = "title = \"a\"\nmeasures = \"b\"\nargv = [\"true\"]\n[[metric]]\nname = \"time\"\nunit = \"s\"\n\
               direction = \"lower\"\ntime = \"wall\"\n";
    std::fs::write(folder.path().join("own.toml"), own).unwrap();
    all.extend_from_folder(folder.path()).unwrap();
    assert_eq!(all.names().count(), known + 1);
}

#[test]
fn a_folder_that_is_wrong_says_where() {
    let mut all = Catalogue::embedded();
    let error = all.extend_from_folder("/no/such/folder".as_ref()).unwrap_err().to_string();
    assert!(error.starts_with("/no/such/folder: No such file"), "{error}");
    let empty = tempfile::tempdir().unwrap();
    assert!(
        all.extend_from_folder(empty.path())
            .unwrap_err()
            .to_string()
            .ends_with("a definition is a file NAME.toml")
    );
    let error =
        extended_catalogue(&[("mine.toml", "argv = [\"true\"]\nshel = true")]).unwrap_err().to_string();
    let (_, error) = error.split_once("/mine.toml").unwrap();
    insta::assert_snapshot!(error, @":6:1: `shel`: the key `shel` is not known here; did you mean `shell`?");
}

#[test]
fn what_renders_empty_is_dropped() {
    let body = "argv = [\"tool\", \"{{ extra }}\", \"-n{{ count }}\", { when = \"count > 1\", args = [\"-m\", \"{{ extra }}\"] }]
        parameter.extra = { type = \"text\", default = \"\", about = \"\" }
        parameter.count = { type = \"integer\", default = 1, about = \"\" }";
    let definition = read_definition(body);
    assert_eq!(invocation_with_parameters(&definition, &[]).unwrap().argv, ["tool", "-n1"]);
    assert_eq!(
        invocation_with_parameters(&definition, &[("count", "1 + 1"), ("extra", "x y")]).unwrap().argv,
        ["tool", "x y", "-n2", "-m", "x y"]
    );
}

#[test]
fn no_value_can_become_part_of_a_script() {
    let body = "shell = true\nargv = [\"echo rate: $1; echo $2 >&2\", \"3\", \"{{ name }}\"]
        parameter.name = { type = \"text\", default = \"\", about = \"\" }";
    let invocation =
        invocation_with_parameters(&read_definition(body), &[("name", "; echo hello > /tmp/x; $(exit 1)")])
            .unwrap();
    let finished =
        execute_invocation(&invocation, &[], Nanos(10_000_000_000), &AtomicBool::new(false)).unwrap();
    assert_eq!(finished.stdout.text(), "rate: 3\n");
    assert_eq!(finished.stderr.text(), "; echo hello > /tmp/x; $(exit 1)\n");
}

#[test]
fn what_is_missing_is_said_before_anything_runs() {
    let error =
        read_definition("argv = [\"no-such-benchmark\"]").check_requirements().unwrap_err().to_string();
    assert!(error.starts_with("workload `mine`: no-such-benchmark not installed; "), "{error}");
    let scratchy = read_definition("argv = [\"true\"]\nneeds = { scratch = true }");
    assert!(matches!(invocation_with_parameters(&scratchy, &[]), Err(WorkloadError::NeedsScratch { .. })));
    let huge = read_definition("argv = [\"true\"]\nneeds = { scratch = true, disk = \"9000000TiB\" }");
    let error = huge.check_disk_room(&std::env::temp_dir()).unwrap_err();
    assert!(matches!(&error, WorkloadError::DiskFull { workload, .. } if workload == "mine"), "{error}");
    let rooty = read_definition("argv = [\"true\"]\nneeds = { root = true }");
    assert_eq!(rooty.check_requirements().is_ok(), rustix::process::geteuid().is_root());
}

#[test]
fn failing_rubbish_and_endless_workloads_are_told_apart() {
    let long = Nanos(30_000_000_000);
    let (ending, value) = run_definition("argv = [\"echo\", \"rate: 7\"]", long);
    assert_eq!((ending, value), (ExecutionEnd::Exit { code: 0 }, Ok(7.0)));
    let (ending, _) = run_definition("argv = [\"false\"]", long);
    assert_eq!(ending, ExecutionEnd::Exit { code: 1 });
    let (ending, value) = run_definition("argv = [\"echo\", \"rate: lots\"]", long);
    assert_eq!(ending, ExecutionEnd::Exit { code: 0 });
    assert_eq!(value.unwrap_err(), "metric `rate`: key `rate` found `lots`, which is not a finite number");
    let (ending, _) = run_definition("argv = [\"sleep\", \"1000\"]", Nanos(200_000_000));
    assert_eq!(ending, ExecutionEnd::TimedOut);
}

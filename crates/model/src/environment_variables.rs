//! Variables of perflab's own environment, which workloads inherit: those that the commands of a study name (`$NAME`), and those that are
//! known to change what programs do. They are facts of a run, so that what was measured under others is noticed.

use std::collections::BTreeSet;

use crate::fact_table;
use crate::facts::{FactChange, Facts};
use crate::plan::RunPlan;
use crate::run::Manifest;
use crate::study::{FactorKind, Study};

/// Variables that programs read without being told to: which libraries are loaded and programs found, how memory is allocated, how many
/// threads there are, how something is compiled, in which language and where. A `*` at the end stands for anything.
const TELLING: &[&str] = &[
    "CC",
    "CFLAGS",
    "CPPFLAGS",
    "CXX",
    "CXXFLAGS",
    "GLIBC_TUNABLES",
    "GODEBUG",
    "GOFLAGS",
    "GOGC",
    "GOMAXPROCS",
    "GOMEMLIMIT",
    "GOMP_*",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "KMP_*",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "LDFLAGS",
    "LD_*",
    "MAKEFLAGS",
    "MALLOC_*",
    "MIMALLOC_*",
    "MKL_*",
    "NODE_OPTIONS",
    "OMP_*",
    "OPENBLAS_*",
    "PATH",
    "POSIXLY_CORRECT",
    "PWD",
    "PYTHON*",
    "RAYON_NUM_THREADS",
    "RUSTFLAGS",
    "TBB_*",
    "TMPDIR",
    "TZ",
    "UV_THREADPOOL_SIZE",
    "_JAVA_OPTIONS",
];

/// perflab's own variables say how it works, not what is measured.
const OWN: &str = "PERFLAB_";

/// What a name has in it whose value is nobody's business; its value is not kept.
const SECRET: &[&str] = &["KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH", "COOKIE"];

/// What stands for the value of such a variable.
const NOT_KEPT: &str = "set, and not kept";

/// The longest value that is kept; of a longer one, its beginning.
const LONGEST: usize = 4096;

/// The variables that the commands of a study name, without those that it sets itself.
#[must_use]
pub fn named_variables(study: &Study, plan: &RunPlan) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let all = serde_json::to_value(study).unwrap_or_default();
    for table in ["workload", "beside", "hooks", "factor"] {
        all.get(table).into_iter().for_each(|value| collect_names(value, &mut found));
    }
    plan.definition_parts.values().for_each(|parts| collect_names(parts, &mut found));
    for set in study.workload.values().flat_map(|workload| workload.environment.keys()) {
        found.remove(set);
    }
    for (name, factor) in study.factor.iter().filter(|(_, factor)| factor.kind == FactorKind::Environment) {
        found.remove(factor.key.as_ref().unwrap_or(name));
    }
    found.retain(|name| !name.starts_with(OWN));
    found
}

/// Adds the names behind each `$` of the texts of a value.
fn collect_names(value: &serde_json::Value, found: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::String(text) => {
            for rest in text.split('$').skip(1) {
                let rest = rest.strip_prefix('{').unwrap_or(rest);
                let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
                let name: String = rest.chars().take_while(|letter| is_of_name(*letter)).collect();
                if name.starts_with(|first: char| !first.is_ascii_digit()) {
                    found.insert(name);
                }
            }
        }
        serde_json::Value::Array(list) => list.iter().for_each(|one| collect_names(one, found)),
        serde_json::Value::Object(table) => table.values().for_each(|one| collect_names(one, found)),
        _ => {}
    }
}

fn is_telling(name: &str) -> bool {
    TELLING.iter().any(|known| match known.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => *known == name,
    })
}

/// Facts of those of the variables that are named or known to tell something.
pub fn environment_facts(
    named: &BTreeSet<String>,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Facts {
    let mut facts = Facts::default();
    for (name, value) in variables {
        if !(named.contains(&name) || is_telling(&name)) || name.starts_with(OWN) {
            continue;
        }
        let upper = name.to_ascii_uppercase();
        let value = match SECRET.iter().any(|part| upper.contains(part)) {
            true => NOT_KEPT.to_owned(),
            false => value.chars().take(LONGEST).collect(),
        };
        facts.add(fact_table::ENVIRONMENT.key(&name), value.as_str(), "the environment of perflab");
    }
    facts
}

/// The variables that the commands of a run name, and that are set otherwise in another run. Of runs that have no such facts, nothing is
/// known.
#[must_use]
pub fn named_variable_changes<'a>(then: &'a Manifest, now: &'a Manifest) -> Vec<FactChange<'a>> {
    let is_known = |run: &Manifest| run.facts.iter().any(|(key, _)| fact_table::ENVIRONMENT.matches(key));
    if !is_known(then) || !is_known(now) {
        return Vec::new();
    }
    let named = named_variables(&then.study, &then.plan);
    let keys: Vec<_> = named.iter().map(|name| fact_table::ENVIRONMENT.key(name)).collect();
    let mut changes = then.facts.changes_to(&now.facts);
    changes.retain(|change| keys.iter().any(|key| *key == *change.key));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study(text: &str) -> Study {
        toml::from_str(&format!("title = \"t\"\n{text}")).unwrap()
    }

    #[test]
    fn names_stand_behind_a_dollar_in_commands_and_what_the_study_sets_is_its_own() {
        let study = study(
            "[workload.w]\ncommand = \"make -j$JOBS ${TARGET} $1 $$ $OWN $LEVEL\"\nsetup = [\"sh\", \"-c\", \"rm $DIR\"]\n\
             environment = { OWN = \"1\" }\n[factor.LEVEL]\nkind = \"environment\"\nlevels = [1, 2]\n\
             [hooks]\nbefore-run = \"echo $HOOK $PERFLAB_RUN\"\n",
        );
        let named = named_variables(&study, &RunPlan::default());
        assert_eq!(Vec::from_iter(named), ["DIR", "HOOK", "JOBS", "TARGET"]);
    }

    #[test]
    fn what_is_named_or_tells_something_is_a_fact_and_no_secret_is() {
        let named = BTreeSet::from(["JOBS".to_owned(), "API_TOKEN".to_owned()]);
        let set = [
            ("JOBS", "4"),
            ("API_TOKEN", "hunter2"),
            ("MALLOC_ARENA_MAX", "1"),
            ("EDITOR", "vi"),
            ("PERFLAB_STATE", "/x"),
        ];
        let facts = environment_facts(&named, set.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let found: Vec<(&str, String)> =
            facts.iter().map(|(key, fact)| (key, fact.value.to_string())).collect();
        assert_eq!(
            found,
            [
                ("environment.API_TOKEN", NOT_KEPT.to_owned()),
                ("environment.JOBS", "4".to_owned()),
                ("environment.MALLOC_ARENA_MAX", "1".to_owned())
            ]
        );
    }
}

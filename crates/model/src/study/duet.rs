//! What a study must be for its two levels to run at once.

use crate::problem::Problem;
use crate::study::document::{SlotOrder, Study};
use crate::study::factor::Factor;
use crate::study::factor_kind::FactorKind;

const KEY: &str = "run.order";

/// What does not go with `order = "duet"`.
#[must_use]
pub(crate) fn duet_problems(study: &Study) -> Vec<Problem> {
    if study.run.order != SlotOrder::Duet {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut refuse = |message: String, hint: &str| found.push(Problem::new(KEY, message).with_hint(hint));
    for name in study.workload.keys() {
        let is_own = |factor: &Factor| factor.workload.as_ref().is_none_or(|workload| workload == name);
        let varied: Vec<(&String, &Factor)> = study
            .factor
            .iter()
            .filter(|(_, factor)| is_own(factor) && factor.levels.may_have_several())
            .collect();
        let message = match varied.as_slice() {
            [] => format!("`duet` runs two levels at once, and no factor of `{name}` has two"),
            // How many are left shows once `--set` has picked some.
            [_] => continue,
            [(first, _), (second, _), ..] => {
                format!("`duet` runs two levels at once, and `{name}` has `{first}` and `{second}` to vary")
            }
        };
        refuse(message, "give each workload one factor of two levels, or leave `order` out");
    }
    for (name, factor) in &study.factor {
        if !matches!(factor.kind, FactorKind::Parameter | FactorKind::Environment) {
            refuse(
                format!(
                    "factor `{name}` is of kind `{}`: one machine has one of its levels at a time",
                    factor.kind
                ),
                "`duet` compares parameters and environments; leave `order` out for what is set on a machine",
            );
        }
    }
    let others = [
        (!study.target.is_empty(), "[target]", "run the study in the guest or on the machine itself"),
        (study.profile.is_some(), "[profile]", "samples of two levels at once cannot be told apart"),
        (study.io.is_some(), "[io]", "I/O of two levels at once cannot be told apart"),
        (!study.monitors.is_empty(), "[monitors]", "they count the whole machine, on which both levels run"),
        (!study.beside.is_empty(), "[beside]", "what runs beside would disturb one of the two"),
        (!study.hooks.is_empty(), "[hooks]", "they are between iterations, and two are open at once"),
    ];
    for (_, table, hint) in others.into_iter().filter(|(is_there, _, _)| *is_there) {
        refuse(format!("`duet` does not go with `{table}`"), hint);
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::toml_source::TomlSource;

    /// What is wrong with a study of one workload in this order.
    fn problems(text: &str) -> String {
        let text = format!("title = \"t\"\n[run]\norder = \"duet\"\n[workload.spin]\n{text}");
        match TomlSource::new("s.toml", text).parse_study() {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn two_levels_that_can_be_there_at_once_are_a_duet() {
        let parameter = |levels: &str| format!("[factor.size]\nkind = \"parameter\"\nlevels = {levels}\n");
        assert_eq!(problems(&parameter("[1, 2]")), "");
        assert_eq!(problems(&parameter("[1, 2, 3]")), "", "`--set` may pick two");
        insta::assert_snapshot!(problems(""), @"s.toml:3:1: `run.order`: `duet` runs two levels at once, and no factor of `spin` has two; give each workload one factor of two levels, or leave `order` out");
        let set = "[factor.swappiness]\nkind = \"sysctl\"\nkey = \"vm.swappiness\"\nlevels = [1, 60]\n";
        insta::assert_snapshot!(problems(set), @"s.toml:3:1: `run.order`: factor `swappiness` is of kind `sysctl`: one machine has one of its levels at a time; `duet` compares parameters and environments; leave `order` out for what is set on a machine");
        let io = format!("{}[io]\n", parameter("[1, 2]"));
        insta::assert_snapshot!(problems(&io), @"s.toml:3:1: `run.order`: `duet` does not go with `[io]`; I/O of two levels at once cannot be told apart");
    }
}

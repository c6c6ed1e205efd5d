//! `perflab flame shares`

use std::collections::BTreeMap;
use std::path::Path;

use perflab_analyze::flame::{CategoryRules, CategoryShareOptions, category_shares, profile_parts};
use perflab_archive::RunDir;
use perflab_model::Case;
use perflab_model::expression::ExpressionScope;
use perflab_present::comparison::OutputFormat;
use perflab_present::flame;

use crate::arguments::flame::FlameSharesArgs;
use crate::context::{App, read_text_file};
use crate::exit::{Exit, UsageError};

/// The version of the JSON document.
const VERSION: u32 = 1;

/// The share of each operation and category, for each case or the one that was asked for.
pub fn print_shares(context: &App, wanted: &FlameSharesArgs) -> anyhow::Result<Exit> {
    let run = crate::sides::select_run(&context.archive()?, &wanted.run)?;
    let rules = read_rule_table(&wanted.rules)?;
    let cases = match wanted.case {
        Some(case) => vec![case],
        None => run.profiled_cases()?,
    };
    if cases.is_empty() {
        run.read_profile(0)?;
    }
    for case in cases {
        print_case_shares(context, wanted, &run, &rules, case)?;
    }
    Ok(Exit::Fine)
}

/// A shipped table by its name, or a file.
pub fn read_rule_table(name: &str) -> anyhow::Result<CategoryRules> {
    if let Some(shipped) = CategoryRules::load_shipped(name) {
        return Ok(shipped?);
    }
    if !Path::new(name).exists() {
        let known: Vec<&str> =
            perflab_analyze::flame::category_rules::SHIPPED_RULES.iter().map(|(name, _)| *name).collect();
        let hint = format!("name a file, or one of {}", known.join(", "));
        return Err(UsageError::new(format!("there is no rule table `{name}`"), hint).into());
    }
    let text = read_text_file(Path::new(name)).map_err(|error| {
        let hint = "name a regular file of text, in UTF-8";
        UsageError::new(format!("cannot read the rule table {name}: {error}"), hint)
    })?;
    Ok(CategoryRules::parse(name, &text)?)
}

fn print_case_shares(
    context: &App,
    wanted: &FlameSharesArgs,
    run: &RunDir,
    rules: &CategoryRules,
    number: u32,
) -> anyhow::Result<()> {
    let profile = run.read_profile(number)?;
    let plan = run.manifest()?.plan;
    let is_measured = |slot: &u32| plan.slots.get(*slot as usize).is_none_or(|slot| !slot.warmup);
    let slots: Vec<u32> =
        profile.iterations.iter().map(|piece| piece.summary.slot).filter(is_measured).collect();
    let case = plan.case(number);
    let counts = case.map(|case| operation_counts(context, case)).transpose()?.unwrap_or_default();
    let options = CategoryShareOptions { slots: Some(slots.clone()), comm: wanted.comm.clone(), counts };
    let found = category_shares(&profile, rules, &options);
    if context.format == OutputFormat::Json {
        let label = case.map(Case::label);
        let document =
            serde_json::json!({ "version": VERSION, "case": number, "label": label, "result": found });
        return context.print_json(&document);
    }
    context.note_line(&format!("case {number}: {}", case.map(Case::label).unwrap_or_default()));
    context.print_grid(&flame::shares_grid(&found))?;
    flame::shares_lines(&found).iter().for_each(|line| context.note(line));
    context.note(flame::sample_account(&profile_parts(&profile, Some(&slots))));
    super::show::note_profile_source(context, &profile);
    if CategoryRules::load_shipped(&wanted.rules).is_none() && !found.unmatched.is_empty() {
        let all = found.unmatched.join(", ");
        context.note(format!("patterns of {} that no function here fits: {all}", wanted.rules));
    }
    Ok(())
}

/// Operations that an iteration of a case does, where its workload's definition says.
fn operation_counts(context: &App, case: &Case) -> anyhow::Result<BTreeMap<String, f64>> {
    let catalogue = context.catalogue()?;
    let Some(definition) = catalogue.get(&case.uses) else { return Ok(BTreeMap::new()) };
    let scope = ExpressionScope::new(
        case.parameters.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
    );
    Ok(definition.operation_counts(&scope))
}

//! `perflab flame shares`

use std::collections::BTreeMap;
use std::path::Path;

use perflab_analyze::flame::{Rules, ShareOptions, parts, shares};
use perflab_archive::RunDir;
use perflab_model::Case;
use perflab_model::expression::Scope;
use perflab_present::flame;
use perflab_present::table::Format;

use crate::arguments::flame::Shares;
use crate::context::{Context, read_text_file};
use crate::exit::{Exit, Usage};

/// The version of the JSON document.
const VERSION: u32 = 1;

/// The share of each operation and category, for each case or the one that was asked for.
pub fn print(context: &Context, wanted: &Shares) -> anyhow::Result<Exit> {
    let run = crate::sides::one(&context.archive()?, &wanted.run)?;
    let rules = rules(&wanted.rules)?;
    let cases = match wanted.case {
        Some(case) => vec![case],
        None => run.profiled()?,
    };
    if cases.is_empty() {
        run.profile(0)?;
    }
    for case in cases {
        of_case(context, wanted, &run, &rules, case)?;
    }
    Ok(Exit::Fine)
}

/// A shipped table by its name, or a file.
pub fn rules(name: &str) -> anyhow::Result<Rules> {
    if let Some(shipped) = Rules::shipped(name) {
        return Ok(shipped?);
    }
    if !Path::new(name).exists() {
        let known: Vec<&str> = perflab_analyze::flame::rules::SHIPPED.iter().map(|(name, _)| *name).collect();
        let hint = format!("name a file, or one of {}", known.join(", "));
        return Err(Usage::new(format!("there is no rule table `{name}`"), hint).into());
    }
    let text = read_text_file(Path::new(name)).map_err(|error| {
        let hint = "name a regular file of text, in UTF-8";
        Usage::new(format!("cannot read the rule table {name}: {error}"), hint)
    })?;
    Ok(Rules::parse(name, &text)?)
}

fn of_case(
    context: &Context,
    wanted: &Shares,
    run: &RunDir,
    rules: &Rules,
    number: u32,
) -> anyhow::Result<()> {
    let profile = run.profile(number)?;
    let plan = run.manifest()?.plan;
    let is_measured = |slot: &u32| plan.slots.get(*slot as usize).is_none_or(|slot| !slot.warmup);
    let slots: Vec<u32> = profile.pieces.iter().map(|piece| piece.about.slot).filter(is_measured).collect();
    let case = plan.case(number);
    let counts = case.map(|case| counts(context, case)).transpose()?.unwrap_or_default();
    let options = ShareOptions { slots: Some(slots.clone()), comm: wanted.comm.clone(), counts };
    let found = shares(&profile, rules, &options);
    if context.format == Format::Json {
        let label = case.map(Case::label);
        let document =
            serde_json::json!({ "version": VERSION, "case": number, "label": label, "result": found });
        return context.document(&document);
    }
    context.say_line(&format!("case {number}: {}", case.map(Case::label).unwrap_or_default()));
    context.print(&flame::shares_grid(&found))?;
    flame::shares_lines(&found).iter().for_each(|line| context.say(line));
    context.say(flame::account(&parts(&profile, Some(&slots))));
    super::show::say_source(context, &profile);
    if Rules::shipped(&wanted.rules).is_none() && !found.unmatched.is_empty() {
        let all = found.unmatched.join(", ");
        context.say(format!("patterns of {} that no function here fits: {all}", wanted.rules));
    }
    Ok(())
}

/// Operations that an iteration of a case does, where its workload's definition says.
fn counts(context: &Context, case: &Case) -> anyhow::Result<BTreeMap<String, f64>> {
    let catalogue = context.catalogue()?;
    let Some(definition) = catalogue.get(&case.uses) else { return Ok(BTreeMap::new()) };
    let scope =
        Scope::new(case.parameters.iter().map(|(name, value)| (name.clone(), value.clone())).collect());
    Ok(definition.operation_counts(&scope))
}

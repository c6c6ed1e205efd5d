//! What a study says that it answers, held against the study: its workloads, levels, and what is varied besides.

use perflab_conduct::{PlanChoices, plan_study};
use perflab_model::study::{StudyAnswer, find_study_problems};
use perflab_model::{Facts, Problem, Study};
use perflab_settings::setting_problems;
use perflab_workload::Catalogue;

use crate::app::App;
use crate::measure::run;
use crate::measure::varied_factor::VariedFactor;

/// What is wrong with the answers of a study that is good without them; `labels` are the levels of its factors of kind `label`.
pub fn find_answer_problems(
    context: &App,
    study: &Study,
    catalogue: &Catalogue,
    facts: &Facts,
    labels: &[(String, String)],
) -> Vec<Problem> {
    let problem_of = |answer: &StudyAnswer| {
        let problem = find_answer_problem(context, study, answer, (catalogue, facts), labels)?;
        let message = format!("`{}`: {}", answer.name, problem.message);
        Some(Problem { key: "answers".into(), message, span: None, ..problem })
    };
    study.answers.iter().filter_map(problem_of).collect()
}

fn find_answer_problem(
    context: &App,
    study: &Study,
    answer: &StudyAnswer,
    (catalogue, facts): (&Catalogue, &Facts),
    labels: &[(String, String)],
) -> Option<Problem> {
    let mut study = study.clone();
    for text in &answer.vary {
        let varied: VariedFactor = match text.parse() {
            Ok(varied) => varied,
            Err(error) => return Some(Problem::new("answers", format!("`vary`: {error}"))),
        };
        if let Err(error) = varied.add_to(&mut study) {
            return Some(Problem::new("answers", error.to_string()));
        }
    }
    let mut set = match run::parse_level_choices(&answer.set) {
        Ok(set) => set,
        Err(error) => return Some(Problem::new("answers", error.to_string())),
    };
    let is_open = |name: &str| set.iter().all(|(known, _)| known != name);
    let open: Vec<(String, String)> = labels.iter().filter(|(name, _)| is_open(name)).cloned().collect();
    set.extend(open);
    let choices = PlanChoices { set, only: answer.only.clone(), ..PlanChoices::default() };
    let mut found = find_study_problems(&study);
    if found.is_empty() {
        found = match plan_study(&study, catalogue, facts, &choices) {
            Ok(plan) => setting_problems(&study, &plan.settings, &context.root),
            Err(found) => found,
        };
    }
    found.into_iter().next()
}

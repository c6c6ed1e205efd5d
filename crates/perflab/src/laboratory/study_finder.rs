//! `perflab study find`: the shipped study that answers a configuration of MMTests, or that a word is about.

use std::cmp::Reverse;

use perflab_analyze::compare::case_condition::matches_pattern;
use perflab_conduct::PlanChoices;
use perflab_conduct::plan::settle_study;
use perflab_model::study::{DiskKind, Factor, StudyAnswer};
use perflab_model::{Facts, Study};
use perflab_workload::Catalogue;
use perflab_workload::argv_element::quote_word;
use serde::Serialize;

use crate::failure::{Failure, UsageError};
use crate::laboratory::configuration_name::{
    EndingMeaning, NameEnding, VariedLevel, find_configuration_name, find_reason_without_study,
    split_last_ending, to_configuration_name,
};
use crate::study_source;

/// How many names are told where there is none of that name.
const NEAREST: usize = 5;

/// A study that was looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundStudy {
    /// Its name.
    pub study: String,
    /// Its title.
    pub title: String,
    /// The configuration that it answers, or pattern of some; none where it was found by a word.
    pub answers: Option<String>,
    /// What to run.
    pub command: String,
    /// What is not the same.
    pub differs: Vec<String>,
    /// The same in the brief form of the study; none where it has none, or that lacks what is asked for.
    pub brief: Option<String>,
    /// What the brief form lacks of it.
    pub brief_lacks: Option<String>,
    /// How long the brief form takes, where the study says so.
    pub takes: Option<String>,
    /// The workload that the command keeps.
    #[serde(skip)]
    only: Option<String>,
    /// The levels of the study's own factors that it keeps.
    #[serde(skip)]
    set: Vec<(String, String)>,
}

/// A shipped study as it is read.
struct ShippedStudyText {
    name: &'static str,
    study: Study,
}

/// The studies for a configuration's name, with or without `config-`, else those that hold all words in their names, titles,
/// descriptions, workloads or answers; the best first.
///
/// # Errors
/// Nothing is found: with the reason, where it is known, and the nearest names.
pub fn find_studies(words: &[String]) -> Result<Vec<FoundStudy>, Failure> {
    let studies = read_shipped_studies()?;
    if let [word] = words {
        let assumed = to_configuration_name(word);
        let name = find_configuration_name(word).unwrap_or(&assumed);
        let found = find_answers(name, &studies);
        if !found.is_empty() {
            return Ok(found);
        }
        if find_configuration_name(word).is_some() {
            return Err(refuse_configuration(name, &studies).into());
        }
    }
    let found = search_studies(words, &studies);
    if found.is_empty() {
        let text = words.join(" ");
        let hint = perflab_model::suggest_name(&text, studies.iter().map(|one| one.name));
        let message =
            format!("no study is called `{text}`, says it, or answers a configuration of that name");
        return Err(UsageError::new(message, format!("{hint}; `perflab study list` has all of them")).into());
    }
    Ok(found)
}

/// Adds the commands of the brief forms. What takes the place of something in `[brief]` may have other levels, and fewer workloads.
pub fn add_brief_forms(
    catalogue: &Catalogue,
    facts: &Facts,
    found: &mut [FoundStudy],
) -> Result<(), Failure> {
    for one in found {
        let Ok(brief) = study_source::find_study(&one.study)?.shorten() else { continue };
        let choices = PlanChoices { set: one.set.clone(), only: one.only.clone(), ..PlanChoices::default() };
        match settle_study(&brief.parse_study()?, catalogue, facts, &choices) {
            Ok(_) => one.brief = Some(format!("{} --brief", one.command)),
            Err(problems) => {
                one.brief_lacks = problems.into_iter().next().map(|problem| problem.message);
                one.takes = None;
            }
        }
    }
    Ok(())
}

fn read_shipped_studies() -> Result<Vec<ShippedStudyText>, Failure> {
    let read = |shipped: &study_source::ShippedStudy| {
        let study = study_source::find_study(shipped.name)?.parse_study()?;
        Ok(ShippedStudyText { name: shipped.name, study })
    };
    study_source::STUDIES.iter().map(read).collect()
}

/// The answers to a name; if there is none, to what it is without its last ending, and so on.
fn find_answers(name: &str, studies: &[ShippedStudyText]) -> Vec<FoundStudy> {
    let (mut left, mut endings) = (name, Vec::new());
    loop {
        let all = studies.iter().flat_map(|one| one.study.answers.iter().map(move |answer| (one, answer)));
        let mut found: Vec<_> = all.filter(|(_, answer)| matches_pattern(&answer.name, left)).collect();
        if !found.is_empty() {
            // A name before a pattern, and of patterns the one that says most.
            found.sort_by_key(|(_, answer)| (answer.name.contains('*'), Reverse(answer.name.len())));
            return found.into_iter().map(|(one, answer)| describe_answer(one, answer, &endings)).collect();
        }
        let Some((rest, ending)) = split_last_ending(left) else { return Vec::new() };
        left = rest;
        endings.insert(0, ending);
    }
}

fn describe_answer(found: &ShippedStudyText, answer: &StudyAnswer, endings: &[&NameEnding]) -> FoundStudy {
    let (mut words, mut differs) = (vec!["perflab run".to_owned(), found.name.to_owned()], Vec::new());
    let mut kept = Vec::new();
    let mut add = |option: &str, value: &str| {
        words.push(format!("{option} {}", quote_for_shell(value)));
        kept.extend(value.split_once('=').filter(|_| option == "--set").map(owned_pair));
    };
    answer.only.iter().for_each(|only| add("--only", only));
    answer.set.iter().for_each(|set| add("--set", set));
    answer.vary.iter().for_each(|vary| add("--vary", vary));
    differs.extend(answer.differs.clone());
    for ending in endings {
        match ending.means {
            EndingMeaning::Level(VariedLevel { kind, key, level, baseline, differs: other }) => {
                let factor = find_factor_with_level(&found.study, kind, key, level);
                if factor.is_none() && kind == "disk" && !has_own_disk(&found.study) {
                    differs.push(format!(
                        "`{}`: the study writes into a directory of the file system that is there; for another one: \
                         [disk] kind = \"image\", and --vary disk:{key}={baseline},{level}",
                        ending.word
                    ));
                    continue;
                }
                match factor {
                    Some(factor) => add("--set", &format!("{factor}={level}")),
                    // The disk that is asked for, and no other: nobody asked for a comparison of disks.
                    None if kind == "disk" => {
                        let varied = format!("--vary {kind}:{key}={level},{baseline}");
                        add(&format!("{varied} --set"), &format!("{key}={level}"));
                    }
                    None => {
                        let colon = if key.is_empty() { "" } else { ":" };
                        add("--vary", &format!("{kind}{colon}{key}={baseline},{level}"));
                    }
                }
                differs.extend(other.map(|other| format!("`{}`: {other}", ending.word)));
            }
            EndingMeaning::OwnLevel { key, level } => {
                match find_factor_with_level(&found.study, "parameter", key, level) {
                    Some(factor) => add("--set", &format!("{factor}={level}")),
                    None => differs
                        .push(format!("`{}`: the study does not vary the parameter {key}", ending.word)),
                }
            }
            EndingMeaning::Nothing => {}
            EndingMeaning::Options { options, about } => {
                if let Some((option, value)) = options.split_once(' ') {
                    add(option, value);
                }
                differs.push(format!("`{}`: {about}", ending.word));
            }
            EndingMeaning::Differs(what) => differs.push(format!("`{}`: {what}", ending.word)),
        }
    }
    FoundStudy {
        study: found.name.into(),
        title: found.study.title.clone(),
        answers: Some(answer.name.clone()),
        command: words.join(" "),
        differs,
        brief: None,
        brief_lacks: None,
        takes: found.study.takes.clone(),
        only: answer.only.clone(),
        set: kept,
    }
}

fn owned_pair((one, other): (&str, &str)) -> (String, String) {
    (one.to_owned(), other.to_owned())
}

fn has_own_disk(study: &Study) -> bool {
    study.disk.as_ref().is_some_and(|disk| disk.kind != DiskKind::Directory)
}

/// The factor of the study of this kind and key, if that level is among its levels.
fn find_factor_with_level<'a>(study: &'a Study, kind: &str, key: &str, level: &str) -> Option<&'a str> {
    let is_it = |name: &str, factor: &Factor| {
        factor.kind.to_string() == kind
            && (key.is_empty() || factor.key.as_deref().unwrap_or(name) == key)
            && factor.levels.iter().any(|known| known.name == level)
    };
    study.factor.iter().find(|(name, factor)| is_it(name, factor)).map(|(name, _)| name.as_str())
}

/// `NAME=VALUE,VALUE` with each part as the shell wants it: equals signs and commas need no quotes.
fn quote_for_shell(text: &str) -> String {
    let quote = |part: &str| {
        let (word, end) = part.split_at(part.trim_end_matches(['=', ',']).len());
        if word.is_empty() { end.to_owned() } else { quote_word(word) + end }
    };
    text.split_inclusive(['=', ',']).map(quote).collect()
}

/// Studies that hold every word, those that have them in their names first.
fn search_studies(words: &[String], studies: &[ShippedStudyText]) -> Vec<FoundStudy> {
    let words: Vec<String> =
        words.iter().flat_map(|word| word.split_whitespace()).map(|word| word.to_lowercase()).collect();
    let mut found: Vec<(usize, &ShippedStudyText)> = Vec::new();
    for one in studies {
        let places = search_places(one);
        let place_of = |word: &String| places.iter().position(|text| text.contains(word.as_str()));
        let ranks: Option<Vec<usize>> = words.iter().map(place_of).collect();
        if let Some(worst) = ranks.and_then(|ranks| ranks.into_iter().max()) {
            found.push((worst, one));
        }
    }
    found.sort_by_key(|(rank, _)| *rank);
    let describe = |(_, one): (usize, &ShippedStudyText)| FoundStudy {
        study: one.name.into(),
        title: one.study.title.clone(),
        answers: None,
        command: format!("perflab run {}", one.name),
        differs: Vec::new(),
        brief: None,
        brief_lacks: None,
        takes: one.study.takes.clone(),
        only: None,
        set: Vec::new(),
    };
    found.into_iter().map(describe).collect()
}

/// Where words are looked for, the place that tells most first.
fn search_places(one: &ShippedStudyText) -> [String; 5] {
    let workloads = one
        .study
        .workload
        .iter()
        .map(|(name, spec)| format!("{name} {}", spec.uses.as_deref().unwrap_or("")));
    let answers = one.study.answers.iter().map(|answer| answer.name.as_str());
    [
        one.name.to_lowercase(),
        one.study.title.to_lowercase(),
        workloads.collect::<Vec<_>>().join(" ").to_lowercase(),
        answers.collect::<Vec<_>>().join(" ").to_lowercase(),
        one.study.description.as_deref().unwrap_or("").to_lowercase(),
    ]
}

fn refuse_configuration(name: &str, studies: &[ShippedStudyText]) -> UsageError {
    if let Some(reason) = find_reason_without_study(name) {
        return UsageError::new(format!("no study answers `{name}`"), reason);
    }
    let known = || studies.iter().flat_map(|one| one.study.answers.iter().map(|answer| answer.name.as_str()));
    let known: Vec<&str> = known().filter(|name| !name.contains('*')).collect();
    let nearest = perflab_model::nearest_names(name, known.iter().copied(), NEAREST).join(", ");
    let hint = format!(
        "the nearest: {nearest}; a configuration of your own becomes a study by `perflab study from FILE`"
    );
    UsageError::new(format!("no study answers `{name}`"), hint)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const SHIPPED: &str = include_str!("../../tests/data/mmtests-configurations.txt");
    const GENERATED: &str = include_str!("../../tests/data/mmtests-generated.txt");

    fn list_names(text: &'static str) -> Vec<&'static str> {
        text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
    }

    #[test]
    fn what_mmtests_ships_is_answered_or_has_a_reason() {
        let studies = read_shipped_studies().unwrap_or_else(|error| panic!("{error:?}"));
        let names = list_names(SHIPPED);
        assert_eq!(names.len(), 176);
        let is_answered = |name: &&str| !find_answers(name, &studies).is_empty();
        let (answered, others): (Vec<&str>, Vec<&str>) = names.iter().partition(|name| is_answered(name));
        let both: Vec<&&str> =
            answered.iter().filter(|name| find_reason_without_study(name).is_some()).collect();
        assert!(both.is_empty(), "answered, and said to be not: {both:?}");
        let neither: Vec<&&str> =
            others.iter().filter(|name| find_reason_without_study(name).is_none()).collect();
        assert!(neither.is_empty(), "neither answered nor refused with a reason: {neither:?}");
        assert_eq!(answered.len(), ANSWERED, "the number in docs/studies.md, too");
    }

    /// How many of them are answered.
    const ANSWERED: usize = 139;

    /// An answer to a name that nobody ships and no generator makes would never be found.
    #[test]
    fn answers_are_names_that_mmtests_ships_or_makes() {
        let studies = read_shipped_studies().unwrap_or_else(|error| panic!("{error:?}"));
        let mut named: HashSet<&str> = HashSet::new();
        for name in [list_names(SHIPPED), list_names(GENERATED)].concat() {
            let answers = find_answers(name, &studies).into_iter().filter_map(|found| found.answers);
            let all = studies.iter().flat_map(|one| &one.study.answers);
            let answers: HashSet<String> = answers.collect();
            named.extend(all.map(|answer| answer.name.as_str()).filter(|name| answers.contains(*name)));
        }
        for answer in studies.iter().flat_map(|one| &one.study.answers) {
            assert!(named.contains(answer.name.as_str()), "{} answers nothing", answer.name);
        }
    }

    /// What a command keeps is there: in the study, and in the brief form where one is named.
    #[test]
    fn what_a_command_keeps_is_there() {
        let studies = read_shipped_studies().unwrap_or_else(|error| panic!("{error:?}"));
        let facts = perflab_observe::collect_facts(&perflab_observe::Root("/".into()), None).unwrap();
        let catalogue = Catalogue::embedded();
        let (mut brief, mut lacking) = (0, 0);
        for name in [list_names(SHIPPED), list_names(GENERATED)].concat() {
            let mut found = find_answers(name, &studies);
            add_brief_forms(&catalogue, &facts, &mut found).unwrap_or_else(|error| panic!("{error:?}"));
            for one in &found {
                let choices =
                    PlanChoices { set: one.set.clone(), only: one.only.clone(), ..PlanChoices::default() };
                let study = &studies.iter().find(|study| study.name == one.study).unwrap().study;
                let kept = settle_study(study, &catalogue, &facts, &choices);
                assert!(kept.is_ok(), "{name}: {}: {kept:?}", one.command);
                assert!(one.brief.is_none() || one.brief_lacks.is_none(), "{one:?}");
                brief += usize::from(one.brief.is_some());
                lacking += usize::from(one.brief_lacks.is_some());
            }
        }
        assert!(brief > 50 && lacking > 5, "{brief} {lacking}");
    }

    #[test]
    fn what_a_reader_pastes_is_what_perflab_runs() {
        for one in read_shipped_studies().unwrap_or_else(|error| panic!("{error:?}")) {
            for answer in &one.study.answers {
                for text in &answer.vary {
                    let varied = text.parse::<crate::measure::varied_factor::VariedFactor>();
                    assert!(varied.is_ok(), "{}: {text}: {varied:?}", one.name);
                }
            }
        }
    }
}

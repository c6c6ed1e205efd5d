//! A job file of lkp-tests, read without running it: its documents, each a list of keys, with the files beside it that it
//! includes, and what became of its lines so far.
//!
//! What Ruby decides (`<%= … %>`, `{{ … }}`) is no value here, and lines of Ruby are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::line_account::{LineAccount, LineFate};
use super::shell_config::LONGEST_CONFIGURATION;
use super::shell_value::shorten_foreign_text;
use super::yaml_tree::{YamlEntry, YamlLines, YamlNode, YamlScalar, parse_yaml_tables};

/// A key of a document.
#[derive(Debug, Clone)]
pub(super) struct JobEntry {
    /// Which file it stands in: 0 is the job file itself.
    pub(super) source: usize,
    pub(super) entry: YamlEntry,
}

/// What a job file says.
#[derive(Debug, Default)]
pub(super) struct JobFile {
    /// The first one holds for all others.
    pub(super) documents: Vec<Vec<JobEntry>>,
    pub(super) fates: JobFates,
}

/// What became of the lines of a job file, and of those that it includes.
#[derive(Debug, Default)]
pub(super) struct JobFates {
    fates: BTreeMap<(usize, usize), LineFate>,
    /// What holds for lines of which nothing else is said.
    rest: Vec<(YamlLines, LineFate)>,
    /// The names of the files.
    names: Vec<String>,
}

/// Job files that others are read with, one within the other.
const MOST_INCLUDES: usize = 8;

/// Job files that are read in all.
const MOST_FILES: usize = 50;

/// Parts of a job file, those that it includes among them: the longest that is public has 14.
const MOST_DOCUMENTS: usize = 500;

/// Stands for what Ruby makes; no file has it, and YAML takes it for a letter.
const MADE_BY_RUBY: char = '\u{e000}';

/// Whether a text is a job file: it names a suite or a test, or a file that does. A shell would take none of these lines.
pub(super) fn is_lkp_job_file(text: &str) -> bool {
    let names_job = |line: &str| {
        let key = line
            .split_once(':')
            .map_or("", |(key, rest)| if rest.starts_with("//") { "" } else { key.trim_end() });
        ["suite", "testcase", "category", "<<"].contains(&key)
    };
    text.lines().any(names_job)
}

/// Reads a job file; those that it includes lie beside it, or in its `jobs` folder.
///
/// # Errors
/// The reason why the text is none.
pub(super) fn read_job_file(text: &str, folder: &Path, name: &str) -> Result<JobFile, String> {
    let mut reader = JobReader { folder, including: Vec::new(), fates: JobFates::default() };
    let documents = reader.read_documents(text, name)?;
    let mut fates = reader.fates;
    for (line, text) in (1..).zip(text.lines()) {
        if text.starts_with("---") || text.trim_end() == "..." {
            fates.set(
                0,
                &(line..=line),
                LineFate::Translated("the next part: workloads of their own".into()),
            );
        }
    }
    Ok(JobFile { documents, fates })
}

/// Reasons of one line in bytes, at most.
const LONGEST_REASONS: usize = 400;

/// Of several values on a line, each may be left out for a reason of its own, which begins with the value.
fn add_reason(reasons: &mut String, reason: &str) {
    let has_room = reasons.len() + reason.len() < LONGEST_REASONS;
    if reason.starts_with('`') && !reasons.contains(reason) && has_room {
        reasons.push_str("; ");
        reasons.push_str(reason);
    }
}

impl JobFates {
    /// Gives lines a fate. What was left out stays so, and what is in the study stays there.
    pub(super) fn set(&mut self, source: usize, lines: &YamlLines, fate: LineFate) {
        for line in lines.clone() {
            let known = self.fates.entry((source, line)).or_insert_with(|| fate.clone());
            if let (LineFate::NotUnderstood(reasons), LineFate::NotUnderstood(reason)) = (&mut *known, &fate)
            {
                add_reason(reasons, reason);
            }
            if rank_fate(known) < rank_fate(&fate) {
                *known = fate.clone();
            }
        }
    }

    /// Gives those of these lines a fate that have none in the end.
    pub(super) fn set_rest(&mut self, source: usize, lines: &YamlLines, fate: LineFate) {
        if source == 0 {
            self.rest.push((lines.clone(), fate));
        }
    }

    /// The account of the job file itself.
    pub(super) fn account_for(&self, text: &str) -> LineAccount {
        let mut account = LineAccount::of_text(text);
        for (lines, fate) in &self.rest {
            for line in lines.clone().filter(|line| !self.fates.contains_key(&(0, *line))) {
                account.set(line..=line, fate);
            }
        }
        for ((_, line), fate) in self.fates.range((0, 0)..(1, 0)) {
            account.set(*line..=*line, fate);
        }
        account
    }

    /// The first line of the job file itself that was left out, with the reason.
    pub(super) fn first_left_out(&self) -> Option<(usize, &str)> {
        self.fates.range((0, 0)..(1, 0)).find_map(|((_, line), fate)| match fate {
            LineFate::NotUnderstood(why) => Some((*line, why.as_str())),
            _ => None,
        })
    }

    /// What was left out of the files that it includes: the name, the line, the reason.
    pub(super) fn left_out_elsewhere(&self) -> impl Iterator<Item = (&str, usize, &str)> {
        self.fates.range((1, 0)..).filter_map(|((source, line), fate)| match fate {
            LineFate::NotUnderstood(why) => Some((self.names.get(*source)?.as_str(), *line, why.as_str())),
            _ => None,
        })
    }
}

fn rank_fate(fate: &LineFate) -> u8 {
    match fate {
        LineFate::Empty => 0,
        LineFate::NoMeaning(_) => 1,
        LineFate::Translated(_) => 2,
        LineFate::NotUnderstood(_) => 3,
    }
}

impl YamlScalar {
    /// Whether only Ruby, or a shell, would tell what it is.
    pub(super) fn is_made_elsewhere(&self) -> bool {
        self.text.contains(MADE_BY_RUBY) || self.text.contains('$')
    }
}

struct JobReader<'a> {
    folder: &'a Path,
    /// Names of the files that are being read.
    including: Vec<String>,
    fates: JobFates,
}

impl JobReader<'_> {
    fn read_documents(&mut self, text: &str, name: &str) -> Result<Vec<Vec<JobEntry>>, String> {
        let source = self.fates.names.len();
        let (masked, ruby) = mask_ruby(text);
        let parsed = parse_yaml_tables(&masked)?;
        self.fates.names.push(shorten_foreign_text(name));
        for lines in ruby {
            let why = "Ruby decides it: nothing is run".to_owned();
            self.fates.set(source, &lines, LineFate::NotUnderstood(why));
        }
        let mut documents: Vec<Vec<JobEntry>> = Vec::new();
        for entries in parsed {
            let mut document = Vec::new();
            for entry in entries {
                if entry.key != "<<" {
                    document.push(JobEntry { source, entry });
                    continue;
                }
                match self.include(&entry, source) {
                    Ok(included) => {
                        for (at, entries) in included.into_iter().enumerate() {
                            if at > 0 {
                                documents.push(std::mem::take(&mut document));
                            }
                            document.extend(entries);
                        }
                    }
                    Err(why) => self.fates.set(source, &entry.lines, LineFate::NotUnderstood(why)),
                }
            }
            documents.push(document);
            if documents.len() > MOST_DOCUMENTS {
                return Err(format!("it has more than {MOST_DOCUMENTS} parts"));
            }
        }
        Ok(documents)
    }

    /// The documents of a file that is included, changed as the line says.
    fn include(&mut self, line: &YamlEntry, source: usize) -> Result<Vec<Vec<JobEntry>>, String> {
        let (name, options) = match &line.node {
            YamlNode::Scalar(name) => (name, &[][..]),
            YamlNode::Table(options) => match options.iter().find(|option| option.key == "file") {
                Some(YamlEntry { node: YamlNode::Scalar(name), .. }) => (name, &options[..]),
                _ => return Err("one file is included at a time".into()),
            },
            YamlNode::List(_) => return Err("one file is included at a time".into()),
        };
        if name.is_made_elsewhere() {
            return Err("the name of the file is not known without running something".into());
        }
        let short = shorten_foreign_text(&name.text);
        let name = name.text.rsplit('/').next().unwrap_or_default();
        if self.including.len() >= MOST_INCLUDES
            || self.fates.names.len() >= MOST_FILES
            || self.including.iter().any(|known| known == name)
        {
            return Err(format!("`{short}` would be read within itself, or too deep"));
        }
        let Some(text) = find_job_file(self.folder, name) else {
            return Err(format!("`{short}` is not there, or cannot be read"));
        };
        self.including.push(name.to_owned());
        let read = self.read_documents(&text, name);
        self.including.pop();
        let mut documents = read.map_err(|why| format!("`{short}`: {why}"))?;
        self.fates.set(source, &line.lines, LineFate::Translated(format!("what {short} says")));
        for option in options.iter().filter(|option| option.key != "file") {
            for document in &mut documents {
                match option.key.as_str() {
                    "ignore" => {
                        let ignored: BTreeSet<&str> = list_words(&option.node).collect();
                        document.retain(|known| !ignored.contains(known.entry.key.as_str()));
                    }
                    key => {
                        document.retain(|known| known.entry.key != key);
                        document.push(JobEntry { source, entry: option.clone() });
                    }
                }
            }
        }
        Ok(documents)
    }
}

fn list_words(node: &YamlNode) -> Box<dyn Iterator<Item = &str> + '_> {
    match node {
        YamlNode::Scalar(scalar) => Box::new(std::iter::once(scalar.text.as_str())),
        YamlNode::List(nodes) => Box::new(nodes.iter().filter_map(|node| match node {
            YamlNode::Scalar(scalar) => Some(scalar.text.as_str()),
            _ => None,
        })),
        YamlNode::Table(_) => Box::new(std::iter::empty()),
    }
}

/// The text of a job file by its name: beside another, in the `jobs` folder above it, or in one of that folder's.
fn find_job_file(folder: &Path, name: &str) -> Option<String> {
    let jobs = folder.ancestors().take(4).find(|above| above.file_name().is_some_and(|name| name == "jobs"));
    let mut folders = vec![folder.to_owned()];
    if let Some(jobs) = jobs {
        folders.push(jobs.to_owned());
        let entries = std::fs::read_dir(jobs).ok()?.filter_map(Result::ok);
        let mut below: Vec<PathBuf> = entries
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.path())
            .collect();
        below.sort();
        folders.extend(below);
    }
    let is_name = !name.is_empty() && !name.starts_with('.');
    // A link may lead anywhere, and what it leads to would stand in the account.
    let is_file = |path: &PathBuf| std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    let path = is_name.then(|| folders.iter().map(|folder| folder.join(name)).find(is_file)).flatten()?;
    let bytes = perflab_files::read_finite_file(&path, LONGEST_CONFIGURATION).ok()?;
    String::from_utf8(bytes).ok()
}

/// The text without Ruby, line by line the same, and the lines that it stood on: values that it makes are marked, and
/// everything else that it does is left out.
fn mask_ruby(text: &str) -> (String, Vec<YamlLines>) {
    let mut masked = String::with_capacity(text.len());
    let mut ruby: Vec<YamlLines> = Vec::new();
    let mut closing: Option<&str> = None;
    let mut first = 0;
    for (number, line) in (1..).zip(text.split('\n')) {
        if number > 1 {
            masked.push('\n');
        }
        let mut rest = line;
        if closing.is_none() {
            if line.starts_with('%') {
                ruby.push(number..=number);
                continue;
            }
            if line.trim_start().starts_with('#') {
                masked.push_str(line);
                continue;
            }
        }
        loop {
            if let Some(end) = closing {
                let Some((_, behind)) = rest.split_once(end) else { break };
                ruby.push(first..=number);
                closing = None;
                rest = behind;
            }
            let found = ["<%", "{{"].into_iter().filter_map(|open| Some((rest.find(open)?, open))).min();
            let Some((at, open)) = found else {
                masked.push_str(rest);
                break;
            };
            let (before, inside) =
                (rest.get(..at).unwrap_or_default(), rest.get(at + open.len()..).unwrap_or_default());
            masked.push_str(before);
            if open == "{{" || inside.starts_with('=') {
                masked.push(MADE_BY_RUBY);
            }
            (closing, first, rest) = (Some(if open == "{{" { "}}" } else { "%>" }), number, inside);
        }
    }
    if closing.is_some() {
        ruby.push(first..=text.lines().count().max(first));
    }
    (masked, ruby)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ruby_is_masked_line_by_line() {
        let text = "a: <%= 1 +\n 2 %>x\n% if b\n<% c %>d: {{ e }} {{ f }}\n# {{ g\n%% h\ni: {{ j\nk: l\n";
        let (masked, ruby) = mask_ruby(text);
        assert_eq!(masked, "a: \u{e000}\nx\n\nd: \u{e000} \u{e000}\n# {{ g\n\ni: \u{e000}\n\n");
        assert_eq!(ruby, [1..=2, 3..=3, 4..=4, 4..=4, 4..=4, 6..=6, 7..=8]);
        assert_eq!(masked.split('\n').count(), text.split('\n').count());
    }

    #[test]
    fn job_files_are_known_by_what_they_name() {
        for text in ["suite: x\n", "a: b\ncategory : benchmark", "<<: x.yaml\n", "# c\ntestcase:\n"] {
            assert!(is_lkp_job_file(text), "{text}");
        }
        for text in ["export MMTESTS=a\n", "", "a: b\n", "suite://x\n", "  suite: x\n"] {
            assert!(!is_lkp_job_file(text), "{text}");
        }
    }
}

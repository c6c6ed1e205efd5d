//! Which kernels runs had: of the host, of its guests and other targets, under each level of a factor that changes them. A column
//! for each kernel that differs from the others in anything; what differs between them stands first.

use std::collections::{BTreeMap, BTreeSet};

use perflab_model::fact_table::{self, FactKey};
use perflab_model::{Facts, RunRecord, TargetRecord};

use crate::facts::fact_value_text;
use crate::grid::{Grid, GridCell, GridColumn};
use crate::run_viewer::run_display_name;
use crate::section::{ReportData, Section, SectionBlock, SectionError, no_conclusions};

/// The kernels of runs, on a page of their own.
pub(crate) const SECTION: Section =
    Section { id: "kernels", title: "Kernels", conclusions: kernel_conclusions, blocks: kernel_blocks };

/// The same in a report, where there are several.
pub(crate) const SEVERAL: Section =
    Section { id: "kernels", title: "Kernels", conclusions: no_conclusions, blocks: several_kernel_blocks };

/// Kernels that have a column; further ones are counted.
const MOST_COLUMNS: usize = 8;

/// Names of who had a kernel.
const MOST_NAMES: usize = 3;

/// What is said of a kernel, in this order.
const KEYS: &[(FactKey, &str)] = &[
    (fact_table::KERNEL_RELEASE, "release"),
    (fact_table::KERNEL_VERSION, "version"),
    (fact_table::KERNEL_BUILD, "build"),
    (fact_table::KERNEL_RECIPE, "recipe"),
    (fact_table::KERNEL_SOURCES, "sources"),
    (fact_table::KERNEL_COMMIT, "commit"),
    (fact_table::KERNEL_PATCHES, "patches"),
    (fact_table::KERNEL_COMPILER, "compiler"),
    (fact_table::KERNEL_FLAGS, "compiler's flags"),
    (fact_table::KERNEL_ARCH, "architecture"),
    (fact_table::KERNEL_CMDLINE, "command line"),
    (fact_table::KERNEL_TAINTED, "tainted"),
    (fact_table::KERNEL_CONFIG_SHA256, "hash of all build options"),
];

/// Beginning of the keys of build options.
const OPTION: &str = "kernel.config.";

/// Beginning of the keys of mitigations.
const MITIGATION: &str = "mitigations.";

/// One kernel, and who had it.
struct RecordedKernel {
    names: Vec<String>,
    /// Its facts: key and value.
    facts: BTreeMap<String, String>,
}

impl RecordedKernel {
    /// Nothing where the facts do not say which it was.
    fn read_facts(facts: &Facts, release: &str) -> BTreeMap<String, String> {
        let is_own = |key: &str| key.starts_with("kernel.") || key.starts_with(MITIGATION);
        let own = facts.iter().filter(|(key, _)| is_own(key));
        let mut found: BTreeMap<String, String> =
            own.map(|(key, fact)| (key.to_owned(), fact_value_text(key, &fact.value))).collect();
        if !release.is_empty() {
            found.insert(fact_table::KERNEL_RELEASE.as_str().to_owned(), release.to_owned());
        }
        found
    }

    fn release(&self) -> &str {
        self.facts.get(fact_table::KERNEL_RELEASE.as_str()).map_or("unknown", String::as_str)
    }

    /// Who had it, as the head of a column.
    fn heading(&self) -> String {
        let more = self.names.len().saturating_sub(MOST_NAMES);
        let more = (more > 0).then(|| format!("{more} more"));
        let names: Vec<String> = self.names.iter().take(MOST_NAMES).cloned().chain(more).collect();
        names.join(", ")
    }
}

/// The kernels of all runs, each once.
#[derive(Default)]
struct RecordedKernels(Vec<RecordedKernel>);

impl RecordedKernels {
    fn of_runs(data: &ReportData) -> Self {
        let mut found = RecordedKernels::default();
        let is_alone = data.runs.len() == 1;
        for record in data.records() {
            let run = run_display_name(record);
            let name = |part: &str| if is_alone { part.to_owned() } else { format!("{run}, {part}") };
            let host = if is_alone { "this host".to_owned() } else { run.clone() };
            found.add(host, &record.manifest.facts, "");
            for (levels, target) in recorded_targets(record) {
                let with = if levels.is_empty() { String::new() } else { format!(" with {levels}") };
                found.add(name(&format!("{}{with}", target.name)), &target.facts, &target.kernel);
            }
        }
        found
    }

    fn add(&mut self, name: String, facts: &Facts, release: &str) {
        let facts = RecordedKernel::read_facts(facts, release);
        if !facts.contains_key(fact_table::KERNEL_RELEASE.as_str()) {
            return;
        }
        match self.0.iter_mut().find(|known| known.facts == facts) {
            Some(known) => known.names.push(name),
            None => self.0.push(RecordedKernel { names: vec![name], facts }),
        }
    }

    fn columns(&self) -> impl Iterator<Item = &RecordedKernel> {
        self.0.iter().take(MOST_COLUMNS)
    }

    /// The keys that some kernel has, with this beginning.
    fn keys_with(&self, beginning: &str) -> BTreeSet<&str> {
        let keys = self.columns().flat_map(|kernel| kernel.facts.keys());
        let is_named = |key: &str| KEYS.iter().any(|(known, _)| known.as_str() == key);
        keys.map(String::as_str).filter(|key| key.starts_with(beginning) && !is_named(key)).collect()
    }

    fn differs(&self, key: &str) -> bool {
        let values: BTreeSet<Option<&String>> = self.columns().map(|kernel| kernel.facts.get(key)).collect();
        values.len() > 1
    }

    /// A row for each key, with what it is called, and a column for each kernel.
    fn grid<'a>(&self, head: &str, rows: impl IntoIterator<Item = (&'a str, &'a str)>) -> Grid {
        let columns = self.columns().map(|kernel| GridColumn::left(&kernel.heading()));
        let mut grid = Grid::new([GridColumn::left(head)].into_iter().chain(columns));
        for (key, name) in rows {
            let value =
                |kernel: &RecordedKernel| GridCell::from(kernel.facts.get(key).map_or("–", String::as_str));
            grid.add_row([GridCell::from(name)].into_iter().chain(self.columns().map(value)));
        }
        grid
    }

    /// Keys with this beginning: what differs as a table, what is the same on demand.
    fn blocks_with(&self, beginning: &str, head: &str, what: &str) -> Vec<SectionBlock> {
        let keys = self.keys_with(beginning);
        let (differing, same): (Vec<&str>, Vec<&str>) = keys.into_iter().partition(|key| self.differs(key));
        let rows = |keys: Vec<&str>| {
            let name = |key: &str| key.strip_prefix(beginning).unwrap_or(key).to_owned();
            let named: Vec<(String, String)> =
                keys.iter().map(|key| ((*key).to_owned(), name(key))).collect();
            self.grid(head, named.iter().map(|(key, name)| (key.as_str(), name.as_str())))
        };
        let mut blocks = Vec::new();
        if !differing.is_empty() {
            let caption = format!("{what} that differ");
            blocks.push(SectionBlock::Grid { caption, grid: rows(differing) });
        }
        if !same.is_empty() {
            let summary =
                if self.0.len() > 1 { format!("{what} that are the same") } else { what.to_owned() };
            let count = Some(same.len());
            let grid = SectionBlock::Grid { caption: summary.clone(), grid: rows(same) };
            blocks.push(SectionBlock::Fold { summary, count, blocks: vec![grid] });
        }
        blocks
    }
}

/// The targets of a run, under each combination of levels that changes them.
fn recorded_targets(record: &RunRecord) -> Vec<(String, &TargetRecord)> {
    let manifest = &record.manifest;
    if manifest.variants.is_empty() {
        return manifest.targets.iter().map(|target| (String::new(), target)).collect();
    }
    let variants = manifest.variants.iter().flat_map(|variant| {
        let levels: Vec<String> =
            variant.levels.iter().map(|(factor, level)| format!("{factor}={level}")).collect();
        let levels = levels.join(" ");
        variant.targets.iter().map(move |target| (levels.clone(), target))
    });
    variants.collect()
}

fn kernel_conclusions(data: &ReportData) -> Result<Vec<String>, SectionError> {
    let found = RecordedKernels::of_runs(data);
    let releases: BTreeSet<&str> = found.0.iter().map(RecordedKernel::release).collect();
    let releases = releases.into_iter().map(|release| format!("`{release}`")).collect::<Vec<_>>().join(", ");
    Ok(match found.0.len() {
        0 => Vec::new(),
        1 => vec![format!("One kernel: {releases}.")],
        several => vec![format!("{several} kernels that differ: {releases}.")],
    })
}

fn kernel_blocks(data: &ReportData) -> Result<Vec<SectionBlock>, SectionError> {
    Ok(draw_kernels(&RecordedKernels::of_runs(data)))
}

fn several_kernel_blocks(data: &ReportData) -> Result<Vec<SectionBlock>, SectionError> {
    let found = RecordedKernels::of_runs(data);
    Ok(if found.0.len() > 1 { draw_kernels(&found) } else { Vec::new() })
}

fn draw_kernels(found: &RecordedKernels) -> Vec<SectionBlock> {
    if found.0.is_empty() {
        return Vec::new();
    }
    let rows = KEYS.iter().map(|(key, name)| (key.as_str(), *name));
    let known = rows.filter(|(key, _)| found.columns().any(|kernel| kernel.facts.contains_key(*key)));
    let grid = found.grid("kernel", known);
    let mut blocks = vec![SectionBlock::Grid { caption: "Kernels".into(), grid }];
    blocks.extend(found.blocks_with(MITIGATION, "mitigation", "Mitigations"));
    let mut options = found.blocks_with(OPTION, "option", "Build options");
    let left_out = found.0.len().saturating_sub(MOST_COLUMNS);
    options.extend(
        (left_out > 0)
            .then(|| SectionBlock::Hint(format!("{left_out} further kernels have no column here."))),
    );
    blocks.extend(options);
    blocks
}

//! The single-file report: one HTML page that works offline, with or without JavaScript.
//!
//! [`SECTIONS`] names its sections in their order; nothing here knows more than one of them. What can be read with
//! JavaScript off (verdicts with their intervals, pictures, facts, plan) is rendered here; what needs a pointer (dots,
//! timelines, filter) is drawn by the bundle under `assets/`, built from `web/` and committed.
//!
//! The page's policy allows exactly that script and style, by hash: nothing that a study's or a metric's name smuggles
//! in can run.

use std::borrow::Cow;

use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use perflab_model::untrusted_text::escape_controls;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::chart::scene::SceneSurface;
use crate::comparison::verdict_table::VerdictTable;
use crate::flame::viewer::FlameViewerData;
use crate::grid::GridTexts;
use crate::packed_column::encode_base64;
use crate::run_matter::RunMatter;
use crate::section::{PageLink, ReportData, ReportError, Section, SectionBlock, SectionError, ViewerData};
use crate::{
    comparison, facts, fairness, flame, history, io, kernels, operations, price, run_overview, run_viewer,
    slab, startup,
};

/// The sections of a report in their order: the answer, pictures, then what is known of the runs.
pub const SECTIONS: &[&Section] = &[
    &price::SECTION,
    &comparison::section::SECTION,
    &history::SECTION,
    &startup::SECTION,
    &slab::section::SECTION,
    &flame::section::SECTION,
    &operations::section::SECTION,
    &io::SECTION,
    &fairness::SECTION,
    &run_viewer::ITERATIONS,
    &run_viewer::TIMELINES,
    &run_overview::RUNS,
    &kernels::SEVERAL,
    &facts::SECTION,
    &run_overview::PLAN,
];

/// The section whose conclusions a table of verdicts prints itself.
pub const VERDICTS: &str = comparison::section::SECTION.id;

/// One HTML file: readable without JavaScript, without a network, on a phone and on paper.
///
/// # Errors
///
/// Without a run; and where the page cannot be written, which would be a mistake of ours. A section that fails says why
/// in its place.
pub fn render_report(data: &ReportData, sections: &[&Section]) -> Result<String, ReportError> {
    let mut page = begin_page(data)?;
    for section in sections {
        page.add_section(data, section, (section.conclusions)(data), (section.blocks)(data));
    }
    if page.answer.is_empty() {
        page.answer.push("Nothing was compared: this report shows what was measured.".into());
    }
    fill_page(&page)
}

/// A page with the sections of one matter alone; where the run has nothing of it, a sentence says which command records it.
///
/// # Errors
/// As [`render_report`].
pub fn render_run_matter(data: &ReportData, matter: &RunMatter) -> Result<String, ReportError> {
    let mut page = begin_page(data)?;
    page.title = format!("{}: {}", matter.title, page.title);
    for section in matter.sections {
        page.add_section(data, section, (section.conclusions)(data), (section.blocks)(data));
    }
    if page.sections.is_empty() {
        page.answer.push(matter.recorded_by.into());
    }
    fill_page(&page)
}

/// The head of a page about runs.
fn begin_page(data: &ReportData) -> Result<PageView, ReportError> {
    let Some(first) = data.records().next() else { return Err(ReportError::NoRuns) };
    let study = &first.manifest.study;
    Ok(PageView {
        brand: "perflab report",
        class: "",
        title: if data.title.is_empty() { study.title.clone() } else { data.title.clone() },
        description: study.description.clone(),
        reference: study.reference.clone(),
        writer: first.manifest.writer.clone(),
        links: data.links.clone(),
        answer: Vec::new(),
        sections: Vec::new(),
        data: Vec::new(),
    })
}

/// What the sections say in sentences: the end of a run in a terminal. A section that fails is left out here; its place on
/// the page says why.
#[must_use]
pub fn conclude_sections(data: &ReportData, sections: &[&Section]) -> Vec<String> {
    sections.iter().flat_map(|section| (section.conclusions)(data).unwrap_or_default()).collect()
}

/// One HTML file with the viewer of call stacks alone, that asks nothing of any network.
///
/// # Errors
///
/// Where page or data cannot be written, which would be a mistake of ours.
pub fn render_flame_page(writer: &str, picture: &FlameViewerData) -> Result<String, ReportError> {
    let mut page = PageView {
        brand: "perflab flame graph",
        class: "flame-page",
        title: picture.title.clone(),
        description: None,
        reference: None,
        writer: writer.into(),
        links: Vec::new(),
        answer: Vec::new(),
        sections: Vec::new(),
        data: Vec::new(),
    };
    let viewer = flame::section::flame_viewer(picture)?;
    let blocks = vec![SectionBlock::Viewer(viewer)];
    page.add_section(&ReportData::default(), &flame::section::SECTION, Ok(Vec::new()), Ok(blocks));
    fill_page(&page)
}

/// Everything but style and script.
#[derive(Debug, Serialize)]
struct PageView {
    brand: &'static str,
    class: &'static str,
    title: String,
    description: Option<String>,
    reference: Option<String>,
    writer: String,
    links: Vec<PageLink>,
    /// The conclusions of the first section that has any: what the page begins with.
    answer: Vec<String>,
    sections: Vec<SectionView>,
    /// What viewers read, by name.
    data: Vec<(String, String)>,
}

#[derive(Debug, Serialize)]
struct SectionView {
    id: &'static str,
    title: &'static str,
    conclusions: Vec<String>,
    blocks: Vec<BlockView>,
}

/// A block as the template takes it.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum BlockView {
    Heading { text: String },
    Text { text: String },
    Hint { text: String },
    Diagnostic { headline: String, advice: String, details: Vec<String> },
    Failure { reason: String },
    Footnotes { notes: Vec<(String, String)> },
    Pairs { pairs: Vec<(String, String)> },
    List { texts: Vec<String> },
    Code { text: String },
    Grid { caption: String, grid: GridTexts },
    Verdicts { table: VerdictTable },
    Figure { svg: String },
    Viewer { name: &'static str, data_id: String, without_script: &'static str, still: Option<String> },
    Card { heading: String, badge: Option<(String, bool)>, blocks: Vec<BlockView> },
    Fold { summary: String, count: Option<usize>, blocks: Vec<BlockView> },
}

impl PageView {
    fn add_section(
        &mut self,
        data: &ReportData,
        section: &Section,
        conclusions: Result<Vec<String>, SectionError>,
        blocks: Result<Vec<SectionBlock>, SectionError>,
    ) {
        let (conclusions, failed) = match conclusions {
            Ok(conclusions) => (conclusions, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        let blocks = match (failed, blocks) {
            (None, Ok(blocks)) => blocks,
            (Some(error), _) | (None, Err(error)) => vec![failed_section(&error)],
        };
        if conclusions.is_empty() && blocks.is_empty() {
            return;
        }
        // Of verdicts the page begins with all sentences (one a factor), of others with the first.
        let head = if section.id == VERDICTS { conclusions.len() } else { 1 };
        let (head, rest) = conclusions.split_at(head.min(conclusions.len()));
        let is_answer = self.answer.is_empty() && !head.is_empty();
        let mut view =
            SectionView { id: section.id, title: section.title, conclusions: Vec::new(), blocks: Vec::new() };
        if is_answer {
            (self.answer, view.conclusions) = (head.to_vec(), rest.to_vec());
        } else {
            view.conclusions = conclusions;
        }
        view.blocks = self.block_views(data, blocks);
        self.sections.push(view);
    }

    fn block_view(&mut self, data: &ReportData, block: SectionBlock) -> BlockView {
        match block {
            SectionBlock::Heading(text) => BlockView::Heading { text },
            SectionBlock::Text(text) => BlockView::Text { text },
            SectionBlock::Hint(text) => BlockView::Hint { text },
            SectionBlock::Diagnostic { headline, advice, details } => {
                BlockView::Diagnostic { headline, advice, details }
            }
            SectionBlock::Failure(reason) => BlockView::Failure { reason },
            SectionBlock::Footnotes(notes) => BlockView::Footnotes { notes },
            SectionBlock::Pairs(pairs) => BlockView::Pairs { pairs },
            SectionBlock::List(texts) => BlockView::List { texts },
            SectionBlock::Code(text) => BlockView::Code { text },
            SectionBlock::Grid { caption, grid } => BlockView::Grid { caption, grid: grid.texts() },
            SectionBlock::Verdicts(table) => BlockView::Verdicts { table },
            SectionBlock::Figure(scene) => BlockView::Figure { svg: scene.to_svg(SceneSurface::Inline) },
            SectionBlock::Viewer(viewer) => match self.add_viewer_data(data, &viewer.data_id, viewer.data) {
                Ok(()) => BlockView::Viewer {
                    name: viewer.name,
                    data_id: viewer.data_id,
                    without_script: viewer.without_script,
                    still: viewer.still.map(|scene| scene.to_svg(SceneSurface::Inline)),
                },
                Err(error) => self.block_view(data, failed_section(&error)),
            },
            SectionBlock::Card { heading, badge, blocks } => {
                BlockView::Card { heading, badge, blocks: self.block_views(data, blocks) }
            }
            SectionBlock::Fold { summary, count, blocks } => {
                BlockView::Fold { summary, count, blocks: self.block_views(data, blocks) }
            }
        }
    }

    /// Data that a viewer before it has already is not written again.
    fn add_viewer_data(
        &mut self,
        data: &ReportData,
        id: &str,
        viewer: ViewerData,
    ) -> Result<(), SectionError> {
        if self.data.iter().any(|(known, _)| known == id) {
            return Ok(());
        }
        let json = match viewer {
            ViewerData::Json(json) => json,
            ViewerData::Shared(make) => make(data)?,
        };
        self.data.push((id.into(), json));
        Ok(())
    }

    fn block_views(&mut self, data: &ReportData, blocks: Vec<SectionBlock>) -> Vec<BlockView> {
        blocks.into_iter().map(|block| self.block_view(data, block)).collect()
    }
}

/// What stands in the place of a section that cannot be made.
fn failed_section(error: &SectionError) -> SectionBlock {
    SectionBlock::Failure(error.to_string())
}

#[derive(Serialize)]
struct TemplateValues<'a> {
    page: &'a PageView,
    policy: String,
    style: &'a str,
    script: &'a str,
}

fn fill_page(page: &PageView) -> Result<String, ReportError> {
    let mut templates = Environment::new();
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    templates.set_auto_escape_callback(|_| AutoEscape::Html);
    templates.set_formatter(write_visible_value);
    templates.add_filter("code", mark_code);
    templates.add_template("report.html", TEMPLATE)?;
    let values = TemplateValues { page, policy: page_policy(), style: PAGE_STYLE, script: SCRIPT };
    Ok(templates.get_template("report.html")?.render(Value::from(Serde(values)))?)
}

/// Writes a value of a template, escaped for HTML. In a text, what would reverse the order of letters, or command a terminal that
/// shows the page's source, is made visible.
fn write_visible_value(
    out: &mut minijinja::Output<'_>,
    state: &mut minijinja::State<'_, '_>,
    value: &Value,
) -> Result<(), minijinja::Error> {
    match value.as_str().filter(|_| !value.is_safe()).map(escape_controls) {
        Some(Cow::Owned(text)) => minijinja::escape_formatter(out, state, &Value::from(text)),
        _ => minijinja::escape_formatter(out, state, value),
    }
}

/// What stands between a pair of backticks becomes code; everything is escaped.
#[must_use]
pub fn mark_code(text: String) -> Value {
    let escaped = escape_controls(&text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    if escaped.matches('`').count() % 2 == 1 {
        return Value::from_safe_string(escaped);
    }
    let part = |(at, part)| if at % 2 == 1 { format!("<code>{part}</code>") } else { String::from(part) };
    Value::from_safe_string(escaped.split('`').enumerate().map(part).collect())
}

/// The page, with a macro for each kind of block.
const TEMPLATE: &str = include_str!("../assets/report.html");

/// The front end: one script without imports.
const SCRIPT: &str = include_str!("../assets/report.js");

/// Its style sheet.
pub const PAGE_STYLE: &str = include_str!("../assets/report.css");

/// The content security policy of a page: nothing from anywhere, no style attributes, no script but ours.
#[must_use]
pub fn page_policy() -> String {
    let (script, style) = (hash_source(SCRIPT), hash_source(PAGE_STYLE));
    format!(
        "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; img-src data:; \
         base-uri 'none'; form-action 'none'"
    )
}

fn hash_source(text: &str) -> String {
    encode_base64(&Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_the_bundle_ends_its_own_element() {
        assert!(!SCRIPT.contains("</script") && !SCRIPT.contains("<!--"));
        assert!(!PAGE_STYLE.contains("</style"));
    }

    #[test]
    fn code_stays_in_its_budget() {
        assert!(SCRIPT.len() + PAGE_STYLE.len() <= 150_000, "{} bytes", SCRIPT.len() + PAGE_STYLE.len());
    }

    #[test]
    fn a_report_of_nothing_is_refused() {
        let data = ReportData { title: "t".into(), ..ReportData::default() };
        assert!(matches!(render_report(&data, SECTIONS), Err(ReportError::NoRuns)));
    }

    #[test]
    fn every_section_has_an_anchor_of_its_own() {
        let ids: std::collections::BTreeSet<&str> = SECTIONS.iter().map(|section| section.id).collect();
        assert_eq!(ids.len(), SECTIONS.len());
    }
}

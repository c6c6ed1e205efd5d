//! The links of the book and of the pages beside it: each relative one leads to a file, each anchor to a heading, and no page
//! of the book leads out of the book, where its readers cannot follow.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// One page as far as links are concerned.
#[derive(Debug, Default)]
struct LinkedPage {
    /// What a link may name behind `#`.
    anchors: BTreeSet<String>,
    /// Where its links and images lead, with their lines.
    links: Vec<(usize, String)>,
}

/// Looks at every link under `root`, prints what is broken, and says whether all hold.
pub fn check_links(root: &Path) -> Result<bool> {
    let broken = find_broken_links(root)?;
    for line in &broken {
        println!("{line}");
    }
    Ok(broken.is_empty())
}

/// `PATH:LINE: what is wrong`, in the order of the paths.
fn find_broken_links(root: &Path) -> Result<Vec<String>> {
    // Whole paths, so that a link's way up can be followed.
    let root = &fs::canonicalize(root).with_context(|| format!("cannot find {}", root.display()))?;
    let book = root.join("docs");
    let mut pages = BTreeMap::new();
    for path in list_pages(root)? {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        pages.insert(path, read_page(&text));
    }
    let contents = book.join("SUMMARY.md");
    let listed: BTreeSet<PathBuf> = pages
        .get(&contents)
        .map_or_else(BTreeSet::new, |page| page.links.iter().map(|(_, target)| book.join(target)).collect());
    let mut broken = Vec::new();
    for (path, page) in &pages {
        let shown = path.strip_prefix(root).unwrap_or(path).display();
        for (line, target) in &page.links {
            if let Err(reason) = check_target(path, target, &pages, &book) {
                broken.push(format!("{shown}:{line}: {target}: {reason}"));
            }
        }
        if path.starts_with(&book) && *path != contents && !listed.contains(path) {
            broken.push(format!("{shown}:1: not in docs/SUMMARY.md, so the book lacks it"));
        }
    }
    Ok(broken)
}

/// The book's pages, those at the root, and each crate's.
fn list_pages(root: &Path) -> Result<Vec<PathBuf>> {
    let mut pages = Vec::new();
    add_pages(root, false, &mut pages)?;
    add_pages(&root.join("docs"), true, &mut pages)?;
    let crates = root.join("crates");
    if crates.is_dir() {
        for entry in fs::read_dir(&crates).with_context(|| format!("cannot list {}", crates.display()))? {
            add_pages(&entry?.path(), false, &mut pages)?;
        }
    }
    Ok(pages)
}

fn add_pages(folder: &Path, below: bool, pages: &mut Vec<PathBuf>) -> Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        if below && path.is_dir() {
            add_pages(&path, true, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    Ok(())
}

/// Reads what CommonMark (with tables and footnotes, as mdBook has them) takes for links and headings.
fn read_page(text: &str) -> LinkedPage {
    let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_HEADING_ATTRIBUTES;
    let mut page = LinkedPage::default();
    let mut heading: Option<String> = None;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { id: Some(id), .. }) => drop(page.anchors.insert(id.to_string())),
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                if let Some(title) = heading.take() {
                    let anchor = free_anchor(&title, &page.anchors);
                    page.anchors.insert(anchor);
                }
            }
            Event::Text(part) | Event::Code(part) => {
                if let Some(title) = &mut heading {
                    title.push_str(&part);
                }
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                let line = 1 + text[..range.start].matches('\n').count();
                page.links.push((line, dest_url.to_string()));
            }
            _ => {}
        }
    }
    page
}

/// The anchor that mdBook and forges give a heading: small letters, digits, `_` and `-`; a blank is `-`; a second heading of the
/// same name ends in `-1`.
fn free_anchor(title: &str, taken: &BTreeSet<String>) -> String {
    let kept = |c: char| match c {
        c if c.is_alphanumeric() || c == '_' || c == '-' => c.to_lowercase().next(),
        c if c.is_whitespace() => Some('-'),
        _ => None,
    };
    let anchor: String = title.trim().chars().filter_map(kept).collect();
    if !taken.contains(&anchor) {
        return anchor;
    }
    (1_u32..).map(|n| format!("{anchor}-{n}")).find(|one| !taken.contains(one)).unwrap_or(anchor)
}

fn check_target(
    page: &Path,
    target: &str,
    pages: &BTreeMap<PathBuf, LinkedPage>,
    book: &Path,
) -> Result<(), &'static str> {
    if target.contains("://") || target.starts_with("mailto:") {
        return Ok(());
    }
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let file = match path {
        "" => page.to_owned(),
        _ if path.starts_with('/') => return Err("an absolute path; name the file from this page"),
        _ => resolve(&page.parent().unwrap_or(Path::new("")).join(path)),
    };
    if !file.exists() {
        return Err("no such file");
    }
    if page.starts_with(book) && !file.starts_with(book) {
        return Err(
            "leads out of the book; link to the repository's page on the web, or name the path as code",
        );
    }
    match anchor {
        Some(anchor) if !pages.get(&file).is_some_and(|page| page.anchors.contains(anchor)) => {
            Err("no such heading there")
        }
        _ => Ok(()),
    }
}

/// `a/b/../c` as `a/c`: without following symbolic links, as a browser does.
fn resolve(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(resolved.pop()),
            Component::CurDir => {}
            part => resolved.push(part),
        }
    }
    resolved
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn sound_book() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "README.md", "[the page](docs/page.md#how-it-is-done-perflab-run)\n");
        write(root.path(), "docs/SUMMARY.md", "- [Page](page.md)\n- [Other](deep/other.md)\n");
        let page = "# Page\n\n## How it *is* done: `perflab run`\n\n## Twice\n\n## Twice\n\n[below](#twice-1) [other][o]\n\n\
                    ```\n[not a link](nowhere.md)\n```\n\n`[nor this](nowhere.md)` [web](https://example.org/x#y)\n\n[o]: deep/other.md\n";
        write(root.path(), "docs/page.md", page);
        write(root.path(), "docs/deep/other.md", "# Other\n\n[back](../page.md#twice)\n![p](p.png)\n");
        write(root.path(), "docs/deep/p.png", "");
        root
    }

    #[test]
    fn a_sound_book_has_no_broken_link() {
        let root = sound_book();
        assert_eq!(find_broken_links(root.path()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn each_kind_of_broken_link_is_found_at_its_line() {
        let root = sound_book();
        let text = "# Other\n\n[a](gone.md)\n[b](../page.md#thrice) ![c](gone.png)\n[d][r]\n[e](#nowhere)\n\
                    [f](../../README.md) [g](/page.md)\n\n[r]: ../gone.md\n";
        write(root.path(), "docs/deep/other.md", text);
        write(root.path(), "docs/unlisted.md", "# Unlisted\n");
        write(root.path(), "crates/one/README.md", "[up](../../docs/page.md#gone)\n");
        let broken = find_broken_links(root.path()).unwrap();
        let places: Vec<&str> = broken.iter().map(|line| line.rsplit_once(": ").unwrap().0).collect();
        let expected = [
            "crates/one/README.md:1: ../../docs/page.md#gone",
            "docs/deep/other.md:3: gone.md",
            "docs/deep/other.md:4: ../page.md#thrice",
            "docs/deep/other.md:4: gone.png",
            "docs/deep/other.md:5: ../gone.md",
            "docs/deep/other.md:6: #nowhere",
            "docs/deep/other.md:7: ../../README.md",
            "docs/deep/other.md:7: /page.md",
            "docs/unlisted.md:1",
        ];
        assert_eq!(places, expected);
    }
}

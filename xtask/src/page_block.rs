//! A table of the book that a task writes: it stands between two comments that name the task.

use std::fs;

use anyhow::{Context as _, Result};

/// Puts `text` between the comments of `task` on a page.
pub fn write_block(page: &str, task: &str, text: &str) -> Result<()> {
    let before = fs::read_to_string(page).with_context(|| format!("cannot read {page}"))?;
    let after = replace_block(&before, task, text)
        .with_context(|| format!("{page} has no lines between which the table of `{task}` stands"))?;
    fs::write(page, after).with_context(|| format!("cannot write {page}"))
}

/// The page with `text` between the comments of `task`; none where it has no such comments.
pub fn replace_block(page: &str, task: &str, text: &str) -> Option<String> {
    let [begin, end] = ["begin", "end"].map(|word| format!("<!-- {word}: {task} -->"));
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n\n{}\n\n{end}{after}", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_put_between_its_own_lines() {
        let edges = |text: &str, name: &str| format!("<!-- begin: {name} -->{text}<!-- end: {name} -->");
        let page = format!("a\n{}\nb\n{}\n", edges("\n\n1\n\n", "one"), edges("\n\n2\n\n", "two"));
        assert_eq!(replace_block(&page, "two", "3\n"), Some(page.replace('2', "3")));
        assert_eq!(replace_block("a", "two", "3"), None);
    }
}

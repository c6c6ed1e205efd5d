//! YAML as a tree that knows the lines of what it holds, with bounds: anchors that multiply one another are refused.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use granit_parser::{Event, Parser, ScalarStyle, Span, options};

/// Lines of a file, from 1.
pub(super) type YamlLines = RangeInclusive<usize>;

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum YamlNode {
    Scalar(YamlScalar),
    List(Vec<YamlNode>),
    Table(Vec<YamlEntry>),
}

/// Text, or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct YamlScalar {
    pub(super) text: String,
    /// Nothing stands there, or `~`, or `null` without quotes.
    pub(super) is_null: bool,
    pub(super) lines: YamlLines,
}

/// A key of a table with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct YamlEntry {
    /// Which of the file's keys it is.
    pub(super) id: usize,
    pub(super) key: String,
    /// From the key to the end of its value.
    pub(super) lines: YamlLines,
    pub(super) node: YamlNode,
}

impl YamlNode {
    /// The last line.
    fn end(&self) -> Option<usize> {
        match self {
            YamlNode::Scalar(scalar) => Some(*scalar.lines.end()),
            YamlNode::List(nodes) => nodes.iter().filter_map(YamlNode::end).max(),
            YamlNode::Table(entries) => entries.iter().map(|entry| *entry.lines.end()).max(),
        }
    }

    /// How many values it has, itself among them.
    fn count(&self) -> usize {
        1 + match self {
            YamlNode::Scalar(_) => 0,
            YamlNode::List(nodes) => nodes.iter().map(YamlNode::count).sum(),
            YamlNode::Table(entries) => entries.iter().map(|entry| entry.node.count()).sum(),
        }
    }

    /// The same where an alias stands.
    fn relocate(&mut self, line: usize) {
        match self {
            YamlNode::Scalar(scalar) => scalar.lines = line..=line,
            YamlNode::List(nodes) => nodes.iter_mut().for_each(|node| node.relocate(line)),
            YamlNode::Table(entries) => {
                for entry in entries {
                    entry.lines = line..=line;
                    entry.node.relocate(line);
                }
            }
        }
    }
}

/// Values of a file, those that aliases repeat counted each time.
const MOST_VALUES: usize = 20_000;

/// Lists and tables within one another: readers of the tree call themselves for each.
const MOST_NESTED: usize = 32;

/// Reads the documents of a file: the keys of each.
///
/// # Errors
/// The reason, with its line, why the text is no such YAML.
pub(super) fn parse_yaml_tables(text: &str) -> Result<Vec<Vec<YamlEntry>>, String> {
    let options = options! {
        emit_comments: false,
        flow_nesting_limit: MOST_NESTED,
        block_nesting_limit: MOST_NESTED,
    };
    let parser = Parser::new_from_str_with_options(text, options);
    let mut reader = TreeReader { parser, anchors: HashMap::new(), values: 0, keys: 0 };
    let mut documents = Vec::new();
    loop {
        match reader.next()? {
            (Event::StreamEnd, _) => return Ok(documents),
            (Event::StreamStart | Event::DocumentEnd, _) => {}
            (Event::DocumentStart(..), _) => reader.anchors.clear(),
            (event, span) => {
                let line = span.start.line();
                documents.push(match reader.read_node(event, &span)? {
                    YamlNode::Table(entries) => entries,
                    YamlNode::Scalar(scalar) if scalar.is_null => Vec::new(),
                    _ => return Err(format!("line {line}: keys with their values should stand there")),
                });
            }
        }
    }
}

struct TreeReader<'a> {
    parser: Parser<'a, granit_parser::StrInput<'a>>,
    anchors: HashMap<usize, YamlNode>,
    values: usize,
    keys: usize,
}

impl<'a> TreeReader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), String> {
        match self.parser.next() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => {
                Err(format!("line {}: it is no YAML: {}", error.marker().line(), error.info()))
            }
            None => Err("it is no YAML: it ends within a value".into()),
        }
    }

    fn take(&mut self, values: usize, line: usize) -> Result<(), String> {
        self.values += values;
        match self.values > MOST_VALUES {
            true => Err(format!(
                "line {line}: it has more than {MOST_VALUES} values, those that aliases repeat among them"
            )),
            false => Ok(()),
        }
    }

    /// The value that begins with this event.
    fn read_node(&mut self, event: Event<'a>, span: &Span) -> Result<YamlNode, String> {
        let line = span.start.line();
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, _) => {
                self.take(1, line)?;
                let is_null = style == ScalarStyle::Plain && ["", "~", "null"].contains(&text.as_ref());
                // What ends before the first letter of a line ends in the one before.
                let end = span.end.line() - usize::from(span.end.col() == 0);
                let lines = line..=end.max(line);
                (YamlNode::Scalar(YamlScalar { text: text.into_owned(), is_null, lines }), anchor)
            }
            Event::Alias(anchor) => {
                let node = self.anchors.get(&anchor);
                let count = node.map_or(1, YamlNode::count);
                self.take(count, line)?;
                let Some(node) = self.anchors.get(&anchor) else {
                    return Err(format!("line {line}: an alias of what is not there yet"));
                };
                let mut node = node.clone();
                node.relocate(line);
                (node, 0)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.take(1, line)?;
                (self.read_list()?, anchor)
            }
            Event::MappingStart(_, anchor, _) => {
                self.take(1, line)?;
                (self.read_table()?, anchor)
            }
            _ => return Err(format!("line {line}: a value should stand there")),
        };
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn read_list(&mut self) -> Result<YamlNode, String> {
        let mut nodes = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(YamlNode::List(nodes)),
                (event, span) => nodes.push(self.read_node(event, &span)?),
            }
        }
    }

    fn read_table(&mut self) -> Result<YamlNode, String> {
        let (mut entries, mut merged) = (Vec::new(), Vec::new());
        loop {
            let (event, span) = self.next()?;
            let line = span.start.line();
            let key = match event {
                Event::MappingEnd => return Ok(YamlNode::Table(merge_entries(entries, merged))),
                event => self.read_node(event, &span)?,
            };
            let YamlNode::Scalar(YamlScalar { text: key, .. }) = key else {
                return Err(format!("line {line}: a key should be a word"));
            };
            let (event, span) = self.next()?;
            let mut node = self.read_node(event, &span)?;
            if let YamlNode::Scalar(scalar) = &mut node
                && scalar.text.is_empty()
            {
                // The parser finds nothing where the next key begins.
                scalar.lines = line..=line;
            }
            if key == MERGE_KEY
                && let Some(tables) = merged_tables(&node)
            {
                merged.extend(tables);
                continue;
            }
            self.keys += 1;
            let end = node.end().unwrap_or(line).max(line);
            entries.push(YamlEntry { id: self.keys, key, lines: line..=end, node });
        }
    }
}

/// The key whose tables a table has as well (https://yaml.org/type/merge.html).
const MERGE_KEY: &str = "<<";

/// The entries of the table, or the tables, that stand behind a [`MERGE_KEY`]; none of anything else: a job file includes others so, by
/// their names or by tables that name a file.
fn merged_tables(node: &YamlNode) -> Option<Vec<YamlEntry>> {
    match node {
        YamlNode::Table(entries) => {
            let names_file = entries.iter().any(|entry| entry.key == "file");
            (!names_file).then(|| entries.clone())
        }
        YamlNode::List(nodes) => {
            nodes.iter().map(merged_tables).collect::<Option<Vec<_>>>().map(|all| all.concat())
        }
        YamlNode::Scalar(_) => None,
    }
}

/// A table with what it merges: its own keys come first, then those that were merged first.
fn merge_entries(mut entries: Vec<YamlEntry>, merged: Vec<YamlEntry>) -> Vec<YamlEntry> {
    for entry in merged {
        if !entries.iter().any(|known| known.key == entry.key) {
            entries.push(entry);
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the merge key's own page, shortened.
    #[test]
    fn tables_are_merged_and_own_keys_come_first() {
        let text = "big: &big {x: 1, r: 10}\nsmall: &small {r: 1}\nall:\n  <<: [*big, *small]\n  x: 2\none:\n  <<: *small\n  y: 3\n";
        let documents = parse_yaml_tables(text).unwrap();
        let table = |at: usize| {
            let YamlNode::Table(entries) = &documents[0][at].node else { panic!("{:?}", documents[0][at]) };
            let text = |node: &YamlNode| match node {
                YamlNode::Scalar(scalar) => scalar.text.clone(),
                other => panic!("{other:?}"),
            };
            entries.iter().map(|entry| (entry.key.clone(), text(&entry.node))).collect::<Vec<_>>()
        };
        let pairs = |all: &[(&str, &str)]| {
            all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<Vec<_>>()
        };
        assert_eq!(table(2), pairs(&[("x", "2"), ("r", "10")]));
        assert_eq!(table(3), pairs(&[("y", "3"), ("r", "1")]));
        let YamlNode::Table(entries) = &documents[0][2].node else { panic!() };
        assert_eq!(entries[1].lines, 4..=4);
    }

    #[test]
    fn keys_and_values_know_their_lines() {
        let text = "a: 1\nb:\n  - x\n  - \"y\"\n  -\n\nc: {d: e,\n  f: [g]}\nh:\ni: |\n  text\n  more\n---\na: 2\n<<: x\n<<: y\n";
        let documents = parse_yaml_tables(text).unwrap();
        let lines = |entries: &[YamlEntry]| -> Vec<(String, YamlLines)> {
            entries.iter().map(|entry| (entry.key.clone(), entry.lines.clone())).collect()
        };
        let expected = [("a", 1..=1), ("b", 2..=5), ("c", 7..=8), ("h", 9..=9), ("i", 10..=12)];
        assert_eq!(lines(&documents[0]), expected.map(|(key, lines)| (key.to_owned(), lines)));
        let expected = [("a", 14..=14), ("<<", 15..=15), ("<<", 16..=16)];
        assert_eq!(lines(&documents[1]), expected.map(|(key, lines)| (key.to_owned(), lines)));
    }

    #[test]
    fn what_is_no_tree_is_refused_with_its_line() {
        let laughs = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned()
            + &(1..9)
                .map(|n| {
                    let (name, before) = (char::from(b'a' + n), char::from(b'a' + n - 1));
                    format!("{name}: &{name} [{}]\n", vec![format!("*{before}"); 10].join(", "))
                })
                .collect::<String>();
        let deep = "a: ".to_owned() + &"[".repeat(100_000);
        let blocks = (0..100).map(|n| format!("{}a:\n", " ".repeat(n))).collect::<String>();
        let tabs = "a:\n\tb: c\n";
        let texts = [
            &laughs,
            &deep,
            &blocks,
            tabs,
            "a: *b\n",
            "- a\n",
            "just words\n",
            "a: [b\n",
            "? [a]\n: b\n",
            "a: \"b",
        ];
        let refusals = texts.map(|text| parse_yaml_tables(text).unwrap_err());
        insta::assert_snapshot!(refusals.join("\n"), @"
        line 5: it has more than 20000 values, those that aliases repeat among them
        line 1: it is no YAML: recursion limit exceeded
        line 33: it is no YAML: recursion limit exceeded
        line 2: it is no YAML: tabs disallowed within this context (block indentation)
        line 1: it is no YAML: while parsing node, found unknown anchor
        line 1: keys with their values should stand there
        line 1: keys with their values should stand there
        line 1: it is no YAML: unclosed bracket '['
        line 1: a key should be a word
        line 1: it is no YAML: unclosed quote
        ");
    }
}

//! One line: from the right where it is whole, from the left where it breaks off. A number that may have lost digits is
//! not read.

use super::super::lines::{LogLine, split_last_word};

const TUNABLES: &str = ": tunables";
const SLABDATA: &str = ": slabdata";
/// Numbers between the name and the tunables.
const OBJECTS: usize = 5;
/// All numbers that are kept: those, active slabs, slabs.
pub(super) const NUMBERS: usize = 7;

/// Numbers of a line: active, all, size, objects a slab, pages a slab, active slabs, slabs.
pub(super) type SlabinfoNumbers = [Option<i64>; NUMBERS];

/// What stands before and behind `mark`, which begins with the only colons of most lines.
fn split_at_mark<'a>(text: &'a str, mark: &str) -> Option<(&'a str, &'a str)> {
    let colons = text.match_indices(':').filter_map(|(at, _)| text.split_at_checked(at));
    colons.into_iter().find_map(|(left, right)| Some((left, right.strip_prefix(mark)?)))
}

/// Name and numbers of a line; why nothing of it can be used.
pub(super) fn parse_slabinfo_log_line(line: LogLine<'_>) -> Result<(&str, SlabinfoNumbers), String> {
    let mut numbers = SlabinfoNumbers::default();
    let name = match split_at_mark(line.text, TUNABLES) {
        Some((left, right)) => {
            let name = parse_numbers_from_right(left, &mut numbers)?;
            parse_slab_counts(right, line.whole, &mut numbers);
            name
        }
        None => parse_cut_line(line, &mut numbers)?,
    };
    match numbers.iter().any(Option::is_some) {
        true => Ok((name, numbers)),
        false => Err("no number could be read".into()),
    }
}

/// The five numbers at the right end; the name is what stands before them, spaces and all.
fn parse_numbers_from_right<'a>(left: &'a str, numbers: &mut SlabinfoNumbers) -> Result<&'a str, String> {
    let mut rest = left.trim_ascii_end();
    for slot in numbers.iter_mut().take(OBJECTS).rev() {
        let (before, word) = split_last_word(rest).ok_or("it has fewer than a name and five numbers")?;
        *slot = parse_slab_count(word);
        rest = before;
    }
    if rest.is_empty() { Err("it has no name before its five numbers".into()) } else { Ok(rest) }
}

/// Active slabs and slabs. The last word of a line without an end may be half a number.
fn parse_slab_counts(right: &str, whole: bool, numbers: &mut SlabinfoNumbers) {
    let Some((_, slabs)) = split_at_mark(right, SLABDATA) else { return };
    let mut words = slabs.split_ascii_whitespace().peekable();
    for slot in numbers.iter_mut().skip(OBJECTS) {
        let word = words.next();
        *slot = word.filter(|_| whole || words.peek().is_some()).and_then(parse_slab_count);
    }
}

/// A line that ends before its tunables: the numbers that are there, from the left, without the last.
fn parse_cut_line<'a>(line: LogLine<'a>, numbers: &mut SlabinfoNumbers) -> Result<&'a str, String> {
    let text = line.text.split(" :").next().unwrap_or_default();
    let (name, words) =
        split_at_first_number(text).ok_or("it is no row of slabinfo: no numbers behind a name")?;
    let mut words = words.split_ascii_whitespace().peekable();
    for slot in numbers.iter_mut().take(OBJECTS) {
        let word = words.next();
        *slot = word.filter(|_| words.peek().is_some()).and_then(parse_slab_count);
    }
    Ok(name.trim_ascii())
}

/// What stands before the first number behind another word, and the text from there on.
fn split_at_first_number(text: &str) -> Option<(&str, &str)> {
    let mut at = 0;
    for word in text.split([' ', '\t']) {
        if at > 0 && parse_slab_count(word).is_some() {
            return text.split_at_checked(at);
        }
        at += word.len() + 1;
    }
    None
}

fn parse_slab_count(word: &str) -> Option<i64> {
    word.parse().ok().filter(|number| *number >= 0)
}

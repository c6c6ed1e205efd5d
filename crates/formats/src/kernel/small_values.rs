//! What stands in small files of /proc and /sys: lists of CPUs, marked choices, `key: value` fields.

use perflab_model::Scalar;

/// A whole number where the text is one, else the text with its white space made single.
pub fn parse_scalar(text: &str) -> Scalar {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    text.parse().map_or_else(|_| Scalar::Text(text), Scalar::Int)
}

/// The choice that a file marks, `always [madvise] never`, or all of its text.
pub fn parse_marked_choice(text: &str) -> &str {
    let marked = text.split_once('[').and_then(|(_, rest)| Some(rest.split_once(']')?.0));
    marked.unwrap_or(text.trim())
}

/// The members of a list of the kernel (`0-3,8`); empty where it is none.
pub fn parse_cpu_list(list: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<u32>().ok()?..=last.trim().parse::<u32>().ok()?.min(65_535))
    };
    list.split(',').filter_map(range).flatten().collect()
}

/// CPUs, in ascending order, as the kernel lists them: `0-3,8`.
pub fn format_cpu_list(cpus: &[u32]) -> String {
    let ranges = cpus.chunk_by(|before, after| before.checked_add(1) == Some(*after));
    let text = |range: &[u32]| match (range.first(), range.last()) {
        (Some(first), Some(last)) if first < last => format!("{first}-{last}"),
        (Some(only), _) => only.to_string(),
        _ => String::new(),
    };
    ranges.map(text).collect::<Vec<_>>().join(",")
}

/// The value of `key` in lines of `key : value` or `key=value`.
pub fn find_field<'t>(text: &'t str, separator: char, key: &str) -> Option<&'t str> {
    let halves = text.lines().filter_map(|line| line.split_once(separator));
    halves
        .map(|(name, value)| (name.trim(), value.trim()))
        .find(|(name, _)| *name == key)
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_choices_of_the_kernel() {
        assert_eq!(parse_cpu_list("0-2,8"), [0, 1, 2, 8]);
        assert_eq!(format_cpu_list(&[0, 1, 2, 8]), "0-2,8");
        assert_eq!(format_cpu_list(&[]), "");
        assert!(parse_cpu_list("").is_empty() && parse_cpu_list("none").is_empty());
        assert_eq!(parse_marked_choice("always [madvise] never"), "madvise");
        assert_eq!(parse_marked_choice("none"), "none");
    }

    #[test]
    fn fields_and_scalars() {
        assert_eq!(find_field("a\t: 1\nmodel name : X Y", ':', "model name"), Some("X Y"));
        assert_eq!(parse_scalar("4096\t87380"), Scalar::Text("4096 87380".into()));
        assert_eq!(parse_scalar(" 60"), Scalar::Int(60));
    }
}

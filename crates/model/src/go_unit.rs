//! Units of Go's benchmark format, which are parts with `*`, `/` and `-` between them: `ns/op`, `text-bytes`.
//!
//! What is told of a unit here is what `benchunit` of golang.org/x/perf makes of it: prefixes go from the parts above the
//! line, and bytes are counted in powers of 1024.

/// The parts of a unit: where each begins and ends, and whether it stands below the line.
fn unit_parts(unit: &str) -> Vec<(usize, usize, bool)> {
    let mut parts = Vec::new();
    let (mut start, mut below) = (None, false);
    for (at, sign) in unit.char_indices().chain([(unit.len(), '-')]) {
        let is_separator = matches!(sign, '*' | '/' | '-') || sign.is_whitespace();
        match (is_separator, start) {
            (false, None) => start = Some(at),
            (true, Some(begun)) => {
                parts.push((begun, at, below));
                start = None;
            }
            _ => {}
        }
        below = match sign {
            '/' => true,
            '*' => false,
            _ => below,
        };
    }
    parts
}

/// The unit without prefixes, `sec/op` for `ns/op`, and how many of it one of the other is.
#[must_use]
pub fn tidy_unit(unit: &str) -> (String, f64) {
    let (mut tidied, mut factor) = (unit.to_owned(), 1.0);
    for (begin, end, below) in unit_parts(unit).into_iter().rev() {
        if below {
            continue;
        }
        let (base, times) = match unit.get(begin..end) {
            Some("ns") => ("sec", 1e-9),
            Some("MB") => ("B", 1e6),
            _ => continue,
        };
        tidied.replace_range(begin..end, base);
        factor *= times;
    }
    (tidied, factor)
}

/// Whether it counts bytes, which have prefixes of 1024.
#[must_use]
pub fn is_binary_unit(unit: &str) -> bool {
    let is_bytes = |(begin, end, below): (usize, usize, bool)| {
        !below && matches!(unit.get(begin..end), Some("B" | "MB" | "bytes"))
    };
    unit_parts(unit).into_iter().any(is_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_go_above_the_line() {
        let tidied = |unit: &str| tidy_unit(unit);
        assert_eq!(tidied("ns/op"), ("sec/op".into(), 1e-9));
        assert_eq!(tidied("MB/s"), ("B/s".into(), 1e6));
        assert_eq!(tidied("p99-ns"), ("p99-sec".into(), 1e-9));
        assert_eq!(tidied("ns*MB"), ("sec*B".into(), 1e-9 * 1e6));
        assert_eq!(tidied("ops/ns"), ("ops/ns".into(), 1.0));
        assert_eq!(tidied("turns"), ("turns".into(), 1.0));
        assert_eq!(tidied("/-µs"), ("/-µs".into(), 1.0));
    }

    #[test]
    fn bytes_above_the_line_are_binary() {
        assert!(["B/op", "MB/s", "text-bytes", "s/x*B"].into_iter().all(is_binary_unit));
        assert!(!["ns/op", "ops/B", "Bytes", ""].into_iter().any(is_binary_unit));
    }
}

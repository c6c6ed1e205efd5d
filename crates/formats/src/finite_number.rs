//! A number as a tool prints it: finite, or none.

/// A finite number, with or without commas between thousands; blanks around it do not count.
pub fn parse_finite_number(text: &str) -> Option<f64> {
    let text = text.trim();
    let parsed = text.parse::<f64>().ok().or_else(|| parse_grouped_number(text));
    parsed.filter(|number| number.is_finite())
}

/// The same, or why there is none.
///
/// # Errors
/// The text, shortened.
pub fn require_finite_number(text: &str) -> Result<f64, String> {
    parse_finite_number(text)
        .ok_or_else(|| format!("`{}` is no number", text.trim().chars().take(40).collect::<String>()))
}

/// `1,234,567.8`: groups of three digits, so that the comma of `12,5` is not taken for one between thousands.
fn parse_grouped_number(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, _) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let mut groups = whole.split(',');
    let are_digits = |group: &str| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit());
    let first = groups.next().is_some_and(|group| group.len() <= 3 && are_digits(group));
    let grouped = first && groups.all(|group| group.len() == 3 && are_digits(group));
    let decimal = if grouped { text.replacen(',', "", whole.matches(',').count()) } else { return None };
    decimal.parse().ok()
}

/// `3:08.17`, `1:02:03` in seconds.
pub fn parse_clock_time(text: &str) -> Option<f64> {
    let mut parts = text.trim().split(':').map(|part| part.parse::<f64>().ok());
    parts.try_fold(0.0, |sum, part| Some(sum * 60.0 + part?)).filter(|time| time.is_finite())
}

/// What was found where a number was expected, short enough for a message.
pub(crate) fn shorten_quotation(text: &str) -> String {
    text.trim().chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_stand_between_thousands_only() {
        for (text, expected) in [
            (" 1,234.5 ", Some(1234.5)),
            ("-1,234,567", Some(-1_234_567.0)),
            ("1e3", Some(1000.0)),
            ("12,5", None),
            ("1234,567", None),
            ("1,23", None),
            (",123", None),
            ("1,234.5,6", None),
            ("NaN", None),
            ("1e999", None),
            ("", None),
        ] {
            assert_eq!(parse_finite_number(text), expected, "{text}");
        }
        assert_eq!(require_finite_number(" fast "), Err("`fast` is no number".into()));
    }

    #[test]
    fn a_clock_is_seconds() {
        assert_eq!(parse_clock_time("1:02:03"), Some(3723.0));
        assert_eq!(parse_clock_time("3:08.17"), Some(188.17));
        assert_eq!(parse_clock_time("soon"), None);
    }
}

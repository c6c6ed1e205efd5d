//! "did you mean": the known name nearest to a mistyped one.

/// The closest of `known` to `name`, if it is close enough to be a slip of the finger.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.into_iter().map(|candidate| (strsim::jaro_winkler(name, candidate), candidate));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 > 0.75).then_some(best.1)
}

/// A hint for an unknown name: the nearest one, or all of them.
pub fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(name, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let all: Vec<&str> = known.into_iter().collect();
            format!("known here: {}", all.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_mended_and_strangers_get_the_list() {
        assert_eq!(nearest("iteratons", ["iterations", "order"]), Some("iterations"));
        assert_eq!(hint("zzz", ["a", "b"]), "known here: a, b");
    }
}

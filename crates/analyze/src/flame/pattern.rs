//! Patterns of function names: plain text, with `*` for anything.

/// A pattern.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NamePattern(String);

impl NamePattern {
    /// Checks that a normalised name can match at all.
    ///
    /// # Errors
    /// The reason why none can.
    pub fn new(text: &str) -> Result<NamePattern, String> {
        let stripped = perflab_model::profile::strip_compiler_suffixes(text);
        if text.is_empty() || text.chars().all(|c| c == '*') {
            return Err(format!("`{text}` names no function in particular"));
        }
        if stripped != text {
            return Err(format!(
                "`{text}` matches nothing: names are compared without suffixes, as `{stripped}`"
            ));
        }
        match text.chars().find(|c| c.is_whitespace() || c.is_control()) {
            Some(odd) => Err(format!("`{text}` matches nothing: no function's name has a {odd:?} in it")),
            None => Ok(NamePattern(text.into())),
        }
    }

    /// The pattern as it is written.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether a name fits.
    pub fn matches(&self, name: &str) -> bool {
        matches_pattern(self.0.as_bytes(), name.as_bytes())
    }

    /// Whether everything that fits `other` fits this: then `other` behind this one matches nothing.
    pub fn covers(&self, other: &NamePattern) -> bool {
        // A `*` of the other stands for any text, and only a `*` of this one can take that.
        matches_pattern(self.0.as_bytes(), other.0.as_bytes())
    }
}

/// Wildcards by going back to the last one: linear for the few that patterns have.
fn matches_pattern(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n, mut back) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                back = Some((p, n));
                p += 1;
            }
            Some(byte) if name.get(n) == Some(byte) => (p, n) = (p + 1, n + 1),
            _ => match back {
                Some((star, from)) => {
                    back = Some((star, from + 1));
                    (p, n) = (star + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(p).all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_match(pattern: &str, name: &str) -> bool {
        NamePattern::new(pattern).unwrap().matches(name)
    }

    #[test]
    fn stars_stand_for_anything() {
        assert!(is_match("kfree", "kfree") && !is_match("kfree", "kfree_skb"));
        assert!(
            is_match("kfree*", "kfree")
                && is_match("*free", "kfree")
                && is_match("*memcg*", "__memcg_charge")
        );
        assert!(is_match("a*b*c", "axbxbc") && !is_match("a*b*c", "axbxb"));
    }

    #[test]
    fn what_matches_nothing_is_refused_with_its_reason() {
        for (text, reason) in [
            ("", "in particular"),
            ("**", "in particular"),
            ("foo.isra.0", "as `foo`"),
            ("kmem_cache_alloc_noprof", "as `kmem_cache_alloc`"),
            ("do it", "' '"),
        ] {
            assert!(NamePattern::new(text).unwrap_err().contains(reason), "{text}");
        }
    }

    #[test]
    fn a_wider_pattern_covers_a_narrower_one() {
        let covers = |a: &str, b: &str| NamePattern::new(a).unwrap().covers(&NamePattern::new(b).unwrap());
        assert!(covers("kfree*", "kfree") && covers("*a*", "xay*") && covers("a*", "a*"));
        assert!(!covers("kfree", "kfree*") && !covers("a*b", "a*"));
    }

    proptest! {
        #[test]
        fn a_pattern_made_of_a_name_fits_it(name in "[a-z_]{3,12}", cut in 0..3_usize, end in 0..3_usize) {
            let middle = &name[cut..name.len() - end.min(name.len() - cut)];
            let pattern = format!("*{middle}*");
            if let Ok(pattern) = NamePattern::new(&pattern) {
                prop_assert!(pattern.matches(&name));
            }
        }
    }
}

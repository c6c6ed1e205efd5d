//! Script and style of the page, built from `web/` and committed under `assets/`, and their hashes.
//!
//! The page's policy allows exactly these two texts, by hash: nothing that a study's or a metric's name
//! smuggles in can run.

use sha2::{Digest, Sha256};

/// The front end: one script without imports.
pub(crate) const SCRIPT: &str = include_str!("../../assets/report.js");
/// Its style sheet.
pub(crate) const STYLE: &str = include_str!("../../assets/report.css");
/// The page's template and its parts, by name.
pub(crate) const TEMPLATES: &[(&str, &str)] = &[
    ("report.html", include_str!("../../assets/report.html")),
    ("comparison.html", include_str!("../../assets/comparison.html")),
    ("runs.html", include_str!("../../assets/runs.html")),
    ("history.html", include_str!("../../assets/history.html")),
    ("slab.html", include_str!("../../assets/slab.html")),
    ("flame.html", include_str!("../../assets/flame.html")),
    ("flame_section.html", include_str!("../../assets/flame_section.html")),
    ("startup.html", include_str!("../../assets/startup.html")),
    ("fairness.html", include_str!("../../assets/fairness.html")),
    ("trace.html", include_str!("../../assets/trace.html")),
];

/// The content security policy: nothing from anywhere, no style attributes, no script but ours.
pub(crate) fn content_security_policy() -> String {
    let (script, style) = (hash_source(SCRIPT), hash_source(STYLE));
    format!(
        "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; img-src data:; \
         base-uri 'none'; form-action 'none'"
    )
}

fn hash_source(text: &str) -> String {
    encode_base64(&Sha256::digest(text.as_bytes()))
}

/// RFC 4648, section 4.
pub(crate) fn encode_base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |group: u32, at: u32| {
        let sextet = (group >> (18 - 6 * at)) & 63;
        DIGITS.get(sextet as usize).map_or('=', |digit| char::from(*digit))
    };
    let four = |chunk: &[u8]| {
        let group =
            (0..3).fold(0, |group, at| (group << 8) | chunk.get(at).map_or(0, |byte| u32::from(*byte)));
        (0..4).map(|at| if at as usize > chunk.len() { '=' } else { digit(group, at) }).collect::<String>()
    };
    bytes.chunks(3).map(four).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    pub(crate) fn base64_gives_the_vectors_of_rfc_4648() {
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
        ];
        for (plain, coded) in vectors {
            assert_eq!(encode_base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn nothing_in_the_bundle_ends_its_own_element() {
        assert!(!SCRIPT.contains("</script") && !SCRIPT.contains("<!--"));
        assert!(!STYLE.contains("</style"));
    }

    #[test]
    fn code_stays_in_its_budget() {
        assert!(SCRIPT.len() + STYLE.len() <= 150_000, "{} bytes", SCRIPT.len() + STYLE.len());
    }
}

//! What another machine said, made harmless. Owns which signs a terminal would obey; refuses to judge words.

/// The text without what a terminal would obey.
pub(crate) fn inert(text: &str) -> String {
    let obeyed = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(obeyed) {
        return text.to_owned();
    }
    // A carriage return draws over what stands there; most come before a line end and mean nothing.
    text.replace("\r\n", "\n").chars().map(|c| if obeyed(c) { '\u{fffd}' } else { c }).collect()
}

//! Text of another machine, made harmless before it is kept: characters that a terminal would obey, and those that
//! reverse the order of letters, become U+FFFD. Which those are is defined in [`perflab_model::untrusted_text`].

use perflab_model::untrusted_text::is_terminal_command;

/// The text without what a terminal would obey.
pub(crate) fn remove_control_characters(text: &str) -> String {
    let obeyed = |c: char| is_terminal_command(c) && c != '\n' && c != '\t';
    if !text.contains(obeyed) {
        return text.to_owned();
    }
    // A carriage return draws over what stands there; most come before a line end and mean nothing.
    text.replace("\r\n", "\n").chars().map(|c| if obeyed(c) { '\u{fffd}' } else { c }).collect()
}

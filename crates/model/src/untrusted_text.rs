//! What files, programs and guests call themselves, shown without obeying it.
//!
//! Replaced are characters that a terminal would obey, and those that reverse the order of letters; what a text
//! means is not judged. JSON has escapes of its own and is given as it is.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text with characters that command a terminal made visible (`\x1b`, `\u{202e}`); line ends and tabs stay.
pub fn escape_controls(text: &str) -> Cow<'_, str> {
    escape_signs(text, |character| !matches!(character, '\n' | '\t'))
}

/// The same for what has to stay in one line: a cell of a table, a name in a sentence.
pub fn escape_controls_in_line(text: &str) -> Cow<'_, str> {
    escape_signs(text, |_| true)
}

/// [`escape_controls`]; where `coloured`, the colours (`ESC [ 1 m`) stay that perflab gave the text.
pub fn escape_controls_keeping_colours(text: &str, coloured: bool) -> Cow<'_, str> {
    if !coloured || !text.contains('\x1b') {
        return escape_controls(text);
    }
    let mut parts = text.split('\x1b');
    let mut out = parts.next().map(|first| escape_controls(first).into_owned()).unwrap_or_default();
    for part in parts {
        let words = part.strip_prefix('[').unwrap_or_default();
        let is_colour = words
            .trim_start_matches(|character: char| character.is_ascii_digit() || character == ';')
            .starts_with('m');
        out += if is_colour { "\x1b" } else { "\\x1b" };
        out += &escape_controls(part);
    }
    Cow::Owned(out)
}

fn escape_signs(text: &str, more: impl Fn(char) -> bool) -> Cow<'_, str> {
    // Most texts are of letters that no table need be asked about.
    let lines_are_plain = !more('\n');
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') | (lines_are_plain & (byte == b'\n'));
    // Whole blocks at once, which the processor can do: a list may be a megabyte.
    let is_plain_block = |block: &[u8]| block.iter().fold(true, |all, byte| all & is_plain(*byte));
    if text.as_bytes().chunks(256).all(is_plain_block) {
        return Cow::Borrowed(text);
    }
    let commands = |character: char| is_terminal_command(character) && more(character);
    if !text.contains(commands) {
        return Cow::Borrowed(text);
    }
    // A carriage return before a line end means nothing.
    let text = if more('\n') { Cow::Borrowed(text) } else { Cow::Owned(text.replace("\r\n", "\n")) };
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        // Writing to a string cannot fail.
        let _ = match character {
            '\n' if more(character) => out.write_str("\\n"),
            '\t' if more(character) => out.write_str("\\t"),
            '\r' => out.write_str("\\r"),
            _ if !commands(character) => out.write_char(character),
            _ if u32::from(character) < 0x100 => write!(out, "\\x{:02x}", u32::from(character)),
            _ => write!(out, "\\u{{{:x}}}", u32::from(character)),
        };
    }
    Cow::Owned(out)
}

/// Whether a character is obeyed rather than shown: C0, DEL, C1, marks and overrides of direction, separators of lines.
pub fn is_terminal_command(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}')
}

/// The text without what a terminal would obey.
pub fn remove_control_characters(text: &str) -> String {
    let obeyed = |c: char| is_terminal_command(c) && c != '\n' && c != '\t';
    if !text.contains(obeyed) {
        return text.to_owned();
    }
    // A carriage return draws over what stands there; most come before a line end and mean nothing.
    text.replace("\r\n", "\n").chars().map(|c| if obeyed(c) { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_stay_and_nothing_else() {
        let text = "\x1b[1mbold\x1b[0m \x1b]0;own\x07 \x1b[2J";
        assert_eq!(
            escape_controls_keeping_colours(text, true),
            "\x1b[1mbold\x1b[0m \\x1b]0;own\\x07 \\x1b[2J"
        );
        assert_eq!(escape_controls_keeping_colours("\x1b[1mbold", false), "\\x1b[1mbold");
    }

    #[test]
    fn what_a_terminal_obeys_is_shown() {
        assert_eq!(escape_controls("a\x1b[2J\x07\u{9b}b\x7f"), "a\\x1b[2J\\x07\\x9bb\\x7f");
        assert_eq!(escape_controls("\u{202e}gpj\u{2069}\u{200f}"), "\\u{202e}gpj\\u{2069}\\u{200f}");
        assert_eq!(escape_controls("one\r\ntwo\tthree\rfour"), "one\ntwo\tthree\\rfour");
        assert_eq!(escape_controls_in_line("one\ntwo\t\r"), "one\\ntwo\\t\\r");
        assert!(matches!(escape_controls_in_line("größer, 大"), Cow::Borrowed(_)));
    }
}

//! Text in a terminal: wrapped, packed into lines, styled.

/// Stands for a space at which no line is broken.
const GLUE: char = '\u{a0}';

const BOLD: &str = "1";

pub(crate) const DIM: &str = "2";

/// The text with the spaces glued that must not become ends of lines.
pub(crate) fn glue_spaces(text: &str) -> String {
    text.replace(" %", "\u{a0}%").replace("± ", "±\u{a0}")
}

/// The text with its spaces as they were.
pub(crate) fn unglue_spaces(text: &str) -> String {
    text.replace(GLUE, " ")
}

/// A text broken between words into lines of at most `width` columns, the first after `first`, the others after
/// `rest`; never between a number and its sign (`95 %`, `± 3`). A word that is longer than a line stands alone and sticks out.
pub fn wrap_text(text: &str, width: usize, first: &str, rest: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    let mut is_fresh = true;
    // A name in a sentence begins no line of its own.
    let text = &text.replace('\r', "\\r").replace('\n', "\\n");
    for word in glue_spaces(text).split(' ') {
        let word = unglue_spaces(word);
        let grown = line.chars().count() + usize::from(!is_fresh) + word.chars().count();
        if !is_fresh && grown > width {
            lines.push(std::mem::replace(&mut line, rest.to_owned()));
            is_fresh = true;
        }
        if !is_fresh {
            line.push(' ');
        }
        line.push_str(&word);
        is_fresh = false;
    }
    lines.push(line);
    lines
}

/// The texts in order, as many in a line as fit.
pub(crate) fn pack_texts(texts: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for text in texts {
        let fits = |line: &&mut String| 4 + line.chars().count() + 3 + text.chars().count() <= width;
        match lines.last_mut().filter(fits) {
            Some(line) => *line += &format!("   {text}"),
            None => lines.push(text.clone()),
        }
    }
    lines
}

/// Text that stands out, where colour is on.
pub(crate) fn bold_text(text: &str, colour: bool) -> String {
    style_text(text, BOLD, colour)
}

/// Text that stands back, where colour is on.
pub(crate) fn dim_text(text: &str, colour: bool) -> String {
    style_text(text, DIM, colour)
}

pub(crate) fn style_text(text: &str, code: &str, colour: bool) -> String {
    if colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.into() }
}

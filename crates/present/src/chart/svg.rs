//! Owns SVG. It refuses scripts, style attributes and fonts from elsewhere, so that a figure stands inside a page
//! whose policy allows none of them.

use std::fmt::Write;

use super::scene::{Anchor, Ink, Mark, Point, Scene, Surface};

/// The scene as one `<svg>` element.
pub(super) fn text(scene: &Scene, surface: Surface) -> String {
    let (width, height) = (number(scene.width), number(scene.height));
    let description = escaped(&scene.description);
    // Inside a page the height follows from the width that the page gives.
    let fixed = if surface == Surface::Paper { format!(" height=\"{height}\"") } else { String::new() };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\"{fixed} viewBox=\"0 0 {width} {height}\" \
         role=\"img\" aria-label=\"{description}\" font-family=\"Roboto, system-ui, sans-serif\">\n"
    );
    if surface == Surface::Paper {
        let _ = writeln!(out, "<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>");
    }
    for mark in &scene.marks {
        element(&mut out, mark, surface);
    }
    out.push_str("</svg>\n");
    out
}

/// One mark. Writing to a `String` cannot fail, so results are dropped.
fn element(out: &mut String, mark: &Mark, surface: Surface) {
    let _ = match mark {
        Mark::Rect { at, width, height, ink, title } => {
            let (x, y, fill) = (number(at.x), number(at.y), paint("fill", *ink, surface));
            let shape = format!(
                "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" {fill}",
                number(*width),
                number(*height)
            );
            writeln!(out, "{}", closed(&shape, "rect", title))
        }
        Mark::Dots { at, scale, pixels } => {
            let side = |pixels: usize| number(pixels as f64 / scale);
            let (x, y, width, height) =
                (number(at.x), number(at.y), side(pixels.width()), side(pixels.height()));
            // A grid that cannot be an image is one without pixels.
            let data = crate::report::base64(&pixels.png().unwrap_or_default());
            writeln!(
                out,
                "<image x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" href=\"data:image/png;base64,{data}\"/>"
            )
        }
        Mark::Area { points, ink, title } => {
            let shape = format!("<polygon points=\"{}\" {}", places(points), paint("fill", *ink, surface));
            writeln!(out, "{}", closed(&shape, "polygon", title))
        }
        Mark::Line { points, ink, width, dashed, title } => {
            let dashes = if *dashed { " stroke-dasharray=\"4 3\"" } else { "" };
            let shape = format!(
                "<polyline points=\"{}\" fill=\"none\" stroke-width=\"{}\" stroke-linejoin=\"round\"{dashes} {}",
                places(points),
                number(*width),
                paint("stroke", *ink, surface)
            );
            writeln!(out, "{}", closed(&shape, "polyline", title))
        }
        Mark::Text { at, anchor, size, ink, text } => writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" font-size=\"{}\"{} {}>{}</text>",
            number(at.x),
            number(at.y),
            number(*size),
            anchored(*anchor),
            paint("fill", *ink, surface),
            escaped(text)
        ),
    };
}

fn closed(shape: &str, name: &str, title: &str) -> String {
    match title {
        "" => format!("{shape}/>"),
        title => format!("{shape}><title>{}</title></{name}>", escaped(title)),
    }
}

fn anchored(anchor: Anchor) -> &'static str {
    match anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    }
}

/// A fill or a stroke as presentation attributes.
fn paint(attribute: &str, ink: Ink, surface: Surface) -> String {
    let text = if surface == Surface::Paper { "#1b1b1b" } else { "currentColor" };
    match ink {
        Ink::Text => format!("{attribute}=\"{text}\""),
        Ink::Faint => format!("{attribute}=\"{text}\" {attribute}-opacity=\"0.68\""),
        Ink::Grid => format!("{attribute}=\"{text}\" {attribute}-opacity=\"0.15\""),
        Ink::Own(colour) => format!("{attribute}=\"{}\"", colour.hex()),
        Ink::Pale(colour) => format!("{attribute}=\"{}\" {attribute}-opacity=\"0.45\"", colour.hex()),
    }
}

fn places(points: &[Point]) -> String {
    let place = |point: &Point| format!("{},{}", number(point.x), number(point.y));
    points.iter().map(place).collect::<Vec<_>>().join(" ")
}

/// Two decimals at most, none where they are zero.
pub(crate) fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

/// Text between tags and inside attributes.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML knows no other control character, not even escaped.
            letter if letter.is_control() => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

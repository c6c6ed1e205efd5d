//! A scene as SVG, without scripts, style attributes and fonts from elsewhere, so that it can stand inside a page whose
//! policy allows none of them.

use std::fmt::Write;

use super::scene::{MarkInk, Scene, SceneMark, ScenePoint, SceneSurface, TextAnchor};

impl Scene {
    /// The figure as SVG, without script and without style attributes.
    #[must_use]
    pub fn to_svg(&self, surface: SceneSurface) -> String {
        scene_to_svg(self, surface)
    }
}

/// The scene as one `<svg>` element.
fn scene_to_svg(scene: &Scene, surface: SceneSurface) -> String {
    let (width, height) = (format_coordinate(scene.width), format_coordinate(scene.height));
    let description = escape_xml(&scene.description);
    // Inside a page the height follows from the width that the page gives.
    let fixed = if surface == SceneSurface::Paper { format!(" height=\"{height}\"") } else { String::new() };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\"{fixed} viewBox=\"0 0 {width} {height}\" \
         role=\"img\" aria-label=\"{description}\" font-family=\"Roboto, system-ui, sans-serif\">\n"
    );
    if surface == SceneSurface::Paper {
        let _ = writeln!(out, "<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>");
    }
    for mark in &scene.marks {
        write_mark(&mut out, mark, surface);
    }
    out.push_str("</svg>\n");
    out
}

/// One mark. Writing to a `String` cannot fail, so results are dropped.
fn write_mark(out: &mut String, mark: &SceneMark, surface: SceneSurface) {
    let _ = match mark {
        SceneMark::Rect { at, width, height, ink, title } => {
            let (x, y, fill) =
                (format_coordinate(at.x), format_coordinate(at.y), paint_attribute("fill", *ink, surface));
            let shape = format!(
                "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" {fill}",
                format_coordinate(*width),
                format_coordinate(*height)
            );
            writeln!(out, "{}", close_element(&shape, "rect", title))
        }
        SceneMark::Dots { at, scale, pixels } => {
            let side = |pixels: usize| format_coordinate(pixels as f64 / scale);
            let (x, y, width, height) = (
                format_coordinate(at.x),
                format_coordinate(at.y),
                side(pixels.width()),
                side(pixels.height()),
            );
            // A grid that cannot be an image is one without pixels.
            let data = crate::packed_column::encode_base64(&pixels.to_png().unwrap_or_default());
            writeln!(
                out,
                "<image x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" href=\"data:image/png;base64,{data}\"/>"
            )
        }
        SceneMark::Area { points, ink, title } => {
            let shape = format!(
                "<polygon points=\"{}\" {}",
                point_list(points),
                paint_attribute("fill", *ink, surface)
            );
            writeln!(out, "{}", close_element(&shape, "polygon", title))
        }
        SceneMark::Line { points, ink, width, dashed, title } => {
            let dashes = if *dashed { " stroke-dasharray=\"4 3\"" } else { "" };
            let shape = format!(
                "<polyline points=\"{}\" fill=\"none\" stroke-width=\"{}\" stroke-linejoin=\"round\"{dashes} {}",
                point_list(points),
                format_coordinate(*width),
                paint_attribute("stroke", *ink, surface)
            );
            writeln!(out, "{}", close_element(&shape, "polyline", title))
        }
        SceneMark::Text { at, anchor, size, ink, text } => writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" font-size=\"{}\"{} {}>{}</text>",
            format_coordinate(at.x),
            format_coordinate(at.y),
            format_coordinate(*size),
            anchor_keyword(*anchor),
            paint_attribute("fill", *ink, surface),
            escape_xml(text)
        ),
    };
}

fn close_element(shape: &str, name: &str, title: &str) -> String {
    match title {
        "" => format!("{shape}/>"),
        title => format!("{shape}><title>{}</title></{name}>", escape_xml(title)),
    }
}

fn anchor_keyword(anchor: TextAnchor) -> &'static str {
    match anchor {
        TextAnchor::Start => "",
        TextAnchor::Middle => " text-anchor=\"middle\"",
        TextAnchor::End => " text-anchor=\"end\"",
    }
}

/// A fill or a stroke as presentation attributes.
fn paint_attribute(attribute: &str, ink: MarkInk, surface: SceneSurface) -> String {
    let text = if surface == SceneSurface::Paper { "#1b1b1b" } else { "currentColor" };
    match ink {
        MarkInk::Text => format!("{attribute}=\"{text}\""),
        MarkInk::Faint => format!("{attribute}=\"{text}\" {attribute}-opacity=\"0.68\""),
        MarkInk::Grid => format!("{attribute}=\"{text}\" {attribute}-opacity=\"0.15\""),
        MarkInk::Own(colour) => format!("{attribute}=\"{}\"", colour.hex()),
        MarkInk::Pale(colour) => format!("{attribute}=\"{}\" {attribute}-opacity=\"0.45\"", colour.hex()),
        MarkInk::Wash(colour) => format!("{attribute}=\"{}\" {attribute}-opacity=\"0.18\"", colour.hex()),
    }
}

fn point_list(points: &[ScenePoint]) -> String {
    let place = |point: &ScenePoint| format!("{},{}", format_coordinate(point.x), format_coordinate(point.y));
    points.iter().map(place).collect::<Vec<_>>().join(" ")
}

/// Two decimals at most, none where they are zero.
pub(crate) fn format_coordinate(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

/// Text between tags and inside attributes.
pub(crate) fn escape_xml(text: &str) -> String {
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

//! When a program counts as started, as a user writes it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::ended::ReadinessWatch;
use super::{StartupError, WindowCondition};

/// When a program counts as started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadinessCondition {
    /// it has ended, well
    Exit,
    /// it has printed a line that holds this text; any line where it is empty
    Line(String),
    /// this file is there, or was written anew
    File(PathBuf),
    /// it has said READY=1 as sd_notify does
    Notify,
    /// something accepts connections there: a port of this machine
    Port(u16),
    /// the same: a socket's path
    Socket(PathBuf),
    /// it has a window under X11
    Window(WindowCondition),
}

impl ReadinessCondition {
    /// Whether it can be watched for here.
    ///
    /// # Errors
    /// An X server that does not answer, a folder that is not there.
    pub fn check(&self) -> Result<(), StartupError> {
        ReadinessWatch::prepare(self).map(drop)
    }
}

/// What is no end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` does not say when a program counts as started; exit, line, line:TEXT, file:PATH, notify, listen:PORT, \
     listen:PATH, window, window:WxH or window:CLASS do"
)]
pub struct ReadinessConditionError(String);

impl FromStr for ReadinessCondition {
    type Err = ReadinessConditionError;

    fn from_str(text: &str) -> Result<Self, ReadinessConditionError> {
        let wrong = || ReadinessConditionError(text.into());
        let (word, rest) = text.split_once(':').map_or((text, None), |(word, rest)| (word, Some(rest)));
        match (word, rest) {
            ("exit", None) => Ok(ReadinessCondition::Exit),
            ("notify", None) => Ok(ReadinessCondition::Notify),
            ("line", rest) => Ok(ReadinessCondition::Line(rest.unwrap_or_default().into())),
            ("file", Some(path)) if !path.is_empty() => Ok(ReadinessCondition::File(path.into())),
            ("window", None) => Ok(ReadinessCondition::Window(WindowCondition::default())),
            ("window", Some(text)) => {
                WindowCondition::parse(text).map(ReadinessCondition::Window).ok_or_else(wrong)
            }
            ("listen", Some(path)) if path.starts_with('/') => Ok(ReadinessCondition::Socket(path.into())),
            ("listen", Some(port)) => port.parse().map(ReadinessCondition::Port).map_err(|_| wrong()),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for ReadinessCondition {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadinessCondition::Exit => write!(to, "its end"),
            ReadinessCondition::Line(text) if text.is_empty() => write!(to, "a line"),
            ReadinessCondition::Line(text) => write!(to, "a line with `{text}`"),
            ReadinessCondition::File(path) => write!(to, "the file {}", path.display()),
            ReadinessCondition::Notify => write!(to, "READY=1"),
            ReadinessCondition::Port(port) => write!(to, "a connection to port {port}"),
            ReadinessCondition::Socket(path) => write!(to, "a connection to {}", path.display()),
            ReadinessCondition::Window(window) => write!(to, "{window}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_read_and_others_refused() {
        let read = |text: &str| text.parse::<ReadinessCondition>();
        assert_eq!(read("exit"), Ok(ReadinessCondition::Exit));
        assert_eq!(read("line"), Ok(ReadinessCondition::Line(String::new())));
        assert_eq!(read("line:ready: 1"), Ok(ReadinessCondition::Line("ready: 1".into())));
        assert_eq!(read("file:/tmp/x"), Ok(ReadinessCondition::File("/tmp/x".into())));
        assert_eq!(read("listen:80"), Ok(ReadinessCondition::Port(80)));
        assert_eq!(read("listen:/run/s"), Ok(ReadinessCondition::Socket("/run/s".into())));
        assert_eq!(read("window"), Ok(ReadinessCondition::Window(WindowCondition::default())));
        let large = WindowCondition { width: 640, height: 480, class: None };
        assert_eq!(read("window:640x480"), Ok(ReadinessCondition::Window(large)));
        let xterm = WindowCondition { class: Some("xterm".into()), ..WindowCondition::default() };
        assert_eq!(read("window:xterm"), Ok(ReadinessCondition::Window(xterm.clone())));
        assert_eq!(xterm.to_string(), "a window of at least 300x200 pixels and of class xterm");
        for wrong in ["", "file", "file:", "listen:x", "listen:99999", "exit:1", "window:", "screen"] {
            assert!(read(wrong).unwrap_err().to_string().contains("listen:PORT"), "{wrong}");
        }
    }
}

//! An error with its causes, in one line.

use std::error::Error;

/// The error and its causes, the outermost first, with `: ` between them.
pub fn describe_error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Outer(std::num::ParseIntError);

    impl std::fmt::Display for Outer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("outer")
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn causes_follow_their_error() {
        let cause = "x".parse::<u8>().unwrap_err();
        assert_eq!(describe_error_chain(&Outer(cause.clone())), format!("outer: {cause}"));
    }
}

//! What went wrong with an archive in object storage. Every message names the archive; none holds a key.

use std::error::Error;
use std::path::PathBuf;

use perflab_archive::ArchiveError;
use perflab_model::error_class::{Classify, ErrorClass};

use crate::remote_url::RemoteUrl;

/// An error about an archive in object storage; a lower-case fragment that names its subject.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// This program cannot speak to buckets.
    #[error(
        "{url} needs object storage, which this perflab was built without: `cargo install --path crates/perflab --locked --features object-storage` \
         builds it in, and the packages have it"
    )]
    NotBuilt {
        /// the archive
        url: RemoteUrl,
    },
    /// Nothing was ever pushed there.
    #[error("there is no archive at {url}; `perflab push --remote {url}` makes one")]
    NoArchive {
        /// where was looked
        url: RemoteUrl,
    },
    /// There was one, of which this machine has a copy; nothing, or another one, is in its place.
    #[error(
        "the archive at {url} is not the one that this machine has a copy of, or is there no more: is it mounted, is it the same server? If what is there \
         now is meant, remove {}: the next verb brings both in step",
        known.display()
    )]
    Gone {
        /// where it was
        url: RemoteUrl,
        /// what says of which archive the copy is
        known: PathBuf,
    },
    /// It is the archive of a machine, without lists.
    #[error(
        "{url} is an archive that runs are recorded in: name a folder of its own for what several machines share"
    )]
    Recorded {
        /// the folder
        url: RemoteUrl,
    },
    /// The bucket, or the folder, is not there.
    #[error(
        "{what} is not there ({reason}): perflab makes no buckets; check the name, and the region and endpoint (AWS_REGION, AWS_ENDPOINT_URL)"
    )]
    NoBucket {
        /// the bucket
        what: String,
        /// the server's words
        reason: String,
    },
    /// A newer perflab made the archive.
    #[error(
        "the archive at {url} has layout {found}, written by {writer}; this perflab knows layouts up to {known}: update perflab"
    )]
    Newer {
        /// the archive
        url: RemoteUrl,
        /// its layout
        found: u32,
        /// the highest that this program knows
        known: u32,
        /// the program that made it
        writer: String,
    },
    /// The server refuses.
    #[error(
        "{url} refuses to {what}: {reason}; check the keys (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE) and what the bucket's policy lets them do"
    )]
    Refused {
        /// the archive
        url: RemoteUrl,
        /// what was tried
        what: String,
        /// the server's words
        reason: String,
    },
    /// No keys were found.
    #[error(
        "there are no keys for {url}: {reason}; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE for a profile of ~/.aws/credentials"
    )]
    NoKeys {
        /// the archive
        url: RemoteUrl,
        /// where was looked
        reason: String,
    },
    /// Nobody answers, or the connection broke too often.
    #[error(
        "cannot {what} at {url}: {reason}; runs on this disk are untouched, and what was copied stays copied: try again"
    )]
    Unreachable {
        /// the archive
        url: RemoteUrl,
        /// what was tried
        what: String,
        /// the system's words
        reason: String,
    },
    /// An object is not what it should be.
    #[error("{url}/{name} is damaged: {reason}")]
    Damaged {
        /// the archive
        url: RemoteUrl,
        /// the object
        name: String,
        /// what is wrong
        reason: String,
    },
    /// No run of the archive is meant.
    #[error("no run at {url} matches `{selector}`: {hint}")]
    NotFound {
        /// the archive
        url: RemoteUrl,
        /// what was asked for
        selector: String,
        /// what to do
        hint: String,
    },
    /// What is on this disk.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A file of this machine that perflab needs for the copying.
    #[error("cannot {what}: {source}")]
    Local {
        /// what was tried, with the path
        what: String,
        /// the system's reason
        source: std::io::Error,
    },
}

impl Classify for RemoteError {
    fn class(&self) -> ErrorClass {
        match self {
            RemoteError::NotBuilt { .. }
            | RemoteError::Recorded { .. }
            | RemoteError::NoArchive { .. }
            | RemoteError::NoBucket { .. }
            | RemoteError::NotFound { .. } => ErrorClass::Usage,
            RemoteError::Gone { .. }
            | RemoteError::Refused { .. }
            | RemoteError::NoKeys { .. }
            | RemoteError::Unreachable { .. } => ErrorClass::Environment,
            RemoteError::Newer { .. } | RemoteError::Damaged { .. } => ErrorClass::Unexpected,
            RemoteError::Archive(error) => error.class(),
            RemoteError::Local { source, .. } => source.class(),
        }
    }
}

impl RemoteError {
    /// Whether it is about what one run there is made of: others may be whole.
    pub fn is_about_one_run(&self) -> bool {
        match self {
            RemoteError::Damaged { .. } => true,
            RemoteError::Archive(error) => matches!(
                error,
                ArchiveError::Damaged { .. } | ArchiveError::Newer { .. } | ArchiveError::Altered { .. }
            ),
            _ => false,
        }
    }

    /// From what the library below says of something that was tried.
    pub(crate) fn of_store(url: &RemoteUrl, what: impl Into<String>, error: &object_store::Error) -> Self {
        let (url, what) = (url.clone(), what.into());
        match error {
            object_store::Error::PermissionDenied { source, .. }
            | object_store::Error::Unauthenticated { source, .. } => {
                RemoteError::Refused { url, what, reason: innermost_words(source.as_ref()) }
            }
            object_store::Error::NotFound { source, .. } => {
                let reason = innermost_words(source.as_ref());
                match reason.split(',').next().unwrap_or_default() {
                    "NoSuchBucket" => RemoteError::NoBucket { what: url.bucket_words(), reason },
                    // Some servers answer so to keys that they do not know.
                    code if is_answer_code(code) && !matches!(code, "NoSuchKey" | "NotFound") => {
                        RemoteError::Refused { url, what, reason }
                    }
                    _ => RemoteError::Damaged { url, name: what, reason: "it is not there".into() },
                }
            }
            other => RemoteError::Unreachable { url, what, reason: innermost_words(other) },
        }
    }
}

/// The words of the cause behind all causes, and what stands above it if that is a server's answer.
fn innermost_words(error: &(dyn Error + 'static)) -> String {
    let (mut words, mut next) = (Vec::new(), Some(error));
    while let Some(error) = next {
        words.push(error.to_string());
        next = error.source();
    }
    let answer = words.iter().find_map(|words| server_answer(words));
    let last = words.last().cloned().unwrap_or_default();
    answer.unwrap_or(last).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a word may be the code of an answer: letters alone, the first a capital.
fn is_answer_code(word: &str) -> bool {
    word.starts_with(|letter: char| letter.is_ascii_uppercase())
        && word.len() > 4
        && word.bytes().all(|letter| letter.is_ascii_alphanumeric())
}

/// Code and message of an answer in S3's XML.
fn server_answer(words: &str) -> Option<String> {
    let tagged = |tag: &str| {
        let rest = words.split_once(&format!("<{tag}>"))?.1;
        Some(rest.split_once(&format!("</{tag}>"))?.0.to_owned())
    };
    let code = tagged("Code")?;
    Some(match tagged("Message") {
        Some(message) => format!("{code}, {message}"),
        None => code,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_answer_is_its_code_and_message() {
        let body = "Client error with status 403 Forbidden: <?xml version=\"1.0\"?><Error><Code>AccessDenied</Code>\
                    <Message>Access Denied.</Message><Resource>/b</Resource></Error>";
        assert_eq!(server_answer(body).unwrap(), "AccessDenied, Access Denied.");
        assert_eq!(server_answer("connection refused"), None);
    }
}

//! Where an archive in object storage is.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::aws_profile::{AwsProfile, find_endpoint};
use perflab_model::error_class::{Classify, ErrorClass};

/// `s3://BUCKET/PREFIX`, or `file:///FOLDER` for a folder that several machines see.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RemoteUrl {
    /// A bucket of S3 or of what speaks its language.
    S3 {
        /// its name
        bucket: String,
        /// what names of objects begin with; empty for the whole bucket, without a slash at either end
        prefix: String,
    },
    /// A folder.
    Folder {
        /// absolute
        path: PathBuf,
    },
}

/// A text that is no place of an archive in object storage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no archive in object storage: {reason}; write s3://BUCKET/PREFIX or file:///FOLDER")]
pub struct RemoteUrlError {
    /// what was written
    pub text: String,
    /// what is wrong with it
    pub reason: String,
}

impl Classify for RemoteUrlError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }
}

impl RemoteUrl {
    /// Whether a text is meant as such a place: it has a scheme.
    pub fn is_meant(text: &str) -> bool {
        text.split_once("://").is_some_and(|(scheme, _)| {
            !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
    }

    /// Reads one.
    ///
    /// # Errors
    /// A scheme, a bucket, a prefix or a folder that is none.
    pub fn parse(text: &str) -> Result<Self, RemoteUrlError> {
        let refuse = |reason: &str| RemoteUrlError { text: text.into(), reason: reason.into() };
        let (scheme, rest) = text.split_once("://").ok_or_else(|| refuse("it has no scheme"))?;
        match scheme {
            "s3" => {
                let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
                let prefix = prefix.trim_matches('/');
                if bucket.is_empty() {
                    return Err(refuse("it names no bucket"));
                }
                // What S3 allows in a bucket's name; a colon or an @ would be of another URL.
                let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
                if !bucket.bytes().all(is_allowed) {
                    return Err(refuse("a bucket has letters, digits, `.`, `-` and `_`"));
                }
                if prefix
                    .split('/')
                    .any(|part| matches!(part, "." | "..") || (part.is_empty() && !prefix.is_empty()))
                {
                    return Err(refuse("its prefix has an empty part, or one of dots"));
                }
                if prefix.chars().any(char::is_control) {
                    return Err(refuse("its prefix has a control character"));
                }
                Ok(RemoteUrl::S3 { bucket: bucket.into(), prefix: prefix.into() })
            }
            "file" => {
                let path = Path::new(rest);
                if !path.is_absolute() {
                    return Err(refuse("a folder is absolute: three slashes"));
                }
                Ok(RemoteUrl::Folder { path: path.components().collect() })
            }
            _ => Err(refuse(&format!("`{scheme}` is no kind of storage that perflab knows"))),
        }
    }

    /// Where its copy on this machine lies below `data`, perflab's folder of the user's data. Buckets of one name on two servers are
    /// two, and no copy lies within another.
    pub fn copy_below(&self, data: &Path) -> PathBuf {
        let server = find_endpoint(&AwsProfile::read());
        self.copy_of_server(data, server.as_deref().unwrap_or("aws"))
    }

    fn copy_of_server(&self, data: &Path, server: &str) -> PathBuf {
        let whole = match self {
            RemoteUrl::S3 { bucket, prefix } => {
                let host = server.split_once("://").map_or(server, |(_, host)| host).trim_end_matches('/');
                format!("s3/{host}/{bucket}/{prefix}")
            }
            RemoteUrl::Folder { path } => format!("file{}", path.display()),
        };
        // A slash within a name would make folders.
        let name: String = whole
            .trim_end_matches('/')
            .chars()
            .map(|letter| match letter {
                '%' => "%25".to_owned(),
                '/' => "%2F".to_owned(),
                other => other.to_string(),
            })
            .collect();
        data.join("remotes").join(name)
    }

    /// The bucket or folder, in words.
    pub(crate) fn bucket_words(&self) -> String {
        match self {
            RemoteUrl::S3 { bucket, .. } => format!("the bucket `{bucket}`"),
            RemoteUrl::Folder { path } => format!("the folder {}", path.display()),
        }
    }
}

impl fmt::Display for RemoteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RemoteUrl::S3 { bucket, prefix } if prefix.is_empty() => write!(f, "s3://{bucket}"),
            RemoteUrl::S3 { bucket, prefix } => write!(f, "s3://{bucket}/{prefix}"),
            RemoteUrl::Folder { path } => write!(f, "file://{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_and_written_alike() {
        for text in ["s3://lab", "s3://lab/kernel/nightly", "file:///srv/perf"] {
            assert_eq!(RemoteUrl::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(RemoteUrl::parse("s3://lab/a/").unwrap().to_string(), "s3://lab/a");
    }

    #[test]
    fn what_is_no_place_is_refused() {
        for text in [
            "s3://",
            "s3:///x",
            "s3://user:key@lab",
            "s3://lab/../x",
            "s3://lab/a//b",
            "file://srv",
            "gs://lab",
            "lab",
        ] {
            assert!(RemoteUrl::parse(text).is_err(), "{text}");
        }
        assert!(
            RemoteUrl::is_meant("gs://lab") && !RemoteUrl::is_meant("./s3") && !RemoteUrl::is_meant("://x")
        );
    }

    #[test]
    fn each_bucket_of_each_server_has_a_copy_of_its_own() {
        let copy = |text: &str, server: &str| {
            RemoteUrl::parse(text).unwrap().copy_of_server(Path::new("/d"), server)
        };
        assert_eq!(copy("s3://lab/a", "aws"), Path::new("/d/remotes/s3%2Faws%2Flab%2Fa"));
        assert_eq!(copy("s3://lab", "http://h:70/"), Path::new("/d/remotes/s3%2Fh:70%2Flab"));
        assert_eq!(copy("file:///srv/x", "aws"), Path::new("/d/remotes/file%2Fsrv%2Fx"));
        assert_ne!(copy("s3://lab/a%2Fb", "aws"), copy("s3://lab/a/b", "aws"));
    }
}

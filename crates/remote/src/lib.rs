//! An archive in object storage (S3, or a folder that several machines see): runs are pushed to it, pulled from it, listed and
//! removed.
//!
//! A run never changes once it has ended, so its files are objects of the same names, written once. What is there is said by lists in
//! Parquet, each written once too (`perflab_archive::run_list`): two writers never lose a run. A run is always recorded on a disk
//! first; this crate only copies.
//!
//! Calls wait for their end; what is asynchronous below stays below.
//!
//! | module | content |
//! |---|---|
//! | [`remote_url`] | where such an archive is: `s3://bucket/prefix`, `file:///folder` |
//! | `aws_profile` | keys in the files of AWS's tools |
//! | `bucket` | a bucket, opened with keys and patience (feature `object-storage`) |
//! | `object_client` | objects by name: written, read, listed, removed, several at a time |
//! | [`remote_archive`] | the runs: pushed, pulled, listed, removed |
//! | [`error`] | what can go wrong, naming the archive |

mod aws_profile;
#[cfg(feature = "object-storage")]
mod bucket;
pub mod error;
mod object_client;
pub mod remote_archive;
pub mod remote_url;

pub use error::RemoteError;
pub use remote_archive::{PullOutcome, PushOutcome, PushScope, RemoteArchive};
pub use remote_url::{RemoteUrl, RemoteUrlError};

//! What every route works on: the archive, results of its runs, finished pages.

use std::sync::Arc;

use axum::body::Bytes;
use axum::http::StatusCode;
use perflab_archive::{Archive, ArchiveEntry};

use crate::board_cache::BoardCache;
use crate::live_feed::LiveFeed;
use crate::page_cache::PageCache;
use crate::refusal::RequestRefusal;
use crate::result_source::ResultSource;
use crate::server_counts::ServerCounts;

/// One archive and what is made of it.
pub(crate) struct WebLaboratory {
    pub(crate) archive: Archive,
    pub(crate) source: Arc<dyn ResultSource>,
    pub(crate) pages: PageCache,
    pub(crate) boards: BoardCache,
    pub(crate) feed: Arc<LiveFeed>,
    pub(crate) counts: Arc<ServerCounts>,
    /// The routes as OpenAPI.
    pub(crate) open_api: Bytes,
    /// What pages show that they are of this start, where labels and notes may be written.
    pub(crate) page_key: Option<String>,
}

impl WebLaboratory {
    /// All runs, the oldest first.
    pub(crate) fn list_runs(&self) -> Result<Vec<ArchiveEntry>, RequestRefusal> {
        self.refuse_missing_archive()?;
        Ok(self.archive.list_runs()?)
    }

    /// An archive that was deleted or unmounted is not one without runs.
    pub(crate) fn refuse_missing_archive(&self) -> Result<(), RequestRefusal> {
        if self.archive.exists() {
            return Ok(());
        }
        let path = self.archive.path().display();
        Err(RequestRefusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("there is no archive {path}: `perflab run quickstart` creates it, or mount it again"),
        ))
    }
}

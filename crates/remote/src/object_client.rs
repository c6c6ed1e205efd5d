//! Objects by name: written, read, listed, removed, several at a time. Calls wait for their end.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutPayload, UpdateVersion, WriteMultipart};
use tokio::runtime::Runtime;

#[cfg(feature = "object-storage")]
use crate::bucket::open_bucket;
use crate::error::RemoteError;
use crate::remote_url::RemoteUrl;

/// Requests under way at a time: a run is a dozen small files, and each waits for the network.
const PARALLEL: usize = 16;

/// A file that is larger goes in parts of this size, each with a hash of its own. S3 wants 5 MiB at least.
const PART_BYTES: usize = 8 << 20;

/// Parts of one file under way at a time.
const PARALLEL_PARTS: usize = 4;

/// Bytes of an object that is read into memory: a list of a million runs has some hundred million.
const LONGEST_OBJECT: u64 = 256 << 20;

/// Told of bytes as they are copied.
pub(crate) type ByteCounter<'a> = &'a (dyn Fn(u64) + Sync);

/// An object, as a list has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedObject {
    /// below the archive
    pub(crate) name: String,
    pub(crate) bytes: u64,
}

/// The objects of an archive.
pub(crate) struct ObjectClient {
    url: RemoteUrl,
    store: Arc<dyn ObjectStore>,
    /// Whether an object can be replaced on the condition that nobody else did.
    replaces_conditionally: bool,
    prefix: String,
    /// Whether no keys were found but those that a machine in a cloud may be given.
    lacks_keys: bool,
    runtime: Runtime,
}

impl ObjectClient {
    /// Makes ready to speak to the storage; nothing is sent yet. Of a folder that is not there, `make_folder` makes one.
    pub(crate) fn open(url: &RemoteUrl, make_folder: bool) -> Result<Self, RemoteError> {
        let local = |what: String| move |source| RemoteError::Local { what, source };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(local("start the copying".into()))?;
        let mut lacks_keys = false;
        let (store, prefix, replaces_conditionally): (Arc<dyn ObjectStore>, _, _) = match url {
            RemoteUrl::S3 { bucket, prefix } => {
                let (opened, has_keys) = open_bucket(url, bucket)?;
                lacks_keys = !has_keys;
                (opened, prefix.clone(), true)
            }
            RemoteUrl::Folder { path } => {
                if make_folder {
                    std::fs::create_dir_all(path).map_err(local(format!("make {}", path.display())))?;
                } else if !path.is_dir() {
                    return Err(RemoteError::NoArchive { url: url.clone() });
                }
                let store = LocalFileSystem::new_with_prefix(path);
                let store = store.map_err(|error| RemoteError::of_store(url, "be opened", &error))?;
                (Arc::new(store.with_fsync(true)), String::new(), false)
            }
        };
        Ok(ObjectClient { url: url.clone(), store, replaces_conditionally, prefix, lacks_keys, runtime })
    }

    pub(crate) fn url(&self) -> &RemoteUrl {
        &self.url
    }

    fn object_path(&self, name: &str) -> Result<ObjectPath, RemoteError> {
        let whole = if self.prefix.is_empty() { name.to_owned() } else { format!("{}/{name}", self.prefix) };
        ObjectPath::parse(&whole).map_err(|error| self.damaged(name, error.to_string()))
    }

    pub(crate) fn damaged(&self, name: &str, reason: impl Into<String>) -> RemoteError {
        RemoteError::Damaged { url: self.url.clone(), name: name.to_owned(), reason: reason.into() }
    }

    fn too_large(&self, name: &str) -> RemoteError {
        self.damaged(name, format!("it is larger than the {} MiB that perflab reads", LONGEST_OBJECT >> 20))
    }

    fn failure<'a>(
        &'a self,
        what: impl Into<String>,
    ) -> impl FnOnce(object_store::Error) -> RemoteError + 'a {
        let what = what.into();
        move |error| match RemoteError::of_store(&self.url, what, &error) {
            RemoteError::Refused { url, reason, .. } | RemoteError::Unreachable { url, reason, .. }
                if self.lacks_keys =>
            {
                RemoteError::NoKeys { url, reason }
            }
            other => other,
        }
    }

    /// The objects below `folder`, in no order.
    pub(crate) fn list_objects(&self, folder: &str) -> Result<Vec<ListedObject>, RemoteError> {
        let below = self.object_path(folder)?;
        let listed = self.store.list(Some(&below)).try_collect::<Vec<_>>();
        let listed = self.runtime.block_on(listed).map_err(self.failure(format!("list {folder}")))?;
        let start = if self.prefix.is_empty() { 0 } else { self.prefix.len() + 1 };
        let named = listed.into_iter().filter_map(|found| {
            let name = found.location.as_ref().get(start..)?.to_owned();
            Some(ListedObject { name, bytes: found.size })
        });
        Ok(named.collect())
    }

    /// A small object with its version; `None` where it is not there.
    pub(crate) fn read_object(&self, name: &str) -> Result<Option<(Vec<u8>, UpdateVersion)>, RemoteError> {
        let path = self.object_path(name)?;
        let read = async {
            let found = self.store.get(&path).await?;
            if found.meta.size > LONGEST_OBJECT {
                return Ok(None);
            }
            let version =
                UpdateVersion { e_tag: found.meta.e_tag.clone(), version: found.meta.version.clone() };
            Ok(Some((found.bytes().await?.to_vec(), version)))
        };
        match self.runtime.block_on(read) {
            Ok(Some(read)) => Ok(Some(read)),
            Ok(None) => Err(self.too_large(name)),
            Err(error @ object_store::Error::NotFound { .. }) => {
                match RemoteError::of_store(&self.url, format!("read {name}"), &error) {
                    RemoteError::Damaged { .. } => Ok(None),
                    refused => Err(refused),
                }
            }
            Err(error) => Err(self.failure(format!("read {name}"))(error)),
        }
    }

    /// Writes a small object that is not there yet; `false` where somebody else has written one.
    pub(crate) fn write_new_object(&self, name: &str, content: Vec<u8>) -> Result<bool, RemoteError> {
        self.put(name, content, PutMode::Create)
    }

    /// Writes a small object in the place of the one that was read with this version; `false` where somebody else was faster. A folder, and
    /// an object without an ETag, cannot tell.
    pub(crate) fn replace_object(
        &self,
        name: &str,
        content: Vec<u8>,
        version: Option<UpdateVersion>,
    ) -> Result<bool, RemoteError> {
        let mode = match version {
            Some(version) if self.replaces_conditionally && version.e_tag.is_some() => {
                PutMode::Update(version)
            }
            Some(_) => PutMode::Overwrite,
            None => PutMode::Create,
        };
        self.put(name, content, mode)
    }

    fn put(&self, name: &str, content: Vec<u8>, mode: PutMode) -> Result<bool, RemoteError> {
        let path = self.object_path(name)?;
        let written = self.store.put_opts(&path, PutPayload::from(content), mode.into());
        match self.runtime.block_on(written) {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
                Ok(false)
            }
            Err(error) => Err(self.failure(format!("write {name}"))(error)),
        }
    }

    /// Writes files as objects. Those that were written before an error stay.
    pub(crate) fn upload_files(
        &self,
        files: &[(PathBuf, String)],
        count: ByteCounter<'_>,
    ) -> Result<(), RemoteError> {
        let all =
            files.iter().map(|(file, name)| Ok::<_, RemoteError>((file, name, self.object_path(name)?)));
        let uploads = stream::iter(all).map(|named| async move {
            let (file, name, path) = named?;
            self.upload_file(file, name, &path, count).await
        });
        self.runtime.block_on(uploads.buffer_unordered(PARALLEL).try_collect())
    }

    async fn upload_file(
        &self,
        file: &Path,
        name: &str,
        path: &ObjectPath,
        count: ByteCounter<'_>,
    ) -> Result<(), RemoteError> {
        let unreadable = |source| RemoteError::Local { what: format!("read {}", file.display()), source };
        let mut content = File::open(file).map_err(unreadable)?;
        let bytes = content.metadata().map_err(unreadable)?.len();
        let what = || format!("write {name}");
        if bytes <= PART_BYTES as u64 {
            let mut all = Vec::new();
            content.read_to_end(&mut all).map_err(unreadable)?;
            self.store.put(path, PutPayload::from(all)).await.map_err(self.failure(what()))?;
            count(bytes);
            return Ok(());
        }
        let upload = self.store.put_multipart(path).await.map_err(self.failure(what()))?;
        let mut parts = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
        let mut piece = vec![0; PART_BYTES];
        loop {
            let read = match content.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) => {
                    let _ = parts.abort().await;
                    return Err(unreadable(error));
                }
            };
            if let Err(error) = parts.wait_for_capacity(PARALLEL_PARTS).await {
                let _ = parts.abort().await;
                return Err(self.failure(what())(error));
            }
            parts.write(piece.get(..read).unwrap_or_default());
            count(read as u64);
        }
        // A part that fails has the others removed.
        parts.finish().await.map_err(self.failure(what()))?;
        Ok(())
    }

    /// Reads objects into files that are new.
    pub(crate) fn download_files(
        &self,
        files: &[(String, PathBuf)],
        count: ByteCounter<'_>,
    ) -> Result<(), RemoteError> {
        let all =
            files.iter().map(|(name, file)| Ok::<_, RemoteError>((name, file, self.object_path(name)?)));
        let downloads = stream::iter(all).map(|named| async move {
            let (name, file, path) = named?;
            self.download_file(name, &path, file, count).await
        });
        self.runtime.block_on(downloads.buffer_unordered(PARALLEL).try_collect())
    }

    async fn download_file(
        &self,
        name: &str,
        path: &ObjectPath,
        file: &Path,
        count: ByteCounter<'_>,
    ) -> Result<(), RemoteError> {
        let unwritable = |source| RemoteError::Local { what: format!("write {}", file.display()), source };
        let what = || format!("read {name}");
        let found = self.store.get(path).await.map_err(self.failure(what()))?;
        let mut to = File::create_new(file).map_err(unwritable)?;
        let mut pieces = found.into_stream();
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(self.failure(what()))?;
            to.write_all(&piece).map_err(unwritable)?;
            count(piece.len() as u64);
        }
        Ok(())
    }

    /// Reads small objects, in the order of their names; one that is not there any more is `None`.
    pub(crate) fn read_objects(&self, names: &[String]) -> Result<Vec<Option<Vec<u8>>>, RemoteError> {
        let all = names.iter().map(|name| Ok::<_, RemoteError>((name, self.object_path(name)?)));
        let reads = stream::iter(all).map(|named| async move {
            let (name, path) = named?;
            let read = async {
                let found = self.store.get(&path).await?;
                if found.meta.size > LONGEST_OBJECT {
                    return Ok(None);
                }
                Ok(Some(found.bytes().await?.to_vec()))
            };
            match read.await {
                Ok(Some(content)) => Ok(Some(content)),
                Ok(None) => Err(self.too_large(name)),
                Err(object_store::Error::NotFound { .. }) => Ok(None),
                Err(error) => Err(self.failure(format!("read {name}"))(error)),
            }
        });
        self.runtime.block_on(reads.buffered(PARALLEL).try_collect())
    }

    /// Removes objects; one that is not there is removed.
    pub(crate) fn remove_objects(&self, names: &[String]) -> Result<(), RemoteError> {
        let all = names.iter().map(|name| Ok::<_, RemoteError>((name, self.object_path(name)?)));
        let removals = stream::iter(all).map(|named| async move {
            let (name, path) = named?;
            match self.store.delete(&path).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(self.failure(format!("remove {name}"))(error)),
            }
        });
        self.runtime.block_on(removals.buffer_unordered(PARALLEL).try_collect())
    }
}

#[cfg(not(feature = "object-storage"))]
fn open_bucket(url: &RemoteUrl, _bucket: &str) -> Result<(Arc<dyn ObjectStore>, bool), RemoteError> {
    Err(RemoteError::NotBuilt { url: url.clone() })
}

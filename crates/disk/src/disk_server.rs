//! The FUSE file system of an image, and replies given when due.
//!
//! A request is carried out at once on the image behind it and answered when the disk that it stands for would be
//! done: one thread with a heap by time gives the answers. The image should be in memory (`/dev/shm`), else the
//! machine's own disk adds what it takes. A second file is the switch that ends the delays.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use std::{fmt, thread};

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyWrite, WriteFlags,
};
use perflab_model::study::DiskModel;

use crate::disk_model::{DiskDataSheet, DiskMechanics, DiskRequest};

/// The name of the image.
pub const IMAGE_FILE_NAME: &str = "disk.img";

/// The name of the switch: once it was written to, the disk answers at once.
pub const END_DELAYS_FILE_NAME: &str = "hurry";

/// What such a disk's file system is called among the mounts.
pub(crate) const MOUNT_SOURCE: &str = "perflab-emulated-disk";

const FILE: INodeNo = INodeNo(2);

const SWITCH: INodeNo = INodeNo(3);

/// What the kernel remembers of the inodes: nothing about them changes.
const FOR_EVER: Duration = Duration::from_secs(1 << 20);

/// Serves `image` as a file in `place` until that is unmounted.
///
/// # Errors
/// The image cannot be opened, or the kernel refuses the mount (no FUSE, no right to).
pub fn serve_disk(image: &Path, model: DiskModel, place: &Path) -> std::io::Result<()> {
    let image = File::options().read(true).write(true).open(image)?;
    let size = image.metadata()?.len();
    let mechanism = Mutex::new(DiskMechanics::new(DiskDataSheet::of_model(model)));
    let answers = DelayedReplies::start()?;
    let server = FuseDisk { image, size, mechanism, begin: Instant::now(), answers };
    let mut options = Config::default();
    options.mount_options = vec![MountOption::FSName(MOUNT_SOURCE.into()), MountOption::NoDev];
    fuser::mount(server, place, &options)
}

#[derive(Debug)]
struct FuseDisk {
    image: File,
    size: u64,
    mechanism: Mutex<DiskMechanics>,
    begin: Instant,
    answers: DelayedReplies,
}

impl FuseDisk {
    /// When a request that has come now is done.
    fn due_time(&self, request: DiskRequest) -> Instant {
        let mut mechanism = self.mechanism.lock().unwrap_or_else(PoisonError::into_inner);
        self.begin + mechanism.completion(self.begin.elapsed(), request)
    }

    fn attributes(&self, inode: INodeNo) -> Option<FileAttr> {
        let is_folder = inode == INodeNo::ROOT;
        let size = if inode == FILE { self.size } else { 0 };
        let epoch = SystemTime::UNIX_EPOCH;
        (is_folder || inode == FILE || inode == SWITCH).then_some(FileAttr {
            ino: inode,
            size,
            blocks: size / 512,
            atime: epoch,
            mtime: epoch,
            ctime: epoch,
            crtime: epoch,
            kind: if is_folder { FileType::Directory } else { FileType::RegularFile },
            perm: if is_folder { 0o700 } else { 0o600 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    /// As much as there is: a file ends where it ends.
    fn read_bytes(&self, offset: u64, length: u32) -> std::io::Result<Vec<u8>> {
        let available = self.size.saturating_sub(offset).min(u64::from(length));
        let mut bytes = vec![0; usize::try_from(available).unwrap_or(0)];
        self.image.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }
}

impl Filesystem for FuseDisk {
    fn init(&mut self, _: &fuser::Request, config: &mut KernelConfig) -> std::io::Result<()> {
        // Where an old kernel cannot, requests come one at a time: slower than the disk that is meant, never faster.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.set_max_background(256);
        Ok(())
    }

    fn destroy(&mut self) {
        self.answers.close();
    }

    fn lookup(&self, _: &fuser::Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let named = match name.to_str() {
            Some(IMAGE_FILE_NAME) => Some(FILE),
            Some(END_DELAYS_FILE_NAME) => Some(SWITCH),
            _ => None,
        };
        let named = named.filter(|_| parent == INodeNo::ROOT);
        match named.and_then(|inode| self.attributes(inode)) {
            Some(found) => reply.entry(&FOR_EVER, &found, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &fuser::Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Some(found) => reply.attr(&FOR_EVER, &found),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _: &fuser::Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        // No cache of its own below the disk: each request of the block layer arrives here.
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &fuser::Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if inode == SWITCH {
            return reply.data(&[]);
        }
        let due = self.due_time(DiskRequest { offset, length: u64::from(size), writes: false });
        match self.read_bytes(offset, size) {
            Ok(bytes) => self.answers.schedule(due, Box::new(move || reply.data(&bytes))),
            Err(error) => reply.error(error.into()),
        }
    }

    fn write(
        &self,
        _: &fuser::Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
        if inode == SWITCH {
            self.answers.end_delays();
            return reply.written(length);
        }
        let due = self.due_time(DiskRequest { offset, length: data.len() as u64, writes: true });
        match self.image.write_all_at(data, offset) {
            Ok(()) => self.answers.schedule(due, Box::new(move || reply.written(length))),
            Err(error) => reply.error(error.into()),
        }
    }

    fn fsync(&self, _: &fuser::Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        // What was answered is written: no cache of the disk's is emulated.
        reply.ok();
    }

    fn flush(&self, _: &fuser::Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn readdir(&self, _: &fuser::Request, _: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let all = [(FILE, 1, IMAGE_FILE_NAME), (SWITCH, 2, END_DELAYS_FILE_NAME)];
        for (inode, next, name) in all.into_iter().filter(|(_, next, _)| *next > offset) {
            let _ = reply.add(inode, next, FileType::RegularFile, name);
        }
        reply.ok();
    }
}

/// A sleep ends late by about this much: the rest is waited for awake.
const AWAKE: Duration = Duration::from_micros(60);

/// What is done at a time.
type DelayedReply = Box<dyn FnOnce() + Send>;

struct QueuedReply {
    at: Instant,
    number: u64,
    answer: DelayedReply,
}

impl PartialEq for QueuedReply {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl Eq for QueuedReply {}

impl PartialOrd for QueuedReply {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for QueuedReply {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

#[derive(Default)]
struct ReplyQueue {
    waiting: BinaryHeap<Reverse<QueuedReply>>,
    taken: u64,
    is_closed: bool,
    is_hurried: bool,
}

/// Answers that wait.
#[derive(Clone, Default)]
struct DelayedReplies {
    shared: Arc<(Mutex<ReplyQueue>, Condvar)>,
}

impl fmt::Debug for DelayedReplies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answers")
    }
}

impl DelayedReplies {
    /// Begins the thread that gives them.
    pub(crate) fn start() -> std::io::Result<DelayedReplies> {
        let answers = DelayedReplies::default();
        let given = answers.clone();
        thread::Builder::new().name("disk-answers".into()).spawn(move || given.deliver_replies())?;
        Ok(answers)
    }

    /// Does something at a time, or at once where that is past.
    fn schedule(&self, at: Instant, answer: DelayedReply) {
        let (queue, changed) = &*self.shared;
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.taken += 1;
        let number = queue.taken;
        queue.waiting.push(Reverse(QueuedReply { at, number, answer }));
        changed.notify_one();
    }

    /// Gives every answer at once from now on, those that wait too.
    pub(crate) fn end_delays(&self) {
        let (queue, changed) = &*self.shared;
        queue.lock().unwrap_or_else(PoisonError::into_inner).is_hurried = true;
        changed.notify_one();
    }

    /// Lets the thread end once nothing waits.
    pub(crate) fn close(&self) {
        let (queue, changed) = &*self.shared;
        queue.lock().unwrap_or_else(PoisonError::into_inner).is_closed = true;
        changed.notify_one();
    }

    fn deliver_replies(&self) {
        while let Some(answer) = self.next_due() {
            answer();
        }
    }

    /// The next answer, at its time; `None` at the end.
    fn next_due(&self) -> Option<DelayedReply> {
        let (queue, changed) = &*self.shared;
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let Some(first) = queue.waiting.peek().map(|Reverse(first)| first.at) else {
                if queue.is_closed {
                    return None;
                }
                queue = changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let remaining = first.saturating_duration_since(Instant::now());
            if remaining.is_zero() || queue.is_hurried {
                return queue.waiting.pop().map(|Reverse(first)| first.answer);
            }
            if remaining > AWAKE {
                queue =
                    changed.wait_timeout(queue, remaining - AWAKE).unwrap_or_else(PoisonError::into_inner).0;
            } else {
                drop(queue);
                thread::yield_now();
                queue = self.shared.0.lock().unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_the_order_of_their_times_and_never_early() {
        let answers = DelayedReplies::start().unwrap();
        let (sender, heard) = std::sync::mpsc::channel();
        let begin = Instant::now();
        for millis in [30, 10, 20, 0] {
            let (sender, at) = (sender.clone(), begin + Duration::from_millis(millis));
            answers.schedule(at, Box::new(move || sender.send((millis, Instant::now() >= at)).unwrap()));
        }
        drop(sender);
        answers.close();
        assert_eq!(heard.iter().collect::<Vec<_>>(), [(0, true), (10, true), (20, true), (30, true)]);
    }

    #[test]
    fn a_disk_that_hurries_lets_nobody_wait() {
        let answers = DelayedReplies::start().unwrap();
        let (sender, heard) = std::sync::mpsc::channel();
        let never = Instant::now() + Duration::from_secs(1 << 20);
        for number in 0..2 {
            let sender = sender.clone();
            answers.schedule(never, Box::new(move || sender.send(number).unwrap()));
            answers.end_delays();
            assert_eq!(heard.recv(), Ok(number));
        }
    }
}

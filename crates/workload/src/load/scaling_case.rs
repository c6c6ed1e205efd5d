//! What a task of the load `scaling` does over and over: one operation of the kernel in each case, named after what it does, with
//! the name of the test case of will-it-scale that it is written after.
//!
//! *own*: on a file or memory of the task's own; *same*: all tasks on one file; *apart*: on one file, at different places.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;

use nix::fcntl::{FcntlArg, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout};
use rustix::event::EventfdFlags;
use rustix::fs::{FallocateFlags, FlockOperation, Mode, OFlags, SeekFrom};
use rustix::mm::Advice;
use rustix::thread::futex;

use crate::load::tasks::Task;
use crate::system_calls::{
    LibraryMutex, MappingKind, PageMapping, allocate_and_free, handle_user_signal, take_and_drop_lease,
};

/// What tasks do over and over.
#[derive(Debug)]
pub(crate) struct ScalingCase {
    pub(crate) name: &'static str,
    /// what it is called where it comes from; empty where there is no such
    pub(crate) original: &'static str,
    /// prepares, begins, and works until the task has done enough, in a folder that all tasks share
    pub(crate) run: fn(&Task<'_>, &Path) -> io::Result<()>,
}

pub(crate) const fn case(
    name: &'static str,
    original: &'static str,
    run: fn(&Task<'_>, &Path) -> io::Result<()>,
) -> ScalingCase {
    ScalingCase { name, original, run }
}

pub(crate) const CASES: &[ScalingCase] = &[
    case("fault-anonymous", "page_fault1", |task, _| {
        touch_pages(task, || PageMapping::map_anonymous(MAPPED))
    }),
    case("fault-file-private", "page_fault2", |task, folder| touch_file(task, folder, MappingKind::Private)),
    case("fault-file-shared", "page_fault3", |task, folder| touch_file(task, folder, MappingKind::Shared)),
    case("map-anonymous", "mmap1", |task, _| task.repeat(|| PageMapping::map_anonymous(MAPPED).map(drop))),
    case("map-file", "mmap2", |task, folder| {
        let file = make_sparse_file(folder)?;
        task.repeat(|| PageMapping::map_file(&file, MAPPED, MappingKind::Private).map(drop))
    }),
    case("allocate-large", "malloc1", |task, _| allocate_over_and_over(task, MAPPED)),
    case("allocate-small", "malloc2", |task, _| allocate_over_and_over(task, 1024)),
    case("open-own", "open1", |task, folder| open_and_close(task, &create_own_file(task, folder)?)),
    case("open-folder", "open2", |task, folder| {
        open_and_close(task, &create_file_in_own_folder(task, folder)?)
    }),
    case("open-same", "open3", |task, folder| open_and_close(task, &folder.join(SAME_FILE))),
    case("unlink-own", "unlink1", |task, folder| create_and_unlink(task, &create_own_file(task, folder)?)),
    case("unlink-folder", "unlink2", |task, folder| {
        create_and_unlink(task, &create_file_in_own_folder(task, folder)?)
    }),
    case("read-own", "read1", |task, folder| read_over_and_over(task, &make_filled_file(folder, FILE_SIZE)?)),
    case("read-same", "read2", |task, folder| {
        read_over_and_over(task, &File::open(folder.join(SAME_LARGE_FILE))?)
    }),
    case("write-own", "write1", |task, folder| write_over_and_over(task, &tempfile::tempfile_in(folder)?)),
    case("pread-own", "pread1", |task, folder| pread_block(task, &make_filled_file(folder, BLOCK)?, 0)),
    case("pread-same", "pread2", |task, folder| pread_block(task, &File::open(folder.join(SAME_FILE))?, 0)),
    case("pread-apart", "pread3", |task, folder| {
        pread_block(task, &File::open(folder.join(SAME_FILE))?, own_offset(task))
    }),
    case("pwrite-own", "pwrite1", |task, folder| pwrite_block(task, &tempfile::tempfile_in(folder)?, 0)),
    case("pwrite-same", "pwrite2", |task, folder| pwrite_block(task, &open_same_file(folder)?, 0)),
    case("pwrite-apart", "pwrite3", |task, folder| {
        pwrite_block(task, &open_same_file(folder)?, own_offset(task))
    }),
    case("seek-own", "lseek1", |task, folder| seek_to_start(task, &make_filled_file(folder, BLOCK)?)),
    case("seek-same", "lseek2", |task, folder| seek_to_start(task, &open_same_file(folder)?)),
    case("poll-1", "poll1", |task, folder| poll_files(task, folder, 1)),
    case("poll-128", "poll2", |task, folder| poll_files(task, folder, 128)),
    case("eventfd", "eventfd1", |task, _| {
        let counter = rustix::event::eventfd(0, EventfdFlags::empty())?;
        pass_through(task, &counter, &counter, 1_u64.to_ne_bytes())
    }),
    case("pipe", "pipe1", |task, _| {
        let (reader, writer) = rustix::pipe::pipe()?;
        pass_through(task, &reader, &writer, [0])
    }),
    case("unix-socket", "unix1", |task, _| {
        use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
        let (reader, writer) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::empty(), None)?;
        pass_through(task, &reader, &writer, [0])
    }),
    case("signal", "signal1", |task, _| {
        handle_user_signal()?;
        task.repeat(|| Ok(nix::sys::signal::raise(nix::sys::signal::Signal::SIGUSR1)?))
    }),
    case("futex-wake", "futex1", |task, _| wake_futex(task, futex::Flags::empty())),
    case("futex-wait", "futex2", |task, _| wait_futex(task, futex::Flags::empty())),
    case("futex-wake-private", "futex3", |task, _| wake_futex(task, futex::Flags::PRIVATE)),
    case("futex-wait-private", "futex4", |task, _| wait_futex(task, futex::Flags::PRIVATE)),
    case("mutex-own", "pthread_mutex2", |task, _| lock_mutex(task, &LibraryMutex::new())),
    case("mutex-same", "pthread_mutex1", |task, _| {
        static SAME: OnceLock<LibraryMutex> = OnceLock::new();
        lock_mutex(task, SAME.get_or_init(LibraryMutex::new))
    }),
    case("sched-yield", "sched_yield", |task, _| {
        task.repeat(|| {
            rustix::thread::sched_yield();
            Ok(())
        })
    }),
    case("getppid", "getppid1", |task, _| {
        task.repeat(|| {
            black_box(rustix::process::getppid());
            Ok(())
        })
    }),
    case("record-lock-own", "lock1", |task, folder| lock_record(task, &tempfile::tempfile_in(folder)?)),
    case("record-lock-same", "lock2", |task, folder| lock_record(task, &open_same_file(folder)?)),
    case("flock-own", "", |task, folder| lock_file(task, &tempfile::tempfile_in(folder)?)),
    case("flock-same", "", |task, folder| lock_file(task, &open_same_file(folder)?)),
    case("lease-own", "", |task, folder| {
        let file = tempfile::tempfile_in(folder)?;
        count_pairs(task, || take_and_drop_lease(&file))
    }),
    case("fallocate-own", "fallocate2", |task, folder| {
        allocate_file_parts(task, &tempfile::tempfile_in(folder)?)
    }),
    case("dup", "dup1", |task, folder| {
        let file = tempfile::tempfile_in(folder)?;
        task.repeat(|| Ok(rustix::io::dup(&file).map(drop)?))
    }),
    case("flush-tlb-file-private", "tlb_flush1", |task, folder| {
        let file = make_sparse_file(folder)?;
        flush_tlb(task, MAPPED, 0, || PageMapping::map_file(&file, MAPPED, MappingKind::Private))
    }),
    case("flush-tlb-anonymous", "tlb_flush2", |task, _| {
        flush_tlb(task, FILE_SIZE, 0, || PageMapping::map_anonymous(FILE_SIZE))
    }),
    case("flush-tlb-file-shared", "tlb_flush3", |task, folder| {
        let file = make_sparse_file(folder)?;
        flush_tlb(task, MAPPED, 1, || PageMapping::map_file(&file, MAPPED, MappingKind::Shared))
    }),
    case("protect", "", |task, _| {
        let mut mapping = PageMapping::map_anonymous(rustix::param::page_size())?;
        count_pairs(task, || {
            mapping.write_byte(0, 1);
            mapping.make_writable(false)?;
            mapping.make_writable(true)
        })
    }),
];

/// Bytes of large mappings.
const MAPPED: usize = 128 << 20;
/// Bytes of a file that is read or written from start to end.
const FILE_SIZE: usize = 1 << 20;
/// Bytes that one call reads or writes.
const BLOCK: usize = 4096;
/// Bytes that one call allocates in a file.
const ALLOCATED: u64 = FILE_SIZE as u64 / 128;
/// The file of the folder that all tasks use: a page for each task.
const SAME_FILE: &str = "same";
/// The one that all read from start to end.
const SAME_LARGE_FILE: &str = "same-large";

/// Makes what the cases find in the folder: the files that all tasks use, and a folder for each task.
pub(crate) fn prepare_files(folder: &Path, tasks: usize) -> io::Result<()> {
    use std::io::Write as _;
    let mut same = File::create_new(folder.join(SAME_FILE))?;
    let page = vec![0; rustix::param::page_size()];
    // Page by page: a file that is written at once lies in larger pieces of the page cache, in which one page costs more.
    (0..tasks).try_for_each(|_| same.write_all(&page))?;
    File::create_new(folder.join(SAME_LARGE_FILE))?.write_all(&vec![0; FILE_SIZE])?;
    (0..tasks).try_for_each(|task| std::fs::create_dir(folder.join(task.to_string())))
}

fn own_offset(task: &Task<'_>) -> u64 {
    (task.index * rustix::param::page_size()) as u64
}

fn open_same_file(folder: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(folder.join(SAME_FILE))
}

/// A file without a name, of zeros, to be read from its start.
fn make_filled_file(folder: &Path, size: usize) -> io::Result<File> {
    let mut file = tempfile::tempfile_in(folder)?;
    io::Write::write_all(&mut file, &vec![0; size])?;
    io::Seek::rewind(&mut file)?;
    Ok(file)
}

/// A file without a name, as long as a large mapping, without blocks.
fn make_sparse_file(folder: &Path) -> io::Result<File> {
    let file = tempfile::tempfile_in(folder)?;
    file.set_len(MAPPED as u64)?;
    Ok(file)
}

fn create_own_file(task: &Task<'_>, folder: &Path) -> io::Result<std::path::PathBuf> {
    let path = folder.join(format!("own-{}", task.index));
    File::create(&path)?;
    Ok(path)
}

fn create_file_in_own_folder(task: &Task<'_>, folder: &Path) -> io::Result<std::path::PathBuf> {
    let path = folder.join(task.index.to_string()).join("file");
    File::create(&path)?;
    Ok(path)
}

fn system_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// The first write to each page of a new mapping, then the next mapping; each page counts.
fn touch_pages(task: &Task<'_>, map: impl Fn() -> io::Result<PageMapping>) -> io::Result<()> {
    let page = rustix::param::page_size();
    task.begin();
    loop {
        let mut mapping = map()?;
        for offset in (0..MAPPED).step_by(page) {
            mapping.write_byte(offset, 0);
            if !task.count(1) {
                return Ok(());
            }
        }
    }
}

fn touch_file(task: &Task<'_>, folder: &Path, kind: MappingKind) -> io::Result<()> {
    let file = make_sparse_file(folder)?;
    touch_pages(task, || PageMapping::map_file(&file, MAPPED, kind))
}

/// Writes each page of a mapping and throws it away, which no CPU may hold in its TLB any longer; `then` is what it reads as then.
fn flush_tlb(
    task: &Task<'_>,
    size: usize,
    then: u8,
    map: impl Fn() -> io::Result<PageMapping>,
) -> io::Result<()> {
    let page = rustix::param::page_size();
    task.begin();
    loop {
        let mut mapping = map()?;
        for offset in (0..size).step_by(page) {
            mapping.write_byte(offset, 1);
            mapping.advise(offset, page, Advice::LinuxDontNeed)?;
            if mapping.read_byte(offset) != then {
                return Err(io::Error::other("a page that was thrown away holds what it should not"));
            }
            if !task.count(1) {
                return Ok(());
            }
        }
    }
}

fn allocate_over_and_over(task: &Task<'_>, size: usize) -> io::Result<()> {
    if size > BLOCK {
        return task.repeat(|| allocate_and_free(size));
    }
    let mut outcome = Ok(());
    task.repeat_in_batches(|| {
        if let Err(error) = allocate_and_free(size) {
            outcome = Err(error);
        }
    });
    outcome
}

fn open_and_close(task: &Task<'_>, path: &Path) -> io::Result<()> {
    let path = system_path(path)?;
    task.repeat(|| Ok(rustix::fs::open(&path, OFlags::RDWR, Mode::empty()).map(drop)?))
}

fn create_and_unlink(task: &Task<'_>, path: &Path) -> io::Result<()> {
    let path = system_path(path)?;
    rustix::fs::unlink(&path)?;
    task.repeat(|| {
        drop(rustix::fs::open(&path, OFlags::RDWR | OFlags::CREATE, Mode::RUSR | Mode::WUSR)?);
        Ok(rustix::fs::unlink(&path)?)
    })
}

/// Reads blocks to the end of the file, and again from its start.
fn read_over_and_over(task: &Task<'_>, file: &File) -> io::Result<()> {
    let mut buffer = [0_u8; BLOCK];
    task.repeat(|| {
        if rustix::io::read(file, &mut buffer)? == 0 {
            rustix::fs::seek(file, SeekFrom::Start(0))?;
        }
        Ok(())
    })
}

/// Writes blocks to the size of a file, and again from its start.
fn write_over_and_over(task: &Task<'_>, file: &File) -> io::Result<()> {
    let buffer = [0_u8; BLOCK];
    let mut written = 0;
    task.repeat(|| {
        written += rustix::io::write(file, &buffer)?;
        if written >= FILE_SIZE {
            written = 0;
            rustix::fs::seek(file, SeekFrom::Start(0))?;
        }
        Ok(())
    })
}

fn pread_block(task: &Task<'_>, file: &File, offset: u64) -> io::Result<()> {
    let mut buffer = [0_u8; BLOCK];
    task.repeat(|| require_all_bytes(rustix::io::pread(file, &mut buffer, offset)?))
}

fn pwrite_block(task: &Task<'_>, file: &File, offset: u64) -> io::Result<()> {
    let buffer = [0_u8; BLOCK];
    task.repeat(|| require_all_bytes(rustix::io::pwrite(file, &buffer, offset)?))
}

fn require_all_bytes(done: usize) -> io::Result<()> {
    if done == BLOCK { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn seek_to_start(task: &Task<'_>, file: &File) -> io::Result<()> {
    task.repeat(|| {
        rustix::fs::seek(file, SeekFrom::Start(0))?;
        Ok(())
    })
}

/// Asks whether so many files can be written, without waiting; the question is written anew each time.
fn poll_files(task: &Task<'_>, folder: &Path, files: usize) -> io::Result<()> {
    let files: Vec<File> = (0..files).map(|_| tempfile::tempfile_in(folder)).collect::<io::Result<_>>()?;
    let mut asked: Vec<PollFd<'_>> =
        files.iter().map(|file| PollFd::new(file.as_fd(), PollFlags::POLLOUT)).collect();
    task.repeat(|| {
        for (asked, file) in asked.iter_mut().zip(&files) {
            *asked = PollFd::new(file.as_fd(), PollFlags::POLLOUT);
        }
        nix::poll::poll(&mut asked, PollTimeout::ZERO)?;
        Ok(())
    })
}

/// Writes some bytes and reads them again.
fn pass_through<const SIZE: usize>(
    task: &Task<'_>,
    reader: &OwnedFd,
    writer: &OwnedFd,
    bytes: [u8; SIZE],
) -> io::Result<()> {
    let mut read = [0_u8; SIZE];
    task.repeat(|| {
        rustix::io::write(writer, &bytes)?;
        rustix::io::read(reader, &mut read)?;
        Ok(())
    })
}

/// Wakes nobody.
fn wake_futex(task: &Task<'_>, flags: futex::Flags) -> io::Result<()> {
    let word = AtomicU32::new(0);
    task.repeat(|| {
        futex::wake(&word, flags, 1)?;
        Ok(())
    })
}

/// Waits for what has happened already, so that it returns at once.
fn wait_futex(task: &Task<'_>, flags: futex::Flags) -> io::Result<()> {
    let word = AtomicU32::new(0);
    task.repeat(|| match futex::wait(&word, flags, 1, None) {
        Ok(()) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    })
}

fn lock_mutex(task: &Task<'_>, mutex: &LibraryMutex) -> io::Result<()> {
    task.repeat_in_batches(|| mutex.lock_and_unlock());
    Ok(())
}

/// Taking and giving back count as one each.
fn count_pairs(task: &Task<'_>, mut pair: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    task.begin();
    loop {
        pair()?;
        if !task.count(2) {
            return Ok(());
        }
    }
}

/// Locks and unlocks the first byte: fcntl(2), F_SETLKW. The whole file would be cheaper to unlock.
fn lock_record(task: &Task<'_>, file: &File) -> io::Result<()> {
    let [lock, unlock] = [libc::F_WRLCK, libc::F_UNLCK].map(|kind| libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 1,
        l_pid: 0,
    });
    count_pairs(task, || {
        fcntl(file, FcntlArg::F_SETLKW(&lock))?;
        fcntl(file, FcntlArg::F_SETLKW(&unlock))?;
        Ok(())
    })
}

/// flock(2).
fn lock_file(task: &Task<'_>, file: &File) -> io::Result<()> {
    count_pairs(task, || {
        rustix::fs::flock(file, FlockOperation::LockExclusive)?;
        Ok(rustix::fs::flock(file, FlockOperation::Unlock)?)
    })
}

/// Allocates a file part by part, and empties it when it is whole.
fn allocate_file_parts(task: &Task<'_>, file: &File) -> io::Result<()> {
    let mut offset = 0;
    task.repeat(|| {
        rustix::fs::fallocate(file, FallocateFlags::empty(), offset, ALLOCATED)?;
        offset += ALLOCATED;
        if offset >= FILE_SIZE as u64 {
            rustix::fs::ftruncate(file, 0)?;
            offset = 0;
        }
        Ok(())
    })
}

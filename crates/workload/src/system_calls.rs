//! System calls that rustix, nix and memmap2 do not offer as safe ones, each behind a function or type that is safe to use.
//!
//! This is the one file of the crate with `unsafe` in it: the end of a process with what it used, where a
//! thread's memory comes from, questions about system calls, and what the built-in loads need.

#![allow(unsafe_code, reason = "the kernel reads and writes memory that is given to it, and gives memory")]

use std::cell::UnsafeCell;
use std::fs;
use std::hint::black_box;
use std::io::{self, Write as _};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, FromRawFd as _, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, ExitStatus};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::mm::{MapFlags, ProtFlags};
use rustix::process::Pid;

/// Has what a command starts write itself to these files before it is executed: `cgroup.procs` of control groups.
pub(crate) fn join_before_exec(command: &mut Command, groups: Vec<fs::File>) {
    let join = move || groups.iter().try_for_each(|mut file| file.write_all(b"0"));
    // SAFETY: between fork and exec it only writes a constant to open files, which allocates nothing and takes no lock.
    unsafe { command.pre_exec(join) };
}

/// The machine whose numbers of system calls this program knows, as filters are told it: AUDIT_ARCH_* of linux/audit.h.
const MACHINE: u32 = if cfg!(target_arch = "aarch64") { 0xC000_00B7 } else { 0xC000_003E };

/// Has the kernel ask about these system calls of this thread, and of all that it starts from now on, before it begins with one: a filter of
/// seccomp(2) with `SECCOMP_RET_USER_NOTIF`. Who answers has the file that it gives; when that is closed, they fail with ENOSYS.
///
/// # Errors
/// EACCES without CAP_SYS_ADMIN and no_new_privs; EBUSY where this thread is asked about already; EINVAL of kernels before 5.0, or without
/// seccomp.
pub(crate) fn ask_about_calls(numbers: &[u32]) -> io::Result<OwnedFd> {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let load = |field: usize| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, field as u32);
    let jump = |k: u32, jt: u8, jf: u8| libc::sock_filter {
        code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
        jt,
        jf,
        k,
    };
    let end = |action: u32| statement(libc::BPF_RET | libc::BPF_K, action);
    // Calls of another machine's programs, whose numbers mean something else, are let through.
    let mut program = vec![
        load(std::mem::offset_of!(libc::seccomp_data, arch)),
        jump(MACHINE, 1, 0),
        end(libc::SECCOMP_RET_ALLOW),
        load(std::mem::offset_of!(libc::seccomp_data, nr)),
    ];
    for number in numbers {
        program.extend([jump(*number, 0, 1), end(libc::SECCOMP_RET_USER_NOTIF)]);
    }
    program.push(end(libc::SECCOMP_RET_ALLOW));
    let length = u16::try_from(program.len()).map_err(io::Error::other)?;
    let filter = libc::sock_fprog { len: length, filter: program.as_mut_ptr() };
    let install = |flags: libc::c_ulong| {
        // SAFETY: the kernel copies the filter, whose length it is given, and keeps no pointer.
        unsafe {
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, ptr::from_ref(&filter))
        }
    };
    let ask = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // A signal would have a call that is answered for begin again, and be asked about twice; kernels before 5.19 cannot help it.
    let mut found = install(ask | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
    if found < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL) {
        found = install(ask);
    }
    match i32::try_from(found) {
        // SAFETY: the kernel has just opened it for this call.
        Ok(file) if file >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(file) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A system call about which the kernel asks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AskedCall {
    /// what to answer with
    pub(crate) id: u64,
    /// the thread that calls, in our own numbering; 0 where it has no number there
    pub(crate) thread: u32,
    /// the number of the system call
    pub(crate) number: i32,
}

/// Takes the next call about which the kernel asks; waits until there is one.
///
/// # Errors
/// ENOENT where the caller was killed meanwhile.
pub(crate) fn receive_call(listener: &OwnedFd) -> io::Result<AskedCall> {
    // SAFETY: it holds integers only, of which zero is a valid value; the kernel wants zeros.
    let mut asked = unsafe { MaybeUninit::<libc::seccomp_notif>::zeroed().assume_init() };
    // SAFETY: the kernel writes one structure of this type, whose size is part of the request, to memory that lives until it returns.
    let status = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, ptr::from_mut(&mut asked))
    };
    match status {
        0 => Ok(AskedCall { id: asked.id, thread: asked.pid, number: asked.data.nr }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Lets a call go on as if nobody had asked.
///
/// # Errors
/// ENOENT where the caller was killed, or does not wait any more.
pub(crate) fn let_call_go_on(listener: &OwnedFd, id: u64) -> io::Result<()> {
    let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
    let mut answer = libc::seccomp_notif_resp { id, val: 0, error: 0, flags };
    // SAFETY: the kernel reads one structure of this type, whose size is part of the request.
    let status = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, ptr::from_mut(&mut answer))
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Puts an operation into a ring that does nothing; `false` where the ring is full.
pub(crate) fn push_no_operation(queue: &mut io_uring::SubmissionQueue<'_>) -> bool {
    // SAFETY: the operation names no memory and no file, so nothing has to outlive it.
    unsafe { queue.push(&io_uring::opcode::Nop::new().build()) }.is_ok()
}

/// Reaps a child of this process that has ended or ends soon: wait4(2).
///
/// # Errors
/// It is no child, or was reaped before.
pub(crate) fn wait_with_usage(pid: Pid) -> io::Result<(ExitStatus, libc::rusage)> {
    let mut status = 0;
    let mut usage = zeroed_usage();
    loop {
        // SAFETY: both pointers are to memory of the right type that lives until the call returns.
        let reaped = unsafe { libc::wait4(pid.as_raw_nonzero().get(), &mut status, 0, &mut usage) };
        if reaped >= 0 {
            return Ok((ExitStatus::from_raw(status), usage));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// What nobody used anything of.
pub(crate) fn zeroed_usage() -> libc::rusage {
    // SAFETY: it holds integers only, of which zero is a valid value.
    unsafe { MaybeUninit::<libc::rusage>::zeroed().assume_init() }
}

/// Words of a mask of nodes: kernels have at most 1,024 of them.
pub(crate) const NODE_WORDS: usize = 1024 / libc::c_ulong::BITS as usize;

/// Bits of such a mask.
const NODE_BITS: libc::c_ulong = 1024;

/// The memory policy of this thread: get_mempolicy(2). Its mode with its flags, and the nodes that it is about, a bit each.
///
/// # Errors
/// The kernel has no such system call, or a filter refuses it.
pub(crate) fn get_memory_policy() -> io::Result<(libc::c_int, [libc::c_ulong; NODE_WORDS])> {
    let (mut mode, mut nodes): (libc::c_int, _) = (0, [0; NODE_WORDS]);
    let no_address = ptr::null_mut::<libc::c_void>();
    // SAFETY: the kernel writes one integer and `NODE_BITS` bits, which is what both pointers have room for.
    let status = unsafe {
        libc::syscall(
            libc::SYS_get_mempolicy,
            ptr::from_mut(&mut mode),
            nodes.as_mut_ptr(),
            NODE_BITS,
            no_address,
            0_u64,
        )
    };
    if status == 0 { Ok((mode, nodes)) } else { Err(io::Error::last_os_error()) }
}

/// Makes a memory policy that of this thread: set_mempolicy(2).
///
/// # Errors
/// A node is not there, or a filter refuses the system call.
pub(crate) fn set_memory_policy(mode: libc::c_int, nodes: &[libc::c_ulong; NODE_WORDS]) -> io::Result<()> {
    let has_nodes = nodes.iter().any(|word| *word != 0);
    let (mask, bits) = if has_nodes { (nodes.as_ptr(), NODE_BITS) } else { (ptr::null(), 0) };
    // SAFETY: the kernel reads `bits` bits, which is none or as many as the array has.
    let status = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask, bits) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// That this process has one thread. Who has it starts no other.
#[derive(Debug)]
pub(crate) struct SingleThread(PhantomData<*const ()>);

impl SingleThread {
    /// # Errors
    /// This process has more threads. A child that is forked from it would have one of them, and what the others had locked for ever.
    pub(crate) fn check() -> io::Result<Self> {
        let threads = fs::read_dir("/proc/self/task")?.count();
        if threads != 1 {
            return Err(io::Error::other(format!(
                "this process has {threads} threads, and only one can be forked"
            )));
        }
        Ok(SingleThread(PhantomData))
    }

    /// Runs `body` in a child of this process, which ends with the code that it returns, or with 101 where it panics.
    ///
    /// # Errors
    /// The system refuses another process.
    pub(crate) fn fork(&self, body: impl FnOnce() -> u8) -> io::Result<Pid> {
        // SAFETY: this process has one thread, so that no lock is held and no memory half written by another one. The child never
        // returns from here: it runs nobody else's destructors and exit handlers.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                let code = catch_unwind(AssertUnwindSafe(body)).unwrap_or(101);
                // SAFETY: it takes a number and does not return.
                unsafe { libc::_exit(code.into()) }
            }
            child => Pid::from_raw(child).ok_or_else(|| io::Error::other("a child without a number")),
        }
    }
}

/// Bytes of a [`SharedLines`]' line: more than any cache line and what is fetched with it.
const LINE: usize = 256;

/// Zeroed words that are shared with children which are forked later, each alone in its cache line.
#[derive(Debug)]
pub(crate) struct SharedLines {
    start: NonNull<u8>,
    lines: usize,
}

// SAFETY: what it gives access to are atomics.
unsafe impl Sync for SharedLines {}
// SAFETY: the mapping belongs to the process, not to a thread.
unsafe impl Send for SharedLines {}

impl SharedLines {
    pub(crate) fn map(lines: usize) -> io::Result<Self> {
        let start = map_memory(lines * LINE, MapFlags::SHARED, None)?;
        Ok(SharedLines { start, lines })
    }

    /// The word of 64 bits of a line.
    ///
    /// # Panics
    /// There is no such line.
    pub(crate) fn counter(&self, line: usize) -> &AtomicU64 {
        // SAFETY: the line lies in the mapping, which is aligned to a page, holds zeros or what atomics wrote, and lives as
        // long as `self`.
        unsafe { AtomicU64::from_ptr(self.line(line).cast().as_ptr()) }
    }

    /// The word of 32 bits of a line, which is not used as a counter as well.
    ///
    /// # Panics
    /// There is no such line.
    pub(crate) fn state(&self, line: usize) -> &AtomicU32 {
        // SAFETY: as for `counter`.
        unsafe { AtomicU32::from_ptr(self.line(line).cast().as_ptr()) }
    }

    /// Makes a semaphore of the C library of a line, which is nothing else then; it begins as zero.
    ///
    /// # Panics
    /// There is no such line.
    pub(crate) fn make_semaphore(&self, line: usize) -> io::Result<LibrarySemaphore<'_>> {
        const { assert!(size_of::<libc::sem_t>() <= LINE) };
        let semaphore = self.line(line).cast::<libc::sem_t>();
        // SAFETY: the line is large enough, aligned to 256, and zeroed memory that lives as long as `self`.
        match unsafe { libc::sem_init(semaphore.as_ptr(), 1, 0) } {
            0 => Ok(LibrarySemaphore { semaphore, lines: PhantomData }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn line(&self, line: usize) -> NonNull<u8> {
        assert!(line < self.lines, "line {line} of {}", self.lines);
        // SAFETY: it is inside the mapping.
        unsafe { self.start.add(line * LINE) }
    }
}

impl Drop for SharedLines {
    fn drop(&mut self) {
        unmap_memory(self.start, self.lines * LINE);
    }
}

/// A semaphore of the C library that processes share.
#[derive(Debug)]
pub(crate) struct LibrarySemaphore<'a> {
    semaphore: NonNull<libc::sem_t>,
    lines: PhantomData<&'a SharedLines>,
}

// SAFETY: it is made to be used by several threads and processes.
unsafe impl Sync for LibrarySemaphore<'_> {}
// SAFETY: as above.
unsafe impl Send for LibrarySemaphore<'_> {}

impl LibrarySemaphore<'_> {
    pub(crate) fn post(&self) -> io::Result<()> {
        // SAFETY: it was initialised and lives as long as `self`.
        match unsafe { libc::sem_post(self.semaphore.as_ptr()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// # Errors
    /// A signal came.
    pub(crate) fn wait(&self) -> io::Result<()> {
        // SAFETY: as for `post`.
        match unsafe { libc::sem_wait(self.semaphore.as_ptr()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// A set of System V semaphores of this process and its children, which begin as zero; it is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct SystemSemaphores(libc::c_int);

impl SystemSemaphores {
    pub(crate) fn create(count: usize) -> io::Result<Self> {
        let count = libc::c_int::try_from(count).map_err(io::Error::other)?;
        // SAFETY: it takes numbers.
        match unsafe { libc::semget(libc::IPC_PRIVATE, count, libc::IPC_CREAT | 0o600) } {
            -1 => Err(io::Error::last_os_error()),
            set => Ok(SystemSemaphores(set)),
        }
    }

    /// Adds to one, which waits while it would become negative: semop(2).
    ///
    /// # Errors
    /// A signal came, or there is no such semaphore.
    pub(crate) fn add(&self, semaphore: u16, change: i16) -> io::Result<()> {
        let mut operation = libc::sembuf { sem_num: semaphore, sem_op: change, sem_flg: 0 };
        // SAFETY: the pointer is to one operation that lives until the call returns.
        match unsafe { libc::semop(self.0, &mut operation, 1) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for SystemSemaphores {
    fn drop(&mut self) {
        // SAFETY: this command takes no further argument. Who waits is told that it is gone.
        unsafe { libc::semctl(self.0, 0, libc::IPC_RMID) };
    }
}

/// Whose a mapping's changes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MappingKind {
    /// of this process
    Private,
    /// of the file, and of all who map it
    Shared,
}

/// Mapped memory that is touched byte by byte, from start to end, as loads do whose subject is the mapping.
///
/// No reference to it is ever made, so that others may change the file or the memory meanwhile.
#[derive(Debug)]
pub(crate) struct PageMapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and is written by `&mut self` only.
unsafe impl Send for PageMapping {}
// SAFETY: what `&self` offers reads only.
unsafe impl Sync for PageMapping {}

impl PageMapping {
    /// `length` bytes of fresh memory of this process.
    pub(crate) fn map_anonymous(length: usize) -> io::Result<Self> {
        let start = map_memory(length, MapFlags::PRIVATE, None)?;
        Ok(PageMapping { start, length })
    }

    /// The first `length` bytes of a file. Who touches what lies behind the file's end is ended by SIGBUS: the file must be
    /// the caller's own.
    pub(crate) fn map_file(file: &fs::File, length: usize, kind: MappingKind) -> io::Result<Self> {
        let flags = match kind {
            MappingKind::Private => MapFlags::PRIVATE,
            MappingKind::Shared => MapFlags::SHARED,
        };
        let start = map_memory(length, flags, Some(file))?;
        Ok(PageMapping { start, length })
    }

    /// Where it begins.
    pub(crate) fn address(&self) -> usize {
        self.start.addr().get()
    }

    /// Writes the byte at `offset`, really.
    ///
    /// # Panics
    /// It lies outside.
    #[inline]
    pub(crate) fn write_byte(&mut self, offset: usize, byte: u8) {
        assert!(offset < self.length, "byte {offset} of {}", self.length);
        // SAFETY: the byte lies in the mapping, which is writable, and no reference to it exists.
        unsafe { self.start.add(offset).write_volatile(byte) }
    }

    /// Reads the byte at `offset`, really.
    ///
    /// # Panics
    /// It lies outside.
    #[inline]
    pub(crate) fn read_byte(&self, offset: usize) -> u8 {
        assert!(offset < self.length, "byte {offset} of {}", self.length);
        // SAFETY: the byte lies in the mapping, which is readable.
        unsafe { self.start.add(offset).read_volatile() }
    }

    /// Gives advice about `length` bytes from `offset` on: madvise(2). Pages that are thrown away read as they did at first.
    ///
    /// # Panics
    /// They lie outside.
    pub(crate) fn advise(
        &mut self,
        offset: usize,
        length: usize,
        advice: rustix::mm::Advice,
    ) -> io::Result<()> {
        assert!(offset + length <= self.length, "{length} bytes from {offset} of {}", self.length);
        // SAFETY: the range lies in the mapping, and no reference to it exists that would see other bytes.
        unsafe { rustix::mm::madvise(self.start.add(offset).as_ptr().cast(), length, advice)? };
        Ok(())
    }

    /// Allows reading and, if `writable`, writing: mprotect(2).
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn make_writable(&mut self, writable: bool) -> io::Result<()> {
        use rustix::mm::MprotectFlags;
        let flags = if writable { MprotectFlags::READ | MprotectFlags::WRITE } else { MprotectFlags::READ };
        // SAFETY: the range is the mapping. Writing to what is not writable ends the process by SIGSEGV, and corrupts nothing.
        unsafe { rustix::mm::mprotect(self.start.as_ptr().cast(), self.length, flags)? };
        Ok(())
    }
}

impl Drop for PageMapping {
    fn drop(&mut self) {
        unmap_memory(self.start, self.length);
    }
}

fn map_memory(length: usize, flags: MapFlags, file: Option<&fs::File>) -> io::Result<NonNull<u8>> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses the place, so that no other mapping is replaced.
    let start = unsafe {
        match file {
            Some(file) => rustix::mm::mmap(ptr::null_mut(), length, protection, flags, file.as_fd(), 0),
            None => rustix::mm::mmap_anonymous(ptr::null_mut(), length, protection, flags),
        }
    }?;
    NonNull::new(start.cast()).ok_or_else(|| io::Error::other("a mapping at address 0"))
}

fn unmap_memory(start: NonNull<u8>, length: usize) {
    // SAFETY: only owners of a whole mapping call this, once, when nothing borrows from them any more. It cannot fail for
    // such a range.
    let _ = unsafe { rustix::mm::munmap(start.as_ptr().cast(), length) };
}

/// A mutex of the C library, for loads that measure that one. It protects nothing.
#[derive(Debug)]
pub(crate) struct LibraryMutex(Box<UnsafeCell<libc::pthread_mutex_t>>);

// SAFETY: a pthread mutex is made to be used by several threads.
unsafe impl Sync for LibraryMutex {}

impl LibraryMutex {
    pub(crate) fn new() -> Self {
        LibraryMutex(Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)))
    }

    /// Takes it and gives it back.
    #[inline]
    pub(crate) fn lock_and_unlock(&self) {
        // SAFETY: it is initialised and never moves; this thread does not hold it, as it is always given back at once, and
        // holds it when it gives it back. For such a mutex neither call fails.
        unsafe {
            libc::pthread_mutex_lock(self.0.get());
            libc::pthread_mutex_unlock(self.0.get());
        }
    }
}

/// Gets memory from the C library and gives it back, untouched.
///
/// # Errors
/// It has none.
#[inline]
pub(crate) fn allocate_and_free(size: usize) -> io::Result<()> {
    // SAFETY: any size may be asked for, and what is freed was got a moment ago, or is null, of which nothing is freed.
    unsafe {
        let memory = black_box(libc::malloc(size));
        if memory.is_null() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        libc::free(memory);
    }
    Ok(())
}

/// Lets SIGUSR1 call a function that does nothing, for all threads of this process.
pub(crate) fn handle_user_signal() -> io::Result<()> {
    extern "C" fn do_nothing(_: libc::c_int) {}
    use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
    let action = SigAction::new(SigHandler::Handler(do_nothing), SaFlags::empty(), SigSet::empty());
    // SAFETY: a function that does nothing may be called at any time.
    unsafe { sigaction(Signal::SIGUSR1, &action)? };
    Ok(())
}

/// Takes a write lease on a file that only this process has open, and gives it back: fcntl(2), F_SETLEASE.
pub(crate) fn take_and_drop_lease(file: &fs::File) -> io::Result<()> {
    for kind in [libc::F_WRLCK, libc::F_UNLCK] {
        // SAFETY: the command takes an integer, and the descriptor is open.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) } == -1 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn lines_are_apart_and_begin_as_zero() {
        let lines = SharedLines::map(100).unwrap();
        for line in 0..100 {
            assert_eq!(lines.counter(line).fetch_add(line as u64, Ordering::Relaxed), 0);
        }
        let sum: u64 = (0..100).map(|line| lines.counter(line).load(Ordering::Relaxed)).sum();
        assert_eq!(sum, 99 * 100 / 2);
    }

    #[test]
    #[should_panic(expected = "line 100 of 100")]
    fn a_line_behind_the_last_is_refused() {
        SharedLines::map(100).unwrap().counter(100);
    }

    #[test]
    fn a_mapping_holds_what_was_written_until_its_pages_are_thrown_away() {
        let page = rustix::param::page_size();
        let mut mapping = PageMapping::map_anonymous(2 * page).unwrap();
        mapping.write_byte(page + 1, 7);
        assert_eq!((mapping.read_byte(0), mapping.read_byte(page + 1)), (0, 7));
        mapping.advise(page, page, rustix::mm::Advice::LinuxDontNeed).unwrap();
        assert_eq!(mapping.read_byte(page + 1), 0);
    }

    #[test]
    fn a_shared_mapping_changes_the_file_and_a_private_one_does_not() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8).unwrap();
        let first = || {
            let mut byte = [0];
            std::os::unix::fs::FileExt::read_at(&file, &mut byte, 0).unwrap();
            byte[0]
        };
        PageMapping::map_file(&file, 8, MappingKind::Private).unwrap().write_byte(0, 1);
        assert_eq!(first(), 0);
        PageMapping::map_file(&file, 8, MappingKind::Shared).unwrap().write_byte(0, 2);
        assert_eq!(first(), 2);
    }

    #[test]
    #[should_panic(expected = "byte 8 of 8")]
    fn a_byte_outside_is_refused() {
        PageMapping::map_anonymous(8).unwrap().write_byte(8, 1);
    }

    #[test]
    fn a_process_with_threads_is_not_forked() {
        // The tests' own threads.
        std::thread::scope(|scope| {
            let (end, wait) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || wait.recv());
            let error = SingleThread::check().unwrap_err().to_string();
            let text: String = error.chars().filter(|letter| !letter.is_ascii_digit()).collect();
            insta::assert_snapshot!(text, @"this process has  threads, and only one can be forked");
            drop(end);
        });
    }

    #[test]
    fn semaphores_let_pass_as_often_as_they_were_posted() {
        let lines = SharedLines::map(1).unwrap();
        let library = lines.make_semaphore(0).unwrap();
        let system = SystemSemaphores::create(2).unwrap();
        for _ in 0..3 {
            library.post().unwrap();
            system.add(1, 1).unwrap();
        }
        for _ in 0..3 {
            library.wait().unwrap();
            system.add(1, -1).unwrap();
        }
        assert!(system.add(2, 1).is_err(), "there are two");
    }

    #[test]
    fn a_lease_is_taken_where_the_file_system_has_them() {
        let file = tempfile::NamedTempFile::new().unwrap();
        if let Err(error) = take_and_drop_lease(file.as_file()) {
            assert_ne!(error.kind(), io::ErrorKind::NotFound, "{error}");
        }
    }
}

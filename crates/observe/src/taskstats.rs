//! What threads waited for and read, reported by the kernel when they end, or when asked (taskstats over generic
//! netlink, `Documentation/accounting/taskstats.rst`).
//!
//! Nothing is slowed: no process is held, none is polled. These are the numbers of one thread; adding up a process
//! tree is the caller's matter. Waiting is reported only where the kernel accounts for delays
//! (`kernel.task_delayacct`); bytes and major faults always.

use std::io;
use std::ops::{Add, AddAssign, Sub};
use std::os::fd::OwnedFd;

use perflab_model::Nanos;
use perflab_model::error_class::{Classify, ErrorClass};
use rustix::net::netlink::{GENERIC, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};
use serde::{Deserialize, Serialize};

use crate::Root;
use crate::little_endian::{read_u16_at, read_u32_at, read_u64_at};

/// Why the kernel does not report.
#[derive(Debug, thiserror::Error)]
#[error("the kernel does not tell what processes read (taskstats): {source}; {advice}")]
pub struct TaskstatsError {
    source: io::Error,
    advice: &'static str,
}

impl Classify for TaskstatsError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Environment
    }
}

/// What threads used, added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadUsage {
    /// waiting for disks; 0 where the kernel does not account for delays
    pub waited: Nanos,
    /// bytes that disks were asked for in its name
    pub read: u64,
    /// page faults that waited for a disk
    pub faults: u64,
}

impl ThreadUsage {
    /// Whether waiting was counted: who read from a disk, or faulted, has waited. A process that was made while the kernel did not
    /// account for delays has none, whatever the setting is when it ends.
    pub fn is_waiting_counted(&self) -> bool {
        self.waited.0 > 0 || (self.read == 0 && self.faults == 0)
    }
}

impl AddAssign for ThreadUsage {
    fn add_assign(&mut self, other: ThreadUsage) {
        *self = *self + other;
    }
}

impl Add for ThreadUsage {
    type Output = ThreadUsage;

    fn add(self, other: ThreadUsage) -> ThreadUsage {
        ThreadUsage {
            waited: Nanos(self.waited.0.saturating_add(other.waited.0)),
            read: self.read.saturating_add(other.read),
            faults: self.faults.saturating_add(other.faults),
        }
    }
}

impl Sub for ThreadUsage {
    type Output = ThreadUsage;

    fn sub(self, other: ThreadUsage) -> ThreadUsage {
        ThreadUsage {
            waited: Nanos(self.waited.0.saturating_sub(other.waited.0)),
            read: self.read.saturating_sub(other.read),
            faults: self.faults.saturating_sub(other.faults),
        }
    }
}

/// A thread that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadExit {
    /// itself
    pub thread: u32,
    /// the user that it was in the end
    pub user: u32,
    /// its process
    pub process: u32,
    /// the process that its process belongs to now
    pub parent: u32,
    /// whether its process ended with it
    pub last: bool,
    /// what the thread used since it was made
    pub used: ThreadUsage,
}

/// What a thread or a process used in its life, of all that the kernel accounts for. Times are in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskUsage {
    /// CPU time in user mode and in the kernel
    pub cpu: (u64, u64),
    /// it could run, and did not
    pub run_delay: u64,
    /// it waited for disks; 0 where the kernel does not account for delays
    pub disk_delay: u64,
    /// switches that it asked for, and others
    pub switches: (u64, u64),
    /// page faults without a disk, and with one
    pub faults: (u64, u64),
    /// bytes that it had disks read and write
    pub bytes: (u64, u64),
}

impl TaskUsage {
    /// CPU time of both modes.
    pub fn cpu_time(&self) -> u64 {
        self.cpu.0.saturating_add(self.cpu.1)
    }
}

impl AddAssign for TaskUsage {
    fn add_assign(&mut self, other: TaskUsage) {
        let sum = |a: (u64, u64), b: (u64, u64)| (a.0.saturating_add(b.0), a.1.saturating_add(b.1));
        *self = TaskUsage {
            cpu: sum(self.cpu, other.cpu),
            run_delay: self.run_delay.saturating_add(other.run_delay),
            disk_delay: self.disk_delay.saturating_add(other.disk_delay),
            switches: sum(self.switches, other.switches),
            faults: sum(self.faults, other.faults),
            bytes: sum(self.bytes, other.bytes),
        };
    }
}

/// What a thread or a process waited for in its life, in nanoseconds; all but waiting for a CPU is 0 where the kernel does not account
/// for delays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskDelays {
    /// it could run, and did not
    pub run: u64,
    /// it waited for disks
    pub disk: u64,
    /// it waited for pages to come back from swap
    pub swap: u64,
    /// it freed memory for what it allocated
    pub reclaim: u64,
    /// it waited for pages of files that had been there shortly before
    pub thrashing: u64,
    /// it compacted memory for what it allocated
    pub compaction: u64,
    /// it copied pages that it shared
    pub copy: u64,
    /// interrupts took its time on a CPU
    pub irq: u64,
}

impl TaskDelays {
    /// Without those that are longer than a thread's life: see [`parse_usage`].
    fn within_life(self, numbers: &[u8]) -> Self {
        let lived = read_u64_at(numbers, 144).unwrap_or(0).saturating_add(1).saturating_mul(1000);
        let keep = |delay: u64| if delay <= lived { delay } else { 0 };
        TaskDelays {
            run: self.run,
            disk: keep(self.disk),
            swap: keep(self.swap),
            reclaim: keep(self.reclaim),
            thrashing: keep(self.thrashing),
            compaction: keep(self.compaction),
            copy: keep(self.copy),
            irq: keep(self.irq),
        }
    }
}

impl AddAssign for TaskDelays {
    fn add_assign(&mut self, other: TaskDelays) {
        let sum = |a: &mut u64, b: u64| *a = a.saturating_add(b);
        sum(&mut self.run, other.run);
        sum(&mut self.disk, other.disk);
        sum(&mut self.swap, other.swap);
        sum(&mut self.reclaim, other.reclaim);
        sum(&mut self.thrashing, other.thrashing);
        sum(&mut self.compaction, other.compaction);
        sum(&mut self.copy, other.copy);
        sum(&mut self.irq, other.irq);
    }
}

/// A thread that ended, with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadAccount {
    /// its name
    pub comm: String,
    /// whether its process ended with it
    pub is_last: bool,
    /// what it used
    pub used: TaskUsage,
}

/// A line to the kernel.
#[derive(Debug)]
pub struct TaskstatsSocket {
    socket: OwnedFd,
    family: u16,
}

/// Netlink's own flags, its message for errors, and its controller, whose number is fixed.
const REQUEST: u16 = 1;

const ACKNOWLEDGE: u16 = 4;

const ERROR: u16 = 2;

const CONTROLLER: u16 = 16;

/// Commands and attributes of the controller and of taskstats.
const GET_FAMILY: u8 = 3;

const FAMILY_ID: u16 = 1;

const FAMILY_NAME: u16 = 2;

const GET: u8 = 1;

const OF_THREAD: u16 = 1;

const LISTEN: u16 = 3;

const OF_PROCESS: u16 = 2;

const ABOUT_A_THREAD: u16 = 4;

const ABOUT_A_PROCESS: u16 = 5;

const NUMBERS: u16 = 3;

const HEAD: usize = 20;

/// The last thread of its process (`AGROUP`), since version 12 (Linux 5.19), as is the process' number.
const LAST: u8 = 0x20;

/// Room for 13,000 threads that end while nothing is read.
const ROOM: usize = 8 << 20;

impl TaskstatsSocket {
    /// A line on which to ask.
    ///
    /// # Errors
    /// A kernel without taskstats, or one that refuses.
    pub fn open() -> Result<Self, TaskstatsError> {
        let advice = "it needs CONFIG_TASKSTATS";
        connect_socket().map_err(|source| TaskstatsError { source, advice })
    }

    /// A socket on which every thread that ends is reported.
    ///
    /// # Errors
    /// As [`open`](Self::open), and where CAP_NET_ADMIN is missing, or this is a container.
    pub fn listen() -> Result<Self, TaskstatsError> {
        let line = Self::open()?;
        let advice = "it needs CAP_NET_ADMIN, outside of containers";
        let refused = |source| TaskstatsError { source, advice };
        let _ = sockopt::set_socket_recv_buffer_size_force(&line.socket, ROOM);
        let all = Root::host().read("/sys/devices/system/cpu/possible").unwrap_or_else(|_| "0".into());
        line.send_request(line.family, GET, LISTEN, &[all.trim().as_bytes(), &[0]].concat())
            .map_err(refused)?;
        line.receive_answer(|_| None::<()>).map_err(refused)?;
        Ok(line)
    }

    /// Reports the threads that ended since, and waits for none. Returns whether none was lost for want of room.
    ///
    /// # Errors
    /// The socket's error.
    pub fn drain_exits(&self, mut found: impl FnMut(ThreadExit)) -> io::Result<bool> {
        self.drain_reports(|about| parse_exit(about).into_iter().for_each(&mut found))
    }

    /// The same, with all that each thread used.
    ///
    /// # Errors
    /// The socket's error.
    pub fn drain_accounts(&self, mut found: impl FnMut(ThreadAccount)) -> io::Result<bool> {
        self.drain_reports(|about| parse_account(about).into_iter().for_each(&mut found))
    }

    /// The same, with what each thread waited for.
    ///
    /// # Errors
    /// The socket's error.
    pub fn drain_delays(&self, mut found: impl FnMut(ThreadExit, TaskDelays)) -> io::Result<bool> {
        self.drain_reports(|about| {
            let delays = find_statistics(about).map(|numbers| parse_delays(numbers).within_life(numbers));
            let exit = parse_exit(about).zip(delays);
            exit.into_iter().for_each(|(exit, delays)| found(exit, delays));
        })
    }

    fn drain_reports(&self, mut found: impl FnMut(&[u8])) -> io::Result<bool> {
        let (mut buffer, mut complete) = (vec![0; 32 << 10], true);
        loop {
            match rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((length, _)) => {
                    let bytes = buffer.get(..length).unwrap_or_default();
                    let messages = parse_messages(bytes).filter(|(kind, _)| *kind == self.family);
                    messages
                        .flat_map(|(_, body)| find_attributes_about(ABOUT_A_THREAD, body))
                        .for_each(&mut found);
                }
                Err(rustix::io::Errno::AGAIN) => return Ok(complete),
                Err(rustix::io::Errno::NOBUFS) => complete = false,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// What a thread that lives used so far; none where there is no such thread, or one may not ask.
    pub fn thread_usage(&self, thread: u32) -> Option<ThreadUsage> {
        self.send_request(self.family, GET, OF_THREAD, &thread.to_le_bytes()).ok()?;
        let messages = |body: &[u8]| {
            let mut threads = find_attributes_about(ABOUT_A_THREAD, body);
            threads.find_map(|one| find_statistics(one).map(parse_usage))
        };
        self.receive_answer(messages).ok().flatten()
    }

    /// What all threads of a process used so far, those that ended with them; of faults, CPU time and bytes the kernel does not
    /// say that. None where there is no such process, or one may not ask.
    pub fn process_usage(&self, process: u32) -> Option<TaskUsage> {
        self.send_request(self.family, GET, OF_PROCESS, &process.to_le_bytes()).ok()?;
        let messages = |body: &[u8]| {
            let mut processes = find_attributes_about(ABOUT_A_PROCESS, body);
            processes.find_map(|one| find_statistics(one).map(parse_task_usage))
        };
        self.receive_answer(messages).ok().flatten()
    }

    /// What all threads of a process that lives waited for so far, those that ended with them. None where there is no such process, or
    /// one may not ask.
    pub fn process_delays(&self, process: u32) -> Option<TaskDelays> {
        self.send_request(self.family, GET, OF_PROCESS, &process.to_le_bytes()).ok()?;
        let messages = |body: &[u8]| {
            let mut processes = find_attributes_about(ABOUT_A_PROCESS, body);
            processes.find_map(|one| find_statistics(one).map(parse_delays))
        };
        self.receive_answer(messages).ok().flatten()
    }

    fn send_request(&self, family: u16, command: u8, attribute: u16, value: &[u8]) -> io::Result<()> {
        let room = value.len().next_multiple_of(4);
        let mut message = Vec::with_capacity(HEAD + 4 + room);
        message.extend(((HEAD + 4 + room) as u32).to_le_bytes());
        message.extend(family.to_le_bytes());
        let flags = if attribute == LISTEN { REQUEST | ACKNOWLEDGE } else { REQUEST };
        message.extend(flags.to_le_bytes());
        message.extend([0; 8]);
        message.extend([command, 1, 0, 0]);
        message.extend(((4 + value.len()) as u16).to_le_bytes());
        message.extend(attribute.to_le_bytes());
        message.extend(value);
        message.resize(HEAD + 4 + room, 0);
        let kernel = SocketAddrNetlink::new(0, 0);
        rustix::net::sendto(&self.socket, &message, SendFlags::empty(), &kernel)?;
        Ok(())
    }

    /// The answer to what was just asked: an error, or what `parse` finds in it.
    fn receive_answer<T>(&self, parse: impl Fn(&[u8]) -> Option<T>) -> io::Result<Option<T>> {
        let mut buffer = [0; 8192];
        let (length, _) = rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::empty())?;
        let (kind, body) = parse_messages(buffer.get(..length).unwrap_or_default())
            .next()
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        match (kind, read_u32_at(body, 0)) {
            (ERROR, Some(0)) => Ok(None),
            (ERROR, Some(code)) => Err(io::Error::from_raw_os_error((code as i32).saturating_neg())),
            _ => Ok(parse(body)),
        }
    }
}

impl std::os::fd::AsFd for TaskstatsSocket {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn connect_socket() -> io::Result<TaskstatsSocket> {
    let kind = (AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC);
    let socket = rustix::net::socket_with(kind.0, kind.1, kind.2, Some(GENERIC))?;
    rustix::net::bind(&socket, &SocketAddrNetlink::new(0, 0))?;
    let mut line = TaskstatsSocket { socket, family: CONTROLLER };
    line.send_request(CONTROLLER, GET_FAMILY, FAMILY_NAME, b"TASKSTATS\0")?;
    let family = line.receive_answer(|body| {
        let id = parse_attributes(body.get(4..)?).find(|(kind, _)| *kind == FAMILY_ID);
        id.and_then(|(_, value)| read_u16_at(value, 0))
    })?;
    line.family = family.ok_or(io::ErrorKind::NotFound)?;
    Ok(line)
}

/// Kind and body of every message of a datagram.
fn parse_messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = read_u32_at(bytes, 0)? as usize;
        let kind = read_u16_at(bytes, 4)?;
        let body = bytes.get(16..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, body))
    })
}

fn parse_attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(read_u16_at(bytes, 0)?);
        let kind = read_u16_at(bytes, 2)?;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// What a message of taskstats says about single threads, or processes, behind its own head of four bytes.
fn find_attributes_about(about: u16, body: &[u8]) -> impl Iterator<Item = &[u8]> {
    parse_attributes(body.get(4..).unwrap_or_default())
        .filter(move |(kind, _)| *kind == about)
        .map(|(_, value)| value)
}

fn find_statistics(about: &[u8]) -> Option<&[u8]> {
    parse_attributes(about).find(|(kind, _)| *kind == NUMBERS).map(|(_, value)| value)
}

/// Offsets of `struct taskstats`, which only grows: `include/uapi/linux/taskstats.h`.
fn parse_usage(numbers: &[u8]) -> ThreadUsage {
    let number = |at| read_u64_at(numbers, at).unwrap_or(0);
    // Where accounting was switched on while it waited, the kernel takes the machine's age for what it waited (seen on 6.18):
    // no thread waits longer than it lives, in microseconds, rounded down.
    let lived = number(144).saturating_add(1).saturating_mul(1000);
    let waited = Some(number(40)).filter(|waited| *waited <= lived).unwrap_or(0);
    ThreadUsage { waited: Nanos(waited), read: number(248), faults: number(176) }
}

/// The same offsets; times of CPUs are in microseconds there.
fn parse_task_usage(numbers: &[u8]) -> TaskUsage {
    let number = |at| read_u64_at(numbers, at).unwrap_or(0);
    let micros = |at| number(at).saturating_mul(1000);
    TaskUsage {
        cpu: (micros(152), micros(160)),
        run_delay: number(24),
        disk_delay: parse_usage(numbers).waited.0,
        switches: (number(272), number(280)),
        faults: (number(168), number(176)),
        bytes: (number(248), number(256)),
    }
}

/// Sums of delays, each of which an older kernel may lack: 0 then.
fn parse_delays(numbers: &[u8]) -> TaskDelays {
    let number = |at| read_u64_at(numbers, at).unwrap_or(0);
    TaskDelays {
        run: number(24),
        disk: number(40),
        swap: number(56),
        reclaim: number(320),
        thrashing: number(336),
        compaction: number(360),
        copy: number(408),
        irq: number(424),
    }
}

fn parse_account(about: &[u8]) -> Option<ThreadAccount> {
    let numbers = find_statistics(about)?;
    let comm = numbers.get(80..112)?;
    let comm = comm.split(|byte| *byte == 0).next().unwrap_or_default();
    let exit = parse_exit(about)?;
    Some(ThreadAccount {
        comm: String::from_utf8_lossy(comm).into_owned(),
        is_last: exit.last,
        used: parse_task_usage(numbers),
    })
}

fn parse_exit(about: &[u8]) -> Option<ThreadExit> {
    let numbers = find_statistics(about)?;
    let thread = read_u32_at(numbers, 128)?;
    let version = read_u16_at(numbers, 0)?;
    let (process, last) = match version {
        // An older kernel does not say which process the thread was of: each counts as its own.
        ..12 => (thread, true),
        _ => (read_u32_at(numbers, 368)?, numbers.get(8)? & LAST != 0),
    };
    let (user, parent) = (read_u32_at(numbers, 120)?, read_u32_at(numbers, 132)?);
    Some(ThreadExit { thread, user, process, parent, last, used: parse_usage(numbers) })
}

/// Whether the kernel accounts for what threads waited for.
pub fn is_delay_accounting_on(root: &Root) -> bool {
    root.read("/proc/sys/kernel/task_delayacct").is_ok_and(|text| text.trim() == "1")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_process_that_ends_is_told_of() {
        let line = match TaskstatsSocket::listen() {
            Ok(line) => line,
            Err(error) => {
                assert!(std::env::var_os("PERFLAB_REQUIRE_ALL").is_none(), "{error}");
                return eprintln!("SKIP a_process_that_ends_is_told_of: {error}");
            }
        };
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        let mut found = None;
        for _ in 0..100 {
            line.drain_exits(|exit| found = found.or((exit.process == pid).then_some(exit))).unwrap();
            if found.is_some() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let found = found.unwrap();
        assert_eq!((found.parent, found.last), (std::process::id(), true));
    }

    #[test]
    fn a_thread_can_be_asked_about() {
        let Ok(line) = TaskstatsSocket::open() else {
            return eprintln!("SKIP a_thread_can_be_asked_about: no taskstats");
        };
        let own = line.thread_usage(std::process::id());
        if own.is_none() {
            assert!(std::env::var_os("PERFLAB_REQUIRE_ALL").is_none());
            return eprintln!("SKIP a_thread_can_be_asked_about: it needs CAP_NET_ADMIN");
        }
        assert_eq!(line.thread_usage(u32::MAX), None);
        assert_eq!(line.thread_usage(std::process::id()).map(|_| ()), Some(()), "the line can be used again");
    }

    #[test]
    fn numbers_are_where_the_kernel_puts_them() {
        let mut stats = vec![0; 400];
        stats[0] = 16;
        stats[8] = LAST;
        for (at, value) in [(40, 7_u64), (144, 5), (176, 8), (248, 9)] {
            stats[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        for (at, value) in [(120, 13_u32), (128, 12), (132, 10), (368, 11)] {
            stats[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        let attribute = |kind: u16, value: &[u8]| {
            [&(value.len() as u16 + 4).to_le_bytes()[..], &kind.to_le_bytes(), value].concat()
        };
        let about = [attribute(1, &12_u32.to_le_bytes()), attribute(NUMBERS, &stats)].concat();
        let used = ThreadUsage { waited: Nanos(7), read: 9, faults: 8 };
        assert_eq!(
            parse_exit(&about),
            Some(ThreadExit { thread: 12, user: 13, process: 11, parent: 10, last: true, used })
        );
        stats[80..84].copy_from_slice(b"cc1\0");
        for (at, value) in [(24, 6_u64), (152, 3), (160, 4), (272, 1), (280, 2), (168, 5), (256, 11)] {
            stats[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        let account = parse_account(&attribute(NUMBERS, &stats)).unwrap();
        assert_eq!((account.comm.as_str(), account.is_last), ("cc1", true));
        let used = TaskUsage {
            cpu: (3_000, 4_000),
            run_delay: 6,
            disk_delay: 7,
            switches: (1, 2),
            faults: (5, 8),
            bytes: (9, 11),
        };
        assert_eq!(account.used, used);
        for (at, value) in [(56, 21_u64), (320, 22), (336, 23), (360, 24)] {
            stats[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        let delays = TaskDelays {
            run: 6,
            disk: 7,
            swap: 21,
            reclaim: 22,
            thrashing: 23,
            compaction: 24,
            ..TaskDelays::default()
        };
        assert_eq!(parse_delays(&stats), delays, "those that this kernel lacks are nothing");
        stats[44] = 1;
        let odd = parse_exit(&attribute(NUMBERS, &stats)).map(|exit| exit.used.waited);
        assert_eq!(odd, Some(Nanos(0)), "four seconds in a life of five microseconds");
        let old = [attribute(NUMBERS, &[&[11][..], &stats[1..]].concat())].concat();
        assert_eq!(parse_exit(&old).map(|exit| (exit.process, exit.last)), Some((12, true)));
    }

    proptest! {
        #[test]
        fn no_message_is_read_beyond_its_end(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for (_, body) in parse_messages(&bytes) {
                find_attributes_about(ABOUT_A_THREAD, body).for_each(|about| { let _ = (parse_exit(about), parse_account(about)); });
            }
        }
    }
}

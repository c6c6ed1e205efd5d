//! What the kernel did is joined to the operation in which it did it.

use std::time::Duration;

use optrace::{Recorder, TraceOptions};

use super::{skip_test, trace_and_read};

#[test]
fn waiting_and_faults_belong_to_their_operation() {
    let page = 4096;
    // Made before, so that only the marked operation touches it.
    let mut fresh = UntouchedMemory::new(64 * page);
    let (_, told, operations) = trace_and_read(TraceOptions::default(), |recorder: &Recorder| {
        for n in 0..3000 {
            recorder.begin(0);
            match n {
                1000 => std::thread::sleep(Duration::from_millis(5)),
                2000 => (0..8).for_each(|at| fresh.touch(at * page)),
                _ => {}
            }
            recorder.end();
        }
    });
    if let Some(errno) = told.refused {
        return skip_test(
            "waiting_and_faults_belong_to_their_operation",
            &format!("perf events: errno {errno}"),
        );
    }
    let slept = &operations[1000];
    assert!(slept.waited >= 4_900_000 && slept.switches >= 1, "{slept:?}");
    assert!(slept.on_cpu_ns() < slept.waited, "{slept:?}");
    assert!(operations[2000].faults >= 8, "{:?}", operations[2000]);
    let others = operations.iter().enumerate().filter(|(n, _)| ![1000, 2000].contains(n));
    let wrong = others.clone().filter(|(_, operation)| operation.waited > 0 || operation.faults > 0).count();
    assert!(wrong <= 2, "{wrong} operations have what was done in others");
    assert!(told.events >= 10 && told.events_lost == 0, "{told:?}");
}

/// Memory that is mapped and not there.
struct UntouchedMemory(*mut u8, usize);

#[expect(unsafe_code, reason = "a mapping of our own")]
impl UntouchedMemory {
    fn new(bytes: usize) -> Self {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping touches nothing that exists.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        Self(at.cast(), bytes)
    }
    fn touch(&mut self, at: usize) {
        assert!(at < self.1);
        // SAFETY: inside the mapping, as was just looked at.
        unsafe { self.0.add(at).write_volatile(1) };
    }
}

#[expect(unsafe_code, reason = "a mapping of our own")]
impl Drop for UntouchedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours.
        unsafe { libc::munmap(self.0.cast(), self.1) };
    }
}

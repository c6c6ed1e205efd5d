//! What is said where the kernel's tracing is not as it is wanted: events that are missing, tracefs that is not mounted, a
//! kernel that refuses. The real kernel's tracing, some of it hidden in a mount namespace of the test's own.

use std::process::Command;

use crate::caches::CachesLock;
use crate::image::write_executable_script;
use crate::laboratory::{CommandOutput, Sandbox, is_root, skip_test, to_command_output};

/// Runs perflab in a mount namespace of its own, after `prepare` was run there with tracefs at /sys/kernel/tracing.
fn run_with_hidden_tracefs(laboratory: &Sandbox, prepare: &str, arguments: &[&str]) -> CommandOutput {
    let _caches = CachesLock::acquire();
    let inner = laboratory.command(arguments);
    let mut command = Command::new("unshare");
    let text = format!(
        "grep -q ' /sys/kernel/tracing tracefs' /proc/self/mounts || mount -t tracefs none /sys/kernel/tracing\n\
         {prepare}\nexec \"$0\" \"$@\""
    );
    command.args(["--mount", "--propagation", "private", "sh", "-e", "-c", &text]);
    command.arg(inner.get_program()).args(inner.get_args()).current_dir(laboratory.home.path());
    command.envs(inner.get_envs().filter_map(|(key, value)| Some((key, value?))));
    to_command_output(command.output().unwrap())
}

fn hide_event_command(event: &str) -> String {
    format!("mount -t tmpfs none /sys/kernel/tracing/events/{event}")
}

/// Whether tracing can be tested here.
pub fn may_trace(test: &str) -> bool {
    if !is_root() {
        skip_test(test, "tracing needs root");
        return false;
    }
    if let Err(error) = perflab_observe::io::check_io_tracing() {
        skip_test(test, &format!("{error}"));
        return false;
    }
    true
}

#[test]
fn a_missing_event_is_named_with_what_is_lost() {
    if !may_trace("a_missing_event_is_named_with_what_is_lost") {
        return;
    }
    let laboratory = Sandbox::new();
    let file = laboratory.path("data");
    std::fs::write(&file, vec![1; 100_000]).unwrap();
    let program =
        write_executable_script(&laboratory.path("start"), &format!("cat {} >/dev/null", file.display()));
    let lacks = [
        "filemap/mm_filemap_get_pages",
        "filemap/mm_filemap_map_pages",
        "block/block_rq_issue",
        "sched/sched_process_exec",
    ]
    .map(|event| {
        let record = ["io", "record", "--", &program];
        let said = run_with_hidden_tracefs(&laboratory, &hide_event_command(event), &record);
        assert_eq!(said.code, Some(0), "{event}: {}", said.err);
        said.err_wording_of(&event.replace('/', ":"))
    });
    insta::assert_snapshot!(lacks.join("\n"), @"
    warning: this kernel lacks filemap:mm_filemap_get_pages (Linux N): which pages were needed and which were only read around them cannot be seen; a newer kernel has the event
    warning: this kernel lacks filemap:mm_filemap_get_pages (Linux N): which pages were needed and which were only read around them cannot be seen
    warning: this kernel lacks filemap:mm_filemap_map_pages (Linux N): which pages were mapped along cannot be seen; a newer kernel has the event
    warning: this kernel lacks filemap:mm_filemap_map_pages (Linux N): which pages were mapped along cannot be seen
    warning: this kernel lacks block:block_rq_issue (Linux N): disk requests cannot be seen; a newer kernel has the event
    warning: this kernel lacks block:block_rq_issue (Linux N): disk requests cannot be seen
    warning: this kernel lacks sched:sched_process_exec (Linux N): which programs were started cannot be seen; a newer kernel has the event
    warning: this kernel lacks sched:sched_process_exec (Linux N): which programs were started cannot be seen
    ");
}

#[test]
fn without_the_one_event_that_matters_there_is_another_way() {
    if !may_trace("without_the_one_event_that_matters_there_is_another_way") {
        return;
    }
    let laboratory = Sandbox::new();
    let file = laboratory.path("data");
    std::fs::write(&file, vec![1; 100_000]).unwrap();
    let text = format!("exec 3<{}; cat <&3 >/dev/null; sleep 0.3", file.display());
    let program = write_executable_script(&laboratory.path("start"), &text);
    let hidden_event = hide_event_command("filemap/mm_filemap_add_to_page_cache");
    let said = run_with_hidden_tracefs(&laboratory, &hidden_event, &["io", "record", "--", &program]);
    assert_eq!(said.code, Some(3), "{}", said.err);
    insta::assert_snapshot!("without_the_one_event_that_matters_there_is_another_way_1", said.stable_err());
    let store = laboratory.path("store").display().to_string();
    let said = run_with_hidden_tracefs(
        &laboratory,
        &hidden_event,
        &["--format", "json", "prefetch", "--store", &store, "learn", "--", &program],
    );
    assert_eq!(said.code, Some(0), "what is in memory afterwards tells: {}", said.err);
    let learnt: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_ne!(learnt["source"], "traced", "{learnt}");
}

#[test]
fn tracefs_need_not_be_mounted() {
    if !may_trace("tracefs_need_not_be_mounted") {
        return;
    }
    let laboratory = Sandbox::new();
    let away = "umount /sys/kernel/tracing; umount -q /sys/kernel/debug/tracing /sys/kernel/debug || true";
    let said = run_with_hidden_tracefs(&laboratory, away, &["io", "record", "--", "true"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(laboratory.home.path().to_str().unwrap()), "no mount is left");
}

/// Root whom the kernel refuses, as it does in a container and under lockdown.
#[test]
fn root_that_is_refused_hears_why() {
    let test = "root_that_is_refused_hears_why";
    if !is_root() {
        return skip_test(test, "giving up a capability needs root");
    }
    let laboratory = Sandbox::new();
    // Nor may it be there already: who finds it mounted needs no more than its owner's rights.
    let refused = "umount /sys/kernel/tracing; umount -q /sys/kernel/debug/tracing /sys/kernel/debug || true
                   exec setpriv --bounding-set=-all --inh-caps=-all \"$0\" \"$@\"";
    let said = run_with_hidden_tracefs(&laboratory, refused, &["io", "record", "--", "true"]);
    assert_eq!(said.code, Some(3), "{}", said.err);
    insta::assert_snapshot!(said.err_wording_of("error: "), @"error: [io]: the kernel's tracing cannot be used: /sys/kernel/tracing: Operation not permitted (os error N); the kernel refuses even root: a container needs CAP_SYS_ADMIN for it, and lockdown=confidentiality forbids it (/sys/kernel/security/lockdown says which is on; boot with lockdown=integrity or none)");
}

use std::path::Path;

use perflab_model::Bytes;
use perflab_observe::KvmSpeed;

use super::command_line::{Places, Sharing, arguments};
use super::*;
use crate::kernel::Kernel;

fn machine() -> Machine {
    let kernel =
        Kernel { name: "k".into(), image: "/k/bzImage".into(), release: "6.1.0".into(), modules: None };
    Machine::new("guest1", kernel)
}

fn words(machine: &Machine, accelerator: Accelerator, sharing: Option<Sharing>) -> String {
    let places = Places {
        private: Path::new("/p"),
        console: Path::new("/logs/a,b.console.log"),
        cid: machine.vsock.then_some(77),
    };
    let words = arguments(machine, accelerator, sharing, &places);
    words.join(" ").replace(" -", "\n-")
}

#[test]
fn a_plain_guest_in_qemus_words() {
    insta::assert_snapshot!(words(&machine(), Accelerator::Tcg, None));
}

#[test]
fn everything_that_can_be_said_in_qemus_words() {
    let node = |cpus, host| Node { cpus, memory: Bytes(1 << 30), host };
    let described = Machine {
        cpus: 3,
        memory: Bytes(2 << 30),
        nodes: vec![node(2, Some(0)), node(1, None)],
        huge_pages: Some(Bytes(2 << 20)),
        model: Some("EPYC".into()),
        append: vec!["mitigations=off".into()],
        root: RootKind::Image { disk: Disk::thrown_away("/images/debian.qcow2"), partition: 1 },
        disks: vec![Disk { cache: "none".into(), snapshot: false, ..Disk::thrown_away("/images/data.img") }],
        ..machine()
    };
    insta::assert_snapshot!(words(&described, Accelerator::Kvm, None));
}

#[test]
fn a_shared_root_by_either_way() {
    let nine = words(&machine(), Accelerator::Kvm, Some(Sharing::NineP));
    assert!(nine.contains("readonly=on") && !nine.contains("memory-backend"), "{nine}");
    let fs = words(&machine(), Accelerator::Kvm, Some(Sharing::VirtioFs));
    assert!(fs.contains("share=on") && fs.contains("vhost-user-fs-pci"), "{fs}");
}

#[test]
fn a_vsock_device_with_the_guests_number() {
    let with = words(&Machine { vsock: true, ..machine() }, Accelerator::Kvm, None);
    assert!(with.contains("vhost-vsock-pci,guest-cid=77"), "{with}");
}

#[test]
fn kvm_is_taken_where_it_runs_code_and_refused_where_it_pretends() {
    let (fast, slow) = (KvmSpeed::Fast { nanos: 0.7 }, KvmSpeed::Slow { nanos: 1900.0 });
    assert_eq!(Wish::Best.given(&fast).unwrap().accelerator, Accelerator::Kvm);
    let tcg = Wish::Best.given(&slow).unwrap();
    assert_eq!(tcg.accelerator, Accelerator::Tcg);
    assert!(tcg.because.contains("1900 ns"), "{}", tcg.because);
    let refused = Wish::Kvm.given(&slow).unwrap_err().to_string();
    assert!(refused.contains("interprets guests"), "{refused}");
    assert_eq!(Wish::Tcg.choose().unwrap().because, "it was asked for");
}

#[test]
fn a_loaded_host_is_given_more_time_but_not_for_ever() {
    use super::boot::allowed;
    let seconds = |load| allowed(Accelerator::Tcg, load).as_secs();
    assert_eq!((seconds(0.0), seconds(1.0), seconds(500.0)), (60, 120, 600));
    assert!(allowed(Accelerator::Kvm, 0.0) < allowed(Accelerator::Tcg, 0.0));
}

#[test]
fn a_consoles_last_words_cannot_steer_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("console");
    std::fs::write(&log, "one\ntwo \x1b]0;evil\x07\x1b[31mred\r\nthree\n").unwrap();
    let words = super::boot::words(&log, 2);
    assert!(
        words.starts_with("  two ") && words.ends_with("  three") && !words.contains('\x1b'),
        "{words:?}"
    );
    assert_eq!(super::boot::words(Path::new("/no/such/log"), 2), "  (nothing)");
}

use perflab_model::Nanos;
use perflab_observe::taskstats::Used;

use super::super::program::Measured;
use super::super::worth::Worth;
use super::*;

const PATH: &str = "/usr/bin/editor";
const WORTH: Worth = Worth { wait: Nanos(100), read: 1000, faults: 10 };

fn file(inode: u64) -> Identity {
    Identity { inode, ..Identity::default() }
}

fn read(read: u64) -> Used {
    Used { read, ..Used::default() }
}

fn met() -> Programs {
    let mut programs = Programs::default();
    programs.meet(Path::new(PATH), file(1), false, false);
    programs
}

fn start(programs: &mut Programs, inode: u64) -> Purpose {
    let purpose = programs.start(Path::new(PATH), file(inode), 7, None);
    programs.rests(Path::new(PATH));
    programs.with(Path::new(PATH), |one| one.recent = None);
    purpose
}

fn standing(programs: &Programs) -> Standing {
    programs.get(Path::new(PATH)).unwrap().standing
}

#[test]
fn the_first_start_is_watched_the_second_learnt_the_third_read_ahead() {
    let mut programs = met();
    assert_eq!(start(&mut programs, 1), Purpose::Watch);
    programs.with(Path::new(PATH), |one| one.went_without(read(999), &WORTH, false));
    assert_eq!(start(&mut programs, 1), Purpose::Watch, "it did not read enough");
    programs.with(Path::new(PATH), |one| one.went_without(read(1000), &WORTH, false));
    assert_eq!(start(&mut programs, 1), Purpose::Learn { anew: false });
    programs.with(Path::new(PATH), |one| one.standing = Standing::Known);
    assert_eq!(start(&mut programs, 1), Purpose::ReadAhead { learn: false });
    let left = |read_still| Measured { used: read(read_still), held: Nanos(5) };
    programs.with(Path::new(PATH), |one| one.went_with(left(0), &WORTH, false));
    assert_eq!(programs.get(Path::new(PATH)).unwrap().gain(false), [Some(1000), Some(0)]);
    assert_eq!(standing(&programs), Standing::Known);
}

#[test]
fn a_trace_that_lacks_something_is_added_to_and_one_that_gains_nothing_left() {
    let mut programs = met();
    programs.with(Path::new(PATH), |one| {
        one.standing = Standing::Known;
        one.without = vec![Measured { used: read(5000), held: Nanos(0) }];
        one.went_with(Measured { used: read(4800), held: Nanos(0) }, &WORTH, false);
    });
    assert_eq!(start(&mut programs, 1), Purpose::ReadAhead { learn: true });
    for _ in 0..2 {
        programs.with(Path::new(PATH), |one| {
            one.went_with(Measured { used: read(4800), held: Nanos(0) }, &WORTH, false);
        });
    }
    assert_eq!(standing(&programs), Standing::Useless);
    assert_eq!(start(&mut programs, 1), Purpose::Nothing);
    assert_eq!(start(&mut programs, 2), Purpose::Watch, "another executable begins anew");
}

#[test]
fn a_replaced_executable_is_learnt_anew() {
    let mut programs = met();
    programs.with(Path::new(PATH), |one| one.standing = Standing::Known);
    assert_eq!(start(&mut programs, 2), Purpose::Learn { anew: true });
    assert_eq!(
        start(&mut programs, 2),
        Purpose::Learn { anew: true },
        "it was in memory then, and nothing was learnt"
    );
}

#[test]
fn one_thread_works_for_a_program_and_not_again_at_once() {
    let mut programs = met();
    programs.with(Path::new(PATH), |one| one.standing = Standing::Known);
    let mut start = || programs.start(Path::new(PATH), file(1), 7, None);
    assert_eq!(start(), Purpose::ReadAhead { learn: false });
    assert_eq!(start(), Purpose::Nothing);
    assert_eq!(programs.get(Path::new(PATH)).unwrap().starts, 2);
    let mut programs = met();
    programs.with(Path::new(PATH), |one| one.standing = Standing::Worth);
    let mut start = || programs.start(Path::new(PATH), file(1), 7, None);
    assert_eq!(start(), Purpose::Learn { anew: false });
    assert_eq!(start(), Purpose::Watch);
}

#[test]
fn what_is_refused_says_why() {
    let mut programs = met();
    let purpose = programs.start(Path::new(PATH), file(1), 7, Some("it is on a list"));
    assert_eq!(purpose, Purpose::Nothing);
    assert_eq!(programs.get(Path::new(PATH)).unwrap().why, "it is on a list");
    assert_eq!(programs.start(Path::new("/other"), file(1), 7, None), Purpose::Watch);
}

#[test]
fn of_too_many_those_go_that_nobody_misses() {
    let mut programs = Programs::default();
    for number in 0..MOST as u64 + 1 {
        let path = PathBuf::from(format!("/{number}"));
        programs.meet(&path, file(number), number == 0, false);
        programs.start(&path, file(number), number, None);
    }
    assert!(programs.all().len() <= MOST);
    assert!(programs.get(Path::new("/0")).is_some(), "it has a trace");
    assert!(programs.get(Path::new("/1")).is_none());
    assert!(programs.get(Path::new(&format!("/{MOST}"))).is_some());
}

use perflab_model::Nanos;
use perflab_observe::taskstats::Used;

use super::super::program::Measured;
use super::super::worth::Worth;
use super::*;

const WORTH: Worth = Worth { wait: Nanos(100), read: 1000, faults: 10 };

fn editor() -> ProgramKey {
    ProgramKey { path: "/usr/bin/editor".into(), user: 7 }
}

fn file(inode: u64) -> Identity {
    Identity { inode, ..Identity::default() }
}

fn read(read: u64) -> Used {
    Used { read, ..Used::default() }
}

fn met() -> Programs {
    let mut programs = Programs::new(HashMap::new(), true);
    programs.meet(&editor(), file(1), false);
    programs
}

fn start(programs: &mut Programs, inode: u64) -> Purpose {
    let purpose = programs.start(&editor(), file(inode), 7, None);
    programs.rests(&editor());
    programs.with(&editor(), |one| one.recent = None);
    purpose
}

fn standing(programs: &Programs) -> Standing {
    programs.get(&editor()).unwrap().standing
}

#[test]
fn the_first_start_is_watched_the_second_learnt_the_third_read_ahead() {
    let mut programs = met();
    assert_eq!(start(&mut programs, 1), Purpose::Watch);
    programs.with(&editor(), |one| one.went_without(read(999), &WORTH, false));
    assert_eq!(start(&mut programs, 1), Purpose::Watch, "it did not read enough");
    programs.with(&editor(), |one| one.went_without(read(1000), &WORTH, false));
    assert_eq!(start(&mut programs, 1), Purpose::Learn { anew: false });
    programs.with(&editor(), |one| one.standing = Standing::Known);
    assert_eq!(start(&mut programs, 1), Purpose::ReadAhead { learn: false });
    let left = |read_still| Measured { used: read(read_still), held: Nanos(5) };
    programs.with(&editor(), |one| one.went_with(left(0), true, &WORTH, false));
    assert_eq!(programs.get(&editor()).unwrap().gain(false), [Some(1000), Some(0)]);
    assert_eq!(standing(&programs), Standing::Known);
    programs.with(&editor(), |one| one.went_with(left(0), false, &WORTH, false));
    assert_eq!(programs.get(&editor()).unwrap().with.len(), 1, "what used nothing gained nothing");
}

#[test]
fn a_trace_that_lacks_something_is_added_to_and_one_that_gains_nothing_left() {
    let mut programs = met();
    programs.with(&editor(), |one| {
        one.standing = Standing::Known;
        one.without = vec![Measured { used: read(5000), held: Nanos(0) }];
        one.went_with(Measured { used: read(4800), held: Nanos(0) }, true, &WORTH, false);
    });
    assert_eq!(start(&mut programs, 1), Purpose::ReadAhead { learn: true });
    for _ in 0..2 {
        programs.with(&editor(), |one| {
            one.went_with(Measured { used: read(4800), held: Nanos(0) }, true, &WORTH, false);
        });
    }
    assert_eq!(standing(&programs), Standing::Useless);
    assert_eq!(start(&mut programs, 1), Purpose::Nothing);
    assert_eq!(start(&mut programs, 2), Purpose::Watch, "another executable begins anew");
}

#[test]
fn a_replaced_executable_is_learnt_anew() {
    let mut programs = met();
    programs.with(&editor(), |one| one.standing = Standing::Known);
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
    programs.with(&editor(), |one| one.standing = Standing::Known);
    let mut start = || programs.start(&editor(), file(1), 7, None);
    assert_eq!(start(), Purpose::ReadAhead { learn: false });
    assert_eq!(start(), Purpose::Nothing);
    assert_eq!(programs.get(&editor()).unwrap().starts, 2);
    let mut programs = met();
    programs.with(&editor(), |one| one.standing = Standing::Worth);
    let mut start = || programs.start(&editor(), file(1), 7, None);
    assert_eq!(start(), Purpose::Learn { anew: false });
    assert_eq!(start(), Purpose::Watch);
}

#[test]
fn what_is_refused_says_why() {
    let mut programs = met();
    let purpose = programs.start(&editor(), file(1), 7, Some("it is on a list"));
    assert_eq!(purpose, Purpose::Nothing);
    assert_eq!(programs.get(&editor()).unwrap().why, "it is on a list");
    assert_eq!(
        programs.start(&ProgramKey { path: "/other".into(), user: 7 }, file(1), 7, None),
        Purpose::Watch
    );
}

#[test]
fn of_too_many_those_go_that_nobody_misses() {
    let mut programs = Programs::new(HashMap::new(), true);
    let key = |number: u64, user| ProgramKey { path: format!("/{number}").into(), user };
    for number in 0..MOST as u64 + 1 {
        // The first has a trace, and another user one program.
        let key = key(number, u32::from(number == 2));
        programs.meet(&key, file(number), number == 0);
        programs.start(&key, file(number), number, None);
    }
    assert!(programs.all().len() <= MOST);
    assert!(programs.get(&key(0, 0)).is_some(), "it has a trace");
    assert!(programs.get(&key(1, 0)).is_none());
    assert!(programs.get(&key(2, 1)).is_some(), "its user has one");
    assert!(programs.get(&key(MOST as u64, 0)).is_some());
    assert!(programs.gone().is_empty(), "nothing was learnt of those that went");
}

#[test]
fn of_too_many_that_were_learnt_those_go_that_were_not_started_for_longest() {
    let mut programs = Programs::new(HashMap::new(), true);
    let key = |number: u64| ProgramKey { path: format!("/{number}").into(), user: 0 };
    for number in 0..MOST as u64 + 1 {
        programs.meet(&key(number), file(number), true);
        programs.with(&key(number), |one| one.last = number);
    }
    assert!(programs.all().len() <= MOST);
    assert!(programs.get(&key(0)).is_none() && programs.get(&key(MOST as u64)).is_some());
    assert!(programs.gone().contains(&key(0)));
}

#[test]
fn what_one_user_starts_says_nothing_of_another() {
    let mut programs = met();
    programs.with(&editor(), |one| one.standing = Standing::Known);
    let root = ProgramKey { user: 0, ..editor() };
    assert_eq!(programs.start(&root, file(1), 7, None), Purpose::Watch);
    assert_eq!(start(&mut programs, 1), Purpose::ReadAhead { learn: false });
    assert_eq!(programs.get(&root).unwrap().starts, 1);
}

use perflab_model::Nanos;
use perflab_observe::taskstats::ThreadUsage;

use super::super::program::MeasuredStartup;
use super::super::worth::LearnThreshold;
use super::*;

const WORTH: LearnThreshold = LearnThreshold { wait: Nanos(100), read: 1000, faults: 10 };

fn editor_key() -> ProgramKey {
    ProgramKey { path: "/usr/bin/editor".into(), user: 7 }
}

fn executable_id(inode: u64) -> ExecutableId {
    ExecutableId { inode, ..ExecutableId::default() }
}

fn usage_with_reads(read: u64) -> ThreadUsage {
    ThreadUsage { read, ..ThreadUsage::default() }
}

fn known_editor() -> KnownPrograms {
    let mut programs = KnownPrograms::new(HashMap::new(), true);
    programs.add_if_new(&editor_key(), executable_id(1), false);
    programs
}

fn start_editor(programs: &mut KnownPrograms, inode: u64) -> StartupPurpose {
    let purpose = programs.begin_startup(&editor_key(), executable_id(inode), 7, None);
    programs.release(&editor_key());
    programs.update(&editor_key(), |one| one.recent = None);
    purpose
}

fn editor_state(programs: &KnownPrograms) -> ProgramState {
    programs.get(&editor_key()).unwrap().standing
}

#[test]
fn the_first_start_is_watched_the_second_learnt_the_third_read_ahead() {
    let mut programs = known_editor();
    assert_eq!(start_editor(&mut programs, 1), StartupPurpose::Watch);
    programs.update(&editor_key(), |one| one.record_plain(usage_with_reads(999), &WORTH, false));
    assert_eq!(start_editor(&mut programs, 1), StartupPurpose::Watch, "it did not read enough");
    programs.update(&editor_key(), |one| one.record_plain(usage_with_reads(1000), &WORTH, false));
    assert_eq!(start_editor(&mut programs, 1), StartupPurpose::Learn { anew: false });
    programs.update(&editor_key(), |one| one.standing = ProgramState::Known);
    assert_eq!(start_editor(&mut programs, 1), StartupPurpose::ReadAhead { learn: false });
    let left = |read_still| MeasuredStartup { used: usage_with_reads(read_still), held: Nanos(5) };
    programs.update(&editor_key(), |one| one.record_prefetched(left(0), true, &WORTH, false));
    assert_eq!(programs.get(&editor_key()).unwrap().median_costs(false), [Some(1000), Some(0)]);
    assert_eq!(editor_state(&programs), ProgramState::Known);
    programs.update(&editor_key(), |one| one.record_prefetched(left(0), false, &WORTH, false));
    assert_eq!(programs.get(&editor_key()).unwrap().with.len(), 1, "what used nothing gained nothing");
}

#[test]
fn a_trace_that_lacks_something_is_added_to_and_one_that_gains_nothing_left() {
    let mut programs = known_editor();
    programs.update(&editor_key(), |one| {
        one.standing = ProgramState::Known;
        one.without = vec![MeasuredStartup { used: usage_with_reads(5000), held: Nanos(0) }];
        one.record_prefetched(
            MeasuredStartup { used: usage_with_reads(4800), held: Nanos(0) },
            true,
            &WORTH,
            false,
        );
    });
    assert_eq!(start_editor(&mut programs, 1), StartupPurpose::ReadAhead { learn: true });
    for _ in 0..2 {
        programs.update(&editor_key(), |one| {
            one.record_prefetched(
                MeasuredStartup { used: usage_with_reads(4800), held: Nanos(0) },
                true,
                &WORTH,
                false,
            );
        });
    }
    assert_eq!(editor_state(&programs), ProgramState::Useless);
    assert_eq!(start_editor(&mut programs, 1), StartupPurpose::Nothing);
    assert_eq!(start_editor(&mut programs, 2), StartupPurpose::Watch, "another executable begins anew");
}

#[test]
fn a_replaced_executable_is_learnt_anew() {
    let mut programs = known_editor();
    programs.update(&editor_key(), |one| one.standing = ProgramState::Known);
    assert_eq!(start_editor(&mut programs, 2), StartupPurpose::Learn { anew: true });
    assert_eq!(
        start_editor(&mut programs, 2),
        StartupPurpose::Learn { anew: true },
        "it was in memory then, and nothing was learnt"
    );
}

#[test]
fn one_thread_works_for_a_program_and_not_again_at_once() {
    let mut programs = known_editor();
    programs.update(&editor_key(), |one| one.standing = ProgramState::Known);
    let mut start = || programs.begin_startup(&editor_key(), executable_id(1), 7, None);
    assert_eq!(start(), StartupPurpose::ReadAhead { learn: false });
    assert_eq!(start(), StartupPurpose::Nothing);
    assert_eq!(programs.get(&editor_key()).unwrap().starts, 2);
    let mut programs = known_editor();
    programs.update(&editor_key(), |one| one.standing = ProgramState::Worth);
    let mut start = || programs.begin_startup(&editor_key(), executable_id(1), 7, None);
    assert_eq!(start(), StartupPurpose::Learn { anew: false });
    assert_eq!(start(), StartupPurpose::Watch);
}

#[test]
fn what_is_refused_says_why() {
    let mut programs = known_editor();
    let purpose = programs.begin_startup(&editor_key(), executable_id(1), 7, Some("it is on a list"));
    assert_eq!(purpose, StartupPurpose::Nothing);
    assert_eq!(programs.get(&editor_key()).unwrap().why, "it is on a list");
    assert_eq!(
        programs.begin_startup(&ProgramKey { path: "/other".into(), user: 7 }, executable_id(1), 7, None),
        StartupPurpose::Watch
    );
}

#[test]
fn of_too_many_those_go_that_nobody_misses() {
    let mut programs = KnownPrograms::new(HashMap::new(), true);
    let key = |number: u64, user| ProgramKey { path: format!("/{number}").into(), user };
    for number in 0..MOST as u64 + 1 {
        // The first has a trace, and another user one program.
        let key = key(number, u32::from(number == 2));
        programs.add_if_new(&key, executable_id(number), number == 0);
        programs.begin_startup(&key, executable_id(number), number, None);
    }
    assert!(programs.all().len() <= MOST);
    assert!(programs.get(&key(0, 0)).is_some(), "it has a trace");
    assert!(programs.get(&key(1, 0)).is_none());
    assert!(programs.get(&key(2, 1)).is_some(), "its user has one");
    assert!(programs.get(&key(MOST as u64, 0)).is_some());
    assert!(programs.take_removed().is_empty(), "nothing was learnt of those that went");
}

#[test]
fn of_too_many_that_were_learnt_those_go_that_were_not_started_for_longest() {
    let mut programs = KnownPrograms::new(HashMap::new(), true);
    let key = |number: u64| ProgramKey { path: format!("/{number}").into(), user: 0 };
    for number in 0..MOST as u64 + 1 {
        programs.add_if_new(&key(number), executable_id(number), true);
        programs.update(&key(number), |one| one.last = number);
    }
    assert!(programs.all().len() <= MOST);
    assert!(programs.get(&key(0)).is_none() && programs.get(&key(MOST as u64)).is_some());
    assert!(programs.take_removed().contains(&key(0)));
}

#[test]
fn what_one_user_starts_says_nothing_of_another() {
    let mut programs = known_editor();
    programs.update(&editor_key(), |one| one.standing = ProgramState::Known);
    let root = ProgramKey { user: 0, ..editor_key() };
    assert_eq!(programs.begin_startup(&root, executable_id(1), 7, None), StartupPurpose::Watch);
    assert_eq!(start_editor(&mut programs, 1), StartupPurpose::ReadAhead { learn: false });
    assert_eq!(programs.get(&root).unwrap().starts, 1);
}

//! One boot of all targets, from their start to their end: the barrier's inputs and actions, carried between it and the
//! crew.

use std::collections::VecDeque;

use perflab_model::event::{Doing, Phase, Standing};
use perflab_model::study::OnLost;
use perflab_model::{Event, Nanos, Slot, What};
use perflab_observe::monotonic_now;

use super::accept::{Ear, Verdict, inert_hello, sentence};
use super::course::Course;
use super::crew::Crew;
use super::mate::Mate;
use super::open::{Open, memory_of};
use crate::barrier::{Action, Barrier, Input, Limits, Loss, Point, stages};
use crate::hub::Heard;
use crate::inert::inert;
use crate::machine::console::find_panic;
use crate::protocol::{Order, Report};
use crate::{ConductError, Refusal};

/// How often a wish to stop is looked at.
const TICK: Nanos = Nanos(50_000_000);
/// From the greeting to a prepared target: facts, checks, a scratch directory.
const FIRST: Nanos = Nanos(120_000_000_000);
/// To bring settings about, or to undo them: commands of the user's may take their time.
const SETTINGS: Nanos = Nanos(300_000_000_000);
/// What ending an iteration takes: SIGTERM, SIGKILL, unmounting its disk, sending its output.
const ENDING: Nanos = Nanos(30_000_000_000);
/// How often those who watch are told where the targets are.
const SHOW: Nanos = Nanos(250_000_000);
/// How often that nothing has changed is said as well.
const AGAIN: Nanos = Nanos(2_000_000_000);
/// Between the order to start and the start: for the order to arrive and be understood,
const LEAD: Nanos = Nanos(4_000_000);
/// and for each further target, which may have to share a CPU with the others.
const LEAD_EACH: Nanos = Nanos(1_000_000);

/// How long a silent target is waited for once a wish to stop is there: its settings are undone when its stream ends.
const PATIENCE: Nanos = Nanos(5_000_000_000);
/// Reasons of a target that refuses a run which are told.
const REASONS: usize = 20;

/// What a target may tell before the run begins, in bytes of memory: it is held until then.
const EARLY: usize = 16 << 20;
/// A longer way than this to a target is no reason to hold up all the others.
const LONGEST_LEAD: Nanos = Nanos(2_000_000_000);

/// One boot.
pub(super) struct Boot<'c, 'a> {
    course: &'c mut Course<'a>,
    crew: Crew,
    barrier: Barrier,
    open: Option<Open>,
    /// Slots that were not come to yet.
    ahead: VecDeque<(u32, Slot)>,
    refused: Vec<Refusal>,
    last: bool,
    over: bool,
    shown: Shown,
}

/// When those who watch were last told where the targets are, and what.
#[derive(Default)]
struct Shown {
    at: Nanos,
    what: Vec<Standing>,
}

impl<'c, 'a> Boot<'c, 'a> {
    /// Starts all targets, hears their greeting, and compares clocks.
    pub(super) fn begin(
        course: &'c mut Course<'a>,
        slots: Vec<(u32, Slot)>,
        last: bool,
    ) -> Result<Self, ConductError> {
        let manifest = course.manifest;
        course.weft.anew();
        let (mut crew, failed) =
            Crew::start(&manifest.study, course.host, course.stop, &|all| course.standing(all))?;
        crew.all_do(Doing::Prepares);
        let count = crew.mates.len();
        let ahead = slots.iter().copied().collect();
        let slots: Vec<(u32, Slot, Vec<usize>)> =
            slots.into_iter().map(|(index, slot)| (index, slot, course.part(&slot, count))).collect();
        let rules = &manifest.study.run;
        let after = Nanos(rules.time_limit.0.0.saturating_add(ENDING.0));
        let limits = Limits { first: FIRST, before: SETTINGS, after, last: SETTINGS };
        let stages = stages(&slots, count, limits);
        let barrier = Barrier::new(stages, count, rules.on_lost_target, ENDING);
        let shown = Shown::default();
        let mut boot =
            Boot { course, crew, barrier, open: None, ahead, refused: Vec::new(), last, over: false, shown };
        boot.go_on_without(failed)?;
        boot.greet()?;
        Ok(boot)
    }

    /// Those that could not be started end the run, unless the study says that the others go on.
    fn go_on_without(&mut self, failed: Vec<(usize, ConductError)>) -> Result<(), ConductError> {
        if failed.len() == self.crew.mates.len() || !self.goes_on() {
            return told_together(failed);
        }
        for (target, error) in failed {
            match error {
                ConductError::Target { reason, .. } => {
                    // What its console said is behind the first line.
                    let (line, words) = reason.split_once('\n').unwrap_or((&reason, ""));
                    self.bury(target, &inert(line.trim_end_matches(':')))?;
                    self.course.words(target, words.to_owned())?;
                }
                error => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether the loss of a target is no reason to end the run.
    fn goes_on(&self) -> bool {
        self.course.manifest.study.run.on_lost_target == OnLost::Continue && !self.course.stop.asked()
    }

    /// Waits until everybody has said hello.
    fn greet(&mut self) -> Result<(), ConductError> {
        let deadline = Nanos(monotonic_now().0 + FIRST.0);
        let is_silent = |mate: &Mate| mate.hello.is_none() && mate.lost.is_none();
        while let Some(silent) = self.crew.mates.iter().position(is_silent) {
            let now = monotonic_now();
            if self.course.stop.asked() {
                let target = self.name(silent);
                return Err(ConductError::Target { target, reason: "stopped before it had greeted".into() });
            }
            if now > deadline {
                self.unheard(silent, format!("no greeting within {FIRST}"))?;
                continue;
            }
            for heard in self.hear(Nanos(now.0 + TICK.0).min(deadline))? {
                match (heard.said, self.crew.mates.get_mut(heard.link)) {
                    (_, Some(mate)) if mate.lost.is_some() => {}
                    (Ok(Report::Hello(hello)), Some(mate)) => mate.hello = Some(inert_hello(hello)),
                    (Err(reason), _) => self.unheard(heard.link, reason)?,
                    _ => self.unheard(heard.link, "it said something before hello".into())?,
                }
            }
        }
        let all: Vec<usize> = (0..self.crew.mates.len()).collect();
        self.synchronise(&all)
    }

    /// A target that never came to be one ends the run, unless the study says that the others go on.
    fn unheard(&mut self, target: usize, reason: String) -> Result<(), ConductError> {
        let is_left = |(other, mate): (usize, &Mate)| other != target && mate.lost.is_none();
        if self.goes_on() && self.crew.mates.iter().enumerate().any(is_left) {
            return self.bury(target, &inert(&reason));
        }
        let words = self.crew.bury(target, &reason);
        let last: Vec<&str> = words.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
        let said = last.into_iter().rev().map(sentence).collect::<Vec<_>>().join(" | ");
        let reason = if said.is_empty() { reason } else { format!("{reason}: {said}") };
        Err(ConductError::Target { target: self.name(target), reason: inert(&reason) })
    }

    /// Goes through all stages.
    pub(super) fn run(mut self) -> Result<(), ConductError> {
        let is_lost = |(target, mate): (usize, &Mate)| mate.lost.is_some().then_some(target);
        for target in self.crew.mates.iter().enumerate().filter_map(is_lost).collect::<Vec<_>>() {
            self.take(Input::Lost(target))?;
        }
        self.take(Input::Time)?;
        let mut asked_to_stop = false;
        while !self.over {
            if self.course.stop.asked() && !asked_to_stop {
                asked_to_stop = true;
                self.take(Input::Stop)?;
            }
            self.crew.ask();
            let next = Nanos(monotonic_now().0 + TICK.0);
            let until = self.barrier.deadline().map_or(next, |deadline| deadline.min(next));
            for heard in self.hear(until)? {
                self.heard(heard)?;
            }
            self.give_up_the_silent()?;
            self.take(Input::Time)?;
            self.show()?;
        }
        self.farewell()
    }

    /// Tells those who watch where the targets are, where that changed.
    fn show(&mut self) -> Result<(), ConductError> {
        let now = monotonic_now();
        if now.since(self.shown.at) < SHOW {
            return Ok(());
        }
        let what: Vec<Standing> = self.crew.mates.iter().map(Mate::standing).collect();
        if what != self.shown.what || now.since(self.shown.at) > AGAIN {
            self.course.standing(what.clone())?;
            self.shown = Shown { at: now, what };
        }
        Ok(())
    }

    fn hear(&mut self, until: Nanos) -> Result<Vec<Heard>, ConductError> {
        self.crew.hear(until).map_err(|source| ConductError::Speak { source })
    }

    fn synchronise(&mut self, who: &[usize]) -> Result<(), ConductError> {
        self.crew.synchronise(who).map_err(|source| ConductError::Speak { source })
    }

    fn give_up_the_silent(&mut self) -> Result<(), ConductError> {
        let (now, limit) = (monotonic_now(), self.course.manifest.study.run.lost_after.0);
        let limit = if self.course.stop.asked() { limit.min(PATIENCE) } else { limit };
        for target in 0..self.crew.mates.len() {
            let silent = self.crew.mates.get(target).map_or(Nanos(0), |mate| mate.silent(now));
            if silent > limit {
                self.lose(target, format!("it did not answer for {limit}"))?;
            }
        }
        Ok(())
    }

    fn heard(&mut self, heard: Heard) -> Result<(), ConductError> {
        let target = heard.link;
        if self.crew.mates.get(target).is_none_or(|mate| mate.lost.is_some()) {
            return Ok(());
        }
        match heard.said {
            Ok(Report::Event(event)) => self.told(target, event),
            Ok(Report::Reached(point)) => {
                self.crew.does(&[target], at(point));
                self.take(Input::Reached { target, point })
            }
            Ok(Report::Refused(reasons)) => self.refused(target, reasons),
            Ok(_) => self.lose(target, "it answered what nobody had asked".into()),
            Err(reason) => self.lose(target, reason),
        }
    }

    fn refused(&mut self, target: usize, reasons: Vec<String>) -> Result<(), ConductError> {
        let name = self.name(target);
        let is_guest = self.crew.mates.get(target).is_some_and(|mate| mate.kind == "vm");
        let mut told: Vec<String> = reasons.iter().take(REASONS).map(|reason| sentence(reason)).collect();
        if reasons.len() > REASONS {
            told.push(format!("and {} further reasons", reasons.len() - REASONS));
        }
        if is_guest && told.iter().any(|reason| reason.contains("/tmp/")) {
            told.push("a guest has a /tmp of its own: what lies in this host's is not there".into());
        }
        let refusal = |reason: &String| Refusal { what: format!("{name}: {reason}"), hint: String::new() };
        if !self.course.has_begun() {
            self.refused.extend(told.iter().map(refusal));
        }
        self.lose(target, told.join("; "))
    }

    fn told(&mut self, target: usize, event: Event) -> Result<(), ConductError> {
        let Some(mate) = self.crew.mates.get_mut(target) else { return Ok(()) };
        let (manifest, begun, now) = (self.course.manifest, self.course.earliest, monotonic_now());
        let ear = Ear { manifest, target, open: self.open.as_ref(), begun, now };
        match ear.judge(mate, event) {
            Ok(Verdict::Hold(event)) => {
                let held = self.open.as_mut().map_or(Ok(()), |open| open.hold(target, event));
                if let Err(reason) = held {
                    self.lose(target, reason)?;
                }
            }
            Ok(Verdict::Pass(event)) => {
                if !self.course.has_begun() {
                    mate.early = mate.early.saturating_add(memory_of(&event));
                    if mate.early > EARLY {
                        let reason = format!("it told more than {EARLY} bytes before the run began");
                        return self.lose(target, reason);
                    }
                }
                self.course.tell(event)?
            }
            Ok(Verdict::Cost(cost)) => self.course.add_cost(cost),
            Ok(Verdict::Drop) => {}
            Err(reason) => self.lose(target, reason)?,
        }
        Ok(())
    }

    /// Hands the barrier an input, and does what it says until it says no more.
    fn take(&mut self, input: Input) -> Result<(), ConductError> {
        let mut todo: VecDeque<Action> = self.barrier.take(monotonic_now(), input).into();
        while let Some(action) = todo.pop_front() {
            match action {
                Action::Go { who, point } => {
                    for input in self.go(&who, point)? {
                        todo.extend(self.barrier.take(monotonic_now(), input));
                    }
                }
                Action::Cancel(who) => who.iter().for_each(|target| self.crew.send(*target, &Order::Cancel)),
                Action::Lose { target, loss } => self.bury(target, &reason(loss))?,
                Action::Over => self.over = true,
            }
        }
        Ok(())
    }

    /// A target that is lost for a reason of its own.
    fn lose(&mut self, target: usize, reason: String) -> Result<(), ConductError> {
        self.bury(target, &inert(&reason))?;
        self.take(Input::Lost(target))
    }

    fn bury(&mut self, target: usize, reason: &str) -> Result<(), ConductError> {
        if self.crew.mates.get(target).is_none_or(|mate| mate.lost.is_some()) {
            return Ok(());
        }
        let words = self.crew.bury(target, reason);
        let is_guest = self.crew.mates.get(target).is_some_and(|mate| mate.kind == "vm");
        let panicked = find_panic(&words)
            .filter(|_| is_guest)
            .map(|line| format!("the guest's kernel panicked: {line}"));
        // What an agent complained of last; a console's last line is any.
        let said = words.lines().rev().find(|line| !is_guest && !line.trim().is_empty());
        let said = said.map(|line| format!("{reason}; it last said: {}", sentence(line.trim())));
        let reason = panicked.or(said).unwrap_or_else(|| reason.to_owned());
        let reason = reason.as_str();
        if let Some(open) = &mut self.open {
            open.lose(target, reason);
        }
        self.say_dropped(target)?;
        self.course.lost(target, &self.name(target), reason)?;
        self.course.words(target, words)
    }

    /// Says what was dropped of what a target said.
    fn say_dropped(&mut self, target: usize) -> Result<(), ConductError> {
        let dropped = self.crew.mates.get(target).and_then(Mate::dropped);
        let Some(message) = dropped else { return Ok(()) };
        self.course.told(target, What::Warning { message, advice: "look into the target itself".into() })
    }

    fn name(&self, target: usize) -> String {
        self.crew.mates.get(target).map(|mate| mate.name.clone()).unwrap_or_default()
    }

    /// Sends these targets on to a point. Gives what that makes the barrier hear: a wish to stop, or
    /// that they are there already because there is nothing to do.
    fn go(&mut self, who: &[usize], point: Point) -> Result<Vec<Input>, ConductError> {
        self.crew.does(who, towards(point));
        match point {
            Point::First => self.enrol(who),
            Point::Before(index) => return self.ready(who, index),
            Point::After(_) if self.open.as_ref().is_some_and(Open::is_lacking) => {
                let now = monotonic_now();
                self.open.iter_mut().for_each(|open| open.released(now));
                return Ok(arrived(who, point));
            }
            Point::After(index) => self.release(who, index)?,
            Point::Last => {
                self.close()?;
                if !self.barrier.is_stopping() {
                    self.pass_over(None)?;
                }
                self.course.phase(Phase::Undo)?;
                who.iter().for_each(|target| self.crew.send(*target, &Order::Undo));
            }
            Point::End => {
                if self.last {
                    self.course.rest();
                }
                who.iter().for_each(|target| self.crew.send(*target, &Order::Leave));
            }
        }
        Ok(Vec::new())
    }

    fn enrol(&mut self, who: &[usize]) {
        for target in who {
            let Some(mate) = self.crew.mates.get(*target) else { continue };
            let enrolment = self.course.enrolment(&mate.name, &mate.kind);
            self.crew.send(*target, &Order::Enrol(Box::new(enrolment)));
        }
    }

    fn ready(&mut self, who: &[usize], index: u32) -> Result<Vec<Input>, ConductError> {
        self.close()?;
        self.begin_course()?;
        self.pass_over(Some(index))?;
        let Some(slot) = self.course.slot(index) else { return Ok(vec![Input::Stop]) };
        if self.course.must_stop()? || self.course.has_enough(index)? {
            return Ok(vec![Input::Stop]);
        }
        if let Some(why) = self.lacks(who, &slot) {
            self.open = Some(Open::lacking(index, slot, who.to_vec(), why));
            return Ok(arrived(who, Point::Before(index)));
        }
        self.course.enter(&slot)?;
        self.open = Some(Open::new(index, slot, who.to_vec()));
        let order = Order::Ready { index, slot };
        who.iter().for_each(|target| self.crew.send(*target, &order));
        Ok(Vec::new())
    }

    /// Tells the slots before `until` that the barrier has passed over, for nobody who belongs to them is left.
    fn pass_over(&mut self, until: Option<u32>) -> Result<(), ConductError> {
        while let Some((index, slot)) = self.ahead.pop_front().filter(|(index, _)| Some(*index) != until) {
            if let Some(why) = self.lacks(&[], &slot) {
                let who = self.course.part(&slot, self.crew.mates.len());
                let mut open = Open::lacking(index, slot, who, why);
                open.released(monotonic_now());
                self.open = Some(open);
                self.close()?;
            }
        }
        Ok(())
    }

    /// Why the slot's level cannot be met by those who are left; none where it can, or where no level says how many.
    fn lacks(&self, who: &[usize], slot: &Slot) -> Option<String> {
        let (factor, level) = self.course.company(slot)?;
        let wanted = self.course.part(slot, self.crew.mates.len());
        let missing: Vec<String> = wanted
            .into_iter()
            .filter(|target| !who.contains(target))
            .map(|target| self.name(target))
            .collect();
        let were = match missing.as_slice() {
            [] => return None,
            [one] => format!("{one} was"),
            several => format!("{} were", several.join(", ")),
        };
        Some(format!("not begun: {were} lost before, and `{factor}={level}` cannot be met"))
    }

    /// The run begins when every target is prepared; a later boot only says what is new.
    fn begin_course(&mut self) -> Result<(), ConductError> {
        let now = monotonic_now();
        if !self.course.has_begun() {
            if !self.refused.is_empty() {
                return Err(ConductError::Refused(std::mem::take(&mut self.refused)));
            }
            let lost: Vec<&Mate> = self.crew.mates.iter().filter(|mate| mate.lost.is_some()).collect();
            let too_many = !self.goes_on() || lost.len() == self.crew.mates.len();
            if let Some(lost) = lost.first().filter(|_| too_many) {
                let reason = lost.lost.clone().unwrap_or_default();
                return Err(ConductError::Target { target: lost.name.clone(), reason });
            }
            let records = self.crew.mates.iter().map(|mate| mate.record(now)).collect();
            self.course.begin(records)?;
        }
        Ok(())
    }

    /// Lets the iteration begin at one instant, a little later, everywhere.
    fn release(&mut self, who: &[usize], index: u32) -> Result<(), ConductError> {
        self.synchronise(who)?;
        let trips = who.iter().filter_map(|target| self.crew.mates.get(*target)).map(|mate| mate.longest.0);
        let lead =
            LEAD.0 + who.len() as u64 * LEAD_EACH.0 + (4 * trips.max().unwrap_or(0)).min(LONGEST_LEAD.0);
        let start = Nanos(monotonic_now().0 + lead);
        for target in who {
            let Some(mate) = self.crew.mates.get(*target) else { continue };
            let at = mate.offset.theirs(start);
            self.crew.send(*target, &Order::Start { index, at });
        }
        for target in who {
            let clock = self.crew.mates.get(*target).map(|mate| mate.clock(start)).unwrap_or_default();
            self.course.told(*target, What::Clock(clock))?;
        }
        self.open.iter_mut().for_each(|open| open.released(start));
        self.course.say(What::IterationBegan { slot: index })?;
        let targets = u32::try_from(who.len()).unwrap_or(u32::MAX);
        self.course.say(What::Released { slot: index, start, targets })
    }

    /// Tells what was held of the iteration that is over.
    fn close(&mut self) -> Result<(), ConductError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let names: Vec<String> = self.crew.mates.iter().map(|mate| mate.name.clone()).collect();
        let (events, good) = open.close(monotonic_now(), &names);
        self.course.closed(events, good, &names)
    }

    /// Ends the targets; what they said beside their streams is kept.
    fn farewell(mut self) -> Result<(), ConductError> {
        self.close()?;
        for (target, words) in self.crew.dismiss() {
            self.say_dropped(target)?;
            self.course.words(target, words)?;
        }
        self.begin_course()
    }
}

/// One error that says of each target why it could not be started, with where its console is kept.
fn told_together(mut failed: Vec<(usize, ConductError)>) -> Result<(), ConductError> {
    if failed.is_empty() {
        return Ok(());
    }
    let is_target = |(_, error): &(usize, ConductError)| matches!(error, ConductError::Target { .. });
    let (_, first) = failed.remove(failed.iter().position(is_target).unwrap_or(0));
    let ConductError::Target { target, mut reason } = first else { return Err(first) };
    for (_, other) in failed {
        reason.push('\n');
        reason.push_str(&other.with_causes());
    }
    Err(ConductError::Target { target, reason })
}

/// They all have come.
fn arrived(who: &[usize], point: Point) -> Vec<Input> {
    who.iter().map(|target| Input::Reached { target: *target, point }).collect()
}

/// What a target does on its way to a point,
fn towards(point: Point) -> Doing {
    match point {
        Point::First => Doing::Prepares,
        Point::Before(_) => Doing::Sets,
        Point::After(_) => Doing::Works,
        Point::Last | Point::End => Doing::Leaves,
    }
}

/// and when it is there.
fn at(point: Point) -> Doing {
    match point {
        Point::First | Point::Before(_) => Doing::Ready,
        Point::After(_) => Doing::Done,
        Point::Last | Point::End => Doing::Gone,
    }
}

fn reason(loss: Loss) -> String {
    match loss {
        Loss::Late(point) => format!("it did not come to {point} in time"),
        Loss::OutOfTurn(point) => format!("it claims to be at {point}, where it cannot be"),
    }
}

//! The arrays, the kernels, the threads, and the check.

use std::sync::Barrier;
use std::time::Instant;

use memmap2::MmapMut;

use super::super::LoadError;
use super::WORD;

type Word = [u8; WORD];

/// STREAM's scalar.
const SCALAR: f64 = 3.0;
/// STREAM's bound on the mean relative error of doubles.
const EPSILON: f64 = 1e-13;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kernel {
    Copy,
    Scale,
    Add,
    Triad,
}

impl Kernel {
    pub(super) const ALL: [Kernel; 4] = [Kernel::Copy, Kernel::Scale, Kernel::Add, Kernel::Triad];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kernel::Copy => "copy",
            Kernel::Scale => "scale",
            Kernel::Add => "add",
            Kernel::Triad => "triad",
        }
    }

    /// Words that STREAM counts per element.
    pub(super) fn words(self) -> usize {
        match self {
            Kernel::Copy | Kernel::Scale => 2,
            Kernel::Add | Kernel::Triad => 3,
        }
    }
}

/// Seconds of every timed pass, kernel by kernel.
#[derive(Debug, Default)]
pub(super) struct Timings(Vec<(Kernel, f64)>);

impl Timings {
    pub(super) fn of(&self, kernel: Kernel) -> Vec<f64> {
        self.0.iter().filter(|(one, _)| *one == kernel).map(|(_, seconds)| *seconds).collect()
    }
}

/// One thread's part of the three arrays.
struct Part<'a> {
    a: &'a mut [Word],
    b: &'a mut [Word],
    c: &'a mut [Word],
}

impl Part<'_> {
    /// STREAM's initial values; its first test doubles `a`. The first touch is by the thread that
    /// will use the memory, so that it is near.
    fn fill(&mut self) {
        self.a.fill(2.0_f64.to_ne_bytes());
        self.b.fill(2.0_f64.to_ne_bytes());
        self.c.fill(0.0_f64.to_ne_bytes());
    }

    fn run(&mut self, kernel: Kernel) {
        match kernel {
            Kernel::Copy => self.c.copy_from_slice(self.a),
            Kernel::Scale => one(self.b, self.c, |c| SCALAR * c),
            Kernel::Add => two(self.c, self.a, self.b, |a, b| a + b),
            Kernel::Triad => two(self.a, self.b, self.c, |b, c| b + SCALAR * c),
        }
    }

    fn check(&self, runs: usize) -> Result<(), LoadError> {
        let [a, b, c] = expected(runs);
        check("a", self.a, a)?;
        check("b", self.b, b)?;
        check("c", self.c, c)
    }
}

fn one(to: &mut [Word], from: &[Word], operation: impl Fn(f64) -> f64) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = operation(f64::from_ne_bytes(*from)).to_ne_bytes();
    }
}

fn two(to: &mut [Word], x: &[Word], y: &[Word], operation: impl Fn(f64, f64) -> f64) {
    for ((to, x), y) in to.iter_mut().zip(x).zip(y) {
        *to = operation(f64::from_ne_bytes(*x), f64::from_ne_bytes(*y)).to_ne_bytes();
    }
}

/// What a, b and c must hold after so many runs of all four kernels.
fn expected(runs: usize) -> [f64; 3] {
    let [mut a, mut b, mut c] = [2.0, 2.0, 0.0];
    for _ in 0..runs {
        c = a;
        b = SCALAR * c;
        c = a + b;
        a = b + SCALAR * c;
    }
    [a, b, c]
}

fn check(name: &str, words: &[Word], expected: f64) -> Result<(), LoadError> {
    let errors: f64 = words.iter().map(|word| (f64::from_ne_bytes(*word) - expected).abs()).sum();
    if errors / words.len() as f64 <= EPSILON * expected.abs() {
        return Ok(());
    }
    let off = words.iter().map(|word| f64::from_ne_bytes(*word)).find(|word| *word != expected);
    Err(LoadError::WrongResult { what: format!("array {name}"), expected, found: off.unwrap_or(f64::NAN) })
}

/// Runs all kernels `passes` times after an untimed pass, in `threads` threads that begin each kernel
/// together, and checks the result.
pub(super) fn run(mut maps: [MmapMut; 3], threads: usize, passes: usize) -> Result<Timings, LoadError> {
    let [a, b, c] = &mut maps;
    let (a, b, c) = (words(a), words(b), words(c));
    let share = a.len().div_ceil(threads);
    let parts: Vec<Part<'_>> = a
        .chunks_mut(share)
        .zip(b.chunks_mut(share))
        .zip(c.chunks_mut(share))
        .map(|((a, b), c)| Part { a, b, c })
        .collect();
    let barrier = Barrier::new(parts.len());
    std::thread::scope(|scope| {
        let barrier = &barrier;
        let workers: Vec<_> =
            parts.into_iter().map(|part| scope.spawn(move || work(part, barrier, passes))).collect();
        let mut results = workers.into_iter().map(|worker| {
            worker.join().unwrap_or_else(|_| {
                Err(LoadError::refused("finish a thread")(std::io::Error::other("it panicked")))
            })
        });
        // Barriers make all clocks agree; the first thread's is taken, and everybody's check.
        let first = results.next().unwrap_or_else(|| Ok(Timings::default()));
        results.try_fold(first?, |timings, other| other.map(|_| timings))
    })
}

fn work(mut part: Part<'_>, barrier: &Barrier, passes: usize) -> Result<Timings, LoadError> {
    let mut timings = Timings::default();
    part.fill();
    for pass in 0..=passes {
        for kernel in Kernel::ALL {
            barrier.wait();
            let start = Instant::now();
            part.run(kernel);
            barrier.wait();
            if pass > 0 {
                timings.0.push((kernel, start.elapsed().as_secs_f64()));
            }
        }
    }
    part.check(passes + 1).map(|()| timings)
}

fn words(map: &mut MmapMut) -> &mut [Word] {
    map.as_chunks_mut().0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_word_is_found() {
        let maps = [(); 3].map(|()| MmapMut::map_anon(8 * 1000).unwrap());
        assert_eq!(run(maps, 3, 2).unwrap().of(Kernel::Triad).len(), 2);
        let [mut a, mut b, mut c] = [(); 3].map(|()| vec![[0; WORD]; 10]);
        let mut part = Part { a: &mut a, b: &mut b, c: &mut c };
        part.fill();
        Kernel::ALL.iter().for_each(|kernel| part.run(*kernel));
        part.check(1).unwrap();
        part.b[3] = 1.0_f64.to_ne_bytes();
        assert!(part.check(1).unwrap_err().to_string().contains("array b: expected 6, found 1"));
    }

    #[test]
    fn arithmetic_is_streams() {
        // By hand: a = 2 -> c = 2, b = 6, c = 8, a = 6 + 24.
        assert_eq!(expected(1), [30.0, 6.0, 8.0]);
    }
}

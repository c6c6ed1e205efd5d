// Panics through a function in 1 of 100 calls; prints how many were caught.
#[inline(never)]
fn insert(n: u64) -> u64 {
    if n % 100 == 99 { panic!("{n}") }
    std::hint::black_box(n) + 1
}
fn main() {
    std::panic::set_hook(Box::new(|_| ()));
    let calls = std::env::args().nth(1).map_or(1000, |n| n.parse().unwrap());
    let caught = (0..calls).filter(|n| std::panic::catch_unwind(|| insert(*n)).is_err()).count();
    println!("{caught}");
}

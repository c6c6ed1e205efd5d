use super::{rank_sum_counts, sized_subset_sum_counts, squared_rank_distance_counts, subset_sum_counts};

fn binomial_coefficient(n: i128, k: i128) -> i128 {
    (1..=k).fold(1, |ways, i| ways * (n - k + i) / i)
}

/// Mann and Whitney (1947), their example for two against two: U = 0, 1, 2, 3, 4 in 1, 1, 2, 1, 1 ways.
#[test]
fn rank_sums_of_small_samples() {
    assert_eq!(rank_sum_counts(2, 2), [1, 1, 2, 1, 1]);
    assert_eq!(rank_sum_counts(1, 3), [1, 1, 1, 1]);
}

/// The largest sizes at the limit of 2,500 pairs: no overflow (debug builds would panic), nothing lost.
#[test]
fn rank_sums_count_every_arrangement() {
    for (m, n) in [(1, 2_500), (2, 1_250), (10, 250), (25, 100), (40, 62), (49, 51), (50, 50)] {
        let counts = rank_sum_counts(m, n);
        assert_eq!(counts.iter().sum::<i128>(), binomial_coefficient((m + n) as i128, m as i128), "{m} {n}");
        assert!(counts.iter().eq(counts.iter().rev()) && counts.iter().all(|count| *count >= 0));
    }
}

#[test]
fn signed_ranks_count_every_sign() {
    assert_eq!(subset_sum_counts(&[1, 2, 3]), [1, 1, 1, 2, 1, 1, 1]);
    let fifty: Vec<usize> = (1..=50).collect();
    assert_eq!(subset_sum_counts(&fifty).iter().sum::<i128>(), 1 << 50);
}

#[test]
fn subsets_of_one_size_have_their_sums() {
    assert_eq!(sized_subset_sum_counts(&[1, 2, 2, 3], 2), [0, 0, 0, 2, 2, 2, 0]);
    let ranks: Vec<usize> = (1..=20).collect();
    assert_eq!(sized_subset_sum_counts(&ranks, 10).iter().sum::<i128>(), 184_756);
}

/// Of the six orders of three, Σd² is 0 once, 2 twice, 6 twice and 8 once.
#[test]
fn rank_distances_count_every_order() {
    assert_eq!(squared_rank_distance_counts(3), [1, 0, 2, 0, 0, 0, 2, 0, 1]);
    assert_eq!(squared_rank_distance_counts(10).iter().sum::<i128>(), 3_628_800);
}

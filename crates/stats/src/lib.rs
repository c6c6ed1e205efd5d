//! perflab's statistics: numbers in, numbers out.

#!/usr/bin/env Rscript
# Makes r_dip.json and r_rank_equivalence.json beside this file: Rscript make_dip_tables.R, with R 4.2.2 and its package
# diptest 0.76-0 (Debian's r-cran-diptest).

library(diptest)
set.seed(20261122)
here <- dirname(sub("--file=", "", grep("--file=", commandArgs(FALSE), value = TRUE)[1]))
number <- function(v) sprintf("%.17g", v)
many <- function(v) paste0("[", paste(number(v), collapse = ", "), "]")
put <- function(name, rows) writeLines(c("[", paste(rows, collapse = ",\n"), "]"), file.path(here, paste0("r_", name, ".json")))

# dip() of samples of many shapes, ties included; the p-value of dip.test() interpolates in the table of the package.
shapes <- list(
  normal = function(n) rnorm(n), uniform = function(n) runif(n), heavy = function(n) exp(rnorm(n, 0, 2)),
  two = function(n) rnorm(n, ifelse(runif(n) < 0.4, 0, 6)), three = function(n) rnorm(n, sample(c(0, 4, 8), n, TRUE)),
  coarse = function(n) round(rnorm(n, 10, 2)), close = function(n) rnorm(n, ifelse(runif(n) < 0.5, 0, 2.5)),
  steps = function(n) round(ifelse(runif(n) < 0.5, rnorm(n, 5), rnorm(n, 15))))
put("dip", unlist(lapply(names(shapes), function(shape) lapply(c(4, 5, 8, 13, 30, 60, 200), function(n) {
  x <- shapes[[shape]](n)
  sprintf('{"shape": "%s", "x": %s, "dip": %s, "p": %s}', shape, many(x), number(dip(x)), number(dip.test(x)$p.value))
}))))

# Two one-sided Mann-Whitney tests, exact, and with the normal approximation where values are tied or many.
put("rank_equivalence", unlist(lapply(c(3, 6, 15, 40, 80), function(n) lapply(c(0.01, 0.03, 0.1), function(margin) {
  x <- exp(rnorm(n, 4, 0.03)); y <- exp(rnorm(n + 1, 4.005, 0.02)); s <- margin * mean(x)
  exact <- n * (n + 1) <= 2500
  one <- function(v, side) wilcox.test(v, x, alternative = side, exact = exact)$p.value
  sprintf('{"x": %s, "y": %s, "margin": %s, "above_low": %s, "below_high": %s}', many(x), many(y), number(s),
          number(one(y + s, "greater")), number(one(y - s, "less")))
}))))

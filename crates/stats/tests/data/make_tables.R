#!/usr/bin/env Rscript
# Makes r_*.json beside this file: Rscript make_tables.R, with R 4.2.2 and its base packages only.
# The samples in the tables were drawn by a version of this script that drew for more tables: a new run draws others.

set.seed(20261121)
here <- dirname(sub("--file=", "", grep("--file=", commandArgs(FALSE), value = TRUE)[1]))
number <- function(v) ifelse(is.finite(v), sprintf("%.17g", v), "null")
json <- function(v) if (length(v) == 1 && is.null(attr(v, "list"))) number(v) else paste0("[", paste(number(v), collapse = ", "), "]")
many <- function(v) structure(v, list = TRUE)
row <- function(...) {
  f <- list(...)
  paste0("{", paste(sprintf("\"%s\": %s", names(f), sapply(f, json)), collapse = ", "), "}")
}
put <- function(name, rows) writeLines(c("[", paste(rows, collapse = ",\n"), "]"), file.path(here, paste0("r_", name, ".json")))
times <- function(n, shift = 0, sd = 0.05) exp(rnorm(n, 4 + shift, sd))

# t.test: Welch's, and the mean of one sample.
put("welch", unlist(lapply(list(c(2, 2), c(3, 5), c(5, 5), c(10, 7), c(30, 40), c(100, 3)), function(size) lapply(c(0.9, 0.95, 0.99), function(level) {
  x <- times(size[1]); y <- times(size[2], 0.03, 0.08)
  w <- t.test(y, x, conf.level = level)
  o <- t.test(x, conf.level = level)
  row(x = many(x), y = many(y), confidence = level, t = unname(w$statistic), freedom = unname(w$parameter), p = w$p.value,
      standard_error = w$stderr, shift = c(mean(y) - mean(x), w$conf.int),
      mean = c(mean(x), o$conf.int))
}))))

# p.adjust.
put("adjusted", lapply(list(runif(1), runif(2), rbeta(5, 0.5, 2), rbeta(60, 0.3, 2), c(0.01, 0.04, 0.03, 0.03, 1, 0)), function(p)
  row(p = many(p), bh = many(p.adjust(p, "BH")), by = many(p.adjust(p, "BY")))))

# Means.
put("means", unlist(lapply(c(1, 2, 5, 10, 11, 47), function(n) lapply(c(0, 0.1, 0.2, 0.25, 0.49), function(share) {
  x <- times(n, 0, 0.5)
  row(x = many(x), share = share, trimmed = mean(x, trim = share),
      harmonic = 1 / mean(1 / x), variation = sd(x) / mean(x))
}))))

# One-way analysis of variance, boots of different size.
put("boots", lapply(list(c(3, 3), c(2, 5, 9), c(10, 10, 10, 10, 10), c(1, 1, 4, 7), c(8, 8, 8, 8, 8, 8, 8)), function(sizes) {
  boot <- factor(rep(seq_along(sizes), sizes))
  y <- 100 + rnorm(length(sizes), 0, 2)[boot] + rnorm(length(boot))
  m <- anova(lm(y ~ boot))[["Mean Sq"]]
  n0 <- (sum(sizes) - sum(sizes^2) / sum(sizes)) / (length(sizes) - 1)
  row(y = many(y), sizes = many(sizes), within = sqrt(m[2]), between = sqrt(max(0, (m[1] - m[2]) / n0)))
}))

# Prediction of one new value: predict() of a model with nothing but a mean.
put("prediction", unlist(lapply(c(2, 5, 30, 200), function(n) lapply(c(0.9, 0.99), function(level) {
  x <- times(n)
  limits <- function(v) unname(predict(lm(v ~ 1), data.frame(row.names = 1), interval = "prediction", level = level)[1, ])
  row(x = many(x), confidence = level, plain = limits(x))
}))))

# wilcox.test: both tests, exact, with the estimates and intervals that they invert.
put("wilcoxon", unlist(lapply(c(4, 6, 9, 20, 49), function(n) lapply(c(0.9, 0.95), function(level) {
  x <- times(n); y <- x * exp(rnorm(n, 0.02, 0.04)); z <- times(n - 1, 0.03)
  u <- wilcox.test(z, x, exact = TRUE, conf.int = TRUE, conf.level = level)
  v <- suppressWarnings(wilcox.test(y, x, paired = TRUE, exact = TRUE, conf.int = TRUE, conf.level = level))
  row(x = many(x), y = many(y), z = many(z), confidence = level, u = unname(u$statistic), u_p = u$p.value, u_shift = c(unname(u$estimate), u$conf.int),
      v = unname(v$statistic), v_p = v$p.value, v_shift = c(unname(v$estimate), v$conf.int))
}))))

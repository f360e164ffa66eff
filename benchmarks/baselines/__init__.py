"""Methods of the papers' comparisons that no user would choose: for the benchmarks, and not in the package."""

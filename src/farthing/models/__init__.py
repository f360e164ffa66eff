"""Gaussian processes over arrays: kernels, exact inference, fitting, sampling, diagnostics."""

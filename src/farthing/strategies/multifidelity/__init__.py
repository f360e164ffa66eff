"""Multi-fidelity: what to train next, how far, and from which paused run (taKG and taKG⁰)."""

from farthing.strategies.multifidelity.takg import TraceKG

__all__ = ["TraceKG"]

"""How well and how fast Farthing tunes, beside its peers. `benchmarks/README.md` says how to run and extend this."""

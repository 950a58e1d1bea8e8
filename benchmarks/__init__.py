"""The benchmark programs, one a claim: ``python benchmarks/NAME.py --json FILE``."""

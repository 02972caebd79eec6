"""Benchmarks of fgrad beside jax, torch, autograd and NumPy: `python -m benchmarks.run`."""

"""Integers inside a function have NumPy's dtypes: found, then put in as casts."""

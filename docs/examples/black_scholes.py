"""Price European options by Black and Scholes' formula: one program, every device.

    XDEV_DEVICE=cpu  python docs/examples/black_scholes.py
    XDEV_DEVICE=cuda python docs/examples/black_scholes.py

A function of numbers becomes one ufunc with two results.
"""

import math

import xdev as xp
from xdev.random import default_rng


@xp.vectorize
def black_scholes(spot, strike, years, rate, volatility):
    """Price of a call and of a put on one share."""
    deviation = volatility * math.sqrt(years)
    drift = (rate + 0.5 * volatility * volatility) * years
    d1 = (math.log(spot / strike) + drift) / deviation
    d2 = d1 - deviation
    likely = 0.5 * (1 + math.erf(d1 * math.sqrt(0.5)))  # the normal distribution
    certain = 0.5 * (1 + math.erf(d2 * math.sqrt(0.5)))
    bond = strike * math.exp(-rate * years)
    call = spot * likely - bond * certain
    return call, call + bond - spot


def prices(spot, strike, years, rate=0.02, volatility=0.3):
    """Prices of calls and puts, written straight into two buffers."""
    calls, puts = xp.empty_like(spot), xp.empty_like(spot)
    black_scholes(spot, strike, years, rate, volatility, out=(calls, puts))
    return calls, puts


def market(count, rng):
    """Spots, strikes and times to expiry of some options."""
    return (
        rng.uniform(10.0, 50.0, size=count),
        rng.uniform(10.0, 50.0, size=count),
        rng.uniform(0.1, 5.0, size=count),
    )


def main():
    """Price a million options, and print what they are worth together."""
    calls, puts = prices(*market(1_000_000, default_rng(7)))

    print(f"mean price of a call {float(xp.mean(calls)):.4f}")
    print(f"mean price of a put  {float(xp.mean(puts)):.4f}")
    print(f"of {calls.size:,} options, on {xp.device_of(calls)}")


if __name__ == "__main__":
    main()

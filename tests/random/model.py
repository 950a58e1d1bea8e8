"""Philox as the paper writes it, over Python's integers, for any width of words."""

# (multipliers, Weyl increments) of Philox-4x32 and Philox-4x64
CONSTANTS = {
    32: ((0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)),
    64: (
        (0xD2E7470EE14C6C93, 0xCA5A826395121157),
        (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B),
    ),
}


def philox(counter, key, width=32, rounds=10):
    """Return the four words of a counter under a key."""
    (m0, m1), weyl = CONSTANTS[width]
    modulus = 1 << width
    x, key = list(counter), list(key)
    for _ in range(rounds):
        high0, low0 = divmod(m0 * x[0], modulus)
        high1, low1 = divmod(m1 * x[2], modulus)
        x = [high1 ^ x[1] ^ key[0], low1, high0 ^ x[3] ^ key[1], low0]
        key = [(k + w) % modulus for k, w in zip(key, weyl, strict=True)]
    return x


def chi_squared(counts, expected):
    """Return chi-squared's distance from its mean in standard deviations."""
    degrees = len(counts) - 1
    found = ((counts - expected) ** 2 / expected).sum()
    return abs(found - degrees) / (2 * degrees) ** 0.5


def words(index, key, call):
    """Return an index's two words of 64 bits, as xdev's generators lay them out."""
    halves = [half for word in (index, call, key) for half in divmod(word, 2**32)[::-1]]
    a, b, c, d = philox(halves[:4], halves[4:])
    return a << 32 | b, c << 32 | d

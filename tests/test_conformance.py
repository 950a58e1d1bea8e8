"""What of array-api-tests is known to fail, and why."""

import tomllib
from pathlib import Path


def test_the_table_gives_each_id_once_with_a_reason():
    table = tomllib.loads(Path(__file__).with_name("conformance.toml").read_text())

    listed = [(g["device"], each) for g in table["fails"] for each in g["ids"]]
    assert len(set(listed)) == len(listed)
    assert {device for device, _ in listed} == {"cpu", "cuda"}
    assert all(len(group["reason"]) > 20 and group["ids"] for group in table["fails"])

"""The report's charts say a bill's words as they are."""

from __future__ import annotations

from spark.report.plot import drawing


def test_a_dollar_in_an_owners_name_is_no_formula() -> None:
    # Read as a formula, the first would end the report, and the second lose its dollars.
    for owner in (r"team $\frac{", "$pay$"):
        with drawing("costs", 1.0) as made:
            made.axes.text(0, 0, owner)
        assert owner.replace("<", "&lt;") in made.svg

"""What fio's own scripts print of their tests, read as counts and names."""

from __future__ import annotations

from lab.fio_scripts import ScriptOutcome, told


def test_a_line_for_each_test_is_counted_once_however_often_sums_stand_between() -> None:
    text = (
        "Test 1 PASSED 1\nTest 2 FAILED:  non-zero return code, 2\nTest 3 SKIPPED (needs 4 CPUs) 3\n"
        "1 test(s) passed, 1 failed, 1 skipped\nTest 1 PASSED 1\n1 test(s) passed, 0 failed, 0 skipped\n"
        "2 test(s) passed, 1 failed, 1 skipped\n"
    )
    found = told(text, 1)
    assert found == ScriptOutcome(2, 1, ("2 non-zero return code, 2",))
    assert str(found) == "2 of 3, 1 skipped"


def test_other_words_for_the_same_are_read() -> None:
    assert (
        str(told("**********Test 7 PASSED**********\n1 tests passed, 0 failed, 0 skipped\n", 0)) == "1 of 1"
    )
    steady = "PASSED job1 no ss\nFAILED job2 ss not attained\n1 test(s) PASSED, 1 test(s) FAILED\n"
    assert told(steady, 1) == ScriptOutcome(1, failed=("job2 ss not attained",))
    assert str(told("2 tests passed, 1 failed\n", 1)) == "2 of 3"


def test_without_counts_the_exit_code_is_all_there_is() -> None:
    assert str(told("Traceback (most recent call last)\n", 1)) == "failed (exit code 1)"
    assert str(told("", 0)) == "passed"

"""The limits of `python -m bench.faults`; the measurement itself takes minutes and a quiet machine."""

from bench.faults import find_exceeded


def test_faults_bench_passes_what_is_at_its_limits():
    assert find_exceeded({"page": 10.0, "healthz": 1.0}, 0, 30.0, 60.0) == []


def test_faults_bench_names_everything_that_exceeds_a_limit():
    assert find_exceeded({"upload": 10.01, "page": 2.0, "healthz": 1.5}, 2, None, None) == [
        "healthz took 1.50 s, at most 1 s are allowed",
        "upload took 10.01 s, at most 10 s are allowed",
        "2 acknowledged labels are not stored",
        "people could not work again within 300 s",
        "uploads were not finished within 300 s",
    ]

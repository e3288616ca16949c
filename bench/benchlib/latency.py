"""What tables and plots show of a sample of the open load (openload.py)."""

PERCENTILES = {"p50_ns": "50", "p90_ns": "90", "p99_ns": "99", "p999_ns": "99.9"}
KEPT_UP_SHARE = 0.97  # of the rate; who answers less only falls behind, and the percentiles say for how long


def fell_behind(sample):
    return sample["rate_answered_per_second"] < KEPT_UP_SHARE * sample["rate_asked_per_second"]

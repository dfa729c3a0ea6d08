from connectors.http_client.retry_policy import RetryPolicy


def test_jitter_is_full_and_doubles() -> None:
    policy = RetryPolicy(base_delay=0.5)
    for retry, most in ((1, 0.5), (2, 1.0), (3, 2.0), (4, 4.0)):
        drawn = [policy.draw_delay(retry) for _ in range(400)]
        assert 0 <= min(drawn) < 0.1 * most
        assert 0.9 * most < max(drawn) <= most

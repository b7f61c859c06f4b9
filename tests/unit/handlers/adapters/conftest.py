import pytest


@pytest.fixture
def signing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials to sign with, and an endpoint of the twin that no token may name."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "session")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:4566")

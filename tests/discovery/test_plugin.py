"""The extension page: what an options class gives its author and its user."""

import pickle
import traceback
from datetime import timedelta

import pytest
from pydantic import SecretStr, ValidationError

from chathistory_core import ChatHistoryBackend
from chathistory_core.plugin import BackendOptions, BackendPlugin, Duration
from chathistory_memory import MemoryBackend

SECRET = "canary-41"


class Options(BackendOptions):
    url: str
    ttl: Duration | None = None
    token: SecretStr | None = None
    replicas: tuple[str, ...] = ()

    def open(self) -> ChatHistoryBackend:
        return MemoryBackend()


def ttl(value: object) -> timedelta | None:
    return Options.model_validate({"url": "x://", "ttl": value}).ttl


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("30d", timedelta(days=30)),
        ("12h", timedelta(hours=12)),
        ("15m", timedelta(minutes=15)),
        ("90s", timedelta(seconds=90)),
        ("2w", timedelta(weeks=2)),
        ("P30D", timedelta(days=30)),
        ("PT12H", timedelta(hours=12)),
        ("P1DT0.5S", timedelta(days=1, milliseconds=500)),
        (90, timedelta(seconds=90)),
        (0.25, timedelta(milliseconds=250)),
        (timedelta(days=3), timedelta(days=3)),
        ("36525d", timedelta(days=36_525)),
    ],
)
def test_a_duration_is_read_from_every_form_that_is_documented(written: object, meant: timedelta) -> None:
    assert ttl(written) == meant


@pytest.mark.parametrize(
    "written",
    [
        *(
            "",
            "30",
            "d",
            "-1d",
            "1d12h",
            "0s",
            "1.5d",
            "36526d",
            "9999999999w",
            "99999999999d",
            "PT0S",
            "P999999999D",
            "٣d",
        ),
        *(0, -1, True, float("inf"), float("nan"), 10**400, timedelta(0), []),
    ],
)
def test_what_is_no_duration_is_refused_and_the_error_says_what_is_one(written: object) -> None:
    with pytest.raises(ValidationError, match=r"number with s, m, h, d or w \(90s, 30d\) or ISO 8601 \(P30D\)"):
        ttl(written)


def test_an_unknown_option_is_refused_without_its_value() -> None:
    with pytest.raises(ValidationError, match="tll") as caught:
        Options.model_validate({"url": f"x://u:{SECRET}@h", "tll": SECRET})
    assert SECRET not in str(caught.value)


def test_options_do_not_change() -> None:
    options = Options(url="x://")
    with pytest.raises(TypeError, match="options cannot be changed: make new ones") as caught:
        options.url = f"x://u:{SECRET}@h"  # type: ignore[misc]  # what the test is about
    assert options.url == "x://"
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_repr_shows_no_password() -> None:
    for address in (
        f"x://u:{SECRET}@h/0",
        f"x://:{SECRET}@h",
        f"x://{SECRET}@h",
        f"x://u:a@b/{SECRET}@h",
        f"x:///u:{SECRET}@h",
    ):
        options = Options(url=address, token=SecretStr(SECRET), replicas=(address, address))
        assert SECRET not in repr(options)
        assert SECRET not in str(options)
        assert SECRET not in f"{BackendPlugin(contract=1, options=Options)} {[options]}"
        assert "x://***@" in repr(options)
        assert options.url == address


def test_a_repr_shows_what_is_no_password() -> None:
    assert repr(Options(url="x://host/0")) == "Options(url='x://host/0', ttl=None, token=None, replicas=())"


def test_options_survive_pickling() -> None:
    options = Options(url=f"x://u:{SECRET}@h", ttl=timedelta(days=1))
    assert pickle.loads(pickle.dumps(options)) == options


@pytest.mark.parametrize("address", ["x://h?ttl=30d", "x://h#1", "x://h?"])
def test_a_url_among_options_has_no_query(address: str) -> None:
    with pytest.raises(ValidationError, match="give options beside it"):
        Options(url=address)


def test_a_url_is_percent_encoded_utf_8() -> None:
    with pytest.raises(ValidationError, match="not percent-encoded UTF-8"):
        Options(url="x://%ff")


def test_options_that_make_no_backend_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="open"):
        BackendOptions()  # type: ignore[abstract]  # what the test is about


def test_a_plugin_does_not_change() -> None:
    with pytest.raises(AttributeError):
        BackendPlugin(contract=1, options=Options).contract = 2  # type: ignore[misc]  # what the test is about

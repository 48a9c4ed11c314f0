"""Backends by name: real distributions in throw-away folders, sound and broken ones."""

import pickle
import subprocess
import sys
import textwrap
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from chathistory_core import (
    AmbiguousBackendError,
    BackendBrokenError,
    BackendLoadError,
    BackendNotFoundError,
    ConfigurationError,
    IncompatibleBackendError,
)
from chathistory_core.discovery import installed_backends
from chathistory_core.opening import open_backend
from chathistory_memory import MemoryBackend
from chathistory_memory.plugin import MemoryOptions

Install = Callable[..., Path]

SECRET = "canary-73"

HEAD = """
from chathistory_core.plugin import BackendOptions, BackendPlugin, hookimpl
from chathistory_memory import MemoryBackend

class Options(BackendOptions):
    url: str = ""
    def open(self):
        return MemoryBackend()
"""


def plugin(body: str) -> str:
    return HEAD + textwrap.dedent(body)


def failing_open(body: str) -> str:
    return (
        "from chathistory_core import ConfigurationError\n"
        + HEAD.replace("return MemoryBackend()", body)
        + "\n@hookimpl\ndef chathistory_backend():\n    return BackendPlugin(contract=1, options=Options)\n"
    )


def everything_shown(error: BaseException) -> str:
    restored = pickle.loads(pickle.dumps(error))
    return "".join(traceback.format_exception(error)) + repr(error) + repr(restored) + str(restored)


def listed() -> Sequence[tuple[str, str, str]]:
    return [(backend.name, backend.distribution, backend.version) for backend in installed_backends()]


def test_backends_are_listed_without_importing_any(install: Install) -> None:
    folder = install("toy-backend", "raise SystemExit", names=("toy", "toys"), version="2.5")
    assert ("toy", "toy-backend", "2.5") in listed()
    assert ("toys", "toy-backend", "2.5") in listed()
    assert {"memory", "sqlite"} <= {name for name, _, _ in listed()}
    [module] = [path.stem for path in folder.glob("*.py")]
    assert module not in sys.modules


def test_one_module_serves_several_names(install: Install) -> None:
    install("toy-backend", names=("toy", "toys", "toy+tls"))
    for name in ("toy", "toys", "toy+tls", "toy"):
        assert type(open_backend(f"{name}://x")).__name__ == "ToyBackend"


def test_a_scheme_in_capitals_is_the_same_scheme(toy: Callable[..., dict[str, object]]) -> None:
    assert toy("TOY://Host") == {"url": "toy://Host"}


@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("redis", "redis"),
        ("rediss", "redis"),
        ("valkey", "redis"),
        ("valkeys", "redis"),
        ("unix", "redis"),
    ],
)
def test_a_first_party_backend_that_is_not_installed_says_how_to_install_it(
    nothing_installed: None, install: Install, name: str, extra: str
) -> None:
    install("chathistory-memory", names=("sqlite", "memory"))
    with pytest.raises(BackendNotFoundError) as caught:
        open_backend(f"{name}://user:{SECRET}@host/0")
    assert str(caught.value) == (
        f"backend '{name}' is not installed. "
        f'Run: pip install "chathistory-core[{extra}]" (from a folder of wheels: add --find-links FOLDER; '
        f"in a checkout: pip install -e plugins/{extra}) (Installed: memory, sqlite.)"
    )
    assert SECRET not in everything_shown(caught.value)


INSTALL_REDIS = (
    'pip install "chathistory-core[redis]" '
    "(from a folder of wheels: add --find-links FOLDER; in a checkout: pip install -e plugins/redis)"
)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("sqlit", "Did you mean 'sqlite'?"),
        ("sqlite+aiosqlite", "Did you mean 'sqlite'?"),
        ("sqlite3", "Did you mean 'sqlite'?"),
        (
            "redi",
            f"Did you mean 'redis'? That needs: {INSTALL_REDIS}",
        ),
        ("nothing-like-it", "Install the distribution that offers it."),
    ],
)
def test_an_unknown_name_gets_the_closest_and_the_installed_ones(
    nothing_installed: None, install: Install, name: str, advice: str
) -> None:
    install("chathistory-memory", names=("sqlite", "memory"))
    with pytest.raises(BackendNotFoundError) as caught:
        open_backend(name)
    assert str(caught.value) == f"backend {name!r} is not installed. {advice} (Installed: memory, sqlite.)"


def test_where_nothing_is_installed_the_error_says_so(nothing_installed: None) -> None:
    with pytest.raises(BackendNotFoundError) as caught:
        open_backend()
    assert str(caught.value) == (
        "backend 'sqlite' is not installed. Run: pip install \"chathistory-core[sqlite]\" "
        "(from a folder of wheels: add --find-links FOLDER; in a checkout: pip install -e plugins/sqlite) "
        "(Installed: none.)"
    )
    assert "It is named by the default." in everything_shown(caught.value)


def test_the_closest_name_may_be_a_third_party_s(nothing_installed: None, install: Install) -> None:
    install("toy-backend", names=("dynamodb",))
    with pytest.raises(BackendNotFoundError, match=r"Did you mean 'dynamodb'\? \(Installed: dynamodb\.\)"):
        open_backend("dynamo")


def test_a_module_that_cannot_be_imported_is_named_with_its_cause(install: Install) -> None:
    install("toy-backend", "import chathistory_missing_driver", version="3.1")
    with pytest.raises(BackendBrokenError) as caught:
        open_backend("toy")
    text = str(caught.value)
    assert text.startswith("backend toy-backend 3.1, entry point 'toy' = 'toy_plugin_")
    assert text.endswith("is broken: ModuleNotFoundError: No module named 'chathistory_missing_driver'")
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == text


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("def oops(:", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        (plugin("@hookimpl\ndef chathistory_backnd(): ..."), "unknown hook 'chathistory_backnd'"),
        (plugin("@hookimpl\ndef chathistory_backend(url): ..."), "Argument(s) {'url'} are declared"),
        (plugin("def chathistory_backend(): return BackendPlugin(contract=1, options=Options)"), "one backend, not 0"),
        (plugin("@hookimpl\ndef chathistory_backend(): return None"), "one backend, not 0"),
        (
            plugin(
                """
                @hookimpl
                def chathistory_backend(): return BackendPlugin(contract=1, options=Options)
                @hookimpl(specname="chathistory_backend")
                def another(): return BackendPlugin(contract=1, options=Options)
                """
            ),
            "one backend, not 2",
        ),
        (plugin("@hookimpl\ndef chathistory_backend(): raise LookupError('no')"), "LookupError: no"),
        (plugin("@hookimpl\ndef chathistory_backend(): return Options"), "returned ModelMetaclass, not BackendPlugin"),
        (plugin("@hookimpl\ndef chathistory_backend(): return {'contract': 1}"), "returned dict, not BackendPlugin"),
        (
            plugin("@hookimpl\ndef chathistory_backend(): return BackendPlugin(contract=1, options=dict)"),
            "its options are no BackendOptions",
        ),
        (
            plugin("@hookimpl\ndef chathistory_backend(): return BackendPlugin(contract=1, options=Options())"),
            "its options are no BackendOptions",
        ),
        (
            plugin("@hookimpl\ndef chathistory_backend(): return BackendPlugin(contract=1, options=BackendOptions)"),
            "its options are no BackendOptions with an `open`",
        ),
        (
            plugin("@hookimpl\ndef chathistory_backend(): return BackendPlugin(contract=1, options=Options, colour=2)"),
            "unexpected keyword argument 'colour'",
        ),
    ],
)
def test_a_broken_plugin_is_named_with_its_distribution_version_entry_point_and_cause(
    install: Install, source: str, problem: str
) -> None:
    install("toy-backend", source, version="0.9")
    with pytest.raises(BackendBrokenError) as caught:
        open_backend("toy")
    assert str(caught.value).startswith("backend toy-backend 0.9, entry point 'toy' = 'toy_plugin_")
    assert problem in str(caught.value)


def test_an_entry_point_without_its_object_is_broken(install: Install) -> None:
    install("toy-backend", target="{module}:absent")
    with pytest.raises(BackendBrokenError, match="AttributeError"):
        open_backend("toy")


@pytest.mark.parametrize("contract", [0, 2, "1.0"])
def test_another_contract_is_refused_with_what_is_wanted_and_offered(install: Install, contract: object) -> None:
    body = f"@hookimpl\ndef chathistory_backend(): return BackendPlugin(contract={contract!r}, options=Options)"
    install("toy-backend", plugin(body), version="7.0")
    with pytest.raises(IncompatibleBackendError) as caught:
        open_backend("toy")
    assert str(caught.value).startswith("backend toy-backend 7.0, entry point 'toy' = ")
    assert f"was written for plugin contract {contract!r}; chathistory-core wants 1" in str(caught.value)


def test_a_name_claimed_by_two_distributions_is_refused_naming_both_before_either_is_imported(install: Install) -> None:
    install("toy-backend", "raise SystemExit", version="1.0")
    install("other-toys", "raise SystemExit", version="2.0")
    with pytest.raises(AmbiguousBackendError) as caught:
        open_backend("toy")
    assert str(caught.value) == (
        "backend 'toy' is offered by other-toys 2.0 and toy-backend 1.0: uninstall all but one"
    )


def test_no_distribution_replaces_a_backend_of_ours(install: Install) -> None:
    install("toy-backend", names=("memory",))
    with pytest.raises(AmbiguousBackendError, match=r"chathistory-memory .* and toy-backend"):
        open_backend("memory")


def test_a_distribution_that_is_found_twice_counts_once(install: Install) -> None:
    install("toy_backend", "raise SystemExit", version="1.0")
    install("Toy.Backend", version="1.1")
    assert [entry for entry in listed() if entry[0] == "toy"] == [("toy", "Toy.Backend", "1.1")]
    assert type(open_backend("toy")).__name__ == "ToyBackend"


def test_a_broken_neighbour_hurts_nobody(install: Install) -> None:
    install("broken-one", "raise SystemExit", names=("one",))
    install("broken-two", "import chathistory_missing_driver", names=("two",))
    install("broken-three", "raise SystemExit", names=("three", "four"))
    install("removed-by-half", metadata="", names=("five",))
    install("toy-backend")
    assert type(open_backend("toy")).__name__ == "ToyBackend"
    assert ("five", "(no name)", "(no version)") in listed()


def test_a_new_distribution_is_found_without_a_restart(install: Install) -> None:
    with pytest.raises(BackendNotFoundError):
        open_backend("toy")
    install("toy-backend")
    assert type(open_backend("toy")).__name__ == "ToyBackend"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("raise ValueError(f'bad address {self.url}')", "ValueError at "),
        ("int(self.url)", "ValueError at "),
        ("raise KeyError(self.url)", "KeyError at "),
        ("import chathistory_missing_driver", "No module named 'chathistory_missing_driver'"),
        ("return None", "`open` returned NoneType, not a backend"),
        ("return self", "`open` returned Options, not a backend"),
    ],
)
def test_an_open_that_fails_is_told_without_the_url(install: Install, body: str, problem: str) -> None:
    install("toy-backend", failing_open(body))
    with pytest.raises(BackendBrokenError) as caught:
        open_backend(f"toy://user:{SECRET}@host")
    assert str(caught.value).startswith("backend toy-backend 1.0, entry point 'toy' = 'toy_plugin_")
    assert problem in str(caught.value)
    assert SECRET not in everything_shown(caught.value)


def test_an_open_that_refuses_its_options_is_heard(install: Install) -> None:
    install("toy-backend", failing_open("raise ConfigurationError('the server evicts')"))
    with pytest.raises(ConfigurationError, match=r"^the server evicts$"):
        open_backend("toy")


def test_an_options_object_whose_open_fails_is_named_by_its_class() -> None:
    class Broken(MemoryOptions):
        def open(self) -> MemoryBackend:
            raise ValueError(self.url)

    with pytest.raises(BackendBrokenError) as caught:
        open_backend(Broken(url=f"memory://user:{SECRET}@host"))
    assert "Broken cannot be made: ValueError at " in str(caught.value)
    assert f"{Path(__file__).name}:" in str(caught.value)
    assert SECRET not in everything_shown(caught.value)


def test_a_name_that_comes_from_a_setting_is_told_with_its_place(
    nothing_installed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHATHISTORY_BACKEND", f"redis://user:{SECRET}@host")
    with pytest.raises(BackendLoadError) as caught:
        open_backend()
    assert "It is named by environment variable CHATHISTORY_BACKEND." in everything_shown(caught.value)
    assert SECRET not in everything_shown(caught.value)


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return done.stdout


def test_importing_the_opening_imports_no_plugin_and_not_pluggy() -> None:
    loaded = set(run("import chathistory_core.opening, sys; print(*sys.modules)").split())
    assert not {"pluggy", "chathistory_memory", "chathistory_sqlite", "sqlalchemy", "aiosqlite", "pytest"} & loaded


def test_importing_the_memory_backend_imports_not_pluggy() -> None:
    loaded = set(run("from chathistory_memory import MemoryBackend; import sys; print(*sys.modules)").split())
    assert not {"pluggy", "chathistory_core.plugin", "tomllib"} & loaded


def test_choosing_one_backend_loads_only_that_one() -> None:
    code = (
        "from chathistory_core.opening import open_backend; open_backend('memory://'); import sys; print(*sys.modules)"
    )
    loaded = set(run(code).split())
    assert "chathistory_memory" in loaded
    assert not {"chathistory_sqlite", "sqlalchemy", "aiosqlite", "pytest", "_pytest"} & loaded

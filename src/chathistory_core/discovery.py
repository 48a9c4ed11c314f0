"""Installed backends: listed without importing any, then one loaded by name."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from importlib.metadata import EntryPoint, PackageMetadata, distributions
from inspect import isabstract
from typing import NamedTuple

from pluggy import PluginManager

from chathistory_core import plugin
from chathistory_core.errors import (
    AmbiguousBackendError,
    BackendBrokenError,
    BackendNotFoundError,
    IncompatibleBackendError,
)
from chathistory_core.plugin import CONTRACT, ENTRY_POINT_GROUP, BackendOptions, BackendPlugin

_EXTRAS = {
    "http": "http",
    "https": "http",
    "memory": "memory",
    "redis": "redis",
    "rediss": "redis",
    "sqlite": "sqlite",
    "unix": "redis",
    "valkey": "redis",
    "valkeys": "redis",
}


class InstalledBackend(NamedTuple):
    """A backend's name, and the distribution that offers it."""

    name: str
    distribution: str
    version: str
    entry_point: EntryPoint

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}, entry point {self.name!r} = {self.entry_point.value!r}"


def installed_backends() -> Sequence[InstalledBackend]:
    """Every backend that some distribution offers, by name; nothing is imported.

    A distribution that is found twice (two metadata folders of one normalised name) counts once: the first on the path,
    which is the one that is imported. A name that two distributions claim is listed twice.
    """
    found: dict[tuple[str, str], InstalledBackend] = {}
    for distribution in distributions():
        for entry_point in distribution.entry_points.select(group=ENTRY_POINT_GROUP):
            offered_by = _field(distribution.metadata, "Name")
            version = _field(distribution.metadata, "Version")
            backend = InstalledBackend(entry_point.name, offered_by, version, entry_point)
            found.setdefault((backend.name, _normalised(offered_by)), backend)
    return tuple(found[key] for key in sorted(found))


def _field(metadata: PackageMetadata, name: str) -> str:
    if name in metadata:
        return metadata[name]
    return f"(no {name.lower()})"  # of a distribution that was removed by half


def _normalised(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def find_backend(name: str) -> InstalledBackend:
    """The one installed backend of this name; nothing is imported.

    Raises:
        BackendNotFoundError: none is; it says what to install.
        AmbiguousBackendError: two distributions claim the name.
    """
    installed = installed_backends()
    offers = [backend for backend in installed if backend.name == name]
    if not offers:
        raise BackendNotFoundError(_not_found(name, [backend.name for backend in installed]))
    if len(offers) > 1:
        claims = " and ".join(f"{offer.distribution} {offer.version}" for offer in offers)
        raise AmbiguousBackendError(f"backend {name!r} is offered by {claims}: uninstall all but one")
    return offers[0]


def _not_found(name: str, installed: Sequence[str]) -> str:
    known = {*installed, *_EXTRAS}
    if name in _EXTRAS:
        advice = f"Run: {install_command(_EXTRAS[name])}"
    elif closest := get_close_matches(name, known, n=1) or [base for base in [name.partition("+")[0]] if base in known]:
        advice = f"Did you mean {closest[0]!r}?"
        if closest[0] not in installed:
            advice += f" That needs: {install_command(_EXTRAS[closest[0]])}"
    else:
        advice = "Install the distribution that offers it."
    return f"backend {name!r} is not installed. {advice} (Installed: {', '.join(dict.fromkeys(installed)) or 'none'}.)"


def install_command(extra: str) -> str:
    """How to install the backend of this extra of the core."""
    return (
        f'pip install "chathistory-core[{extra}]" '
        f"(from a folder of wheels: add --find-links FOLDER; in a checkout: pip install -e plugins/{extra})"
    )


def load_options(backend: InstalledBackend) -> type[BackendOptions]:
    """What the backend is opened with; its plugin module is imported, its driver is not.

    Raises:
        BackendBrokenError: the module cannot be imported or does not offer one backend.
        IncompatibleBackendError: it was written for another contract.
    """
    manager = PluginManager("chathistory")
    manager.add_hookspecs(plugin)
    try:
        manager.load_setuptools_entrypoints(ENTRY_POINT_GROUP, name=backend.name)
        manager.check_pending()
        offers = manager.hook.chathistory_backend()
    except (Exception, SystemExit) as error:
        # The plugin was handed nothing yet: neither its message nor its traceback can show a password.
        raise BackendBrokenError(f"backend {backend} is broken: {type(error).__name__}: {error}") from error
    if len(offers) != 1:
        raise BackendBrokenError(
            f"backend {backend} is broken: one hook `chathistory_backend` must return one backend, not {len(offers)}"
        )
    [offer] = offers
    if not isinstance(offer, BackendPlugin):
        raise BackendBrokenError(
            f"backend {backend} is broken: `chathistory_backend` returned {type(offer).__name__}, not BackendPlugin"
        )
    if offer.contract != CONTRACT:
        raise IncompatibleBackendError(
            f"backend {backend} was written for plugin contract {offer.contract!r}; chathistory-core wants {CONTRACT}: "
            f"install versions of {backend.distribution} and chathistory-core that go together"
        )
    options: object = offer.options
    if not (isinstance(options, type) and issubclass(options, BackendOptions)) or isabstract(options):
        raise BackendBrokenError(f"backend {backend} is broken: its options are no BackendOptions with an `open`")
    return options

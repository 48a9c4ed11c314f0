"""How the service is run: what `chathistory serve` was told, checked, in a form that other processes can be handed."""

import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from pathlib import Path

from chathistory_core import ChatHistoryBackend, ConfigurationError, open_backend
from chathistory_core.settings import read_settings
from chathistory_http.service.limits import BODY_SECONDS, MAX_BODY_BYTES
from chathistory_http.service.tokens import Token

_ALONE = "memory"
"""The backend whose conversations no other process sees."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """All that a process of the service needs to know; its `repr` shows no password."""

    url: str | None = field(default=None, repr=False)
    options: Mapping[str, object] = field(default_factory=dict, repr=False)
    host: str = "127.0.0.1"
    port: int = 5000
    workers: int = 1
    tokens: Sequence[Token] = ()
    tokens_file: Path | None = None
    allow_anonymous: bool = False
    behind_proxy: Sequence[str] = ()
    allow_plain_http: bool = False
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    root_path: str = ""
    cors_origins: Sequence[str] = ()
    rate: float | None = None
    max_body_bytes: int = MAX_BODY_BYTES
    request_seconds: float = BODY_SECONDS
    log_level: str = "info"

    @property
    def anonymous(self) -> bool:
        """Whether everyone is let in."""
        return not self.tokens and self.tokens_file is None

    @property
    def local(self) -> bool:
        """Whether only this machine reaches the service."""
        return not self.behind_proxy and all(ip_address(each).is_loopback for each in addresses(self.host))

    def backend(self) -> ChatHistoryBackend:
        """The store, not yet opened."""
        return open_backend(self.url, options=self.options)

    def check(self) -> None:
        """Whether it is safe to run so, else `ConfigurationError`, which says what to do."""
        self._check_proxies()
        if self.allow_anonymous and not self.anonymous:
            raise ConfigurationError("--allow-anonymous lets everyone in, and there are tokens: give one of them")
        self._check_tls()
        if self.root_path and (not self.root_path.startswith("/") or self.root_path.endswith("/")):
            raise ConfigurationError("--root-path begins with a / and does not end with one, such as /history")
        if self.anonymous and "*" in self.cors_origins:
            raise ConfigurationError("--cors-origin * without tokens opens the store to every web site: name the sites")
        if not self.local:
            self._check_exposed()
        if self.workers > 1 and (name := read_settings(self.url, options=self.options).name) == _ALONE:
            raise ConfigurationError(
                f"{self.workers} workers are {self.workers} processes, and a store in {name!r} is one process's: "
                "give another store, or one worker"
            )

    def _check_exposed(self) -> None:
        where = "behind a proxy" if self.behind_proxy else f"on {self.host!r}"
        if self.anonymous and not self.allow_anonymous:
            raise ConfigurationError(
                f"{where} others than this machine reach the service: give tokens (--tokens FILE, or "
                "CHATHISTORY_SERVICE_TOKEN), or say --allow-anonymous to let everyone in"
            )
        if not self.behind_proxy and self.tls_certificate is None and not self.allow_plain_http:
            raise ConfigurationError(
                f"{where} tokens and messages would pass in the clear: put a proxy that speaks TLS before it and say "
                "--behind-proxy ADDRESS, or give --tls-certificate and --tls-key, or say --allow-plain-http"
            )

    def _check_tls(self) -> None:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ConfigurationError("--tls-certificate and --tls-key go together: give both")
        if self.tls_certificate is not None:
            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.tls_certificate, self.tls_key)
            except OSError as error:  # ssl's own is one
                raise ConfigurationError(
                    f"{str(self.tls_certificate)!r} and {str(self.tls_key)!r} are no certificate and its key that can "
                    f"be read: {error.strerror or error}"
                ) from None

    def _check_proxies(self) -> None:
        for address in self.behind_proxy:
            try:
                ip_network(address)
            except ValueError:
                raise ConfigurationError(
                    f"--behind-proxy {address!r} is no IP address and no network such as 10.0.0.0/8"
                ) from None


def addresses(host: str) -> Sequence[str]:
    """The IP addresses of this machine that the name or address stands for.

    Raises:
        ConfigurationError: it stands for none.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise ConfigurationError(f"host {host!r} cannot be found: {error.strerror}") from None
    return list(dict.fromkeys(str(each[4][0]) for each in found))

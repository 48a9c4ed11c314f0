"""A request: what of it the service asks for."""

from collections.abc import Mapping
from typing import cast
from urllib.parse import quote

from starlette.types import Receive, Scope

from chathistory_http.wire.problems import ProblemError
from chathistory_http.wire.queries import read_query


class Call:
    """A request, its body not yet read."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.method: str = scope["method"]
        self.receive = receive
        self._scope = scope
        self._headers: dict[str, str] = {}
        self._repeated: set[str] = set()
        self._query: Mapping[str, str] | None = None
        for raw_name, raw_value in scope["headers"]:
            name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
            if name in self._headers:
                self._headers[name] += f", {value}"
                self._repeated.add(name)
            else:
                self._headers[name] = value

    def header(self, name: str) -> str | None:
        """The header's value, or None; several under one name are one list."""
        return self._headers.get(name.lower())

    def single(self, name: str) -> str | None:
        """As `header`, of one that is no list.

        Raises:
            ProblemError: bad-request, where it is given twice.
        """
        if self._repeated and name.lower() in self._repeated:
            raise ProblemError("bad-request", f"`{name}` is given twice")
        return self.header(name)

    @property
    def address(self) -> str | None:
        """Who calls."""
        client = cast("tuple[str, int] | None", self._scope.get("client"))
        return client[0] if client else None

    @property
    def query(self) -> Mapping[str, str]:
        """The parameters.

        Raises:
            ProblemError: bad-request, as of `read_query`.
        """
        if self._query is None:
            raw = cast("bytes", self._scope.get("query_string", b""))
            self._query = read_query(raw) if raw else {}
        return self._query

    @property
    def root(self) -> str:
        """What stands before the service's own paths, as in a URL."""
        root = self._root
        return quote(root) if root else root

    @property
    def raw_path(self) -> bytes:
        """The path behind the root, as it was sent."""
        raw = cast("bytes | None", self._scope.get("raw_path"))
        path = cast("str", self._scope["path"])
        if raw is None:
            raw = quote(path).encode()
        root = self._root
        if root and path.startswith(f"{root}/"):
            return b"/" + raw.split(b"/", root.count("/") + 1)[-1]
        return raw

    @property
    def _root(self) -> str:
        return cast("str", self._scope.get("root_path", "")).rstrip("/")

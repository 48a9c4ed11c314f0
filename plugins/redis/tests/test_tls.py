"""Connections with TLS, to what ends it in front of a real server."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme

from chathistory_core import ConfigurationError, Record, open_backend

AUTHORITY = trustme.CA()


@pytest.fixture
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the test's authority one that this process trusts."""
    file = tmp_path / "authority.pem"
    AUTHORITY.cert_pem.write_to_path(file)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))


@asynccontextmanager
async def secured(server: str, *, host: str) -> AsyncIterator[int]:
    """The port at which the server is reached with TLS, under a certificate for this host."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.issue_cert(host).configure_cert(context)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_unix_connection(server.removeprefix("unix://"))
        await asyncio.gather(pump(reader, forth), pump(back, writer), return_exceptions=True)

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with listening:
        yield listening.sockets[0].getsockname()[1]


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(2**16):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()


@pytest.mark.parametrize("scheme", ["rediss", "valkeys"])
@pytest.mark.usefixtures("trusted")
def test_a_server_with_a_certificate_that_is_trusted_is_spoken_to_with_tls(valkey: str, scheme: str) -> None:
    async def scenario() -> None:
        async with secured(valkey, host="localhost") as port, open_backend(f"{scheme}://localhost:{port}") as backend:
            await backend.append("k", [Record(b"x", "text")], turn_id="t")
            assert [record.payload for record in (await backend.get("k")).records] == [b"x"]

    asyncio.run(scenario())


@pytest.mark.usefixtures("trusted")
def test_a_certificate_for_another_host_is_refused(valkey: str) -> None:
    async def scenario() -> None:
        async with secured(valkey, host="another.example") as port:
            with pytest.raises(ConfigurationError, match="certificate"):
                async with open_backend(f"rediss://localhost:{port}"):
                    pass

    asyncio.run(scenario())


def test_a_certificate_of_an_authority_that_is_not_trusted_is_refused(valkey: str) -> None:
    async def scenario() -> None:
        async with secured(valkey, host="localhost") as port:
            with pytest.raises(ConfigurationError, match="certificate"):
                async with open_backend(f"rediss://localhost:{port}"):
                    pass

    asyncio.run(scenario())

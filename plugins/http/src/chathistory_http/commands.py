"""Commands that this distribution adds."""

import os
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, BadParameter, Context, Option

from chathistory_core import ConfigurationError
from chathistory_core.cli.options import Options, Url
from chathistory_core.cli.text import put_line
from chathistory_core.keys import SEPARATOR
from chathistory_http.service.token_file import add_token, table_of
from chathistory_http.service.tokens import RIGHTS, Right, new_token, token_of, token_of_everything

_PREFIX = "CHATHISTORY_SERVICE_"
_TOKEN = f"{_PREFIX}TOKEN"


def _setting(
    variable: str,
    text: str,
    *flags: str,
    metavar: str | None = None,
    least: float | None = None,
    most: float | None = None,
    shown: bool = False,
) -> Any:
    """An option that the environment may give, too."""
    return Option(
        *flags,
        envvar=_PREFIX + variable,
        show_envvar=False,
        metavar=metavar,
        min=least,
        max=most,
        show_default=shown,
        help=text,
    )


Tokens = Annotated[Path | None, _setting("TOKENS_FILE", "The file of the tokens.", metavar="FILE")]
Level = Literal["debug", "info", "warning", "error"]


def serve(
    context: Context,
    *,
    url: Url = None,
    option: Options = None,
    host: Annotated[
        str, _setting("HOST", "The address to listen on, or a name of one.", metavar="HOST", shown=True)
    ] = "127.0.0.1",
    port: Annotated[
        int, _setting("PORT", "The port; 0 for a free one.", metavar="N", least=0, most=65_535, shown=True)
    ] = 5000,
    workers: Annotated[
        int, _setting("WORKERS", "How many processes answer.", metavar="N", least=1, most=256, shown=True)
    ] = 1,
    tokens: Tokens = None,
    allow_anonymous: Annotated[
        bool,
        _setting("ALLOW_ANONYMOUS", "Without tokens, let everyone in who reaches the service.", "--allow-anonymous"),
    ] = False,
    behind_proxy: Annotated[
        str,
        _setting(
            "BEHIND_PROXY",
            "Where the proxy is that speaks TLS: IP addresses or networks, with commas. What it says of the client "
            "(X-Forwarded-For, X-Forwarded-Proto) is believed.",
            metavar="ADDRESSES",
        ),
    ] = "",
    allow_plain_http: Annotated[
        bool,
        _setting(
            "ALLOW_PLAIN_HTTP",
            "Let tokens and messages pass in the clear, though not on this machine alone.",
            "--allow-plain-http",
        ),
    ] = False,
    tls_certificate: Annotated[
        Path | None, _setting("TLS_CERTIFICATE", "Speak TLS, with this certificate (PEM).", metavar="FILE")
    ] = None,
    tls_key: Annotated[Path | None, _setting("TLS_KEY", "The key of the certificate (PEM).", metavar="FILE")] = None,
    root_path: Annotated[
        str, _setting("ROOT_PATH", "What the proxy takes off the beginning of each path.", metavar="PATH")
    ] = "",
    cors_origin: Annotated[
        list[str] | None,
        _setting(
            "CORS_ORIGIN",
            "A web site whose pages may use the service, such as https://example.org. May be repeated.",
            metavar="ORIGIN",
        ),
    ] = None,
    rate: Annotated[
        float | None,
        _setting(
            "RATE",
            "How many requests a second each token, or without tokens each address, may send to a worker.",
            metavar="N",
            least=0.001,
        ),
    ] = None,
    max_body_bytes: Annotated[
        int, _setting("MAX_BODY_BYTES", "The largest body of a request.", metavar="N", least=1_024, shown=True)
    ] = 96 * 1024 * 1024,
    request_timeout: Annotated[
        float,
        _setting(
            "REQUEST_TIMEOUT",
            "How long a client may take to send a request; for a large body it gets more.",
            metavar="SECONDS",
            least=0.1,
            shown=True,
        ),
    ] = 30.0,
    log_level: Annotated[
        Level, _setting("LOG_LEVEL", "What is logged; on info a line for each request.", shown=True)
    ] = "info",
) -> None:
    """Run the chat history service over a store, until it is told to stop.

    Every option of the service may be given by the environment too: CHATHISTORY_SERVICE_PORT is --port, and so on;
    CHATHISTORY_SERVICE_TOKENS_FILE is --tokens. CHATHISTORY_SERVICE_TOKEN is one token that may do everything.
    """
    _refuse_unknown({str(each.envvar) for each in context.command.params if each.envvar is not None} | {_TOKEN})
    try:
        from chathistory_http.service.serving import serve as run
        from chathistory_http.service.settings import Settings
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    given = [each.partition("=") for each in option or ()]
    if len({name for name, _, _ in given}) < len(given):
        raise BadParameter("one NAME is given twice", param_hint="--option")
    token = os.environ.get(_TOKEN)
    run(
        Settings(
            url=url,
            options={name: value for name, _, value in given},
            host=host,
            port=port,
            workers=workers,
            tokens=() if token is None else (token_of_everything(token, "environment", _TOKEN),),
            tokens_file=None if tokens is None else tokens.absolute(),
            allow_anonymous=allow_anonymous,
            behind_proxy=[each.strip() for each in behind_proxy.split(",") if each.strip()],
            allow_plain_http=allow_plain_http,
            tls_certificate=tls_certificate,
            tls_key=tls_key,
            root_path=root_path,
            cors_origins=cors_origin or (),
            rate=rate,
            max_body_bytes=max_body_bytes,
            request_seconds=request_timeout,
            log_level=log_level,
        )
    )


def service_token(
    name: Annotated[str, Argument(metavar="NAME", show_default=False, help="What to call who holds it.")],
    *,
    prefix: Annotated[
        str | None,
        Option(metavar="TEXT", show_default=False, help="What every key begins with that it may touch."),
    ] = None,
    everything: Annotated[bool, Option("--all", show_default=False, help="It may touch every key.")] = False,
    right: Annotated[
        list[str] | None,
        Option(
            metavar="RIGHT",
            show_default=False,
            help="What it may do: read, write, delete, list, metrics. May be repeated; without it the first four.",
        ),
    ] = None,
    tokens: Tokens = None,
) -> None:
    """Make a token of the chat history service, and print it: it is kept nowhere.

    What the service needs to know of it is put into the file of the tokens, or printed where no file is given.
    """
    if (prefix is None) != everything or prefix == "":
        raise BadParameter("say which keys it may touch: --prefix TEXT or --all", param_hint="--prefix")
    text = new_token()
    token = token_of(text, name, _rights(right), prefix or "")
    if tokens is None:
        sys.stderr.write(f"Put this into the file of the tokens:\n\n{table_of(token)}\n")
    else:
        add_token(tokens, token)
        sys.stderr.write(f"Put into {str(tokens)!r}.\n")
    if prefix is not None and not prefix.endswith(SEPARATOR):
        sys.stderr.write(f"Note: {prefix!r} begins {prefix + 'x'!r} too. A scope ends with {SEPARATOR!r}.\n")
    sys.stderr.write("The token, which is not shown again:\n")
    sys.stderr.flush()
    put_line(text)


def _rights(given: list[str] | None) -> list[Right]:
    if not given:
        return ["read", "write", "delete", "list"]
    if unknown := [each for each in given if each not in RIGHTS]:
        raise BadParameter(f"{unknown[0]!r} is none: there are {', '.join(RIGHTS)}", param_hint="--right")
    return [right for right in RIGHTS if right in given]


def _refuse_unknown(known: set[str]) -> None:
    for variable in sorted(os.environ):
        if variable.startswith(_PREFIX) and variable not in known:
            closest = get_close_matches(variable, known, n=1)
            hint = f" (did you mean {closest[0]}?)" if closest else ""
            raise ConfigurationError(
                f"environment variable {variable} is unknown{hint}: there are {', '.join(sorted(known))}"
            )


def _missing(error: ModuleNotFoundError) -> ConfigurationError:
    name = (error.name or "").partition(".")[0]
    if name.startswith("chathistory"):
        raise error
    return ConfigurationError(f'{name} is not installed. Run: pip install "chathistory-core[server]"')

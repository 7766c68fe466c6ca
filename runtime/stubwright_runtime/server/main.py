"""The command line of generated packages: loads the handlers, builds a server and runs it."""

from __future__ import annotations

import argparse
import asyncio
import errno
import os
import signal
import socket
import sys
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Final

from ..extras import MissingExtraError
from ..observability.logs import drain_log, log, name_after, set_up
from ..state.store import StoreConfigurationError
from ..values.terminal import replace_controls, to_one_line
from . import debugger
from .app import check
from .app.loader import HandlerLocation, StartError, load_engine, refuse
from .execution.signals import end_without_handlers, stop_signals
from .execution.threads import THREADS
from .transports import stdout_encoding

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from ..package import Package
    from .app.core import Core
    from .core.access_tokens import TokenVerifier
    from .core.task_engine import TaskEngine

_LEVELS: Final = ("debug", "info", "warning", "error")
_STATE: Final = "STUBWRIGHT_STATE"
"""The environment variable for the default of `--state`. Unlike a command line, it is not visible to other
processes.
"""

_ALL: Final = "*"
"""The host name that selects all interfaces, over IPv4 and IPv6."""

_EVERYWHERE: Final = ("0.0.0.0", "::", _ALL)
"""Addresses of all interfaces, only for comparison with configured hosts."""
_LAST_PORT: Final = 65535
_GRACE: Final = 5  # the default of --grace, in seconds


def main(
    package: Package,
    argv: Sequence[str] | None = None,
    *,
    verifier: TokenVerifier | None = None,
    proceed: Callable[[], None] = lambda: None,
) -> None:
    """Run a package's server over stdio or HTTP until it is stopped.

    Args:
        package: The package to serve.
        argv: Command-line arguments; by default `sys.argv[1:]`.
        verifier: Verifies HTTP requests' bearer tokens; by default created from the manifest's `auth`.
        proceed: With HTTP, called after the server is created and before the handlers are entered; can block.

    Raises:
        SystemExit: With status 2 if the command line or the handlers are invalid, 1 if the address is unavailable or
            the handlers fail to start, 130 if interrupted before serving.
    """
    options = _parser(package).parse_args(argv)
    name_after(package.name)
    set_up(options.log_level)
    handwritten = HandlerLocation(options.handlers, package)
    try:
        if options.no_limits:
            _lift_limits(package, options)
        with stdout_encoding.escape_unprintable():
            if options.command == "worker":
                _work(handwritten, options)
            elif options.command == "tasks" or options.run_again is not None:
                _manage_tasks(package, options)
            elif options.http is None:
                _serve_stdio(handwritten, options)
            else:
                _serve_http(handwritten, options, verifier, proceed)
    except StartError as error:
        _print_error(f"{package.name}: {error}")
        raise SystemExit(error.status) from None
    except check.HandlersError as error:
        _print_error(f"{package.name}: {error}")
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _lift_limits(package: Package, options: argparse.Namespace) -> None:
    if options.http is not None or options.command is not None:
        raise StartError("--no-limits cannot be used with --http, worker or tasks; it is for tests over stdio")
    package.lift_limits()


def _print_error(text: str) -> None:
    drain_log()
    sys.stderr.write(f"{replace_controls(text)}\n")


def _parser(package: Package) -> argparse.ArgumentParser:
    server, handlers = package.manifest["server"], package.handlers
    title = to_one_line(server.get("title") or server["name"])
    parser = argparse.ArgumentParser(
        prog=f"python -m {package.name}",
        description=f"{title}, an MCP server. Without --http, it serves on standard input and output.",
    )
    if package.has_tasks:
        parser.add_argument(
            "command",
            nargs="?",
            choices=("worker", "tasks"),
            metavar="worker|tasks",
            help="worker: only run tasks, for all processes that use the same --state; tasks: list the tasks in "
            "--state that failed because their process died three times",
        )
        parser.add_argument(
            "--workers",
            metavar="N",
            type=parse_whole_number,
            help="run tasks in N worker processes instead of this one; requires a shared --state",
        )
        parser.add_argument(
            "--tasks",
            metavar="MODULE:NAME",
            help="the task engine: a class or function that is called with the server's name and returns the engine "
            "(default: a stream in the Redis of --state)",
        )
        parser.add_argument(
            "--run-again",
            metavar="ID",
            help="with tasks: run the task with this ID again as a new task for the same caller, and print the new ID",
        )
        parser.add_argument("--until-end-of-input", action="store_true", help=argparse.SUPPRESS)
    parser.set_defaults(command=None, workers=None, tasks=None, run_again=None)
    parser.add_argument("--version", action="version", version=to_one_line(f"{server['name']} {server['version']}"))
    parser.add_argument(
        "--handlers",
        metavar="MODULE:NAME",
        default=handlers,
        help="the handlers object, or a class or function that creates one"
        + (f" (default: {handlers})" if handlers else ""),
    )
    parser.add_argument(
        "--http",
        metavar="HOST:PORT",
        type=address,
        help="serve Streamable HTTP at this address; *:PORT means all IPv4 and IPv6 addresses; fd:N is an open "
        "listening socket",
    )
    parser.add_argument(
        "--toolset",
        metavar="NAME",
        action="append",
        default=[],
        help="serve only the tools in this toolset; if repeated, only tools in all of them (default: all tools)",
    )
    parser.add_argument("--path", default="/mcp", help="with --http: the endpoint's path (default: /mcp)")
    parser.add_argument(
        "--allow-host",
        metavar="HOST",
        action="append",
        default=[],
        help="with --http: also allow requests for this host, such as api.example.com; may be repeated",
    )
    parser.add_argument(
        "--allow-origin",
        metavar="ORIGIN",
        action="append",
        default=[],
        help="with --http: allow requests from web pages with this origin, such as https://app.example.com; may be "
        "repeated",
    )
    parser.add_argument("--health", action="store_true", help="with --http: serve the health checks /livez and /readyz")
    parser.add_argument(
        "--stateless",
        action="store_true",
        help="with --http: serve without sessions, so that any process can also answer older clients; they receive no "
        "requests and no change notifications",
    )
    parser.add_argument(
        "--connections",
        metavar="N",
        type=parse_positive_number,
        help="with --http: the maximum number of open connections (default: half of the file descriptor limit, at "
        "most 4096)",
    )
    parser.add_argument(
        "--connections-per-address",
        metavar="N",
        type=parse_whole_number,
        help="with --http: the maximum number of connections per client address (default: half); use 0 behind a "
        "proxy, where all clients share one address",
    )
    parser.add_argument(
        "--grace",
        metavar="SECONDS",
        type=parse_whole_number,
        default=_GRACE,
        help=f"how long running requests and tasks can continue after the server is told to stop (default: {_GRACE})",
    )
    parser.add_argument(
        "--threads",
        metavar="N",
        type=parse_positive_number,
        default=THREADS,
        help=f"the number of threads for plain `def` handlers; each method uses at most half (default: {THREADS})",
    )
    parser.add_argument(
        "--scope",
        metavar="SCOPE",
        action="append",
        default=[],
        help="without --http: grant the local user this scope, such as notes:write; may be repeated",
    )
    parser.add_argument(
        "--no-limits",
        action="store_true",
        help="without --http: ignore rateLimit and concurrency, for tests that make many calls",
    )
    parser.add_argument(
        "--state",
        metavar="URL",
        default=os.environ.get(_STATE, "memory://"),
        help="where to store state: memory:// is this process, redis://HOST:PORT is shared by processes "
        f"(default: the variable {_STATE}, otherwise memory://)",
    )
    parser.add_argument(
        "--audit",
        metavar="FILE",
        help="append one line of JSON to FILE per tool call, including refused and failed calls; - is standard error",
    )
    parser.add_argument(
        "--debug-port",
        metavar="PORT",
        type=parse_port,
        help="listen for a debugger on this port of 127.0.0.1, such as 5678; requires debugpy",
    )
    parser.add_argument(
        "--debug-wait", action="store_true", help="with --debug-port: wait until a debugger attaches before starting"
    )
    parser.add_argument(
        "--log-level", choices=_LEVELS, default="info", help="the log level on standard error (default: info)"
    )
    return parser


def address(text: str) -> tuple[str, int] | int:
    """Parse HOST:PORT, or a listening socket's fd:N. Raises argparse.ArgumentTypeError."""
    host, _, port = text.rpartition(":")
    if host == "fd" and port.isdecimal():
        return int(port)
    if not port.isdecimal() or int(port) > _LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT, such as 127.0.0.1:8000")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


def parse_port(text: str) -> int:
    """Parse a TCP port. Raises argparse.ArgumentTypeError."""
    if not text.isdecimal() or int(text) > _LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port number; expected one such as 5678")
    return int(text)


def parse_whole_number(text: str) -> int:
    """Parse a whole number of at most nine digits. Raises argparse.ArgumentTypeError."""
    if not text.isdecimal() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number; expected one such as 4")
    return int(text)


def parse_positive_number(text: str) -> int:
    """Parse a whole number of at least 1. Raises argparse.ArgumentTypeError."""
    if not (number := parse_whole_number(text)):
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _worker_arguments(package: Package, options: argparse.Namespace) -> list[str]:
    """Return the arguments that start a worker process with the same options as this process."""
    names = ("state", "grace", "threads", "log-level", "handlers", "audit", "tasks")
    pairs = ((f"--{name}", getattr(options, name.replace("-", "_"))) for name in names)
    return ["-m", package.name, "worker", *(str(word) for pair in pairs if pair[1] is not None for word in pair)]


def _workers(package: Package, options: argparse.Namespace) -> AbstractContextManager[object]:
    if options.workers is None:
        return nullcontext()
    from .worker import Workers

    return Workers(options.workers, _worker_arguments(package, options), options.grace)


def _work(handwritten: HandlerLocation, options: argparse.Namespace) -> None:
    if options.http is not None or options.workers is not None:
        raise StartError("a worker does not accept requests; remove --http and --workers")
    core = _build(handwritten, options)
    if not core.store.is_shared:
        raise StartError("a worker runs tasks that other processes created; set --state redis://HOST:PORT")
    from .worker import work

    with _report_handler_failures(core):
        work(core, options.grace, until_eof=options.until_end_of_input)
    end_without_handlers()


def _manage_tasks(package: Package, options: argparse.Namespace) -> None:
    if options.command is None or options.http is not None or options.workers is not None:
        raise StartError("--run-again works only with the tasks command, without --http and --workers")
    from ..state.budget import BudgetExceeded
    from ..state.store import StateLost
    from ..state.stores import store_at
    from .app.optional_features import manage_tasks

    try:
        store = store_at(options.state, package)
        if not store.is_shared:
            raise StartError("the tasks command lists other processes' tasks; add --state redis://HOST:PORT")
        asyncio.run(manage_tasks(package, store, _load_engine(package, options), options.run_again))
    except MissingExtraError as error:
        raise StartError(str(error), status=1) from None
    except StoreConfigurationError as error:
        raise StartError(f"{_name_state(options)}: {error}") from None
    except (BudgetExceeded, LookupError, StateLost) as error:
        raise StartError(str(error), status=1) from None


def _load_engine(package: Package, options: argparse.Namespace) -> TaskEngine | None:
    return None if options.tasks is None else load_engine(options.tasks, package.manifest["server"]["name"])


def _name_state(options: argparse.Namespace) -> str:
    """Return the option or environment variable that sets the store's URL, for messages."""
    return _STATE if options.state == os.environ.get(_STATE) else "--state"


def _serve_stdio(handwritten: HandlerLocation, options: argparse.Namespace) -> None:
    from .transports.stdio import breakpoints, server, wire

    for number, stream in enumerate((sys.stdin, sys.stdout)):
        if stream is None:  # Python sets None if the descriptor is closed
            raise StartError(
                f"standard {'output' if number else 'input'} is closed; start the server from an MCP client"
            )
    if sys.stdin.isatty():
        log().info(
            "serving MCP over standard input and output, as clients expect; to serve over the network, use --http"
        )
    # Claim stdio before importing the handlers, because the import may print.
    with breakpoints.ignore_breakpoints(), wire.claim_stdio() as held:
        core = _build(handwritten, options)
        if core.scopes is not None and (lacking := core.scopes.find_lacking(core.scopes.widen(core.user))):
            words = " ".join(f"--scope {scope}" for scope in lacking)
            log().info("entries that require scopes are hidden from the local user; to grant the scopes, add %s", words)
        with _report_handler_failures(core), _workers(handwritten.package, options):
            server.run(core, held)
        end_without_handlers()  # before stdout is restored, so that threads cannot print to the client


def _serve_http(
    handwritten: HandlerLocation,
    options: argparse.Namespace,
    verifier: TokenVerifier | None,
    proceed: Callable[[], None],
) -> None:
    from .transports.http import asgi
    from .transports.http.cors import ORIGIN_HELP, is_host, is_origin
    from .transports.http.listener.connections import Bounds
    from .transports.http.listener.graceful_shutdown import GracefulServer

    if not options.path.startswith("/"):
        raise StartError(f"--path must start with /, not {options.path!r}")
    for name in options.allow_host:
        if not is_host(name):
            raise StartError(
                f"--allow-host must be a host without scheme or path, such as api.example.com, not {name!r}"
            )
    for origin in options.allow_origin:
        if not is_origin(origin):
            raise StartError(f"--allow-origin {origin!r} {ORIGIN_HELP}")
    where = (
        _open_listener(options.http) if isinstance(options.http, int) else (str(options.http[0]), int(options.http[1]))
    )
    host = where[0] if isinstance(where, tuple) else str(where.getsockname()[0])
    hosts = [*options.allow_host, *([] if host in _EVERYWHERE else [f"[{host}]" if ":" in host else host])]
    core = _build(handwritten, options)
    app = asgi.asgi_app(
        core,
        path=options.path,
        allowed_hosts=hosts,
        allowed_origins=options.allow_origin,
        token_verifier=verifier,
        stateless=options.stateless,
        health=options.health,
    )
    proceed()
    listener = listen(*where) if isinstance(where, tuple) else where
    host, port = listener.getsockname()[:2]
    bounds = Bounds.choose(options.connections, options.connections_per_address)
    server = GracefulServer(
        app, options.grace, core.stop, core.end_requests, bounds, lambda: core.lifespan.failure is not None
    )
    for number in stop_signals():  # until uvicorn installs its own handlers; it re-raises signals at exit
        signal.signal(number, server.stop_when_started)
    log().info("serving http://%s:%d%s", f"[{host}]" if ":" in host else host, port, options.path)
    if host in _EVERYWHERE and not options.allow_host:
        log().warning("only requests to localhost are accepted; to accept other hosts, use --allow-host")
    with _report_handler_failures(core), _workers(handwritten.package, options):
        try:
            server.run([listener])
        except SystemExit as end:
            if server.started:
                raise
            if not server.is_aborted and core.lifespan.failure is None:
                raise StartError("the server failed to start; see the log", status=1) from end
    end_without_handlers()


@contextmanager
def _report_handler_failures(core: Core) -> Generator[None, None, None]:
    """Exit with a one-line error if entering or exiting the handlers failed."""
    try:
        yield
    except Exception:
        if core.lifespan.failure is None:
            raise
    if (failure := core.lifespan.failure) is not None:
        try:
            refuse(failure.action, failure.error, status=1)
        except StartError as error:
            _print_error(f"{core.package.name}: {error}")
            end_without_handlers(error.status)
            raise SystemExit(error.status) from None


def _build(handwritten: HandlerLocation, options: argparse.Namespace) -> Core:
    """Return the core of the server that the options describe. Raises StartError."""
    from .app import required_features
    from .app.builder import build_core
    from .app.toolsets import UnknownToolsetError

    debugger.listen(options.debug_port, wait=options.debug_wait)  # before loading the handlers, to debug their imports
    handlers = handwritten.load()
    scopes = options.scope if options.http is None else ()
    try:
        core = build_core(
            handwritten.package,
            handlers,
            state=options.state,
            local_scopes=scopes,
            audit=options.audit,
            threads=options.threads,
            toolsets=options.toolset,
            tasks=_load_engine(handwritten.package, options),
        )
    except MissingExtraError as error:
        raise StartError(str(error), status=1) from None
    except UnknownToolsetError as error:
        raise StartError(f"--toolset: {error}") from None
    except required_features.UnsupportedManifestError as error:
        raise StartError(str(error)) from None
    except StoreConfigurationError as error:
        raise StartError(f"{_name_state(options)}: {error}") from None
    except OSError as error:
        if error.filename is None:
            raise
        raise StartError(f"cannot write to --audit {options.audit!r}: {_reason(error)}") from None
    if options.workers is not None and core.tasks is not None:
        if not core.store.is_shared:
            raise StartError("--workers requires a store that other processes can use; set --state redis://HOST:PORT")
        core.tasks.works = False
    if core.tasks is not None:
        core.tasks.grace = options.grace
    return core


def _open_listener(number: int) -> socket.socket:
    """Return the listening socket at a file descriptor. Raises StartError."""
    try:
        listener = socket.socket(fileno=number)
        if not listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            raise StartError(f"--http fd:{number} is not a listening socket", status=1)
        # TCP is the explicit protocol, as in `listen`. Otherwise asyncio would delay small responses.
        return socket.socket(listener.family, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=listener.detach())
    except OSError as error:
        raise StartError(f"--http fd:{number} is not an open socket: {_reason(error)}", status=1) from None


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket with TCP as its explicit protocol, which `socket.create_server` does not set.

    asyncio sets TCP_NODELAY only for an explicit protocol; without it, each small response is delayed by 40 ms. The
    host `*` selects all addresses, over IPv4 and IPv6 if the system supports both.

    Raises:
        StartError: The address is unavailable.
    """
    try:
        is_dual = host == _ALL and socket.has_dualstack_ipv6()
        if host == _ALL:
            host = "::" if is_dual else "0.0.0.0"
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(address[:2], family=family, dualstack_ipv6=is_dual)
        return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=listener.detach())
    except (OSError, UnicodeError) as error:  # an invalid host name raises UnicodeError
        hint = "; use port 0 for any free port" if getattr(error, "errno", None) == errno.EADDRINUSE else ""
        raise StartError(f"cannot listen on {host}:{port}: {_reason(error)}{hint}", status=1) from None


def _reason(error: OSError | UnicodeError) -> str:
    if isinstance(error, UnicodeError | socket.gaierror) or error.errno is None:
        return str(error)
    return os.strerror(error.errno)

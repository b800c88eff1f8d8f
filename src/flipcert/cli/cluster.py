"""A Dask cluster for the commands: one that is there, or worker processes of our own."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import joblib

from flipcert.cli.console import notes
from flipcert.cli.options import ClusterOptions

# Seconds to wait for a scheduler, and for its first worker.
_SCHEDULER_WAIT, _WORKER_WAIT = 4, 10
# Our own cluster is for this machine only.
_LOOPBACK = "127.0.0.1"
# Longer than any run.
_NEVER = "3650 days"


@contextmanager
def on_cluster(options: ClusterOptions, n_threads: int | None) -> Iterator[None]:
    """Let all jobs in the block go to the cluster that was asked for, if any."""
    tls = {"--tls-ca": options.tls_ca, "--tls-cert": options.tls_cert, "--tls-key": options.tls_key}
    given = [name for name, path in tls.items() if path is not None]
    if options.dask is not None and options.workers is not None:
        raise ValueError("--dask names a cluster and --workers asks for another one; leave one of them out.")
    if given and (options.dask is None or len(given) < len(tls)):
        raise ValueError(f"{given[0]} needs --dask and all of {', '.join(tls)}; see docs/scale.md.")
    if options.dask is None and options.workers is None:
        yield
        return
    name = "--workers" if options.dask is None else "--dask"
    if n_threads is not None:
        raise ValueError(
            f"--jobs is for threads of this process and {name} for other processes; leave one of them out."
        )
    try:
        import distributed
    except ImportError:
        raise ImportError(f'{name} needs Dask. Install with: pip install "flipcert[dask]".') from None
    with ExitStack() as stack:
        # What Dask has to say about lost workers is said by us, in one line.
        for logger in ("distributed", "distributed.nanny", "distributed.scheduler", "distributed.core"):
            stack.callback(logging.getLogger(logger).setLevel, logging.getLogger(logger).level)
            logging.getLogger(logger).setLevel(logging.CRITICAL)
        if options.dask is None:
            client = stack.enter_context(own_cluster(options.workers))
        else:
            client = _remote(distributed, options.dask, _security(distributed, tls) if given else None, stack)
        notes.print(f"Dask dashboard: {client.dashboard_link}", soft_wrap=True)
        stack.enter_context(joblib.parallel_config(backend="dask", client=client))
        yield


@contextmanager
def own_cluster(n_workers: int | None) -> Iterator[Any]:
    """A client of worker processes of one thread each, which only this machine can reach.

    Some time after a loss, Dask gives up a worker that is not there at that very moment, even if it only starts again
    after another loss. Ours are waited for.
    """
    import dask
    import distributed

    place = {"host": _LOOPBACK, "dashboard_address": f"{_LOOPBACK}:0"}
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": _NEVER}),
        distributed.LocalCluster(n_workers=n_workers, threads_per_worker=1, memory_limit=0, **place) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def _security(distributed: Any, files: dict[str, Path | None]) -> Any:
    for name, path in files.items():
        if path is None or not path.is_file():
            raise ValueError(f"{name} {path} is not a file.")
    ca, cert, key = map(str, files.values())
    return distributed.Security(tls_ca_file=ca, tls_client_cert=cert, tls_client_key=key, require_encryption=True)


def _check_address(address: str) -> None:
    """Refuse what is no address; a client that is given one cannot be closed again."""
    from distributed.comm import get_address_host_port, parse_address

    if parse_address(address)[0] in ("inproc", "ucx"):
        return
    try:
        get_address_host_port(address)
    except ValueError as error:
        raise ValueError(
            f"--dask {address} is not the address of a scheduler, as tcp://HOST:8786 is: {error}."
        ) from None


def _remote(distributed: Any, address: str, security: Any, stack: ExitStack) -> Any:
    if address.startswith("tls://") and security is None and distributed.Security().tls_ca_file is None:
        raise ValueError(f"--dask {address} needs --tls-ca, --tls-cert and --tls-key, or the configuration of Dask.")
    _check_address(address)
    try:
        # Once it has answered, a scheduler may take its time.
        distributed.Client(address, timeout=_SCHEDULER_WAIT, security=security, set_as_default=False).close()
    except OSError:
        certificates = "" if security is None else ", or who signed which certificate"
        raise ValueError(
            f"--dask {address}: no Dask scheduler answers there; start one with `dask scheduler`, or check the "
            f"address{certificates}."
        ) from None
    client = stack.enter_context(distributed.Client(address, security=security))
    try:
        client.wait_for_workers(1, timeout=_WORKER_WAIT)
    except TimeoutError:
        raise ValueError(
            f"--dask {address}: the scheduler has no workers; start some with `dask worker {address}`."
        ) from None
    return client

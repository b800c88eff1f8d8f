"""A cluster that talks TLS: certificates are passed on, and nobody gets in without."""

from __future__ import annotations

import subprocess
import sys

import distributed
import numpy as np

from tests.helpers.clusters import LOOPBACK


def test_tls(tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    names = ["-subj", "/CN=localhost", "-addext", f"subjectAltName=IP:{LOOPBACK}"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *names]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, stderr=subprocess.DEVNULL)
    parts = {
        f"tls_{who}_{what}": str(path)
        for who in ("client", "scheduler", "worker")
        for what, path in (("cert", certificate), ("key", key))
    }
    security = distributed.Security(tls_ca_file=str(certificate), require_encryption=True, **parts)
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "data.npz", X=rng.normal(size=(300, 5)), y=np.arange(300) % 3)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, host=LOOPBACK, protocol="tls://", security=security,
        dashboard_address=f"{LOOPBACK}:0",
    ) as cluster:  # fmt: skip
        assert cluster.scheduler_address.startswith("tls://")
        options = ["--tls-ca", certificate, "--tls-cert", certificate, "--tls-key", key]
        told = certify(tmp_path, "--dask", cluster.scheduler_address, *options)
        assert told.returncode == 0, told.stderr
        assert told.stdout == certify(tmp_path).stdout
        told = certify(tmp_path, "--dask", cluster.scheduler_address.replace("tls", "tcp"))
        assert told.returncode == 2
        assert "no Dask scheduler answers there" in told.stderr


def certify(folder, *options):
    command = [sys.executable, "-m", "flipcert", "certify", folder / "data.npz", folder / "data.npz", "--quiet"]
    return subprocess.run([*command, *options], capture_output=True, text=True)

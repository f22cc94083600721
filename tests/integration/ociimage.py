# SPDX-License-Identifier: MIT
"""Images for tests, made without an engine: one program, an entry point, nothing else."""

import hashlib
import io
import json
import tarfile

LAYER = "application/vnd.oci.image.layer.v1.tar"
CONFIG = "application/vnd.oci.image.config.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


def _add(tar, name, data, mode=0o644):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    info.mode = mode
    tar.addfile(info, io.BytesIO(data))


def _layer(program):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        with open(program, "rb") as f:
            _add(tar, "bin/adapter", f.read(), 0o755)
    return out.getvalue()


def archive(path, program, entrypoint, name=None, env=(), cmd=None, labels=None, user=""):
    """An OCI archive at path; the program is /bin/adapter in it. Returns the path."""
    layer = _layer(program)
    blobs = {}

    def blob(data, kind, **more):
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"mediaType": kind, "digest": "sha256:" + digest, "size": len(data), **more}

    config = {"architecture": "amd64", "os": "linux",
              "config": {"Entrypoint": entrypoint, "Cmd": cmd, "Env": list(env), "Labels": labels or {}, "User": user},
              "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
              "history": [{"created_by": "tests"}]}
    manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": blob(json.dumps(config).encode(), CONFIG),
                "layers": [blob(layer, LAYER)]}
    notes = {"annotations": {"org.opencontainers.image.ref.name": name}} if name else {}
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [blob(json.dumps(manifest).encode(), MANIFEST, **notes)]}
    with tarfile.open(path, "w") as tar:
        _add(tar, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
        _add(tar, "index.json", json.dumps(index).encode())
        for digest, data in blobs.items():
            _add(tar, "blobs/sha256/" + digest, data)
    return path

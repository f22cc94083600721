# SPDX-License-Identifier: MIT
"""Images for tests, made without an engine: one program, an entry point, nothing else. And Debian roots, made once."""

import functools
import gzip
import hashlib
import io
import json
import os
import subprocess
import tarfile

import harness

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


def tar_bytes(members, compress=""):
    """A layer: members are (name, content) or (name, tarfile.TarInfo); content None is a directory."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w" + (":" + compress if compress else "")) as tar:
        for name, content in members:
            if isinstance(content, tarfile.TarInfo):
                content.name = name
                tar.addfile(content)
            elif content is None:
                info = tarfile.TarInfo(name)
                info.type, info.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(info)
            else:
                _add(tar, name, content, 0o755)
    return out.getvalue()


def link(target, kind=tarfile.SYMTYPE):
    info = tarfile.TarInfo()
    info.type, info.linkname = kind, target
    return info


def image(path, layers, form="oci-archive", name=None, config=None, architecture="amd64"):
    """An image of layers (bytes of tar files, compressed or not) in one of three forms; returns its id."""
    plain = [gzip.decompress(x) if x[:2] == b"\x1f\x8b" else x for x in layers]
    about = json.dumps({"architecture": architecture, "os": "linux", "config": config or {},
                        "rootfs": {"type": "layers",
                                   "diff_ids": ["sha256:" + hashlib.sha256(x).hexdigest() for x in plain]}}).encode()
    files = {}

    def blob(data, kind, **more):
        digest = hashlib.sha256(data).hexdigest()
        files["blobs/sha256/" + digest] = data
        return {"mediaType": kind, "digest": "sha256:" + digest, "size": len(data), **more}

    if form == "docker-archive":
        for i, data in enumerate(layers):
            files[f"layer{i}/layer.tar"] = data
        files["config.json"] = about
        files["manifest.json"] = json.dumps([{"Config": "config.json", "RepoTags": [name] if name else [],
                                              "Layers": [f"layer{i}/layer.tar" for i in range(len(layers))]}]).encode()
    else:
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": blob(about, CONFIG),
                    "layers": [blob(x, LAYER) for x in layers]}
        notes = {"annotations": {"org.opencontainers.image.ref.name": name}} if name else {}
        files["index.json"] = json.dumps({"schemaVersion": 2, "mediaType": INDEX,
                                          "manifests": [blob(json.dumps(manifest).encode(), MANIFEST, **notes)]}).encode()
        files["oci-layout"] = b'{"imageLayoutVersion": "1.0.0"}'
    if form == "oci":
        for member, data in files.items():
            os.makedirs(os.path.dirname(os.path.join(path, member)), exist_ok=True)
            with open(os.path.join(path, member), "wb") as f:
                f.write(data)
    else:
        with tarfile.open(path, "w") as tar:
            for member, data in files.items():
                _add(tar, member, data)
    return hashlib.sha256(about).hexdigest()


@functools.lru_cache(maxsize=None)
def debian_root(name):
    """(tar file of a Debian root, reason why there is none); scripts/roots makes it."""
    done = subprocess.run([os.path.join(harness.ROOT, "scripts", "roots"), name], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=1800)
    fields = done.stdout.rstrip("\n").split("\t")
    if done.returncode != 0 or len(fields) < 2:
        return None, done.stderr.strip() or "scripts/roots said nothing"
    return (fields[1], "") if fields[1] != "-" else (None, f"no root '{name}': {fields[2]}")

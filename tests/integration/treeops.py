#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Random work on file trees, the same for the same seed, and what a tree looks like afterwards.

  treeops.py work SEED COUNT [rename]     COUNT random operations in the current directory

Directories are moved with rename() when asked to, else by copying, since rename() of a directory fails in an
overlay that was not mounted for it.
"""

import errno
import hashlib
import os
import random
import shutil
import stat
import sys


def build(root, seed, files=100, dirs=25):
    """A tree with nested directories, modes, links, attributes and old times."""
    rng = random.Random(seed)
    os.makedirs(root)
    places = [root]
    for i in range(dirs):
        places.append(os.path.join(rng.choice(places), f"d{i}"))
        os.mkdir(places[-1])
    for i in range(files):
        path = os.path.join(rng.choice(places), f"f{i}")
        if rng.random() < 0.15:
            os.symlink(rng.choice(["/etc/passwd", "../x", "nowhere", "f1"]), path)
            continue
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"base {i} " * rng.randint(0, 400))
        if rng.random() < 0.1:
            os.setxattr(path, "user.base", b"1")
        os.chmod(path, rng.choice([0o644, 0o600, 0o755, 0o444]))
        os.utime(path, ns=(1600000000 * 10**9, (1600000000 + i) * 10**9 + 123456789))


def listing(root="."):
    """(files and links, directories), sorted, relative."""
    files, dirs = [], []
    for base, inner, names in os.walk(root):
        for name in inner:
            path = os.path.join(base, name)
            (files if os.path.islink(path) else dirs).append(os.path.relpath(path, root))
        files += [os.path.relpath(os.path.join(base, name), root) for name in names]
    return sorted(files), sorted(dirs)


def is_plain(path):
    """Neither a link nor a fifo, which would make whoever opens it wait."""
    return stat.S_ISREG(os.lstat(path).st_mode)


class Worker:
    """One random operation after the other."""

    def __init__(self, seed, rename):
        self.rng = random.Random(seed * 7919 + 1)
        self.rename = rename

    def move_dir(self, source, target):
        if self.rename:
            os.rename(source, target)
        else:
            shutil.copytree(source, target, symlinks=True)
            shutil.rmtree(source)

    def create(self, i, files, dirs):
        with open(os.path.join(self.rng.choice(["."] + dirs), f"new{i}"), "w", encoding="utf-8") as f:
            f.write(f"new {i}" * self.rng.randint(0, 3000))

    def append(self, i, files, dirs):
        path = self.rng.choice(files)
        if is_plain(path):
            with open(path, "a", encoding="utf-8") as f:
                f.write(f"appended {i}")

    def truncate(self, i, files, dirs):
        path, size = self.rng.choice(files), self.rng.randint(0, 50)
        if is_plain(path):
            os.truncate(path, size)

    def unlink(self, i, files, dirs):
        os.unlink(self.rng.choice(files))

    def mkdir(self, i, files, dirs):
        os.mkdir(os.path.join(self.rng.choice(["."] + dirs), f"nd{i}"))

    def rmtree(self, i, files, dirs):
        shutil.rmtree(self.rng.choice(dirs))

    def rename_file(self, i, files, dirs):
        os.rename(self.rng.choice(files), os.path.join(self.rng.choice(["."] + dirs), f"mv{i}"))

    def rename_over(self, i, files, dirs):
        os.rename(self.rng.choice(files), self.rng.choice(files))

    def rename_dir(self, i, files, dirs):
        source, target = self.rng.choice(dirs), os.path.join(self.rng.choice(["."] + dirs), f"mvd{i}")
        if not (target + "/").startswith(source + "/") and not ("./" + target).startswith("./" + source + "/"):
            self.move_dir(source, target)

    def symlink(self, i, files, dirs):
        os.symlink(self.rng.choice(["/etc/shadow", "..", f"t{i}"]),
                   os.path.join(self.rng.choice(["."] + dirs), f"sl{i}"))

    def link(self, i, files, dirs):
        path = self.rng.choice(files)
        target = os.path.join(self.rng.choice(["."] + dirs), f"hl{i}")
        if not os.path.islink(path):
            os.link(path, target)

    def chmod(self, i, files, dirs):
        path, mode = self.rng.choice(files), self.rng.choice([0o600, 0o755, 0o640, 0o400])
        if not os.path.islink(path):
            os.chmod(path, mode)

    def chmod_dir(self, i, files, dirs):
        os.chmod(self.rng.choice(dirs), self.rng.choice([0o700, 0o755, 0o750]))

    def xattr(self, i, files, dirs):
        path = self.rng.choice(files)
        if is_plain(path):
            os.setxattr(path, "user.t", str(i).encode())

    def dir_to_file(self, i, files, dirs):
        path = self.rng.choice(dirs)
        shutil.rmtree(path)
        with open(path, "w", encoding="utf-8") as f:
            f.write("was a directory")

    def file_to_dir(self, i, files, dirs):
        path = self.rng.choice(files)
        os.unlink(path)
        os.mkdir(path)
        with open(os.path.join(path, "inner"), "w", encoding="utf-8") as f:
            f.write("was a file")

    def empty_again(self, i, files, dirs):
        """The same name, another directory: opaque in an overlay."""
        path = self.rng.choice(dirs)
        shutil.rmtree(path)
        os.mkdir(path)
        with open(os.path.join(path, "only"), "w", encoding="utf-8") as f:
            f.write("opaque")

    def fifo(self, i, files, dirs):
        os.mkfifo(os.path.join(self.rng.choice(["."] + dirs), f"fifo{i}"))

    def odd_name(self, i, files, dirs):
        with open(os.path.join(self.rng.choice(["."] + dirs), f"new\nline \\ \"{i}\" \udcff"), "w",
                  encoding="utf-8") as f:
            f.write("odd")

    KINDS = [create, append, truncate, unlink, mkdir, rmtree, rename_file, rename_over, rename_dir, symlink, link,
             chmod, chmod_dir, xattr, dir_to_file, file_to_dir, empty_again, fifo, odd_name]

    def step(self, i):
        files, dirs = listing()
        kind = self.rng.choice(self.KINDS)
        try:
            kind(self, i, files or ["none"], dirs or ["none"])
        except OSError as error:
            if error.errno == errno.EXDEV:
                raise


def work(seed, count, rename=False):
    worker = Worker(seed, rename)
    for i in range(count):
        worker.step(i)


def describe(path, exact):
    s = os.lstat(path)
    entry = [stat.S_IFMT(s.st_mode), s.st_uid, s.st_gid]
    if stat.S_ISLNK(s.st_mode):
        entry.append(os.readlink(path))
    else:
        entry.append(oct(s.st_mode))
        entry.append(sorted((name, os.getxattr(path, name)) for name in os.listxattr(path)))
    if stat.S_ISREG(s.st_mode):
        with open(path, "rb") as f:
            entry += [s.st_size, hashlib.sha256(f.read()).hexdigest()]
    if exact:
        entry += [s.st_ino, s.st_mtime_ns, s.st_nlink]
    return entry, s


def manifest(root, exact=False, skip=()):
    """(path to what is there, groups of hard links). With exact also inode, mtime and number of names."""
    entries, groups = {}, {}
    for base, inner, names in os.walk(root):
        inner[:] = [n for n in inner if os.path.relpath(os.path.join(base, n), root) not in skip]
        for name in inner + names:
            path = os.path.join(base, name)
            relative = os.path.relpath(path, root)
            entries[relative], s = describe(path, exact)
            if s.st_nlink > 1 and not stat.S_ISDIR(s.st_mode):
                groups.setdefault(s.st_ino, []).append(relative)
    if exact:
        entries["."] = describe(root, True)[0]
    return entries, sorted(sorted(g) for g in groups.values() if len(g) > 1)


def difference(a, b):
    """The first paths where two manifests differ, for a message."""
    keys = sorted(k for k in set(a[0]) | set(b[0]) if a[0].get(k) != b[0].get(k))
    return "\n".join(f"{k!r}:\n  {a[0].get(k)}\n  {b[0].get(k)}" for k in keys[:3]) or f"links {a[1]} {b[1]}"


if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        work(int(sys.argv[2]), int(sys.argv[3]), "rename" in sys.argv[4:])
        sys.exit(int(os.environ.get("TREEOPS_STATUS", "0")))
    sys.exit(__doc__)

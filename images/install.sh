#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Installs an agent program into an image that is being built: install.sh PACKAGE VERSION
#
# Runs as root in the base image. PACKAGE is a name in the npm registry. A directory vendor/ next to this script, or the one
# that $VENDOR names, may have
#   node/           an installation of node (bin/node, lib/node_modules/npm), used if the image has none
#   node_modules/   with the package, installed for this platform; then nothing is downloaded
set -eu
vendor=${VENDOR:-$(cd "$(dirname "$0")" && pwd)/vendor}
package=$1
version=$2
prefix=/usr/local

has() { command -v "$1" >/dev/null 2>&1; }

fail() {
    echo "install.sh: $*" >&2
    exit 1
}

# Programs from the package manager of the base.
add() {
    if has apt-get; then
        apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
        rm -rf /var/lib/apt/lists/*
    elif has apk; then
        apk add --no-cache "$@"
    elif has dnf; then
        dnf install -y "$@" && dnf clean all
    elif has microdnf; then
        microdnf install -y "$@" && microdnf clean all
    else
        fail "the base image has neither $* nor a known package manager (apt-get, apk, dnf, microdnf)"
    fi
}

if ! has node && [ -d "$vendor/node" ]; then
    mkdir -p $prefix/bin $prefix/lib
    cp "$vendor/node/bin/node" $prefix/bin/node
    if [ -d "$vendor/node/lib/node_modules" ]; then
        mkdir -p $prefix/lib/node_modules
        cp -R "$vendor/node/lib/node_modules/npm" $prefix/lib/node_modules/npm
        ln -sf ../lib/node_modules/npm/bin/npm-cli.js $prefix/bin/npm
    fi
fi
has node || add nodejs npm
has git || add git
[ -e /etc/ssl/certs/ca-certificates.crt ] || [ -d "$vendor/node_modules" ] || add ca-certificates

if [ -d "$vendor/node_modules" ]; then
    [ -d "$vendor/node_modules/$package" ] || fail "vendor/node_modules has no package '$package'"
    mkdir -p $prefix/lib/cinch-agent $prefix/bin
    cp -a "$vendor/node_modules" $prefix/lib/cinch-agent/node_modules
    for program in "$vendor/node_modules/.bin"/*; do
        name=$(basename "$program")
        ln -sf "../lib/cinch-agent/node_modules/.bin/$name" "$prefix/bin/$name"
    done
else
    has npm || add npm
    npm install --global --no-fund --no-audit --prefix $prefix "$package@$version"
fi

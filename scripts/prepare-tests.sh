#!/bin/sh
# Installs what the tests need from Debian and npm cannot bring, where it is missing and may be
# installed: as root, with apt. Elsewhere the tests that need it say loudly that they are skipped.
set -u
missing=""
need() { # need COMMAND-OR-FILE PACKAGE...
  command -v "$1" >/dev/null 2>&1 || [ -e "$1" ] || { shift; missing="$missing $*"; }
}
need chromium chromium
need chromium-headless-shell chromium-headless-shell
need firefox-esr firefox-esr
need WebKitWebDriver webkit2gtk-driver
need Xvfb xvfb
need strace strace
need go golang-go
need /usr/lib/python3/dist-packages/httpx python3-httpx
need /usr/lib/python3/dist-packages/requests python3-requests
need pgbouncer pgbouncer
need promtool prometheus
need nginx nginx
need haproxy haproxy
need caddy caddy
need /usr/lib/python3/dist-packages/swift python3-swift
need radosgw radosgw
need ceph-mon ceph-mon
need ceph-osd ceph-osd
need ceph ceph-common
if [ "${LETHE_DEEP:-}" = 1 ]; then
  need podman podman
  need /usr/sbin/runc runc
  need mmdebstrap mmdebstrap
fi
# The newest PostgreSQL of the distribution, beside the embedded one: server, client, pgbench.
ls -d /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || missing="$missing postgresql postgresql-contrib"
[ -z "$missing" ] && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
  echo "Not installed, and may not be installed by this user:$missing. Some tests will be skipped." >&2
  exit 0
fi
echo "Installing for the tests:$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -q >/dev/null 2>&1
# One by one: a package that cannot be had is no reason to be without the others.
for package in $missing; do
  apt-get install -y -q --no-install-recommends "$package" >/dev/null 2>&1 ||
    echo "$package could not be installed. Some tests will be skipped." >&2
done
exit 0

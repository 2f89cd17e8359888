#!/bin/bash
# Real S3 for tests: radosgw over one ceph-mon and one ceph-osd that keeps its objects in memory,
# on loopback. Debian: radosgw ceph-mon ceph-osd ceph-common.
#
# usage: radosgw-s3.sh DIRECTORY PORT MONITOR_PORT MONITOR_OLD_PORT
# Prints "ready <port> <access key> <secret key>", serves until its standard input ends, and takes its
# processes and the directory along: so nothing outlives the test that began it, not even one that
# was killed.
set -euo pipefail
mkdir -p "$1"
cd "$1"
directory=$PWD port=$2 monitor="[v2:127.0.0.1:$3,v1:127.0.0.1:$4]"
cluster=$(cat /proc/sys/kernel/random/uuid) osd=$(cat /proc/sys/kernel/random/uuid)

children=()
finish() {
  for child in "${children[@]}"; do kill -9 "$child" 2>/dev/null || true; done
  wait
  cd /
  rm -rf "$directory"
}
trap finish EXIT
trap 'exit 1' TERM INT

mkdir -p run log mon.a osd.0
cat > ceph.conf <<CONF
[global]
fsid = $cluster
mon initial members = a
mon host = $monitor
public network = 127.0.0.0/8
cluster network = 127.0.0.0/8
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
# The monitor gathers changes for a second by default, and the gateway makes a pool at each turn.
paxos propose interval = 0.02
paxos min wait = 0.02
osd objectstore = memstore
memstore device bytes = 1073741824
log file = $directory/log/\$name.log
admin socket = $directory/run/\$name.\$pid.asok
mon data = $directory/mon.a
mon data avail crit = 1
mon data avail warn = 1
osd data = $directory/osd.0
keyring = $directory/keyring
# A page takes more than one request to delete, and pages are met with hundreds of blobs.
rgw max listing results = 255
[osd]
keyring = $directory/osd.0/keyring
CONF

ceph-authtool -C keyring --gen-key -n mon. --cap mon 'allow *' > /dev/null
ceph-authtool keyring --gen-key -n client.admin --cap mon 'allow *' --cap osd 'allow *' > /dev/null
ceph-authtool -C osd.0/keyring --gen-key -n osd.0 > /dev/null
monmaptool --create --addv a "$monitor" --fsid "$cluster" monmap > /dev/null
ceph-mon -c ceph.conf --mkfs -i a --monmap monmap --keyring keyring
ceph-mon -c ceph.conf -i a -f > mon.out 2>&1 < /dev/null &
children+=($!)
timeout 60 ceph -c ceph.conf osd new "$osd" > /dev/null
timeout 60 ceph -c ceph.conf auth add osd.0 -i osd.0/keyring mon 'allow profile osd' osd 'allow *' 2> /dev/null
ceph-osd -c ceph.conf -i 0 --mkfs --osd-uuid "$osd" --no-mon-config 2> /dev/null
ceph-osd -c ceph.conf -i 0 -f > osd.out 2>&1 < /dev/null &
children+=($!)
radosgw -f -c ceph.conf -n client.admin --rgw-frontends "beast endpoint=127.0.0.1:$port" \
  > radosgw.out 2>&1 < /dev/null &
children+=($!)
timeout 60 radosgw-admin -c ceph.conf -n client.admin user create --uid=tests --display-name=tests \
  --access-key=test:tester --secret-key=testing > /dev/null 2> user.out
for _ in $(seq 300); do
  if (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null; then
    echo "ready $port test:tester testing"
    cat > /dev/null
    exit 0
  fi
  sleep 0.1
done
echo 'radosgw did not come up' >&2
exit 1

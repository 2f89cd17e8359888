#!/bin/sh
# Makes the passwords and keys of compose.yaml and kubernetes/, in the folder secrets beside this
# file. What is there already stays: without its master key no recording can be read again.
set -eu
cd "$(dirname "$0")"
mkdir -p secrets
# The folder keeps others out; the files are read in containers by another user.
chmod 700 secrets
cd secrets
umask 022
new() { [ -e "$1" ] || cat >"$1"; }
random() { od -An -vtx1 -N"$1" /dev/urandom | tr -d ' \n'; }
random 24 | new postgres_password
random 10 | new s3_access
random 24 | new s3_secret
printf 'postgres://lethe:%s@postgres/lethe' "$(cat postgres_password)" | new database_url
printf 'k1:%s' "$(head -c 32 /dev/urandom | base64)" | new master_key
printf '[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n' \
  "$(cat s3_access)" "$(cat s3_secret)" | new s3_credentials
printf 'ROOT_ACCESS_KEY=%s\nROOT_SECRET_KEY=%s\n' "$(cat s3_access)" "$(cat s3_secret)" |
  new s3_server.env

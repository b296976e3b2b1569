#!/bin/sh
# Makes the secrets of compose.yaml, once. They are readable by the users of the containers.
set -eu
cd "$(dirname "$0")"
mkdir -p secrets
cd secrets
if [ -e jwt ]; then
  echo "secrets are there already" >&2
  exit 0
fi
password=$(head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n')
head -c 32 /dev/urandom | base64 > jwt
printf '%s' "$password" > postgres
echo "postgres://tidemark:$password@postgres:5432/tidemark?sslmode=disable" > facts
echo "redis://valkey:6379" > substrate
chmod 0644 jwt postgres facts substrate # the containers' users are others

#!/bin/sh
# A first look at Lockstep: a real control plane on this machine, the manager
# beside it, and an operator that is rolled out on it. Run it as ./task try.
set -eu
cd "$(dirname "$0")/.."

if ! command -v go >/dev/null 2>&1; then
	echo "try: Go is needed and not in PATH: install Go 1.26 or newer from https://go.dev/dl" >&2
	exit 1
fi
CGO_ENABLED=0
export CGO_ENABLED
exec go run ./hack/try "$@"

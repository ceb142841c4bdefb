#!/bin/sh
# Fails when generated files differ from what "task generate" makes now. It
# compares contents, not commits, so it also works in a tree with changes.
set -eu
cd "$(dirname "$0")/.."

list() {
	{
		find apis -name 'zz_generated*.go'
		find config/crds -name 'package-operator.run_*.yaml'
		find docs -name api-reference.md -o -path docs/packages/reference.md 2>/dev/null
		find docs/schemas -name '*.json' 2>/dev/null
		find internal/cluster/schemas/bundled -name '*.gz'
	} | LC_ALL=C sort | while read -r file; do
		printf '%s %s\n' "$(cksum <"$file")" "$file"
	done
}

before="$(list)"
./task generate
after="$(list)"
if [ "$before" != "$after" ]; then
	echo "Generated files are stale. They are up to date now; commit them:" >&2
	printf '%s\n%s\n' "$before" "$after" | LC_ALL=C sort | uniq -u | cut -d ' ' -f 3- | sort -u | sed 's/^/  /' >&2
	exit 1
fi

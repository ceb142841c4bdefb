#!/bin/sh
# Runs the fuzz targets one after the other, each for a while, goes on where one fails, and says at the end which failed.
#
#   hack/fuzz.sh [-time 30s] [-run REGEXP] [-plain]
#
# -time is a duration, or a number of inputs as in 500x. -plain searches without coverage guidance, with the test binaries
# as ./task test:unit builds them. Go's cache keeps what a search finds new, and a later one goes on from it.
set -u
cd "$(dirname "$0")/.."
usage() { sed -n 's/^#   /usage: /p' hack/fuzz.sh >&2 && exit 2; }

duration=30s
run=.
instrument=-fuzz=.
while [ $# -gt 0 ]; do
	case $1 in
	-plain) instrument="" ;;
	-time | -run)
		[ $# -gt 1 ] || usage
		[ "$1" = -time ] && duration=$2 || run=$2
		shift
		;;
	*) usage ;;
	esac
	shift
done

dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
cache=$(go env GOCACHE)/fuzz/$(go list -m)
ran=0
failed=""
search() { # PACKAGE TARGET
	(cd "$1" && "$dir/test" -test.run='^$' -test.fuzz="^$2\$" -test.fuzztime="$duration" -test.fuzzcachedir="$cache/$1" \
		-test.parallel=1 -test.fuzzminimizetime=20x) >"$dir/out" 2>&1 || failed="$failed
$1 $2"
	printf '%-30s %-24s %s\n' "$1" "$2" "$(sed -n 's/^fuzz: elapsed: //p' "$dir/out" | tail -n 1)"
	grep -vE '^fuzz: elapsed|^PASS$|^warning: the test binary was not built with coverage' "$dir/out"
	ran=$((ran + 1))
}

for package in $(find . -name '*_test.go' ! -path '*/testdata/*' -exec grep -l '^func Fuzz' {} + | sed 's|^\./||; s|/[^/]*$||' | sort -u); do
	targets=$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$package"/*_test.go | grep -E "$run") || continue
	if ! go test -vet=off -ldflags=-w $instrument -c -o "$dir/test" "./$package"; then
		failed="$failed
$package"
		continue
	fi
	for target in $targets; do search "$package" "$target"; done
done

[ -z "$failed" ] || { echo "failed:$failed" >&2 && exit 1; }
[ "$ran" -gt 0 ] || { echo "no target matches $run" >&2 && exit 1; }

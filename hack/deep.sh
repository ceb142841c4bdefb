#!/bin/sh
# Runs what takes hours, one part after the other, goes on where one fails, and says at the
# end which failed and what each took. Arguments choose parts: unit cluster bugs mutate fuzz.
set -u
cd "$(dirname "$0")/.."
export LOCKSTEP_DEEP=1

begin=$(date +%s)
summary=""
failed=""
part() { # NAME COMMAND…
	name=$1
	shift
	case " $chosen " in *" $name "*) ;; *) return ;; esac
	echo "==> $name: $*"
	start=$(date +%s)
	result=passed
	"$@" || { result=FAILED && failed="$failed $name"; }
	summary="$summary$(printf '%-12s %-7s %6d s' "$name" "$result" $(($(date +%s) - start)))
"
}

chosen="${*:-unit cluster bugs mutate fuzz}"
part unit ./task test:unit -- -timeout 1h
# The two longest packages wait most of the time, so they begin first and run beside the others.
part cluster env LOCKSTEP_CONVERGENCE="${LOCKSTEP_CONVERGENCE:-30m}" \
	./task test:cluster PACKAGES="./e2e/faults/transport ./integration/convergence ./e2e/... ./integration/..." -- -timeout 3h
part bugs ./task bugs
part mutate ./task mutate
part fuzz ./task fuzz -- -time "${LOCKSTEP_FUZZ:-30s}"

printf '%s%-12s %-7s %6d s\n' "$summary" total "" $(($(date +%s) - begin))
[ -n "$summary" ] || { echo "there is no part $chosen" >&2 && exit 1; }
[ -z "$failed" ] || { echo "failed:$failed" >&2 && exit 1; }

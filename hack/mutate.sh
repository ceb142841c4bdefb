#!/bin/sh
# Has gremlins change the code of pure packages, one operator or constant at a time, and
# fails where the package's own tests notice fewer of these mutations, in percent, than
# did before. Arguments choose packages. What is not noticed are mutations that mean the
# same, such as other bounds of a slice's capacity. Conditions of "case" are not changed, and
# what does not compile, such as a difference of strings, counts as noticed.
set -eu
cd "$(dirname "$0")/.."

# The linter vets.
export CGO_ENABLED=0 GOFLAGS=-vet=off

status=0
while read -r package efficacy; do
	case " ${*:-$package} " in *" $package "*) ;; *) continue ;; esac
	echo "==> $package: at least $efficacy % are to be noticed"
	go tool -modfile=tools/mutation/go.mod gremlins unleash --workers 2 --timeout-coefficient 3 \
		--output-statuses lt --threshold-efficacy "$efficacy" "./$package" </dev/null || status=1
done <<END
internal/phases/claims 92
internal/revisions 96
END
exit $status

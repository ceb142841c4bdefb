package versions_test

import (
	"testing"

	"lockstep.run/lockstep/internal/testing/conformance"
)

// row is one case of testdata/conformance, whose README.md describes the operations.
type (
	row           = conformance.Row
	notApplicable = conformance.NotApplicable
	differences   = conformance.Differences
)

// operations return what differs from the expectation, or why the row does not apply.
var operations = map[string]func(t *testing.T, r row) (difference string, because conformance.NotApplicable){
	"select": selected, "match": matched, "parse-constraint": parsedConstraint, "prerelease-filter": filtered, "order": ordered,
	"compare": compared, "parse-version": parsedVersions, "package-install-select": installSelected, "downgrade-gate": downgraded,
	"watch-enqueue": enqueued, "dependency-install-select": tagSelected, "reference-resolve": referenceResolved,
	"validate": validated, "repository-revision": revised, "global-list": listed, "repository-filter": repositoryFiltered,
}

// elsewhere are operations that are no part of choosing versions.
var elsewhere = map[string]conformance.NotApplicable{
	"wildcard-expansion": "the expansion is internal to the parser of another dialect; its outcome is in select and match",
	"sync-timer":         "the pauses after failures are those of the controller of repositories",
	"sync-due":           "the pauses after failures are those of the controller of repositories",
	"values-merge":       "the order of values is that of configFrom, which names single keys",
	"extension-order":    "patches are a list, and not annotations",
}

// TestConformance runs the rows of testdata/conformance, or those of the folder CONFORMANCE_DIR.
func TestConformance(t *testing.T) {
	conformance.Suite{
		Operations: operations, Elsewhere: elsewhere,
		Dialects: []string{"", "none", "masterminds", "crossplane"},
	}.Run(t)
}

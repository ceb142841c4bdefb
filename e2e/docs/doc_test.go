// Package docs_test runs the documentation: it executes every block of code in docs/start,
// docs/administrate, docs/packages and the migration guides, or passes it to the program
// that it is for.
//
// A block's language decides how it is tested:
//
//	sh        commands; each of them has to succeed
//	console   commands after "$ ", with the output that the page shows
//	yaml …    any other language: see the comment above the block
//
// The comment is an HTML comment on the line above the block:
//
//	<!-- file: PATH -->         writes the block to a file, for the commands after it
//	<!-- manifest -->           a part of a PackageManifest, put into a small package, which is validated
//	<!-- object -->             an object file of a package, which is validated
//	<!-- package -->            a part of a ClusterPackage, which the API server checks
//	<!-- apply -->              objects, which the API server checks
//	<!-- probe: KIND -->        an entry of availabilityProbes, tried on testdata/objects/KIND.yaml
//	<!-- exit: 1 -->            the last command of the block has to fail
//	<!-- skip: REASON -->       not run; the test prints the reason
//	<!-- before: COMMAND -->    no block follows; prepares state, such as an installed package
//
// Only blocks without a language are skipped.
//
// The blocks of a page run in order in one folder. registry.example is the sandbox's
// registry. The comparison of outputs ignores values that differ from run to run: digests,
// times, hashes in names, the width of columns. "…" in an expected line matches any text,
// and on its own line any number of lines.
//
// LOCKSTEP_UPDATE=1 writes the outputs of blocks that differ into the pages.
package docs_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
)

func TestMain(m *testing.M) {
	if os.Getenv(jqVariable) != "" {
		os.Exit(runJQ(os.Args[1:]))
	}
	os.Exit(harness.Main(m))
}

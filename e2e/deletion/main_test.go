// Package deletion_test deletes packages, deployments and sets in every way, with
// the manager running and without it, on a real garbage collector.
package deletion_test

import (
	"os"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

package main

import (
	"testing"

	"lockstep.run/lockstep/test/rootcerts"
)

// The image has no certificates on disk. The ones in the binary then verify public registries.
func TestRootCertificates(t *testing.T) { rootcerts.Check(t) }

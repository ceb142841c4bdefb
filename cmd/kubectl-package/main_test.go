package main

import (
	"testing"

	"lockstep.run/lockstep/test/rootcerts"
)

// Without certificates on disk, as in many images of CI, those in the binary verify public registries.
func TestRootCertificates(t *testing.T) { rootcerts.Check(t) }

// Package applies_test compares Lockstep with kubectl apply. Histories of an object are played
// three times on one API server: with the engine, with client-side and with server-side apply.
//
//	history: origin ─► apply v1 ─► edit ─► restart ─► apply v2 ─► …
//	                       │
//	          engine, kubectl apply, kubectl apply --server-side
//	                       │
//	          judge: accepted where either accepts it, equal to a fresh create
//	                 of the version, plus what others wrote and may stay
//
// A kind has dimensions, and each of these alternatives: a version of a template is a choice
// among them, and an edit by hand changes one on the live object. A fixed table has each defect
// that was found; a random sample and, with LOCKSTEP_DEEP, a sweep go beyond it. A failure
// prints its history as a short script and the seed that repeats it.
//
// There are no controllers here: what these do to an object is an edit like any other.
package applies_test

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// What all tests share: an API server, and clients of it.
var (
	server *lab
	suite  = harness.NewSuite()
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(suite.Run(m, 0, func() {
		server = newLab(suite, sandbox.Start(suite, sandbox.WithComponents(sandbox.Etcd, sandbox.APIServer)))
	}))
}

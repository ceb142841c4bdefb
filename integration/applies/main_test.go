// Package applies_test compares Lockstep with kubectl apply. It plays the history of an object
// three times on one API server: with the engine, with client-side and with server-side apply.
//
//	history: origin ─► apply v1 ─► edit ─► restart ─► apply v2 ─► …
//	                       │
//	          engine, kubectl apply, kubectl apply --server-side
//	                       │
//	          judge: accepted if either accepts it, equal to a fresh create
//	                 of the version, plus permitted values of other writers
//
// A kind has dimensions, and each dimension has alternatives. A version of a template is a
// choice of alternatives, and an edit by hand changes one on the live object. A fixed table
// contains each known defect. A random sample adds more, and a sweep does with LOCKSTEP_DEEP. A
// failure prints its history as a short script, and the seed that repeats it.
//
// No controllers run here: the tests simulate their writes with edits.
package applies_test

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// All tests share an API server and its clients.
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

package scenarios_test

import (
	"context"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// sandboxCommands choose the cluster.
var sandboxCommands = commands{
	// sandbox shared: a cluster that all such scripts share, with a running manager. A
	// script must only change its own namespace, and cluster-scoped objects whose names
	// start with the script's.
	//
	// sandbox lent: a cluster without manager and nodes that no other script uses
	// meanwhile. It is for scripts that disturb managers, components or rights. Other
	// scripts use it before and afterwards.
	//
	// sandbox own [nodes]: a cluster for this script only, for changes that cannot be
	// undone. It has no manager, and no nodes unless the script requests them.
	//
	// All create a namespace for the script, named after it: $NS.
	"sandbox": func(s *scenario, _ bool, args []string) {
		s.usage(s.env == nil && len(args) > 0, "sandbox shared | lent | own [nodes]")
		switch args[0] {
		case "shared":
			s.env = harness.Shared(s)
		case "lent":
			s.env = harness.Lend(s)
		case "own":
			var opts []sandbox.Option
			if len(args) == 1 {
				opts = append(opts, sandbox.WithoutNodes())
			}
			s.env = harness.New(s, opts...)
		default:
			s.Fatalf("unknown kind of sandbox %q", args[0])
		}
		var err error
		s.audit, err = s.env.Audit()
		s.check(err)
		s.namespace = s.ts.Name()
		s.env.Namespace(s, s.namespace)
		s.ts.Setenv("NS", s.namespace)
		s.start = s.position()
		s.mark = s.start
	},
}

// position returns the place in the audit log behind everything so far. It waits
// for an API server that is not back yet.
func (s *scenario) position() sandbox.Position {
	var at sandbox.Position
	harness.Eventually(s, patience, "the API server to answer", func(ctx context.Context) error {
		var err error
		at, err = s.audit.Mark(ctx)
		return err
	})
	return at
}

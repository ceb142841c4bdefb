package cli

import (
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// What is missing makes a plan refused, what would be installed makes it one with changes.
func TestPlanOfDependencies(t *testing.T) {
	t.Parallel()
	step := dryrun.Installation{Object: "Package shop/shop.db", Package: "db.example.com", Version: "1.2.0", Because: []string{"Package shop/shop → db (^1)"}}
	raised := dryrun.Installation{Object: "ClusterPackage certs", Package: "certs.example.com", From: "1.0.0", Version: "2.0.0"}
	p := &dryrun.Plan{Kind: "Package", Namespace: "shop", Name: "shop", Outcome: dryrun.OutcomeNothing}
	p.Depend([]dryrun.Dependency{
		{Name: "db", By: "Package shop/shop.db", Version: "1.2.0", Reason: "NotAvailable"},
		{Name: "certs", Satisfied: true, By: "ClusterPackage certs", Version: "2.0.0", Reason: "AlreadyInstalled"},
		{Name: "mail", Optional: true, Failed: true, Message: "No repository offers it."},
	}, []dryrun.Installation{step, raised})
	if p.Outcome != dryrun.OutcomeChanges || p.Unsatisfied() != 0 {
		t.Errorf("%+v", p)
	}
	text := planText(p, terminal.Plain())
	for _, want := range []string{
		"    · db     Package shop/shop.db  1.2.0  NotAvailable\n    ✓ certs  ClusterPackage certs  2.0.0  AlreadyInstalled\n    ✗ mail",
		"    + Package shop/shop.db  db.example.com 1.2.0\n        needed by Package shop/shop → db (^1)\n    ~ ClusterPackage certs  certs.example.com 1.0.0 → 2.0.0\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	p.Depend([]dryrun.Dependency{{Name: "mail", Failed: true}}, nil)
	if p.Outcome != dryrun.OutcomeRefused || p.Unsatisfied() != 1 {
		t.Errorf("%+v", p)
	}
}

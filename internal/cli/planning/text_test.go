package planning

import (
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/test/golden"
	"lockstep.run/lockstep/test/require"
)

// A plan shows texts of a cluster and a package, but no control characters for a terminal.
func TestPlanText(t *testing.T) {
	t.Parallel()
	p := &dryrun.Plan{
		Kind: "Package", Namespace: "shop", Name: "web", Outcome: dryrun.OutcomeChanges, Revision: 3,
		From: &dryrun.Release{Image: "r/web:1", Package: "web", Version: "1.0.0", Revision: 2},
		To:   dryrun.Release{Image: "r/web:2", Package: "web", Version: "2.0.0"},
		Phases: []dryrun.Phase{
			{Name: "config", Reached: true, Unchanged: 2, Changes: []dryrun.Change{
				{Action: dryrun.ActionRelabel, Kind: "Secret", Name: "a", Reached: true},
				{Action: dryrun.ActionTakeOver, Kind: "ConfigMap", Namespace: "shop", Name: "web\x1b[31m", From: "Deployment\nx", Reached: true, Fields: []dryrun.Field{
					{Change: objectdiff.Change{Path: "data.a", Before: "1", After: "2\x07"}, Managers: []string{"edit\x1b[0m"}},
					{Change: objectdiff.Change{Path: "data.b", After: strings.Repeat("long ", 40)}}, {Change: objectdiff.Change{Path: "data.c", Before: map[string]any{"x": int64(1)}}},
				}},
			}},
			{Name: "deploy", Changes: []dryrun.Change{{Action: dryrun.ActionReplace, Kind: "Job", Name: "migrate", Unverified: "it is deleted first"}}},
			{Name: "once", Reached: true, Unchanged: 1, Completed: []string{"batch Job shop/seed\x1b"}},
		},
		Cleanup:  []dryrun.Change{{Action: dryrun.ActionDelete, Kind: "Service", Name: "old", Reached: true}},
		Losses:   []dryrun.DataLoss{{Object: "Namespace shop", Message: "everything in it is deleted"}},
		Powers:   []dryrun.PrivilegeGain{{Role: "Role shop/web", Namespace: "shop", Verbs: []string{"get"}, APIGroups: []string{"", "apps"}, Resources: []string{"things"}, Names: []string{"one"}}},
		Warnings: []string{"careful\x1b[2J"},
		Summary:  dryrun.Summary{TakeOver: 1, Replace: 1, Delete: 1, Relabel: 1, Unchanged: 2},
	}
	golden.JSON(t, "plan", p)
	want := `package shop/web  revision 2 → 3
  package  web 1.0.0 → web 2.0.0
  image    r/web:1 → r/web:2

▸ config  1 relabelled, 2 unchanged
    < ConfigMap shop/web\u001b[31m  taken over from Deployment x
        ~ data.a  "1" → "2\u0007"                                               set by edit\u001b[0m
        + data.b  "long long long long long long long long long long long lon…
        - data.c  {"x":1}
▸ deploy    not reached
    ± Job migrate  deleted and recreated
        no dry run: it is deleted first
· once  1 unchanged
      batch Job shop/seed\u001b  completed earlier, does not run again

After the rollout
    - Service old

Data that might be lost
    ! Namespace shop  everything in it is deleted

Rights gained
    ! all subjects that it is bound to  get things,things.apps (one)  in shop  by Role shop/web
warning: careful\u001b[2J

Plan: 1 to take over, 1 to replace, 1 to relabel, 1 to delete, 2 unchanged
`
	require.Equal(t, want, Text(p, terminal.Plain()))
}

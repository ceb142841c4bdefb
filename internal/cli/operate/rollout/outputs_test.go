package rollout_test

import (
	"testing"

	"lockstep.run/lockstep/internal/cli/clitest"
	"lockstep.run/lockstep/internal/cli/cluster/clustertest"
)

// What is printed as JSON fits its schema, which clitest looks at.
func TestJSON(t *testing.T) {
	t.Parallel()
	c := clustertest.FakeCluster(t, clustertest.Revised(nil)...)
	for _, args := range [][]string{
		{"rollout", "diff", "web"}, {"rollout", "diff", "web", "--from-revision", "2"}, {"rollout", "history", "web"}, {"rollout", "history", "web", "--revision", "1"},
	} {
		if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", append(args, "-o", "json")...); got.Code != 0 {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

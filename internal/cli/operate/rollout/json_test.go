package rollout_test

import (
	"testing"

	"lockstep.run/lockstep/internal/cli/clitest"
	"lockstep.run/lockstep/internal/cli/cluster/clustertest"
	"lockstep.run/lockstep/internal/testing/golden"
)

func TestJSON(t *testing.T) {
	t.Parallel()
	c := clustertest.FakeCluster(t, clustertest.Revised(nil)...)
	for _, command := range []string{"diff", "history"} {
		golden.JSON(t, "rollout-"+command, clitest.InvokeOn(t, clustertest.DialTo(c), "", "rollout", command, "web", "-o", "json").Out)
	}
}

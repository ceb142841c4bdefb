package rollout_test

import (
	"testing"

	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/golden"
)

func TestJSON(t *testing.T) {
	t.Parallel()
	c := clustertest.FakeCluster(t, clustertest.Revised(nil)...)
	for _, command := range []string{"diff", "history"} {
		golden.JSON(t, "rollout-"+command, clitest.InvokeOn(t, clustertest.DialTo(c), "", "rollout", command, "web", "-o", "json").Out)
	}
}

package operate_test

import (
	"testing"

	"lockstep.run/lockstep/internal/cli/clitest"
	"lockstep.run/lockstep/internal/cli/cluster/clustertest"
)

// What is printed as JSON fits its schema, which clitest looks at.
func TestJSON(t *testing.T) {
	t.Parallel()
	needed := clustertest.FakeCluster(t, installedWith("shop", "front", "db"), installedWith("shop", "front.db"), installedWith("", "certs"))
	for _, args := range [][]string{{"deps"}, {"deps", "-A"}, {"deps", "front"}, {"deps", "front.db"}, {"lock"}, {"lock", "-A"}} {
		if got := clitest.InvokeOn(t, clustertest.DialTo(needed), "", append(args, "-o", "json")...); got.Code != 0 {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

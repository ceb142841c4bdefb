package install_test

import (
	"testing"

	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/clustertest"
)

// Without a terminal, --yes is needed.
func TestInstallOfAnotherPackage(t *testing.T) {
	t.Parallel()
	c := clustertest.FakeCluster(t, clustertest.Installed(clustertest.Available()))
	args := []string{"install", "docker.io/web", "--cluster", "--wait=false"}
	want := clitest.Result{Code: 1, Out: "", Err: "clusterpackage web is installed from example.com/web:v1 and would change to another repository, index.docker.io/library/web:latest\nError: nothing was changed: confirm it by --yes\n"}
	if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", args...); got != want {
		t.Errorf("got %+v", got)
	}
	if got := clitest.InvokeOn(t, clustertest.DialTo(c), "", append(args, "--yes")...); got != (clitest.Result{Code: 0, Out: "clusterpackage web changed: image example.com/web:v1 → docker.io/web\n", Err: ""}) {
		t.Errorf("got %+v", got)
	}
}

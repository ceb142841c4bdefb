package targets_test

import (
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// TestManyTargets installs 500 objects in each of 20 targets while another target hangs. All
// targets are connections to one API server, so that each connection watches all objects.
func TestManyTargets(t *testing.T) {
	if !harness.Deep() {
		t.Skip("a sweep, which LOCKSTEP_DEEP=1 runs")
	}
	const connections, objects = 20, 500
	f := &fixture{Env: harness.New(t, sandbox.WithComponents(sandbox.Etcd, sandbox.Registry, sandbox.APIServer)), target: newTarget(t)}
	manager := f.StartManager(t, "--allow-local-targets")
	f.Namespace(t, home)
	memory(t, "with nothing installed", manager)

	hangs, err := net.Listen("tcp", "127.0.0.1:0") // and never accepts
	require.NoError(t, err)
	t.Cleanup(func() { _ = hangs.Close() })
	first := f.target.kubeconfig(t, "first")
	f.secret(t, "hangs", strings.Replace(first, f.target.Server(), "https://"+hangs.Addr().String(), 1))
	began := time.Now()
	for i := range connections {
		name := fmt.Sprintf("app%02d", i)
		f.secret(t, name, first)
		f.install(t, name, name, f.Push(t, "targets/"+name+":v1", harness.Phased(name, 2, objects/2)))
	}
	f.install(t, "hangs", "hangs", f.Push(t, "targets/hangs:v1", harness.Phased("hangs", 1, 1)))
	for i := range connections {
		f.WaitAvailableWithin(t, 10*time.Minute, home, fmt.Sprintf("app%02d", i))
	}
	t.Logf("%d targets of %d objects after %s", connections, objects, time.Since(began).Round(time.Second))
	f.connected(t, "hangs", "False", corev1alpha1.ReasonTargetUnreachable)
	gone := harness.Package(home, "hangs", "")
	require.NoError(t, f.Client.Delete(t.Context(), gone)) // no object was written there
	f.WaitGone(t, long, gone)
	f.rest(t, "first")
	memory(t, "at rest", manager)
	pkg := harness.Package(home, "app00", "")
	require.NoError(t, f.Client.Delete(t.Context(), pkg))
	f.WaitGone(t, 5*time.Minute, pkg)
}

var anonymous = regexp.MustCompile(`(?m)^RssAnon:\s+(\d+) kB`)

// memory prints the anonymous memory of a manager.
func memory(t *testing.T, when string, m *harness.Manager) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.PID()))
	require.NoError(t, err)
	if found := anonymous.FindSubmatch(status); found != nil {
		t.Logf("RssAnon %s: %s kB", when, found[1])
	}
}

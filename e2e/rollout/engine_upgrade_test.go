package rollout_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/e2e/sandbox/binary"
	"lockstep.run/lockstep/test/require"
)

const packages = 20

// former builds the manager of the commit in the file "from", which is the version before the
// upgrade of the engine. It returns the program and the sources of that commit.
func former(t *testing.T) (program, sources string) {
	t.Helper()
	content, err := os.ReadFile("from")
	require.NoError(t, err)
	commit := strings.TrimSpace(string(content))
	root, err := binary.Repository(".")
	require.NoError(t, err)
	built.Lock()
	defer built.Unlock()
	if built.program != "" {
		return built.program, built.sources
	}
	built.folder, err = os.MkdirTemp("", "former-")
	require.NoError(t, err)
	folder := built.folder
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	run := func(dir, name string, args ...string) {
		t.Helper()
		command := exec.CommandContext(ctx, name, args...)
		command.Dir, command.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("cannot build the manager of %s, which has to be in this clone (git fetch --unshallow): %v\n%s", commit, err, out)
		}
	}
	archive := filepath.Join(folder, "sources.tar")
	program, sources = filepath.Join(folder, "lockstep-manager"), filepath.Join(folder, "sources")
	require.NoError(t, os.Mkdir(sources, 0o755))
	run(root, "git", "archive", "--output", archive, commit)
	run(sources, "tar", "-xf", archive)
	run(sources, "go", "build", "-ldflags=-s -w", "-o", program, "./cmd/lockstep-manager")
	built.program, built.sources = program, sources
	return program, sources
}

// built is the former manager, which the tests share. The folder is removed in the end.
var built struct {
	sync.Mutex
	folder, program, sources string
}

// holderOf returns who holds the Lease.
func holderOf(t *testing.T, env *harness.Env) string {
	t.Helper()
	lease := &coordinationv1.Lease{}
	key := types.NamespacedName{Namespace: corev1alpha1.DefaultNamespace, Name: corev1alpha1.LeaderElectionLease}
	require.NoError(t, env.Client.Get(t.Context(), key, lease))
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// An upgrade of the manager, with CRDs and roles of the new version, does not write objects of
// packages at rest. Neither does the rollback. Each status is written at most once, because the
// versions report different fields.
func TestUpgradeAndBack(t *testing.T) {
	if !harness.Deep() {
		t.Skip("a sweep: LOCKSTEP_DEEP=1 builds the former manager")
	}
	old, _ := former(t)
	env := harness.New(t)
	manager := env.StartManagerOf(t, old)
	audit, err := env.Audit()
	require.NoError(t, err)
	name := func(i int) string { return fmt.Sprintf("shop-%d", i) }
	for i := range packages {
		env.Create(t, harness.Package("default", name(i), env.Push(t, name(i)+":1", harness.Phased(name(i), 3, 5))))
	}
	for i := range packages {
		env.WaitAvailable(t, "default", name(i))
	}
	byManager := []sandbox.Filter{sandbox.ByUser(harness.ManagerUser()), func(e sandbox.Entry) bool {
		return e.Verb != "watch" && e.Object.Resource != "leases" && e.Object.Resource != "selfsubjectaccessreviews"
	}}
	_, err = audit.Settled(t.Context(), 0, 3*time.Second, byManager...)
	require.NoError(t, err)
	for _, next := range []struct{ what, program string }{
		{"the upgrade", harness.Binary(t, "lockstep-manager")}, {"the way back", old}, {"another upgrade", harness.Binary(t, "lockstep-manager")},
	} {
		holder := holderOf(t, env)
		mark, err := audit.Mark(t.Context())
		require.NoError(t, err)
		standby := env.StartManagerOf(t, next.program) // becomes ready while the other one leads, as in a rolling update
		stopped := time.Now()
		manager.Stop()
		manager = standby
		requests, err := audit.Settled(t.Context(), mark, 8*time.Second, byManager...)
		require.NoError(t, err)
		statuses := map[string]int{}
		for _, e := range requests {
			if !sandbox.Writes()(e) {
				continue
			}
			statuses[e.RequestURI]++
			if e.Object.Group != corev1alpha1.GroupVersion.Group || e.Object.Subresource != "status" || statuses[e.RequestURI] > 1 {
				t.Errorf("%s wrote to an object at rest: %s %s", next.what, e.Verb, e.RequestURI)
			}
		}
		t.Logf("%s: %d requests, %d statuses, at rest %s after the former leader stopped", next.what, len(requests), len(statuses), time.Since(stopped).Round(time.Second))
		if holder == holderOf(t, env) {
			t.Fatalf("%s: the new manager does not lead", next.what)
		}
		for i := range packages {
			env.WaitAvailable(t, "default", name(i))
		}
	}
}

// A manager that is newer than the CRDs is not ready, logs the reason, and leaves the lead to the
// former one. It becomes ready when the CRDs exist.
func TestOlderCRDs(t *testing.T) {
	if !harness.Deep() {
		t.Skip("a sweep, which LOCKSTEP_DEEP=1 runs; internal/manager has the cases")
	}
	env := harness.New(t)
	env.StartManager(t)
	leader := holderOf(t, env)
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "hostedclusterpackages.package-operator.run"}}
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
	require.NoError(t, env.Client.Delete(t.Context(), crd))
	env.WaitGone(t, harness.Patience, crd)
	standby := env.LaunchManager(t)
	harness.Eventually(t, harness.Patience, "the reason", func(context.Context) error {
		const reason = "does not serve the kind HostedClusterPackage: install the CRDs of this version first, which are in config/crds"
		if !strings.Contains(standby.Log(), reason) {
			return fmt.Errorf("the log lacks %q", reason)
		}
		return nil
	})
	if err := standby.Ready(t.Context()); err == nil {
		t.Error("a manager that could not lead is ready")
	}
	if holder := holderOf(t, env); holder != leader {
		t.Errorf("%s leads, no longer %s", holder, leader)
	}
	crd.ObjectMeta = metav1.ObjectMeta{Name: crd.Name, Annotations: crd.Annotations, Labels: crd.Labels}
	require.NoError(t, env.Client.Create(t.Context(), crd))
	harness.Eventually(t, harness.Patience, "the standby to be ready", standby.Ready)
}

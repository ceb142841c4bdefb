package planning

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/golden"
	"lockstep.run/lockstep/test/require"
)

// printed returns the roles for a change of the installed package web to one without objects.
func printed(t *testing.T, cl *cluster.Cluster, from int64, flags ...string) (out, errs string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := &rbacCommand{Planner: Planner{Command: command.Command{Streams: clustertest.Streams(&stdout, &stderr)}}, account: "new", from: from}
	cmd := &cobra.Command{}
	c.Output.Add(cmd)
	require.NoError(t, cmd.ParseFlags(flags))
	p := &Planned{Loaded: &loader.Package{Manifest: &manifestsv1alpha1.PackageManifest{}}}
	require.NoError(t, c.find(t.Context(), cl, Wanted{source: "./x", folder: true, Name: cluster.Name{Name: "web"}}, p))
	p.Pkg = p.Before
	p.Client = cl.WithWatch
	err = c.print(t.Context(), cl, p)
	return stdout.String(), stderr.String(), err
}

// The roles replace the existing ones, so they cover the objects and accounts of all revisions that
// might own any.
func TestRolesOfRevisions(t *testing.T) {
	t.Parallel()
	all := clustertest.Revised(func(p *corev1alpha1.Package, _ *corev1alpha1.ObjectDeployment) { p.Spec.ServiceAccountName = "old" })
	first := all[2].(*corev1alpha1.ObjectSet)
	first.Spec.ServiceAccountName = "old"
	first.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{clustertest.PhaseOf("deploy", `{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"of-first"}}`)}
	for state, from := range map[corev1alpha1.ObjectSetLifecycleState]int64{
		corev1alpha1.ObjectSetLifecycleStateActive: 0, corev1alpha1.ObjectSetLifecycleStatePaused: 0, corev1alpha1.ObjectSetLifecycleStateArchived: 1, "": 0,
	} {
		first.Spec.LifecycleState = state
		out, _, err := printed(t, clustertest.FakeCluster(t, all...), from)
		if err != nil || !strings.Contains(out, "      - create\n    apiGroups:\n      - batch\n    resources:\n      - cronjobs\n") || !strings.Contains(out, " name: new\n") || !strings.Contains(out, " name: old\n") {
			t.Errorf("%s: %v\n%s", state, err, out)
		}
	}
	first.Spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStateArchived
	out, _, err := printed(t, clustertest.FakeCluster(t, all...), 0, "-o", "json")
	require.NoError(t, err)
	golden.JSON(t, "rbac", out)
	if out, _, err := printed(t, clustertest.FakeCluster(t, all...), 0); err != nil || strings.Contains(out, "cronjobs") || strings.Contains(out, "name: old") {
		t.Errorf("an archived revision: %v\n%s", err, out)
	}
	if _, _, err := printed(t, clustertest.FakeCluster(t, all...), 9); err == nil || !strings.Contains(err.Error(), "no revision 9") {
		t.Errorf("a revision that is not there: %v", err)
	}
}

// A ClusterPackage does not get the account for a Package of its name.
func TestRolesOfAnotherScope(t *testing.T) {
	t.Parallel()
	cl := clustertest.FakeCluster(t, clustertest.Installed(clustertest.Available()))
	cl.Namespace = "shop"
	out, _, err := printed(t, cl, 0)
	if err == nil || out != "" || !strings.Contains(err.Error(), "write clusterpackage/web or package/web") {
		t.Errorf("%v\n%s", err, out)
	}
}

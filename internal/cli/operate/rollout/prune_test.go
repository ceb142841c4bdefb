package rollout_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/require"
)

// prune names what revisions retain, asks, and waits for its removal up to the newest of
// these revisions, so that later ones keep theirs.
func TestRolloutPrune(t *testing.T) {
	t.Parallel()
	all := clustertest.Revised(nil)
	c := clustertest.FakeCluster(t, all...)
	invoke := func(args ...string) clitest.Result {
		return clitest.InvokeOn(t, clustertest.DialTo(c), "", append([]string{"rollout", "prune", "web"}, args...)...)
	}
	if got := invoke("--yes"); got.Code != 0 || got.Out != "package shop/web retains nothing\n" {
		t.Errorf("nothing: %+v", got)
	}
	for _, o := range all {
		if set, is := o.(*corev1alpha1.ObjectSet); is && set.Spec.Revision == 1 {
			require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
			set.Status.Retained = []corev1alpha1.RetainedObjectReference{{Kind: "ConfigMap", Namespace: "shop", Name: "old", Phase: "deploy"}}
			require.NoError(t, c.Update(t.Context(), set))
		}
	}
	prune := func() string {
		dep := &corev1alpha1.ObjectDeployment{}
		require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, dep))
		return dep.Annotations[corev1alpha1.PruneAnnotation]
	}
	if got := invoke(); got.Code == 0 || !strings.Contains(got.Out, "revision 1 retains ConfigMap shop/old") || prune() != "" {
		t.Errorf("without a confirmation: %+v, %q", got, prune())
	}
	if got := invoke("--yes"); got.Code != 0 || !strings.Contains(got.Out, "1 objects of package shop/web are being deleted") || prune() != "1" {
		t.Errorf("%+v, %q", got, prune())
	}
}

package tenants_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// soon is less than the 30 s after which a request to a target ends.
const soon = 28 * time.Second

// A package is released from a target as soon as its user requests it, regardless of how the
// target behaves. It is released at once if it has not written any object there.
func TestAbandonTarget(t *testing.T) {
	t.Parallel()
	empty := func(w http.ResponseWriter, r *http.Request) { emptyCluster(w, r, "abandon") }
	for name, target := range map[string]struct {
		first, later http.HandlerFunc
		unwritten    bool
	}{
		"hangs":             {first: empty, later: hangs()},
		"floods":            {first: floods("floods"), later: floods("floods")},
		"without-rights":    {first: empty, later: withoutRights},
		"hangs-always":      {first: hangs(), later: hangs(), unwritten: true},
		"never-with-rights": {first: withoutRights, later: withoutRights, unwritten: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newTenant(t, env, "")
			image := env.Push(t, "abandon-"+name+":v1", harness.Phased("app", 1, 1))
			var turned atomic.Bool
			pkg := u.installInto(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
				if turned.Load() {
					target.later(w, r)
					return
				}
				target.first(w, r)
			}), "any", u.namespace, "app", image)
			dep := &corev1alpha1.ObjectDeployment{}
			dep.Namespace, dep.Name = u.namespace, "app"
			harness.Await(t, env, harness.Patience, dep, "to record its target", func(dep *corev1alpha1.ObjectDeployment) error {
				if dep.Annotations[corev1alpha1.TargetClusterAnnotation] == "" && !target.unwritten || len(dep.Finalizers) == 0 {
					return fmt.Errorf("it has %v and %v", dep.Annotations, dep.Finalizers)
				}
				return nil
			})
			if target.unwritten {
				require.NoError(t, u.Delete(t.Context(), pkg))
				env.WaitGone(t, soon, pkg)
				env.WaitGone(t, soon, dep)
				return
			}
			u.claimed(t)
			turned.Store(true)
			require.NoError(t, u.Delete(t.Context(), pkg))
			harness.Await(t, env, harness.Patience, dep, "to be torn down", func(dep *corev1alpha1.ObjectDeployment) error {
				if dep.DeletionTimestamp == nil {
					return fmt.Errorf("it is not deleted")
				}
				return nil
			})
			annotation := fmt.Sprintf(`{"metadata": {"annotations": {%q: "true"}}}`, corev1alpha1.AbandonTargetAnnotation)
			require.NoError(t, u.Patch(t.Context(), pkg, client.RawPatch("application/merge-patch+json", []byte(annotation))))
			env.WaitGone(t, soon, pkg)
			env.WaitGone(t, soon, dep)
		})
	}
}

// claimed waits until an ObjectSet has claimed its objects, which comes before they are written.
func (u *tenant) claimed(t *testing.T) {
	t.Helper()
	harness.Eventually(t, harness.Patience, "an ObjectSet to claim its objects", func(ctx context.Context) error {
		var sets corev1alpha1.ObjectSetList
		if err := env.Client.List(ctx, &sets, client.InNamespace(u.namespace)); err != nil {
			return err
		}
		for i := range sets.Items {
			if sets.Items[i].Annotations[corev1alpha1.ClaimedAnnotation] == "true" || meta.IsStatusConditionTrue(sets.Items[i].Status.Conditions, corev1alpha1.ConditionClaimed) {
				return nil
			}
		}
		return fmt.Errorf("none of %d objects has", len(sets.Items))
	})
}

// withoutRights is a target that refuses everything about ConfigMaps.
func withoutRights(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.URL.Path, "/configmaps") {
		says(w, http.StatusForbidden, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "message": "configmaps is forbidden", "code": 403}`)
		return
	}
	emptyCluster(w, r, "abandon")
}

// hangs returns a target that stops answering after the first request for objects.
func hangs() http.HandlerFunc {
	var hanging atomic.Bool
	return func(w http.ResponseWriter, r *http.Request) {
		if hanging.Load() || strings.Contains(r.URL.Path, "/configmaps") {
			hanging.Store(true)
			<-r.Context().Done()
			return
		}
		emptyCluster(w, r, "abandon")
	}
}

// floods returns a target that sends changes of objects as fast as it can.
func floods(uid string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/configmaps") || r.URL.Query().Get("watch") == "" {
			emptyCluster(w, r, uid)
			return
		}
		for i := 2; r.Context().Err() == nil; i++ {
			_, err := fmt.Fprintf(w, `{"type": "MODIFIED", "object": {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"namespace": "n", "name": "c%d", "uid": "%d", "resourceVersion": "%d", `+
				`"labels": {%q: %q}, "annotations": {"k8s.io/initial-events-end": "true"}}, "data": {"value": "%d"}}}`+"\n",
				i%100, i%100, i, corev1alpha1.CacheLabel, corev1alpha1.CacheLabelValue, i)
			if err != nil {
				return
			}
		}
	}
}

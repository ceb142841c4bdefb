package tenants_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
)

// Whatever a target does, a package is let go of it as soon as its user says so.
func TestAbandonTarget(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]struct {
		handle http.HandlerFunc
	}{
		"hangs":  {handle: hangs()},
		"floods": {handle: floods("floods")},
		"without-rights": {handle: func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/configmaps") {
				says(w, http.StatusForbidden, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "message": "configmaps is forbidden", "code": 403}`)
				return
			}
			emptyCluster(w, r, "rights")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newTenant(t, env, "")
			image := env.Push(t, "abandon-"+name+":v1", harness.Phased("app", 1, 1))
			pkg := u.installInto(t, serve(t, answer.handle), "any", u.namespace, "app", image)
			dep := &corev1alpha1.ObjectDeployment{}
			dep.Namespace, dep.Name = u.namespace, "app"
			harness.Await(t, env, 20*time.Second, dep, "to record its target", func(dep *corev1alpha1.ObjectDeployment) error {
				if dep.Annotations[corev1alpha1.TargetClusterAnnotation] == "" {
					return fmt.Errorf("it has %v", dep.Annotations)
				}
				return nil
			})
			must(t, u.Delete(t.Context(), pkg))
			harness.Await(t, env, 20*time.Second, dep, "to be torn down", func(dep *corev1alpha1.ObjectDeployment) error {
				if dep.DeletionTimestamp == nil {
					return fmt.Errorf("it is not deleted")
				}
				return nil
			})
			annotation := fmt.Sprintf(`{"metadata": {"annotations": {%q: "true"}}}`, corev1alpha1.AbandonTargetAnnotation)
			must(t, u.Patch(t.Context(), pkg, client.RawPatch("application/merge-patch+json", []byte(annotation))))
			env.WaitGone(t, 20*time.Second, pkg) // requests to a target end after 30 s
			env.WaitGone(t, 20*time.Second, dep)
		})
	}
}

// hangs returns a target that says nothing more as soon as objects are asked for.
func hangs() http.HandlerFunc {
	var hanging atomic.Bool
	return func(w http.ResponseWriter, r *http.Request) {
		if hanging.Load() || strings.Contains(r.URL.Path, "/configmaps") {
			hanging.Store(true)
			<-r.Context().Done()
			return
		}
		emptyCluster(w, r, "hangs")
	}
}

// floods returns a target in which objects change as often as it can say so.
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

package objectdeployments

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

// TestLetPhaseGo: in a namespace that is being deleted an agent is awaited for a while;
// then the engine's finalizer is removed, and no other.
func TestLetPhaseGo(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		namespaceGoes bool
		waited        time.Duration
		finalizers    []string
		want          []string
		after         time.Duration
	}{
		"the namespace stays":   {false, time.Hour, []string{corev1alpha1.CachedFinalizer}, []string{corev1alpha1.CachedFinalizer}, namespaceLook},
		"not for long":          {true, 0, []string{corev1alpha1.CachedFinalizer}, []string{corev1alpha1.CachedFinalizer}, agentPatience},
		"long enough":           {true, agentPatience, []string{corev1alpha1.CachedFinalizer}, nil, 0},
		"a finalizer of others": {true, agentPatience, []string{"example.com/mine", corev1alpha1.CachedFinalizer}, []string{"example.com/mine"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
			if tc.namespaceGoes {
				namespace.DeletionTimestamp, namespace.Finalizers = ptr.To(metav1.NewTime(noon)), []string{"kubernetes"}
			}
			phase := &corev1alpha1.ObjectSetPhase{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "shop-1-remote", UID: "phase", Finalizers: tc.finalizers, DeletionTimestamp: ptr.To(metav1.NewTime(noon)),
			}}
			s := reconciliationOf(nil, nil)
			c := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(namespace, phase).Build()
			s.Client, s.Reader, s.Now = c, c, func() time.Time { return noon.Add(tc.waited) }
			require.NoError(t, s.letPhaseGo(t.Context(), objects.Key{Group: corev1alpha1.GroupVersion.Group, Kind: "ObjectSetPhase", Namespace: "shop", Name: phase.Name}))
			err := c.Get(t.Context(), client.ObjectKeyFromObject(phase), phase)
			if apierrors.IsNotFound(err) {
				phase.Finalizers, err = nil, nil
			}
			if diff := cmp.Diff(tc.want, phase.Finalizers); err != nil || diff != "" || s.After != tc.after {
				t.Errorf("%v, again after %s, want %s: %s", err, s.After, tc.after, diff)
			}
		})
	}
}

package objectdeployments

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/objects/objectslices"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/test/require"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// sealedObject returns a Secret that contains another Secret, as the controller of packages creates
// it.
func sealedObject(t *testing.T, namespace, ofKind, deployment, name string, age time.Duration, owner types.UID) *corev1.Secret {
	t.Helper()
	raw := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"` + name + `"},"stringData":{"password":"of-` + name + `"}}`
	phases := []corev1alpha1.ObjectSetTemplatePhase{{Name: "one", Objects: []corev1alpha1.ObjectSetObject{{Object: runtime.RawExtension{Raw: []byte(raw)}}}}}
	_, made, err := objectslices.Split(deployment, "", phases, &objectslices.Sealing{Key: []byte("key")})
	require.NoError(t, err)
	secret, err := made[0].Secret()
	require.NoError(t, err)
	secret.Namespace, secret.UID, secret.CreationTimestamp = namespace, types.UID(ofKind+name), metav1.NewTime(noon.Add(-age))
	secret.Labels = map[string]string{corev1alpha1.SliceOwnerLabel: deployment, corev1alpha1.SliceOwnerKindLabel: ofKind}
	secret.Finalizers = []string{corev1alpha1.CachedFinalizer}
	secret.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: corev1alpha1.GroupVersion.String(), Kind: ofKind, Name: deployment, UID: owner, Controller: ptr.To(true),
	}}
	return secret
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1alpha1.AddToScheme, corev1.AddToScheme} {
		require.NoError(t, add(scheme))
	}
	return scheme
}

// setOf returns a set of the deployment shop whose one phase is in a Secret.
func setOf(name string, archived bool, secrets ...string) *corev1alpha1.ObjectSet {
	set := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID(name),
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: corev1alpha1.GroupVersion.String(), Kind: "ObjectDeployment", Name: "shop", UID: "deployment", Controller: ptr.To(true),
		}},
	}}
	set.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "one", SecretSlices: secrets}}
	if archived {
		conditions.Set(&set.Status.Conditions, 0, corev1alpha1.ConditionArchived, true, corev1alpha1.ReasonArchived, "")
	}
	return set
}

// TestSecretsGoWithTheLastRevisionThatOwnsObjects: history keeps no values (invariant 8), and the
// values that a revision in charge needs stay (invariant 4).
func TestSecretsGoWithTheLastRevisionThatOwnsObjects(t *testing.T) {
	t.Parallel()
	secret := func(name string, age time.Duration, owner types.UID) *corev1.Secret {
		return sealedObject(t, "shop", "ObjectDeployment", "shop", name, age, owner)
	}
	history, shared, active := secret("history", time.Second, "deployment"), secret("shared", time.Hour, "deployment"), secret("active", time.Hour, "deployment")
	template, young := secret("template", time.Hour, "deployment"), secret("young", time.Second, "deployment")
	other, unused := secret("other", time.Hour, "former-deployment"), secret("unused", time.Hour, "deployment")
	cluster := sealedObject(t, "shop", "ClusterObjectDeployment", "shop", "cluster", time.Hour, "cluster-deployment")
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "of-a-user", UID: "of-a-user", CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))}}
	archived, current := setOf("shop-1", true, history.Name, shared.Name), setOf("shop-2", false, active.Name, shared.Name)
	server := fake.NewClientBuilder().WithScheme(newScheme(t)).
		WithIndex(current, ownerIndex, func(client.Object) []string { return []string{"ObjectDeployment shop/shop"} }).
		WithObjects(archived, current, history, shared, active, template, young, other, unused, cluster, foreign).
		Build()
	s := reconciliationOf(server, server)
	s.Now = func() time.Time { return noon }
	s.deployment.ObjectDeploymentSpec().Template.Spec.Phases[0].SecretSlices = []string{template.Name}
	s.deployment.SetAnnotations(map[string]string{corev1alpha1.SecretSlicedAnnotation: "true"})
	require.NoError(t, s.collectSlices(t.Context()))
	left := &corev1.SecretList{}
	require.NoError(t, server.List(t.Context(), left))
	var got []string
	for i := range left.Items {
		got = append(got, left.Items[i].Name)
	}
	want := []string{shared.Name, active.Name, template.Name, young.Name, other.Name, cluster.Name, foreign.Name}
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(t, want, got, "the Secrets that are left")
	if !s.collected || !s.slicesDue.Equal(noon.Add(sliceGrace)) {
		t.Errorf("collected %t; the young one is looked at again at %s, want %s", s.collected, s.slicesDue, noon.Add(sliceGrace))
	}
}

// TestNoSecretsNoRequests: a deployment that never had objects in Secrets does not request any,
// neither when it collects slices nor when it is torn down (invariant 5).
func TestNoSecretsNoRequests(t *testing.T) {
	t.Parallel()
	server := fake.NewClientBuilder().WithScheme(newScheme(t)).
		WithIndex(&corev1alpha1.ObjectSet{}, ownerIndex, func(client.Object) []string { return []string{"ObjectDeployment shop/shop"} }).Build()
	asked := 0
	counting := interceptor.NewClient(server, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			asked++
			return c.List(ctx, list, opts...)
		},
	})
	s := reconciliationOf(server, counting)
	s.Now = func() time.Time { return noon }
	require.NoError(t, s.collectSlices(t.Context()))
	require.NoError(t, s.dropSlices(t.Context(), nil))
	if asked != 0 {
		t.Errorf("%d requests", asked)
	}
}

// TestLoadFromSecrets: a revision is loaded with the content of its Secrets. It waits if one is
// missing, or if its content does not match its name.
func TestLoadFromSecrets(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		scope  corev1alpha1.Scope
		// change changes the stored Secret; nil deletes it.
		change     func(*corev1.Secret)
		incomplete bool
	}{
		"as written":             {"", corev1alpha1.ScopeNamespaced, func(*corev1.Secret) {}, false},
		"of a cluster kind":      {"its Secrets are in the manager's namespace", corev1alpha1.ScopeCluster, func(*corev1.Secret) {}, false},
		"missing":                {"a user deleted it by force", corev1alpha1.ScopeNamespaced, nil, true},
		"recreated by a user":    {"a user who can write Secrets cannot write packages", corev1alpha1.ScopeNamespaced, func(s *corev1.Secret) { s.Data["objects"] = []byte(`[]`) }, true},
		"a Secret of other type": {"a set cannot have any Secret read", corev1alpha1.ScopeNamespaced, func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace, kind, key := "shop", "ObjectDeployment", objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "shop", Name: "shop"}
			if tc.scope == corev1alpha1.ScopeCluster {
				namespace, kind, key = "system", "ClusterObjectDeployment", objects.OwnerKey{Kind: "ClusterObjectDeployment", Name: "shop"}
			}
			secret := sealedObject(t, namespace, kind, "shop", "credentials", time.Hour, "deployment")
			build := fake.NewClientBuilder().WithScheme(newScheme(t))
			stored := secret.DeepCopy()
			if tc.change != nil {
				tc.change(stored)
				build = build.WithObjects(stored)
			}
			server := build.Build()
			s := reconciliationOf(server, server)
			s.Now, s.Namespace, s.key, s.scope, s.written = func() time.Time { return noon }, "system", key, tc.scope, mutationcache.NewStore()
			s.stored = objectsets.Stored{Slices: map[string][]corev1alpha1.ObjectSetObject{}, Secrets: map[string][]corev1alpha1.ObjectSetObject{}}
			set := tc.scope.NewObjectSet()
			set.SetNamespace(key.Namespace)
			set.SetName("shop-1")
			set.ObjectSetSpec().Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "one", SecretSlices: []string{secret.Name}}}
			missing, err := s.readSecrets(t.Context(), set)
			require.NoError(t, err)
			rev := objectsets.Load(set, s.stored, objects.Owner{Names: apinames.Default}, func(schema.GroupKind, string) (bool, bool) { return false, false })
			if got := len(missing) > 0; got != tc.incomplete || !rev.Sensitive {
				t.Fatalf("%s: missing %v, sensitive %t", tc.reason, missing, rev.Sensitive)
			}
			if got := len(rev.Keys()); got != map[bool]int{false: 1, true: 0}[tc.incomplete] {
				t.Errorf("%s: %d objects are loaded", tc.reason, got)
			}
			if strings.Contains(strings.Join(missing, " "), "password") {
				t.Errorf("the error quotes the Secret: %v", missing)
			}
		})
	}
}

// TestCollectionAfterACrash: if a process dies at any write while it deletes Secrets, before or
// after the write took effect, the next one completes the work: after a revision was archived, and
// when the deployment is deleted (invariant 4).
func TestCollectionAfterACrash(t *testing.T) {
	t.Parallel()
	current, archived := setOf("shop-2", false, "kept"), setOf("shop-1", true)
	for name, tc := range map[string]struct {
		delete func(context.Context, *reconciliation) error
		left   int
	}{
		"history": {func(ctx context.Context, s *reconciliation) error { return s.collectSlices(ctx) }, 1},
		"all":     {func(ctx context.Context, s *reconciliation) error { return s.dropSlices(ctx, nil) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for at := 0; ; at++ {
				for _, effect := range []bool{false, true} {
					active := sealedObject(t, "shop", "ObjectDeployment", "shop", "active", time.Hour, "deployment")
					set, history := current.DeepCopy(), archived.DeepCopy()
					set.Spec.Phases[0].SecretSlices = []string{active.Name}
					all := []client.Object{active, set, history}
					for _, former := range []string{"a", "b"} {
						secret := sealedObject(t, "shop", "ObjectDeployment", "shop", former, time.Hour, "deployment")
						history.Spec.Phases[0].SecretSlices = append(history.Spec.Phases[0].SecretSlices, secret.Name)
						all = append(all, secret)
					}
					server := fake.NewClientBuilder().WithScheme(newScheme(t)).
						WithIndex(set, ownerIndex, func(client.Object) []string { return []string{"ObjectDeployment shop/shop"} }).WithObjects(all...).Build()
					died := collectTwice(t, server, at, effect, tc.delete)
					left := &corev1.SecretList{}
					if err := server.List(t.Context(), left); err != nil || len(left.Items) != tc.left {
						t.Errorf("a crash at write %d, which took effect: %t; %d Secrets are left, want %d; error %v", at, effect, len(left.Items), tc.left, err)
					}
					if !died && at < 4 {
						t.Fatalf("there are %d writes alone", at)
					}
					if !died {
						return
					}
				}
			}
		})
	}
}

// collectTwice lets a process delete Secrets that dies at a write, and then another one; it reports
// whether the first one reached that write.
func collectTwice(t *testing.T, server client.WithWatch, at int, effect bool, collect func(context.Context, *reconciliation) error) (died bool) {
	t.Helper()
	crash, writes := errors.New("crash"), 0
	dies := func(write func() error) error {
		writes++
		if died = died || writes == at+1; writes != at+1 {
			return write()
		}
		if effect {
			if err := write(); err != nil {
				return err
			}
		}
		return crash
	}
	failing := interceptor.NewClient(server, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return dies(func() error { return c.Delete(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return dies(func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
	})
	for i, c := range []client.Client{failing, server} {
		s := reconciliationOf(c, server)
		s.Now = func() time.Time { return noon }
		s.deployment.SetAnnotations(map[string]string{corev1alpha1.SecretSlicedAnnotation: "true"})
		if s.collected {
			t.Fatal("a new process does not look for unused Secrets")
		}
		if err := collect(t.Context(), s); err != nil && (i > 0 || !errors.Is(err, crash)) {
			t.Fatal(err)
		}
	}
	return died
}

// TestCollectionIsRepeatedUntilItSucceeds: no event reports a Secret whose deletion the
// API server refused for the moment.
func TestCollectionIsRepeatedUntilItSucceeds(t *testing.T) {
	t.Parallel()
	for name, reason := range map[string]func(s *reconciliation){
		"a write that takes uses away was tried": func(s *reconciliation) { s.collectionDue = true },
		"a young one is due":                     func(s *reconciliation) { s.slicesDue = noon },
		"a process that has not looked": func(s *reconciliation) {
			s.collected = false
			s.deployment.SetAnnotations(map[string]string{corev1alpha1.SecretSlicedAnnotation: "true"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failing := true
			server := fake.NewClientBuilder().WithScheme(newScheme(t)).
				WithIndex(&corev1alpha1.ObjectSet{}, ownerIndex, func(client.Object) []string { return nil }).
				WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if failing {
						return errors.New("not now")
					}
					return c.List(ctx, list, opts...)
				}}).Build()
			s := reconciliationOf(server, server)
			s.Now, s.collected = func() time.Time { return noon }, true
			if s.collectable() {
				t.Error("a look is due without a reason")
			}
			reason(s)
			if !s.collectable() {
				t.Fatal("no look is due")
			}
			if err := s.collectSlices(t.Context()); err == nil || !s.collectable() {
				t.Fatalf("a look that failed (%v) is not repeated", err)
			}
			failing = false
			require.NoError(t, s.collectSlices(t.Context()))
			if s.collectable() {
				t.Error("a look is repeated that succeeded")
			}
		})
	}
}

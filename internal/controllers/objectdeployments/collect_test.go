package objectdeployments

import (
	"context"
	"errors"
	"fmt"
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
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/objects/objectslices"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/test/require"
)

// TestCollectionKeepsWhatIsNeeded draws histories: a Secret is never deleted while the template or
// a revision that owns objects names it (invariants 2 and 4), and in the end no other one is left
// (invariant 8).
func TestCollectionKeepsWhatIsNeeded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var all []client.Object
		var secrets []string
		for i := range rapid.IntRange(0, 6).Draw(t, "secrets") {
			name := fmt.Sprintf("shop-%d", i)
			secrets = append(secrets, name)
			age := rapid.SampledFrom([]time.Duration{time.Second, sliceGrace - 1, sliceGrace, time.Hour}).Draw(t, "age")
			all = append(all, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon.Add(-age)),
				Labels:     map[string]string{corev1alpha1.SliceOwnerLabel: "shop", corev1alpha1.SliceOwnerKindLabel: "ObjectDeployment"},
				Finalizers: []string{corev1alpha1.CachedFinalizer},
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: corev1alpha1.GroupVersion.String(), Kind: "ObjectDeployment", Name: "shop", UID: "deployment", Controller: ptr.To(true),
				}},
			}})
		}
		// A missing Secret can be named, too.
		someOf := rapid.SliceOfN(rapid.SampledFrom(append(secrets, "lost")), 0, 3)
		needed := map[string]bool{}
		template := someOf.Draw(t, "template")
		for i := range rapid.IntRange(0, 4).Draw(t, "sets") {
			archived, names := rapid.Bool().Draw(t, "archived"), someOf.Draw(t, "names")
			all = append(all, setOf(fmt.Sprintf("shop-set-%d", i), archived, names...))
			for _, name := range names {
				needed[name] = needed[name] || !archived
			}
		}
		for _, name := range template {
			needed[name] = true
		}
		server := newServer().WithObjects(all...).Build()
		now := noon
		for range 2 {
			s := reconciliationOf(server, server)
			s.Now = func() time.Time { return now }
			s.deployment.SetAnnotations(map[string]string{corev1alpha1.SecretSlicedAnnotation: "true"})
			s.deployment.ObjectDeploymentSpec().Template.Spec.Phases[0].SecretSlices = template
			require.NoError(t, s.collectSlices(t.Context()))
			left := &corev1.SecretList{}
			require.NoError(t, server.List(t.Context(), left))
			there := map[string]bool{}
			for _, secret := range left.Items {
				there[secret.Name] = true
				if !needed[secret.Name] && s.slicesDue.IsZero() {
					t.Fatalf("%s is left, and no reconcile looks at it again", secret.Name)
				}
			}
			for _, name := range secrets {
				if needed[name] && !there[name] {
					t.Fatalf("%s was deleted, although it is needed", name)
				}
			}
			if s.slicesDue.IsZero() {
				return
			}
			now = s.slicesDue
		}
		t.Fatal("young Secrets are kept for longer than the grace")
	})
}

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
	server := newServer().WithObjects(archived, current, history, shared, active, template, young, other, unused, cluster, foreign).Build()
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
	server := newServer().Build()
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
	_, err := s.obsoleteSlices(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, 0, asked, "requests")
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
			build := newServer()
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
			require.Equal(t, map[bool]int{false: 1, true: 0}[tc.incomplete], len(rev.Keys()), tc.reason)
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
		"all": {func(ctx context.Context, s *reconciliation) error {
			all, err := s.obsoleteSlices(ctx, nil)
			return errors.Join(err, s.dropSets(ctx, nil, all))
		}, 0},
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
					server := newServer().WithObjects(all...).Build()
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
			server := newServer().WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
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

// TestSlicesStayWhileTheyAreNamed: a slice is deleted only if neither the template nor a set has
// named it for longer than a pending write can take (invariant 4: a revision's record exists as
// long as the revision).
func TestSlicesStayWhileTheyAreNamed(t *testing.T) {
	t.Parallel()
	controlledBy := func(uid types.UID) []metav1.OwnerReference {
		return []metav1.OwnerReference{{
			APIVersion: corev1alpha1.GroupVersion.String(), Kind: "ObjectDeployment", Name: "shop", UID: uid, Controller: ptr.To(true),
		}}
	}
	slice := func(name string, age time.Duration, owner types.UID) client.Object {
		return &corev1alpha1.ObjectSlice{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon.Add(-age)), OwnerReferences: controlledBy(owner),
			Labels: map[string]string{corev1alpha1.SliceOwnerLabel: "shop"}, Finalizers: []string{corev1alpha1.CachedFinalizer},
		}}
	}
	// Package Operator writes no finalizer, and every set that uses a slice as an owner.
	former := slice("of-package-operator", time.Hour, "deployment")
	former.SetFinalizers(nil)
	former.SetOwnerReferences(append(former.GetOwnerReferences(), metav1.OwnerReference{
		APIVersion: corev1alpha1.GroupVersion.String(), Kind: "ObjectSet", Name: "shop-0", UID: "of a deleted set",
	}))
	old := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop-1", UID: "set", OwnerReferences: controlledBy("deployment")}}
	old.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "one", Slices: []string{"of-a-set"}}}
	server := newServer().WithObjects(old, former,
		slice("of-a-set", time.Hour, "deployment"), slice("of-the-template", time.Hour, "deployment"), slice("young", time.Second, "deployment"),
		slice("of-another-deployment", time.Hour, "other"), slice("unused", time.Hour, "deployment")).Build()
	s := reconciliationOf(server, server)
	s.Now = func() time.Time { return noon }
	s.deployment.ObjectDeploymentSpec().Template.Spec.Phases[0].Slices = []string{"of-the-template"}
	require.NoError(t, s.collectSlices(t.Context()))
	var left corev1alpha1.ObjectSliceList
	require.NoError(t, server.List(t.Context(), &left))
	var names []string
	for i := range left.Items {
		names = append(names, left.Items[i].Name)
	}
	slices.Sort(names)
	require.Equal(t, []string{"of-a-set", "of-another-deployment", "of-the-template", "young"}, names, "the slices that are left")
	if due := noon.Add(sliceGrace); !s.slicesDue.Equal(due) {
		t.Errorf("the young one is looked at again at %s, want %s", s.slicesDue, due)
	}
}

// TestSetsOwnTheirSlices: the set that a slice was written for becomes its owner, once, even if
// later revisions share it.
func TestSetsOwnTheirSlices(t *testing.T) {
	t.Parallel()
	set := func(name string, slices ...string) *corev1alpha1.ObjectSet {
		s := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name)}}
		s.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "one", Slices: slices}}
		return s
	}
	slice := func(name string) *corev1alpha1.ObjectSlice {
		return &corev1alpha1.ObjectSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	}
	patches := 0
	server := interceptor.NewClient(newServer().WithObjects(slice("shared"), slice("new"), slice("gone")).Build(), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			patches++
			err := c.Patch(ctx, obj, patch, opts...)
			if patches == 1 && err == nil {
				return errors.New("the answer was lost")
			}
			return err
		},
	})
	s := reconciliationOf(server, server)
	first, second := set("shop-1", "shared"), set("shop-2", "shared", "new", "gone")
	s.sets = []corev1alpha1.GenericObjectSet{first}
	load := func(of corev1alpha1.GenericObjectSet) {
		t.Helper()
		if _, err := s.readSlices(t.Context(), of); err != nil {
			t.Fatal(err)
		}
	}
	load(first)
	if err := s.referenceSlices(t.Context()); err == nil {
		t.Fatal("a lost answer is not an error")
	}
	s.sets = append(s.sets, second)
	load(second)
	require.NoError(t, server.Delete(t.Context(), slice("gone")))
	for range 2 {
		require.NoError(t, s.referenceSlices(t.Context()))
	}
	for name, owner := range map[string]string{"shared": "shop-1", "new": "shop-2"} {
		live := slice(name)
		require.NoError(t, server.Get(t.Context(), client.ObjectKeyFromObject(live), live))
		want := []metav1.OwnerReference{{APIVersion: "package-operator.run/v1alpha1", Kind: "ObjectSet", Name: owner, UID: types.UID("uid-of-" + owner)}}
		require.Equal(t, want, live.OwnerReferences, fmt.Sprintf("the owners of %s", name))
	}
	require.Equal(t, 4, patches, "patches")

	// The garbage collector takes the reference to a set off that was deleted. It is replaced at
	// once, not by the next process.
	live := slice("shared")
	require.NoError(t, server.Get(t.Context(), client.ObjectKeyFromObject(live), live))
	live.OwnerReferences = nil
	require.NoError(t, server.Update(t.Context(), live))
	s.sets = []corev1alpha1.GenericObjectSet{second}
	for range 3 {
		require.NoError(t, s.referenceSlices(t.Context()))
	}
	require.NoError(t, server.Get(t.Context(), client.ObjectKeyFromObject(live), live))
	if len(live.OwnerReferences) != 1 || live.OwnerReferences[0].Name != "shop-2" || patches != 6 {
		t.Errorf("after %d patches the slice belongs to %v, want shop-2 after one that is refused and one more", patches, live.OwnerReferences)
	}
	next := reconciliationOf(server, server)
	next.sets = s.sets
	if _, err := next.readSlices(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if due := next.dueReferences(); len(due) > 0 {
		t.Errorf("after a restart %d slices are patched", len(due))
	}
}

// TestLoneSetsLeaveTheirSlicesAlone: users' slices, which several lone sets can share, are not
// garbage-collected with the first of them.
func TestLoneSetsLeaveTheirSlicesAlone(t *testing.T) {
	t.Parallel()
	slice := &corev1alpha1.ObjectSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shared"}}
	server := newServer().WithObjects(slice).Build()
	set := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "first", UID: "first"}}
	set.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "one", Slices: []string{slice.Name}}}
	s := reconciliationOf(server, server)
	s.deployment, s.sets = nil, []corev1alpha1.GenericObjectSet{set}
	if missing, err := s.readSlices(t.Context(), set); err != nil || len(missing) > 0 {
		t.Fatalf("missing %v, %v", missing, err)
	}
	require.NoError(t, s.referenceSlices(t.Context()))
	require.NoError(t, server.Get(t.Context(), client.ObjectKeyFromObject(slice), slice))
	if len(slice.OwnerReferences) > 0 {
		t.Errorf("the slice belongs to %v: it would be collected with that set", slice.OwnerReferences)
	}
}

// TestSlicesAreListedAtTheStart: a starting manager lists slices if it needs many, and reads the
// ones that the list did not have.
func TestSlicesAreListedAtTheStart(t *testing.T) {
	t.Parallel()
	const many = 3 * limits.SlicesAsked
	for name, tc := range map[string]struct {
		reason      string
		named       int
		refused     error
		lists, gets int
	}{
		"few":     {reason: "a list would have those of everyone in it", named: limits.SlicesAsked, gets: limits.SlicesAsked},
		"many":    {reason: "one list has them all", named: many, lists: 1},
		"refused": {reason: "a failed list must not prevent the start", named: many, refused: errors.New("busy"), lists: 1, gets: many},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := &corev1alpha1.ObjectSet{}
			set.Namespace, set.Name = "shop", "shop-1"
			set.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "one"}}
			build := newServer()
			for i := range many {
				slice := &corev1alpha1.ObjectSlice{}
				slice.Namespace, slice.Name = "shop", fmt.Sprint("slice-", i)
				slice.Objects = []corev1alpha1.ObjectSetObject{{Object: runtime.RawExtension{Raw: fmt.Appendf(nil, `{"kind":"ConfigMap","index":%d}`, i)}}}
				build = build.WithObjects(slice)
				if i < tc.named {
					set.Spec.Phases[0].Slices = append(set.Spec.Phases[0].Slices, slice.Name)
				}
			}
			lists, gets := 0, 0
			server := interceptor.NewClient(build.Build(), interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if lists++; tc.refused != nil {
						return tc.refused
					}
					return c.List(ctx, list, opts...)
				},
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					gets++
					return c.Get(ctx, key, obj, opts...)
				},
			})
			s := reconciliationOf(server, server)
			s.stored = objectsets.Stored{Slices: map[string][]corev1alpha1.ObjectSetObject{}}
			s.prefetched = map[types.NamespacedName]corev1alpha1.GenericObjectSlice{}
			s.prefetchSlices(t.Context(), corev1alpha1.ScopeNamespaced, []corev1alpha1.GenericObjectSet{set})
			missing, err := s.readSlices(t.Context(), set)
			if err != nil || len(missing) > 0 {
				t.Fatalf("missing %v, error %v", missing, err)
			}
			if lists != tc.lists || gets != tc.gets {
				t.Errorf("%d lists and %d GETs, want %d and %d: %s", lists, gets, tc.lists, tc.gets, tc.reason)
			}
			for i, name := range set.Spec.Phases[0].Slices {
				if got, want := string(s.stored.Slices[name][0].Object.Raw), fmt.Sprintf(`{"kind":"ConfigMap","index":%d}`, i); got != want {
					t.Errorf("slice %s is %s, want %s", name, got, want)
				}
			}
		})
	}
}

package objectdeployments

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/claims"
	"lockstep.run/lockstep/test/require"
)

// looks is a cluster that answers reads of single objects.
type looks struct {
	*cluster.Connection
	look func() (*metav1.PartialObjectMetadata, error)
}

func (l looks) GetMetadata(context.Context, *meta.RESTMapping, string, string) (*metav1.PartialObjectMetadata, error) {
	return l.look()
}

// TestRefusedLookClaimsNothing: a revision whose objects must not be read, or taken, holds no
// claim. An owner that claims one of them meanwhile is named.
func TestRefusedLookClaimsNothing(t *testing.T) {
	t.Parallel()
	object := objects.Key{Kind: "ConfigMap", Namespace: "shop", Name: "c"}
	other := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "shop", Name: "other"}, UID: "other"}
	foreign := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		UID: "foreign", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "n", Controller: ptr.To(true)}},
	}}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "c", errors.New("no right"))
	answers := maps.Clone(servesThings)
	answers["/api/v1"] = `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [
		{"name": "configmaps", "kind": "ConfigMap", "namespaced": true, "verbs": ["list", "watch"]}]}`
	for name, tc := range map[string]struct {
		live *metav1.PartialObjectMetadata
		err  error
		// meanwhile means that the other owner claims the object during the look.
		meanwhile bool
		// sensitive means that the owner has values of Secrets, which a server could quote.
		sensitive bool
		holder    types.UID
		refusal   string
	}{
		"free":                         {err: apierrors.NewNotFound(schema.GroupResource{}, "c"), holder: "deployment"},
		"forbidden":                    {err: forbidden, refusal: "cannot look for objects that exist already: "},
		"a quoted value":               {err: forbidden, sensitive: true, refusal: "Forbidden"},
		"the API does not answer":      {err: apierrors.NewServiceUnavailable("no endpoints"), holder: "deployment"},
		"controlled by something":      {live: foreign, refusal: "is controlled by Node n"},
		"claimed meanwhile":            {err: apierrors.NewNotFound(schema.GroupResource{}, "c"), meanwhile: true, holder: "other", refusal: "belongs to ObjectDeployment shop/other"},
		"claimed and made meanwhile":   {live: foreign, meanwhile: true, holder: "other", refusal: "belongs to ObjectDeployment shop/other"},
		"claimed, and forbidden to us": {err: forbidden, meanwhile: true, holder: "other", refusal: "belongs to ObjectDeployment shop/other"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newServer().Build()
			s := reconciliationOf(server, server)
			s.Target.Cluster = looks{liveOf(t, answers), func() (*metav1.PartialObjectMetadata, error) {
				if tc.meanwhile {
					if err := s.rollout.Claims.Claim(other, []objects.Key{object}); err != nil {
						t.Error(err)
					}
				}
				return tc.live, tc.err
			}}
			set := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop-1", UID: "set"}}
			set.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{
				Name: "one", Objects: stored(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}`),
			}}
			rev, err := s.loadSet(t.Context(), set)
			require.NoError(t, err)
			rev.Sensitive = tc.sensitive
			s.rollout.Put(rev)
			require.NoError(t, s.Target.Claim(t.Context(), s.rollout, rev))
			refusals := rev.Refusals
			if tc.sensitive && strings.Contains(refusals[0].Message, "no right") {
				t.Errorf("the refusal quotes the server: %v", refusals)
			}
			if (len(refusals) > 0) != (tc.refusal != "") || tc.refusal != "" && !strings.Contains(refusals[0].Message, tc.refusal) {
				t.Errorf("refused for %v, want %q", refusals, tc.refusal)
			}
			if holder, _ := s.rollout.Claims.Holder(object); holder.UID != tc.holder {
				t.Errorf("the object is held by %q, want %q", holder.UID, tc.holder)
			}
		})
	}
}

// TestClaimsOfTargets: in another cluster, owners of different namespaces do not exclude each
// other, for any UID that the cluster reports; owners of one namespace do. A table is dropped with
// its last owner.
func TestClaimsOfTargets(t *testing.T) {
	t.Parallel()
	r := reconciliationOf(nil, nil).Reconciler
	wants := []objects.Key{{Kind: "ConfigMap", Namespace: "there", Name: "c"}}
	use := func(namespace, name string, in claimants) *state {
		key := objects.OwnerKey{Kind: "ObjectDeployment", Namespace: namespace, Name: name}
		return r.remember(key, types.UID(namespace+name), nil, &in)
	}
	claim := func(o *state) error { return o.rollout.Claims.Claim(o.rollout.Owner, wants) }
	evil := use("evil", "x", claimantsOf("edge", "evil"))
	shop := use("shop", "app", claimantsOf("edge", "shop"))
	beside := use("shop", "beside", claimantsOf("edge", "shop"))
	ofCluster := use("", "app", claimantsOf("edge", ""))
	for _, o := range []*state{evil, shop, ofCluster} {
		if err := claim(o); err != nil {
			t.Errorf("%s: %v", o.rollout.Owner, err)
		}
	}
	var conflict *claims.Conflict
	if err := claim(beside); !errors.As(err, &conflict) || conflict.Holder != shop.rollout.Owner {
		t.Errorf("an owner of the same namespace: %v", err)
	}

	r.forget(shop.rollout.Owner.OwnerKey)
	require.Equal(t, 4, len(r.claims), "tables are left")
	if err := claim(beside); err != nil {
		t.Errorf("the holder does not exist: %v", err)
	}
	r.forget(beside.rollout.Owner.OwnerKey)
	use("evil", "x", claimantsOf("elsewhere", "evil"))
	if _, left := r.claims[claimants{"edge", "evil"}]; left || len(r.claims) != 3 {
		t.Errorf("the tables %v are left", r.claims)
	}
	if here := claimantsOf("", "shop"); here != (claimants{}) {
		t.Errorf("in the cluster of our own kinds, owners of a namespace are apart: %v", here)
	}
}

// TestOverruled: if a cluster-scoped owner takes an object of a revision, the revision writes
// nothing more, and names the winner. It is claimed again when the winner releases the object.
func TestOverruled(t *testing.T) {
	t.Parallel()
	server := newServer().Build()
	s := reconciliationOf(server, server)
	s.Target.Cluster = looks{liveOf(t, servesThings), func() (*metav1.PartialObjectMetadata, error) {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, "c")
	}}
	set := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop-1", UID: "set"}}
	set.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "one", Objects: append(
		stored(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}`), stored(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "d"}}`)...)}}
	conditions.Set(&set.Status.Conditions, 0, corev1alpha1.ConditionClaimed, true, corev1alpha1.ReasonClaimed, "")
	s.sets, s.current = []corev1alpha1.GenericObjectSet{set}, set
	load := func() *engine.Revision {
		t.Helper()
		require.NoError(t, s.load(t.Context()))
		s.Target.Prepare(s.rollout)
		return s.revisionOf(set)
	}
	rev := load()
	s.restoreClaim(rev, set)
	if !rev.Claimed() {
		t.Fatal("not claimed at the start")
	}
	platform := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ClusterObjectDeployment", Name: "platform"}, UID: "platform"}
	taken := []objects.Key{{Kind: "ConfigMap", Namespace: "shop", Name: "c"}}
	if err := s.rollout.Claims.ClaimOver(platform, taken, nil); err == nil {
		t.Error("taken without being taken over")
	}
	if rev := load(); !rev.Claimed() {
		t.Error("the lost claim has no winner")
	}
	require.NoError(t, s.rollout.Claims.ClaimOver(platform, taken, map[objects.Key]struct{}{taken[0]: {}}))
	if rev := load(); !rev.ClaimLost() {
		t.Fatal("the claim is kept")
	}
	if err := s.Target.Claim(t.Context(), s.rollout, rev); err != nil || !rev.Refused() || !strings.Contains(rev.Blocked(), "belongs to ClusterObjectDeployment platform") {
		t.Errorf("refused: %q, error %v", rev.Blocked(), err)
	}
	if holder, _ := s.rollout.Claims.Holder(objects.Key{Kind: "ConfigMap", Namespace: "shop", Name: "d"}); holder != s.rollout.Owner {
		t.Errorf("the other object is held by %v", holder)
	}
	s.rollout.Claims.Release(platform)
	free := load()
	if err := s.Target.Claim(t.Context(), s.rollout, free); err != nil || free.Refused() {
		t.Errorf("refused when it is free again: %v, %v", free.Refusals, err)
	}
}

// TestClaimRecordedWithoutAnAnswer: the record of a claim was written, but its answer was lost. The
// claim is no longer refused for an obstacle that came before the record was known.
func TestClaimRecordedWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for name, block := range map[string]func(*engine.Revision){
		"a collision": func(rev *engine.Revision) {
			rev.Refuse(phases.Blocker{Kind: phases.BlockCollision, Message: "is controlled by another one"})
		},
		"an account": func(rev *engine.Revision) {
			rev.Unauthorized = &engine.Unauthorized{Message: "it cannot list"}
			rev.Block(rev.Unauthorized.Message)
		},
	} {
		s := reconciliationOf(nil, nil)
		s.restored = true
		set, err := s.newSet(1)
		require.NoError(t, err)
		set.SetUID("set")
		s.sets = []corev1alpha1.GenericObjectSet{set}
		require.NoError(t, s.loadSets(t.Context()))
		block(s.revisionOf(set))
		conditions.Set(set.StatusConditions(), 0, corev1alpha1.ConditionClaimed, true, corev1alpha1.ReasonClaimed, "")
		require.NoError(t, s.loadSets(t.Context()))
		if rev := s.revisionOf(set); !rev.Claimed() || rev.Blocked() != "" {
			t.Errorf("%s: claimed %t, blocked by %q", name, rev.Claimed(), rev.Blocked())
		}
	}
}

// TestScopeIsThatOfTheMapping: a mapping has both the served version and the scope of a kind. An
// API server with another scope in another version shows where the scope comes from.
func TestScopeIsThatOfTheMapping(t *testing.T) {
	t.Parallel()
	r := &Target{Engine: &engine.Engine{Cluster: liveOf(t, servesThings)}}
	for version, want := range map[string]struct{ namespaced, known bool }{
		"v1": {false, true}, "v1beta1": {true, true}, "": {false, true}, "v2": {false, false},
	} {
		namespaced, known := r.namespaced(thing, version)
		if namespaced != want.namespaced || known != want.known {
			t.Errorf("version %q: namespaced: %t, known: %t, want %+v", version, namespaced, known, want)
		}
	}
}

// TestReloadedRevisionIsClaimed: if a revision turns out to have an object that it lacked when the
// claims were restored, the object is claimed before it is written. If another owner has it by
// then, the revision writes nothing more (invariant 10).
func TestReloadedRevisionIsClaimed(t *testing.T) {
	t.Parallel()
	inSlice := objects.Key{Kind: "ConfigMap", Namespace: "shop", Name: "c"}
	ofCluster := objects.Key{Group: thing.Group, Kind: thing.Kind, Name: "t"}
	for name, tc := range map[string]struct {
		reason string
		// takes are the objects that another owner takes meanwhile, as a successor or not; lost
		// means that it had them from the start.
		takes           []objects.Key
		successor, lost bool
		claimed         bool
	}{
		"free":                 {reason: "no other owner has it", claimed: true},
		"a slice comes back":   {reason: "another has an object of it", takes: []objects.Key{inSlice}},
		"a scope is learned":   {reason: "another has the object of that name", takes: []objects.Key{ofCluster}},
		"denied at the start":  {reason: "another was first", takes: []objects.Key{inSlice}, lost: true},
		"handed over":          {reason: "its successor has it", takes: []objects.Key{inSlice, ofCluster}, successor: true, claimed: true},
		"denied, and free now": {reason: "no other owner has it any more", lost: true, claimed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := &corev1alpha1.ClusterObjectSet{ObjectMeta: metav1.ObjectMeta{Name: "shop-1", UID: "set"}}
			set.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{
				Name: "one", Slices: []string{"a"}, Objects: stored(`{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"namespace": "shop", "name": "t"}}`),
			}}
			set.Status.Phases = []corev1alpha1.PhaseStatus{{State: corev1alpha1.PhaseStateReady}}
			conditions.Set(&set.Status.Conditions, 0, corev1alpha1.ConditionClaimed, true, corev1alpha1.ReasonClaimed, "")
			server := newServer().Build()
			now := noon
			var woken []objects.Owner
			s := reconciliationOf(server, server)
			s.scope, s.sets, s.current = corev1alpha1.ScopeCluster, []corev1alpha1.GenericObjectSet{set}, set
			s.Now, s.rollout.Claims = func() time.Time { return now }, claims.NewTable(func(h objects.Owner) { woken = append(woken, h) })
			s.Target.Cluster = unstarted(t, "http://unused", func(schema.GroupKind) {})
			other := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectSet", Namespace: "shop", Name: "other"}, UID: "other"}
			load := func() *engine.Revision {
				t.Helper()
				require.NoError(t, s.loadSets(t.Context()))
				return s.revisionOf(set)
			}
			take := func(keys ...objects.Key) {
				t.Helper()
				require.NoError(t, s.rollout.Claims.Claim(other, keys))
			}

			atStart := load()
			if !atStart.Incomplete() || !atStart.Claimed() {
				t.Fatalf("the revision is to be incomplete and claimed: %+v", atStart.Revision)
			}
			if tc.lost {
				take(atStart.Keys()...)
			}
			s.restoreClaim(atStart, set)
			if atStart.ClaimLost() != tc.lost {
				t.Fatalf("the claim is lost at the start: %t, want %t", atStart.ClaimLost(), tc.lost)
			}
			s.restored = true
			s.rollout.Claims.Release(other)
			take(tc.takes...)
			if tc.successor {
				s.rollout.Controllers.Successors = sets.New[types.UID]("other")
			}
			slice := &corev1alpha1.ClusterObjectSlice{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
			slice.Objects = stored(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "c"}}`)
			require.NoError(t, server.Create(t.Context(), slice))
			now, s.Target.Cluster = now.Add(missingRetry), liveOf(t, servesThings)

			rev := load()
			if rev.Incomplete() || !slices.Equal(rev.Keys(), []objects.Key{ofCluster, inSlice}) {
				t.Fatalf("the revision has %v", rev.Keys())
			}
			if rev.Claimed() != tc.claimed || rev.ClaimLost() == tc.claimed {
				t.Errorf("claimed: %t, lost: %t, but %s", rev.Claimed(), rev.ClaimLost(), tc.reason)
			}
			if !rev.Phases[0].WrittenBefore() {
				t.Error("the write of the phase before this process started is forgotten")
			}
			for _, key := range rev.Keys() {
				holder, held := s.rollout.Claims.Holder(key)
				if theirs := slices.Contains(tc.takes, key); theirs && holder != other || tc.claimed && !theirs && holder != s.rollout.Owner {
					t.Errorf("%s is held (%t) by %s", key, held, holder)
				}
			}
			if tc.claimed {
				return
			}
			if err := s.Target.Claim(t.Context(), s.rollout, rev); err != nil || !rev.Refused() || !strings.Contains(rev.Blocked(), "belongs to "+other.String()) {
				t.Errorf("refused: %t, %q, error %v; want the winner named", rev.Refused(), rev.Blocked(), err)
			}
			if s.rollout.Claims.Release(other); !slices.Contains(woken, s.rollout.Owner) {
				t.Error("no owner is notified that the objects are free")
			}
		})
	}
}

// TestOneOwnerDoesNotBlockOthers: an owner whose loading fails or panics at the start
// delays the others for restoreGrace only. Its claim is restored once it can be
// loaded, unless its objects are claimed by then (invariant 10).
func TestOneOwnerDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	object := objects.Key{Kind: "ConfigMap", Namespace: "shop", Name: "c"}
	for name, tc := range map[string]struct {
		fail func() error
		// taken means that another owner claims the object meanwhile.
		taken bool
	}{
		"an error": {fail: func() error { return errors.New("cannot be decrypted") }},
		"a panic":  {fail: func() error { panic("no") }},
		"taken":    {fail: func() error { return errors.New("cannot be decrypted") }, taken: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := func(name string) *corev1alpha1.ObjectSet {
				s := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}}
				conditions.Set(&s.Status.Conditions, 0, corev1alpha1.ConditionClaimed, true, corev1alpha1.ReasonClaimed, "")
				return s
			}
			broken, fine := set("broken"), set("fine")
			broken.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "one", Slices: []string{"slice"}}}
			fine.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{
				Name: "one", Objects: stored(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}}`),
			}}
			slice := &corev1alpha1.ObjectSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "slice"}}
			slice.Objects = stored(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}`)
			fails := true
			server := interceptor.NewClient(newServer().WithObjects(broken, fine, slice).Build(),
				interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					if _, isSlice := obj.(*corev1alpha1.ObjectSlice); isSlice && fails {
						return tc.fail()
					}
					return c.Get(ctx, key, obj, opts...)
				}})
			answers := maps.Clone(servesThings)
			answers["/api/v1"] = `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [
				{"name": "configmaps", "kind": "ConfigMap", "namespaced": true}, {"name": "namespaces", "kind": "Namespace", "namespaced": false}]}`
			now := noon
			home := Home{Client: server, Reader: server, Now: func() time.Time { return now }}
			r := New(home, &engine.Engine{Cluster: liveOf(t, answers), Tracker: tracking.New(apinames.Default)}, func(objects.OwnerKey) {})
			if err := r.RestoreClaims(t.Context()); err == nil {
				t.Fatal("the claims are restored at once, though an owner could not be read")
			}
			now = now.Add(restoreGrace)
			if err := r.RestoreClaims(t.Context()); err != nil {
				t.Fatalf("all wait for one owner: %v", err)
			}
			if holder, _ := r.ClaimsOf("", "").Holder(objects.Key{Kind: "ConfigMap", Namespace: "shop", Name: "mine"}); holder.Name != "fine" {
				t.Errorf("the claim of the other is not restored: %v", holder)
			}
			other := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectSet", Namespace: "shop", Name: "other"}, UID: "other"}
			if tc.taken {
				require.NoError(t, r.ClaimsOf("", "").Claim(other, []objects.Key{object}))
			}
			fails = false
			s, err := r.gather(t.Context(), objects.OwnerKey{Kind: "ObjectSet", Namespace: "shop", Name: "broken"})
			require.NoError(t, err)
			require.NoError(t, s.loadSets(t.Context()))
			holder, _ := r.ClaimsOf("", "").Holder(object)
			if rev := s.rollout.Loaded("broken"); rev.Claimed() == tc.taken || (holder == other) != tc.taken {
				t.Errorf("claimed: %t, and %v holds the object", rev.Claimed(), holder)
			}
		})
	}
}

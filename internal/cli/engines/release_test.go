package engines_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/engines"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

var key = objects.Key{Kind: "ConfigMap", Namespace: "n", Name: "x"}

// rollout returns a deployment of this engine with two revisions that own objects. Both contain one
// of the objects.
func rollout(change func(*engines.Rollout)) *engines.Rollout {
	selects := map[string]string{corev1alpha1.PackageLabel: "manifest", corev1alpha1.PackageInstanceLabel: "app"}
	dep := &corev1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "n", Name: "app", UID: "deployment", Finalizers: []string{corev1alpha1.CachedFinalizer, "other"},
		Labels:      map[string]string{corev1alpha1.PackageLabel: "app"},
		Annotations: map[string]string{corev1alpha1.UnpackedHashAnnotation: "v1-x", "note": "kept"},
	}}
	dep.Spec.Selector.MatchLabels, dep.Spec.Template.Metadata.Labels = selects, selects
	r := &engines.Rollout{
		Deployment: dep, Live: map[objects.Key]*unstructured.Unstructured{key: live("ObjectDeployment", "deployment", 1)},
		Objects: map[types.UID][]objects.Key{},
		Slices:  []corev1alpha1.GenericObjectSlice{&corev1alpha1.ObjectSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice", Finalizers: []string{corev1alpha1.CachedFinalizer}}}},
	}
	for n := range int64(2) {
		set := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: "n", Name: fmt.Sprintf("app-%d", n+1), UID: types.UID(fmt.Sprintf("set-%d", n+1)), Labels: map[string]string{corev1alpha1.PackageLabel: "app"},
			Annotations: map[string]string{corev1alpha1.ObjectDeploymentUIDAnnotation: "deployment", "note": "kept"},
			Finalizers:  []string{corev1alpha1.CachedFinalizer},
		}}
		set.Spec.Revision = n + 1
		r.Sets, r.Objects[set.UID] = append(r.Sets, set), []objects.Key{key}
	}
	if change != nil {
		change(r)
	}
	return r
}

func live(kind string, uid types.UID, revision int) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	u.SetNamespace("n")
	u.SetName("x")
	u.SetUID("object")
	u.SetResourceVersion("7")
	u.SetLabels(map[string]string{corev1alpha1.CacheLabel: "True", corev1alpha1.PackageLabel: "app", "mine": "kept"})
	u.SetAnnotations(map[string]string{corev1alpha1.RevisionAnnotation: fmt.Sprint(revision)})
	u.SetOwnerReferences([]metav1.OwnerReference{
		{APIVersion: "package-operator.run/v1alpha1", Kind: kind, Name: "app", UID: uid, Controller: ptr.To(true)},
		{APIVersion: "package-operator.run/v1alpha1", Kind: "ObjectSet", Name: "app-1", UID: "set-1", Controller: ptr.To(false)},
		{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "other"},
	})
	return u
}

// patches returns the changes by object, without the guards.
func patches(t *testing.T, all []engines.Patch) map[string]map[string]any {
	t.Helper()
	found := map[string]map[string]any{}
	for _, p := range all {
		var ops []struct {
			Op, Path string
			Value    any
		}
		require.NoError(t, json.Unmarshal(p.JSON, &ops))
		if ops[0].Path != "/metadata/uid" || ops[1].Path != "/metadata/resourceVersion" || ops[0].Op != "test" || ops[1].Op != "test" {
			t.Errorf("%s has no guards: %s", p.Of.GetName(), p.JSON)
		}
		found[p.Of.GetName()] = map[string]any{}
		for _, op := range ops[2:] {
			found[p.Of.GetName()][strings.TrimPrefix(op.Path, "/metadata/")] = op.Value
		}
	}
	return found
}

// An object gets the newest revision that contains it as its controller, and that revision's
// number. Other owners' objects stay.
func TestRelease(t *testing.T) {
	t.Parallel()
	all, err := rollout(nil).Release()
	require.NoError(t, err)
	selects := map[string]any{"package-operator.run/package": "manifest", "package-operator.run/instance": "app"}
	ofSets := map[string]any{"package-operator.run/package": "manifest", "package-operator.run/instance": "app", "package-operator.run/object-deployment": "app"}
	want := map[string]map[string]any{
		"x": {
			"ownerReferences": []any{
				map[string]any{"apiVersion": "package-operator.run/v1alpha1", "kind": "ObjectSet", "name": "app-2", "uid": "set-2", "controller": true, "blockOwnerDeletion": true},
				map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "other"},
			},
			"labels": map[string]any{
				"package-operator.run/package": "manifest", "package-operator.run/instance": "app", "package-operator.run/cache": "True", "mine": "kept",
			},
			"annotations": map[string]any{"package-operator.run/revision": "2"},
		},
		"app-1": {"labels": ofSets, "annotations": map[string]any{"note": "kept"}},
		"app-2": {"labels": ofSets, "annotations": map[string]any{"note": "kept"}},
		"slice": {"finalizers": []any{}},
		"app":   {"labels": selects, "annotations": map[string]any{"note": "kept"}, "finalizers": []any{"other"}},
	}
	require.Equal(t, want, patches(t, all))
	require.Equal(t, "app", all[len(all)-1].Of.GetName(), "the deployment, which marks the end, comes before")
}

// Objects that Package Operator has left, objects without an owner and other owners' objects do not
// change.
func TestReleaseLeavesAlone(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		change  func(*engines.Rollout)
		patched bool
	}{
		"the present revision controls it": {func(r *engines.Rollout) {
			u := live("ObjectSet", "set-2", 2)
			u.SetLabels(map[string]string{corev1alpha1.CacheLabel: "True", corev1alpha1.PackageLabel: "manifest", corev1alpha1.PackageInstanceLabel: "app"})
			r.Live[key] = u
		}, false},
		"an earlier revision does":               {func(r *engines.Rollout) { r.Live[key] = live("ObjectSet", "set-1", 1) }, true},
		"another deployment does":                {func(r *engines.Rollout) { r.Live[key] = live("ObjectDeployment", "elsewhere", 1) }, false},
		"nothing does":                           {func(r *engines.Rollout) { r.Live[key].SetOwnerReferences(nil) }, false},
		"no revision contains it":                {func(r *engines.Rollout) { r.Objects = nil }, false},
		"the earlier one contains it":            {func(r *engines.Rollout) { delete(r.Objects, "set-2") }, true},
		"it does not have a revision of its own": {func(r *engines.Rollout) { r.Live[key].SetAnnotations(nil) }, true},
	} {
		all, err := rollout(tc.change).Release()
		if _, patched := patches(t, all)["x"]; err != nil || patched != tc.patched {
			t.Errorf("%s: patched %t, %v", reason, patched, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*corev1alpha1.ObjectDeployment, *engines.Rollout)
		says   string
	}{
		"none": {func(*corev1alpha1.ObjectDeployment, *engines.Rollout) {}, ""},
		"another cluster": {func(d *corev1alpha1.ObjectDeployment, _ *engines.Rollout) {
			d.Spec.Template.Spec.TargetRef = &corev1alpha1.TargetReference{}
		}, "in another cluster"},
		"sensitive": {func(d *corev1alpha1.ObjectDeployment, _ *engines.Rollout) {
			d.Spec.Template.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{SecretSlices: []string{"s"}}}
		}, "sensitive values"},
		"deleting": {func(d *corev1alpha1.ObjectDeployment, _ *engines.Rollout) { d.DeletionTimestamp = ptr.To(metav1.Now()) }, "being deleted"},
		"a revision is deleted": {func(_ *corev1alpha1.ObjectDeployment, r *engines.Rollout) {
			r.Sets[0].SetDeletionTimestamp(ptr.To(metav1.Now()))
		}, "app-1 is being deleted"},
		"the selector": {func(d *corev1alpha1.ObjectDeployment, _ *engines.Rollout) {
			d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpExists}}
		}, "does not select revision app-2"},
	} {
		r := rollout(nil)
		tc.change(r.Deployment.(*corev1alpha1.ObjectDeployment), r)
		if got := strings.Join(r.Refusals(), "; "); tc.says == "" && got != "" || !strings.Contains(got, tc.says) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestDisown(t *testing.T) {
	t.Parallel()
	owners := sets.New[types.UID]("deployment", "set-1")
	p, err := engines.Disown(live("ObjectDeployment", "deployment", 1), owners)
	if err != nil || p == nil {
		t.Fatal(p, err)
	}
	want := map[string]any{
		"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "other"}},
		"labels":          map[string]any{"package-operator.run/package": "app", "mine": "kept"},
	}
	require.Equal(t, want, patches(t, []engines.Patch{*p})["x"])
	if p, err := engines.Disown(live("ObjectDeployment", "deployment", 1), sets.New[types.UID]("elsewhere")); p != nil || err != nil {
		t.Errorf("an object without any of the owners: %v, %v", p, err)
	}
}

func TestLosses(t *testing.T) {
	t.Parallel()
	pkg := &corev1alpha1.Package{Spec: corev1alpha1.PackageSpec{Image: "x", Paused: true}}
	if lost, err := engines.Losses(pkg); len(lost) > 0 || err != nil {
		t.Errorf("%v, %v", lost, err)
	}
	pkg.Spec = corev1alpha1.PackageSpec{PackageRef: &corev1alpha1.PackageReference{}, DefaultNamespace: "n"}
	lost, err := engines.Losses(pkg)
	if text := strings.Join(lost, "; "); err != nil || !strings.Contains(text, "spec.defaultNamespace, spec.packageRef is ignored") || !strings.Contains(text, "spec.image is missing") {
		t.Errorf("%v, %v", lost, err)
	}
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func lease(namespace, holder string, renewed time.Time) coordinationv1.Lease {
	return coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: corev1alpha1.LeaderElectionLease},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: ptr.To[int32](15), RenewTime: ptr.To(metav1.NewMicroTime(renewed))},
	}
}

// A clock that is ahead does not end a Lease that is renewed, and a clock that is behind does not
// keep a Lease alive.
func TestHolder(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		renewed, seen time.Time
		held          bool
	}{
		"renewed now":                       {noon, noon, true},
		"renewed by a clock a minute ahead": {noon.Add(time.Minute), noon, true},
		"by one a minute behind":            {noon.Add(-time.Minute), noon, true},
		"unchanged for its duration":        {noon.Add(time.Minute), noon.Add(-16 * time.Second), false},
		"unchanged for less":                {noon.Add(-time.Minute), noon.Add(-14 * time.Second), true},
		"an hour ago":                       {noon.Add(-time.Hour), noon, false},
	} {
		l := lease("n", "someone", tc.renewed)
		if got := engines.Holder(&l, tc.seen, noon); (got != "") != tc.held {
			t.Errorf("%s: held by %q", name, got)
		}
	}
	released := lease("n", "", noon)
	require.Equal(t, "", engines.Holder(&released, noon, noon)+engines.Holder(&coordinationv1.Lease{}, noon, noon), "no process holds it")
}

// An engine in another namespace leads by another Lease, so it does not count as absent.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	const here = corev1alpha1.DefaultNamespace
	deployment := func(namespace string, replicas *int32) appsv1.Deployment {
		return appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "package-operator-manager"}, Spec: appsv1.DeploymentSpec{Replicas: replicas}}
	}
	job := func(conditions ...any) unstructured.Unstructured {
		return unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"namespace": here, "name": "package-operator-bootstrap"}, "status": map[string]any{"conditions": conditions},
		}}
	}
	condition := func(typ, status string) any { return map[string]any{"type": typ, "status": status} }
	for name, tc := range map[string]struct {
		lease      coordinationv1.Lease
		deployment appsv1.Deployment
		job        unstructured.Unstructured
		says       string
	}{
		"nothing elsewhere": {lease(here, "x", noon), deployment(here, nil), job(condition("Complete", "True")), ""},
		"it leads": {lease("pko", "package-operator-manager-0_1", noon), deployment("pko", ptr.To[int32](0)), job(condition("Failed", "True")),
			"package-operator-manager-0_1 leads by the Lease pko/" + corev1alpha1.LeaderElectionLease},
		"it starts":         {lease("pko", "", noon), deployment("pko", nil), job(condition("Failed", "True")), "kubectl -n pko scale deployment package-operator-manager --replicas=0"},
		"it was there once": {lease("pko", "x", noon.Add(-time.Hour)), deployment("pko", ptr.To[int32](0)), job(condition("Failed", "True")), ""},
		"it is installed":   {lease(here, "x", noon), deployment(here, nil), job(condition("Complete", "False")), "installs Package Operator"},
	} {
		got := strings.Join(engines.Elsewhere([]coordinationv1.Lease{tc.lease}, []appsv1.Deployment{tc.deployment}, []unstructured.Unstructured{tc.job}, noon), "; ")
		if tc.says == "" && got != "" || !strings.Contains(got, tc.says) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

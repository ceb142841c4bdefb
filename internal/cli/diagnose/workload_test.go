package diagnose

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

// If pods cannot be created, the controllers of a Deployment and its ReplicaSet report this one
// after the other, each in its own way. The cause is the same at any point in between.
func TestOneCauseHasOneAnswer(t *testing.T) {
	t.Parallel()
	for _, message := range []string{
		`pods "web-1" is forbidden: exceeded quota: small, requested: pods=1, used: pods=0, limited: pods=0`,
		`admission webhook "costs.example.com" denied the request: a cost centre is missing`,
		`pods "web-1" is forbidden: error looking up service account shop/web: serviceaccount "web" not found`,
	} {
		var first cause
		for _, reports := range [][]string{
			{"event"}, {"ReplicaSet"}, {"event", "ReplicaSet"}, {"ReplicaSet", "Deployment"}, {"event", "ReplicaSet", "Deployment"},
		} {
			c := causeOfMissingPods(t, message, reports)
			if c.object != "ReplicaSet shop/web-1" || first.object != "" && c != first {
				t.Errorf("with what %s reports:\n got %+v\nwant %+v", strings.Join(reports, ", "), c, first)
			}
			first = c
		}
	}
}

// causeOfMissingPods explains a Deployment whose pods cannot be created, after some of the
// controllers have reported it.
func causeOfMissingPods(t *testing.T, message string, reports []string) cause {
	t.Helper()
	labels := map[string]string{"app": "web"}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "deployment"}}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: "MinimumReplicasUnavailable"}}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "set", Labels: labels}}
	set.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "deployment", Controller: ptr.To(true)}}
	all := []client.Object{deployment, set}
	if slices.Contains(reports, "Deployment") {
		failure := appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: message}
		deployment.Status.Conditions = append(deployment.Status.Conditions, failure)
	}
	if slices.Contains(reports, "ReplicaSet") {
		set.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: message}}
	}
	if slices.Contains(reports, "event") {
		event := warning("FailedCreate", "Error creating: "+message, 0)
		event.Namespace, event.Name, event.InvolvedObject.UID = "shop", "failed", "set"
		all = append(all, &event)
	}
	f, err := explainerOf(all...).object(t.Context(), objects.Key{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}, "Deployment shop/web", "missing .status.conditions")
	require.NoError(t, err)
	return f.best()
}

// A StatefulSet in order waits for the unready pod with the lowest ordinal.
func TestOutdatedPodsInOrder(t *testing.T) {
	t.Parallel()
	c := causeOfOutdatedPods(t, func(*appsv1.StatefulSet, *corev1.Pod) {}, "store-10", "store-2", "store-3")
	if c.reason != ReasonOutdatedPod || c.object != "Pod shop/store-2" {
		t.Errorf("%+v", c)
	}
}

// An unready pod of an earlier template that its StatefulSet waits for has to be deleted by hand,
// because a rollback leaves it behind. A pod that the controller replaces by itself is explained
// like any other.
func TestOutdatedPod(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		change func(*appsv1.StatefulSet, *corev1.Pod)
		want   Reason
	}{
		"in order": {func(*appsv1.StatefulSet, *corev1.Pod) {}, ReasonOutdatedPod},
		"on deletion only": {func(s *appsv1.StatefulSet, _ *corev1.Pod) {
			s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
		}, ReasonOutdatedPod},
		"in parallel": {func(s *appsv1.StatefulSet, _ *corev1.Pod) { s.Spec.PodManagementPolicy = appsv1.ParallelPodManagement }, ReasonCrash},
		"of the present template": {func(_ *appsv1.StatefulSet, p *corev1.Pod) {
			p.Labels[appsv1.ControllerRevisionHashLabelKey] = "store-new"
		}, ReasonCrash},
		"of a template that is not seen": {func(s *appsv1.StatefulSet, _ *corev1.Pod) { s.Generation = 3 }, ReasonCrash},
		"held back by a partition": {func(s *appsv1.StatefulSet, _ *corev1.Pod) {
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](1)}
		}, ReasonCrash},
		"without a partition, as default": {func(s *appsv1.StatefulSet, _ *corev1.Pod) {
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](0)}
		}, ReasonOutdatedPod},
	} {
		c := causeOfOutdatedPods(t, tc.change, "store-1")
		if c.reason != tc.want || c.object != "Pod shop/store-1" || (c.reason == ReasonOutdatedPod) != strings.HasSuffix(c.remedy, ": kubectl -n shop delete pod store-1") {
			t.Errorf("%s: %+v", reason, c)
		}
	}
}

// causeOfOutdatedPods explains a StatefulSet in order that waits for crashing pods of an earlier
// template. change adapts it and each pod.
func causeOfOutdatedPods(t *testing.T, change func(*appsv1.StatefulSet, *corev1.Pod), pods ...string) cause {
	t.Helper()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "store", UID: "set", Generation: 2}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "store"}}
	set.Status = appsv1.StatefulSetStatus{ObservedGeneration: 2, CurrentRevision: "store-new", UpdateRevision: "store-new"}
	all := []client.Object{set}
	for _, name := range pods {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "store", appsv1.ControllerRevisionHashLabelKey: "store-bad"}}}
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "store", UID: "set", Controller: ptr.To(true)}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
		change(set, pod)
		all = append(all, pod)
	}
	f, err := explainerOf(all...).object(t.Context(), objects.Key{Group: "apps", Kind: "StatefulSet", Namespace: "shop", Name: "store"}, "StatefulSet shop/store", "not ready")
	require.NoError(t, err)
	return f.best()
}

// explainerOf returns an explainer of a cluster with these objects.
func explainerOf(all ...client.Object) *explainer {
	byUID := func(o client.Object) []string { return []string{string(o.(*corev1.Event).InvolvedObject.UID)} }
	return &explainer{client: fake.NewClientBuilder().WithObjects(all...).WithIndex(&corev1.Event{}, "involvedObject.uid", byUID).Build()}
}

// awaiting returns a package whose dependencies are not ready: "name=reason: message", with the
// name of a package if the reason is NotAvailable.
func awaiting(name, reason string, needs ...string) *corev1alpha1.Package {
	pkg := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 1}}
	var messages []string
	for _, need := range needs {
		dep, rest, _ := strings.Cut(need, "=")
		why, message, _ := strings.Cut(rest, ": ")
		d := corev1alpha1.DependencyStatus{
			Dependency: corev1alpha1.Dependency{Name: dep, Package: &corev1alpha1.DependencyPackage{Name: dep + ".example.com"}},
			Conditions: []metav1.Condition{{Type: corev1alpha1.ConditionSatisfied, Status: "False", Reason: why, Message: message}},
		}
		if why == corev1alpha1.ReasonNotAvailable {
			d.PackageRef = &corev1alpha1.DependencyReference{Kind: "Package", Namespace: "shop", Name: name + "." + dep}
		}
		messages, pkg.Status.Dependencies = append(messages, dep+": "+message), append(pkg.Status.Dependencies, d)
	}
	pkg.Status.ObservedGeneration = 1
	pkg.Status.Conditions = []metav1.Condition{{
		Type: corev1alpha1.ConditionDependenciesReady, Status: "False", Reason: reason, ObservedGeneration: 1, Message: strings.Join(messages, "\n"),
	}}
	return pkg
}

func TestDependencies(t *testing.T) {
	t.Parallel()
	invalid := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop.db.tls", Generation: 1}}
	invalid.Status = corev1alpha1.PackageStatus{ObservedGeneration: 1, Conditions: []metav1.Condition{
		{Type: corev1alpha1.ConditionInvalid, Status: "True", ObservedGeneration: 1, Message: "ConfigInvalid: title is missing. Set it."},
	}}
	soon := corev1alpha1.ReasonWaitingForDependencies
	for name, test := range map[string]struct {
		packages              []*corev1alpha1.Package
		object, cause, remedy string
		links                 int
	}{
		"a chain ends at the fault": {[]*corev1alpha1.Package{awaiting("shop", soon, "db=NotAvailable: not yet"), awaiting("shop.db", soon, "tls=NotAvailable: not yet"), invalid},
			"package shop/shop.db.tls", "package shop/shop.db.tls: the package cannot be installed as it is: ConfigInvalid: title is missing. Set it.",
			"Correct it in the package", 5},
		"unsatisfiable ones come first": {[]*corev1alpha1.Package{awaiting("shop", "DependenciesUnsatisfied", "db=NotAvailable: not yet", "mail=UnknownPackage: no repository offers mail.example.com")},
			"dependency mail", "mail: no repository offers mail.example.com", "Add a repository that offers it: kubectl package repo add NAME IMAGE -n shop", 3},
		"of another package": {[]*corev1alpha1.Package{awaiting("shop", soon, "db=NotAvailable: not yet"), awaiting("shop.db", "DependenciesUnsatisfied", "tls=ManagedByUser: it is missing")},
			"dependency tls", "package shop/shop.db: tls: it is missing", "Install it: kubectl package install tls.example.com -n shop", 4},
		"the remedy of the manager": {[]*corev1alpha1.Package{awaiting("shop", "DependenciesUnsatisfied", "db=VersionMismatch: 1.0.0 is installed, >=2 is needed. Upgrade it.")},
			"dependency db", "db: 1.0.0 is installed, >=2 is needed", "Upgrade it.", 2},
		"an override": {[]*corev1alpha1.Package{awaiting("shop", "DependenciesUnsatisfied", "db=NoMatchingVersion: nothing fits")}, "dependency db",
			"db: nothing fits", `kubectl package upgrade package/shop -n shop --override 'db={"package":{"version":"VERSION"}}'`, 2},
		"an object without the right to read it": {[]*corev1alpha1.Package{awaiting("shop", soon, "db=NotAvailable: not yet")}, "dependency db", "db: not yet",
			"See: kubectl package explain package/shop.db -n shop", 2},
	} {
		d := explainAll(t, test.packages)
		if d.Object != test.object || d.Cause != test.cause || !strings.Contains(d.Remedy, test.remedy) || len(d.Chain) != test.links {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// The search ends for a cycle of packages that wait for each other, and for a long chain.
func TestDependenciesEnd(t *testing.T) {
	t.Parallel()
	a := awaiting("a", corev1alpha1.ReasonWaitingForDependencies, "b=NotAvailable: not yet")
	b := awaiting("a.b", corev1alpha1.ReasonWaitingForDependencies, "a=NotAvailable: not yet")
	b.Status.Dependencies[0].PackageRef.Name = "a"
	if d := explainAll(t, []*corev1alpha1.Package{a, b}); d.Remedy != "See: kubectl package explain package/a -n shop" || len(d.Chain) != 4 {
		t.Errorf("%+v", d)
	}
	name, long := "a", []*corev1alpha1.Package{}
	for range 2 * dependencyDepth {
		long, name = append(long, awaiting(name, corev1alpha1.ReasonWaitingForDependencies, "a=NotAvailable: not yet")), name+".a"
	}
	if d := explainAll(t, long); len(d.Chain) != 2*dependencyDepth+2 {
		t.Errorf("%d links", len(d.Chain))
	}
}

func explainAll(t *testing.T, packages []*corev1alpha1.Package) *Diagnosis {
	t.Helper()
	read := func(_ context.Context, target progress.Target) (progress.Snapshot, corev1alpha1.GenericObjectDeployment, error) {
		for _, p := range packages {
			if p.Name == target.Name {
				return progress.Snapshot{Target: target, Package: p}, nil, nil
			}
		}
		return progress.Snapshot{Target: target}, nil, nil
	}
	target := progress.Target{Scope: corev1alpha1.ScopeNamespaced, Namespace: "shop", Name: packages[0].Name}
	d, err := Explain(t.Context(), nil, progress.Snapshot{Target: target, Package: packages[0]}, nil, read, nil)
	require.NoError(t, err)
	return d
}

// deleted returns an object that is being deleted, with conditions by type.
func deleted(apiVersion, kind, namespace, name string, spec map[string]any, conditions ...map[string]any) *unstructured.Unstructured {
	var list []any
	for _, c := range conditions {
		list = append(list, c)
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{
			"name": name, "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": []any{"example.com/drain"},
		},
		"spec": spec, "status": map[string]any{"conditions": list},
	}}
	u.SetNamespace(namespace)
	return u
}

func isTrue(typ, message string) map[string]any {
	return map[string]any{"type": typ, "status": "True", "message": message}
}

func TestRemains(t *testing.T) {
	t.Parallel()
	mapper := meta.NewDefaultRESTMapper(nil)
	gauge := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gauge"}
	mapper.Add(gauge, meta.RESTScopeNamespace)
	for _, gvk := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Namespace"}, apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
		{Group: apiService.Group, Version: "v1", Kind: apiService.Kind},
	} {
		mapper.Add(gvk, meta.RESTScopeRoot)
	}
	definition := deleted("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "gauges.example.com", map[string]any{
		"group": "example.com", "names": map[string]any{"kind": "Gauge"},
	})
	held := deleted("v1", "Namespace", "", "shop", nil,
		isTrue("NamespaceDeletionDiscoveryFailure", "Discovery failed for some groups"),
		isTrue("NamespaceContentRemaining", "Some resources are remaining: gauges.example.com has 2 resource instances, ghosts.example.com has 1 resource instances"))
	broken := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiService.Group + "/v1", "kind": apiService.Kind, "metadata": map[string]any{"name": "v1.metrics.example.com"},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": "False", "reason": "MissingEndpoints"}}},
	}}
	fine := broken.DeepCopy()
	fine.SetName("v1.apps")
	fine.Object["status"] = map[string]any{"conditions": []any{isTrue("Available", "")}}
	all := []client.Object{definition, held, broken, fine}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(gauge, &metav1.PartialObjectMetadata{})
	scheme.AddKnownTypeWithName(gauge.GroupVersion().WithKind("GaugeList"), &metav1.PartialObjectMetadataList{})
	for name, namespace := range map[string]string{"a": "shop", "b": "shop", "c": "other", "d": "other"} {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: []string{"example.com/drain"}}}
		o.SetGroupVersionKind(gauge)
		all = append(all, o)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(all...).Build()
	got, err := Remains(context.Background(), c, []corev1alpha1.BlockingObject{
		{Kind: "Namespace", Name: "gone"}, {Group: crd.Group, Kind: crd.Kind, Name: "gauges.example.com"}, {Kind: "Namespace", Name: "shop"}, {Kind: "ConfigMap", Namespace: "shop", Name: "web"},
	})
	require.NoError(t, err)
	for i, want := range []string{
		"", "4 Gauges left: other/c (finalizer example.com/drain), other/d (finalizer example.com/drain), shop/a (finalizer example.com/drain), and 1 more",
		"APIService v1.metrics.example.com: MissingEndpoints; 2 Gauges left: shop/a (finalizer example.com/drain), shop/b (finalizer example.com/drain)",
		"",
	} {
		require.Equal(t, want, got[i], "it says")
	}
	list := &metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", Finalizers: []string{"x"}}}}}
	require.Contains(t, remainsOf(shopConfig, schema.GroupKind{Group: "example.com", Kind: "Gauge"}, list).cause.remedy, "kubectl -n shop patch gauge.example.com a ", "the remedy")
}

// Pods are named if the object controls them, directly or not. Other pods of the namespace are not.
func TestRemainsOfWorkloads(t *testing.T) {
	t.Parallel()
	mapper := meta.NewDefaultRESTMapper(nil)
	scheme := runtime.NewScheme()
	database := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Database"}
	pod, replicaSet, deployments := schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
		schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	for _, gvk := range []schema.GroupVersionKind{database, pod, replicaSet, deployments} {
		mapper.Add(gvk, meta.RESTScopeNamespace)
		scheme.AddKnownTypeWithName(gvk, &metav1.PartialObjectMetadata{})
		scheme.AddKnownTypeWithName(gvk.GroupVersion().WithKind(gvk.Kind+"List"), &metav1.PartialObjectMetadataList{})
	}
	object := func(gvk schema.GroupVersionKind, name string, controller *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(gvk.Kind + name)}}
		o.SetGroupVersionKind(gvk)
		if controller != nil {
			o.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(controller, controller.GroupVersionKind())}
		}
		return o
	}
	foreground := func(o *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
		o.DeletionTimestamp, o.Finalizers = &metav1.Time{Time: time.Now()}, []string{metav1.FinalizerDeleteDependents}
		return o
	}
	db := foreground(object(database, "db", nil))
	web := foreground(object(deployments, "web", db))
	set, other := object(replicaSet, "web-1", web), object(replicaSet, "other-1", nil)
	held := object(pod, "web-1-b", set)
	held.Finalizers = []string{"example.com/hold"}
	c := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(
		db, web, set, other, object(pod, "web-1-a", set), held, object(pod, "other-1-a", other), object(pod, "alone", nil),
	).Build()
	blocking := func(group, kind, name string) corev1alpha1.BlockingObject {
		return corev1alpha1.BlockingObject{Group: group, Kind: kind, Namespace: "shop", Name: name, Message: "is being deleted; " + objects.AwaitsDependents}
	}
	got, err := Remains(t.Context(), c, []corev1alpha1.BlockingObject{blocking("apps", "Deployment", "web"), blocking("example.com", "Database", "db")})
	require.NoError(t, err)
	const want = "2 Pods left: shop/web-1-b (finalizer example.com/hold), shop/web-1-a"
	require.Equal(t, []string{want, want}, got)
}

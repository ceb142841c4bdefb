package dependencies_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// definitions returns definitions of HyperShift's kinds.
func definitions(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for kind, plural := range map[string]string{"HostedCluster": "hostedclusters", "HostedControlPlane": "hostedcontrolplanes"} {
		u := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(harness.Definition("hypershift.openshift.io", kind, plural, "v1beta1", "Namespaced")), &u.Object))
		all = append(all, u)
	}
	return all
}

// serve makes the API server serve HostedClusters and their control planes.
func serve(t *testing.T) {
	t.Helper()
	for _, definition := range definitions(t) {
		if err := env.Client.Create(t.Context(), definition); !apierrors.IsAlreadyExists(err) {
			require.NoError(t, err)
		}
	}
}

// unserve deletes the definitions and all of their objects.
func unserve(t *testing.T) {
	t.Helper()
	for _, definition := range definitions(t) {
		require.NoError(t, client.IgnoreNotFound(env.Client.Delete(t.Context(), definition)))
		env.WaitGone(t, patience, definition)
	}
}

// image returns the image of a version. It contains one ConfigMap, which is available if its
// annotation ready equals the version.
func image(t *testing.T, version string) string {
	t.Helper()
	return env.Push(t, "gated:"+version, harness.Files{
		"manifest.yaml": harness.Manifest("gated", []string{"deploy"}, `  availabilityProbes:
  - selector: {kind: {group: "", kind: ConfigMap}}
    probes: [{fieldsEqual: {fieldA: .data.version, fieldB: .metadata.annotations.ready}}]
`),
		"object.yaml.gotmpl": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{.package.metadata.name}}\n" +
			"  annotations: {package-operator.run/phase: deploy}\ndata: {version: " + version + "}\n",
	})
}

// fleet is a HostedClusterPackage of the name of its test with hosted clusters.
type fleet struct {
	name string
	// size is the number of its first hosted clusters.
	size int
	// ill are the namespaces of control planes whose packages never become available.
	mu  sync.Mutex
	ill map[string]bool
}

// newFleet creates available hosted clusters. Each argument is a name, followed by a slash and the
// value of the label risk.
func newFleet(t *testing.T, clusters ...string) *fleet {
	t.Helper()
	serve(t)
	f := &fleet{name: strings.ToLower(strings.NewReplacer("Test", "", "/", "-", "_", "-").Replace(t.Name())), size: len(clusters), ill: map[string]bool{}}
	env.Namespace(t, f.name)
	for _, c := range clusters {
		f.cluster(t, c)
	}
	f.attend(t)
	return f
}

// cluster makes an available hosted cluster and the namespace of its control plane, with that.
func (f *fleet) cluster(t *testing.T, cluster string) *unstructured.Unstructured {
	t.Helper()
	u := f.unavailableCluster(t, cluster)
	f.controlPlane(t, u.GetName())
	f.setAvailable(t, u, "True")
	return u
}

func (f *fleet) unavailableCluster(t *testing.T, cluster string) *unstructured.Unstructured {
	t.Helper()
	name, risk, labelled := strings.Cut(cluster, "/")
	env.Namespace(t, f.namespace(name))
	u := f.clusterNamed(name)
	u.SetLabels(map[string]string{"fleet": f.name})
	if labelled {
		u.SetLabels(map[string]string{"fleet": f.name, "risk": risk})
	}
	harness.Eventually(t, patience, "the API of HostedClusters", func(ctx context.Context) error { return env.Client.Create(ctx, u) })
	return u
}

// controlPlane creates the HostedControlPlane in a hosted cluster's namespace, as HyperShift does.
func (f *fleet) controlPlane(t *testing.T, cluster string) {
	t.Helper()
	u := f.clusterNamed(cluster)
	u.SetKind("HostedControlPlane")
	u.SetNamespace(f.namespace(cluster))
	u.SetAnnotations(map[string]string{"hypershift.openshift.io/cluster": f.name + "/" + cluster})
	harness.Eventually(t, patience, "the API of HostedControlPlanes", func(ctx context.Context) error { return env.Client.Create(ctx, u) })
}

func (f *fleet) clusterNamed(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("hypershift.openshift.io/v1beta1")
	u.SetKind("HostedCluster")
	u.SetNamespace(f.name)
	u.SetName(name)
	return u
}

func (f *fleet) setAvailable(t *testing.T, u *unstructured.Unstructured, status string) {
	t.Helper()
	u.Object["status"] = map[string]any{"conditions": []any{
		map[string]any{"type": "Degraded", "status": "False"}, map[string]any{"type": "Available", "status": status},
	}}
	require.NoError(t, env.Client.Status().Update(t.Context(), u))
}

// namespace returns the namespace of the control plane of a hosted cluster.
func (f *fleet) namespace(cluster string) string {
	return f.name + "-" + strings.ReplaceAll(cluster, ".", "-")
}

// attendant is the field manager that makes ConfigMaps available.
const attendant = "attendant"

// attend makes ConfigMaps available as they are rolled out, except in ill control planes.
func (f *fleet) attend(t *testing.T) {
	t.Helper()
	events := env.Watch(t, &corev1.ConfigMapList{})
	go func() {
		for e := range events {
			if cm, ok := e.Object.(*corev1.ConfigMap); ok && cm.Name == f.name && e.Type != watch.Deleted {
				f.examine(t.Context(), cm)
			}
		}
	}()
}

// examine sets the annotation of a ConfigMap to its expected value. It ignores errors: after a
// conflict another event follows, and all other errors mean the end of the test.
func (f *fleet) examine(ctx context.Context, cm *corev1.ConfigMap) {
	f.mu.Lock()
	ready, by := cm.Data["version"], attendant
	if f.ill[cm.Namespace] {
		ready, by = "no", "illness"
	}
	f.mu.Unlock()
	if cm.Annotations["ready"] != ready {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"ready":%q}}}`, ready)
		_ = env.Client.Patch(ctx, cm, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(by))
	}
}

// setIll makes the objects in the control plane of a hosted cluster unavailable, or
// available again.
func (f *fleet) setIll(t *testing.T, cluster string, ill bool) {
	t.Helper()
	f.mu.Lock()
	f.ill[f.namespace(cluster)] = ill
	f.mu.Unlock()
	cm := &corev1.ConfigMap{}
	err := env.Client.Get(t.Context(), types.NamespacedName{Namespace: f.namespace(cluster), Name: f.name}, cm)
	if err == nil {
		f.examine(t.Context(), cm)
	} else if !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// install creates the HostedClusterPackage for the fleet, and waits until it has observed the
// hosted clusters.
func (f *fleet) install(t *testing.T, version string, changes ...func(*corev1alpha1.HostedClusterPackageSpec)) {
	t.Helper()
	h := &corev1alpha1.HostedClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: f.name}}
	h.Spec.HostedClusterSelector.MatchLabels = map[string]string{"fleet": f.name}
	h.Spec.Strategy.Instant = &corev1alpha1.HostedClusterPackageStrategyInstant{}
	h.Spec.Template.Spec.Image = image(t, version)
	for _, change := range changes {
		change(&h.Spec)
	}
	env.Create(t, h)
	await(t, h, "to observe the hosted clusters", func(h *corev1alpha1.HostedClusterPackage) error {
		if int(h.Status.TotalPackages) < f.size {
			return fmt.Errorf("it has %d", h.Status.TotalPackages)
		}
		return nil
	})
}

// rolling limits the number of Packages that are updated at a time. With an order, the groups are
// the values of the label risk.
func rolling(maxUnavailable int, order ...string) func(*corev1alpha1.HostedClusterPackageSpec) {
	return func(s *corev1alpha1.HostedClusterPackageSpec) {
		s.Strategy = corev1alpha1.HostedClusterPackageStrategy{
			RollingUpgrade: &corev1alpha1.HostedClusterPackageStrategyRollingUpgrade{MaxUnavailable: maxUnavailable},
		}
		if len(order) > 0 {
			s.Partition = &corev1alpha1.HostedClusterPackagePartition{
				LabelKey: "risk", Order: &corev1alpha1.HostedClusterPackagePartitionOrder{Static: order},
			}
		}
	}
}

// upgrade changes the version of the template.
func (f *fleet) upgrade(t *testing.T, version string) {
	t.Helper()
	to := image(t, version)
	edit(t, f.object(), func(h *corev1alpha1.HostedClusterPackage) { h.Spec.Template.Spec.Image = to })
}

func (f *fleet) object() *corev1alpha1.HostedClusterPackage {
	return &corev1alpha1.HostedClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: f.name}}
}

func (f *fleet) pkg(cluster string) *corev1alpha1.Package {
	return &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace(cluster), Name: f.name}}
}

// reports waits until the HostedClusterPackage has conditions, each in the form
// "Type=Status/Reason: part of the message".
func (f *fleet) reports(t *testing.T, wants ...string) *corev1alpha1.HostedClusterPackage {
	t.Helper()
	return await(t, f.object(), "to say "+strings.Join(wants, ", "), func(h *corev1alpha1.HostedClusterPackage) error {
		for _, want := range wants {
			what, message, _ := strings.Cut(want, ": ")
			typ, what, _ := strings.Cut(what, "=")
			status, reason, _ := strings.Cut(what, "/")
			if err := harness.HasCondition(h, typ, metav1.ConditionStatus(status), reason, message); err != nil {
				return err
			}
		}
		return nil
	})
}

// rolledOut waits until all Packages are rolled out.
func (f *fleet) rolledOut(t *testing.T) *corev1alpha1.HostedClusterPackage {
	t.Helper()
	return f.reports(t, "Ready=True/AllPackagesProgressed")
}

// versions returns the versions of the ConfigMaps as "CLUSTER=VERSION", sorted.
func (f *fleet) versions(t *testing.T) []string {
	t.Helper()
	list := &corev1.ConfigMapList{}
	require.NoError(t, env.Client.List(t.Context(), list))
	all := []string{}
	for _, cm := range list.Items {
		if cluster, ok := strings.CutPrefix(cm.Namespace, f.name+"-"); ok && cm.Name == f.name {
			all = append(all, cluster+"="+cm.Data["version"])
		}
	}
	slices.Sort(all)
	return all
}

func edit[T client.Object](t *testing.T, obj T, change func(T)) T {
	t.Helper()
	return harness.Edit(t, env, obj, change)
}

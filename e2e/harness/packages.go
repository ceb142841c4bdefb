package harness

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// Files of a package by their path below /package.
type Files map[string]string

// Clone returns a copy that can be changed.
func (f Files) Clone() Files { return maps.Clone(f) }

// Bytes returns the files as internal/loader takes them.
func (f Files) Bytes() map[string][]byte {
	out := make(map[string][]byte, len(f))
	for path, content := range f {
		out[path] = []byte(content)
	}
	return out
}

// Image returns the files as an image of one layer, as a Containerfile would
// make it.
func Image(tb testing.TB, files Files) v1.Image {
	tb.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		require.NoError(tb, w.WriteHeader(&tar.Header{Name: "package/" + path, Mode: 0o644, Size: int64(len(files[path])), Typeflag: tar.TypeReg}))
		_, err := w.Write([]byte(files[path]))
		require.NoError(tb, err)
	}
	require.NoError(tb, w.Close())
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buf.Bytes())), nil })
	require.NoError(tb, err)
	img, err := mutate.AppendLayers(empty.Image, layer)
	require.NoError(tb, err)
	return img
}

// Push pushes files as an image to the sandbox's registry and returns its
// reference. tag has the form name:tag.
func (e *Env) Push(tb testing.TB, tag string, files Files) string {
	tb.Helper()
	ref, err := name.ParseReference(e.Registry()+"/"+tag, name.Insecure)
	require.NoError(tb, err)
	require.NoError(tb, remote.Write(ref, Image(tb, files), remote.WithContext(tb.Context())))
	return e.Registry() + "/" + tag
}

// Manifest returns a PackageManifest of the phases for both scopes; spec is
// further YAML of the spec, indented by two spaces, or empty.
func Manifest(name string, phases []string, spec string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifest\nmetadata:\n  name: %s\nspec:\n  scopes: [Cluster, Namespaced]\n  phases:\n", name)
	for _, p := range phases {
		fmt.Fprintf(&b, "  - name: %s\n", p)
	}
	b.WriteString(spec)
	return b.String()
}

// ConfigMap returns the YAML of a ConfigMap of about 300 bytes in a phase.
func ConfigMap(name, phase, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  annotations:\n    package-operator.run/phase: %s\ndata:\n  value: %q\n  text: %q\n",
		name, phase, value, strings.Repeat("lockstep ", 12))
}

// Phased returns a package of n ConfigMaps in each of the given number of
// phases, one file per phase, without probes.
func Phased(name string, phases, n int) Files {
	files := Files{}
	var names []string
	for p := range phases {
		phase := fmt.Sprintf("phase-%02d", p)
		names = append(names, phase)
		docs := make([]string, n)
		for i := range n {
			docs[i] = ConfigMap(fmt.Sprintf("%s-%02d-%03d", name, p, i), phase, "v1")
		}
		files[phase+".yaml"] = strings.Join(docs, "---\n")
	}
	files["manifest.yaml"] = Manifest(name, names, "")
	return files
}

// Package returns a Package.
func Package(namespace, name, image string) *corev1alpha1.Package {
	return &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1alpha1.PackageSpec{Image: image}}
}

// ClusterPackage returns a ClusterPackage.
func ClusterPackage(name, image string) *corev1alpha1.ClusterPackage {
	return &corev1alpha1.ClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1alpha1.PackageSpec{Image: image}}
}

// Create creates an object as the administrator.
func (e *Env) Create(tb testing.TB, obj client.Object) {
	tb.Helper()
	require.NoError(tb, e.Client.Create(tb.Context(), obj))
}

// SetImage changes the image of a Package, or of a ClusterPackage if the namespace is empty.
func (e *Env) SetImage(tb testing.TB, namespace, name, image string) {
	tb.Helper()
	pkg := e.Package(tb, namespace, name)
	before := pkg.DeepCopyObject().(client.Object)
	pkg.PackageSpec().Image = image
	require.NoError(tb, e.Client.Patch(tb.Context(), pkg.(client.Object), client.MergeFrom(before)))
}

// Package reads a Package, or a ClusterPackage if the namespace is empty.
func (e *Env) Package(tb testing.TB, namespace, name string) corev1alpha1.GenericPackage {
	tb.Helper()
	pkg := corev1alpha1.ScopeOf(namespace).NewPackage()
	require.NoError(tb, e.Client.Get(tb.Context(), types.NamespacedName{Namespace: namespace, Name: name}, pkg.(client.Object)))
	return pkg
}

// WaitAvailable waits until the package's present spec is rolled out: Available
// and not Progressing, for the generation of the spec.
func (e *Env) WaitAvailable(tb testing.TB, namespace, name string) {
	tb.Helper()
	e.WaitAvailableWithin(tb, Patience, namespace, name)
}

// WaitAvailableWithin is WaitAvailable with another timeout.
func (e *Env) WaitAvailableWithin(tb testing.TB, timeout time.Duration, namespace, name string) {
	tb.Helper()
	Eventually(tb, timeout, "package "+name+" to be available", func(ctx context.Context) error {
		pkg := corev1alpha1.ScopeOf(namespace).NewPackage()
		if err := e.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, pkg.(client.Object)); err != nil {
			return err
		}
		return rolledOut(pkg)
	})
}

func rolledOut(pkg corev1alpha1.GenericPackage) error {
	status := map[string]metav1.Condition{}
	for _, c := range *pkg.StatusConditions() {
		status[c.Type] = c
	}
	gen := pkg.GetGeneration()
	available, progressing := status[corev1alpha1.ConditionAvailable], status[corev1alpha1.ConditionProgressing]
	if pkg.PackageStatus().ObservedGeneration == gen && available.Status == "True" && available.ObservedGeneration == gen &&
		progressing.Status == "False" && progressing.ObservedGeneration == gen {
		return nil
	}
	return fmt.Errorf("generation %d, status %+v", gen, *pkg.PackageStatus())
}

// WaitCondition waits until a package's condition has the status, and returns
// it.
func (e *Env) WaitCondition(tb testing.TB, namespace, name, typ, status string) metav1.Condition {
	tb.Helper()
	var found metav1.Condition
	Eventually(tb, Patience, fmt.Sprintf("package %s to be %s=%s", name, typ, status), func(ctx context.Context) error {
		pkg := corev1alpha1.ScopeOf(namespace).NewPackage()
		if err := e.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, pkg.(client.Object)); err != nil {
			return err
		}
		for _, c := range *pkg.StatusConditions() {
			if c.Type == typ && string(c.Status) == status && c.ObservedGeneration == pkg.GetGeneration() {
				found = c
				return nil
			}
		}
		return fmt.Errorf("status is %+v", *pkg.PackageStatus())
	})
	return found
}

// WaitGone waits until an object no longer exists. If obj has a UID, a new object with the same
// name proves its deletion.
func (e *Env) WaitGone(tb testing.TB, timeout time.Duration, obj client.Object) {
	tb.Helper()
	uid := obj.GetUID()
	Eventually(tb, timeout, fmt.Sprintf("%T %s to be removed", obj, obj.GetName()), func(ctx context.Context) error {
		err := e.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if err != nil {
			return client.IgnoreNotFound(err)
		}
		if uid != "" && obj.GetUID() != uid {
			return nil
		}
		return fmt.Errorf("it still exists, with finalizers %v", obj.GetFinalizers())
	})
}

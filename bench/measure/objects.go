package measure

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// names are the names of the packages.
func (c *Cluster) names() []string {
	names := make([]string, c.Packages)
	for i := range names {
		names[i] = packageName(i)
	}
	return names
}

// push pushes the images of a release and returns their references.
func (c *Cluster) push(r release) []string {
	c.tb.Helper()
	c.tag++
	images := make([]string, c.Packages)
	must(c.tb, parallel(clients/4, c.Packages, func(i int) error {
		images[i] = c.image(i)
		ref, err := name.ParseReference(images[i], name.Insecure)
		if err != nil {
			return err
		}
		return remote.Write(ref, harness.Image(c.tb, c.files(i, r)), remote.WithContext(c.tb.Context()))
	}))

	c.installed = r
	return images
}

// image is the reference of the last pushed image of package i.
func (c *Cluster) image(i int) string {
	return fmt.Sprintf("%s/%s:v%d", c.Registry(), packageName(i), c.tag)
}

// create creates packages concurrently.
func (c *Cluster) create(namespace string, names, images []string) {
	c.tb.Helper()
	must(c.tb, parallel(clients, len(names), func(i int) error {
		return c.Client.Create(c.tb.Context(), harness.Package(namespace, names[i], images[i]))
	}))
}

// remove deletes packages concurrently.
func (c *Cluster) remove(namespace string, names []string) {
	c.tb.Helper()
	must(c.tb, parallel(clients, len(names), func(i int) error {
		return c.Client.Delete(c.tb.Context(), harness.Package(namespace, names[i], ""))
	}))
}

// setImages sets new images in the packages concurrently.
func (c *Cluster) setImages(images []string) {
	c.tb.Helper()
	must(c.tb, parallel(clients, c.Packages, func(i int) error {
		patch := fmt.Sprintf(`{"spec":{"image":%q}}`, images[i])
		return c.Client.Patch(c.tb.Context(), harness.Package(namespace, packageName(i), ""), client.RawPatch(types.MergePatchType, []byte(patch)))
	}))
}

// hasImage accepts packages with one of the images.
func hasImage(images []string) func(*corev1alpha1.Package) bool {
	known := map[string]bool{}
	for _, image := range images {
		known[image] = true
	}
	return func(pkg *corev1alpha1.Package) bool { return known[pkg.Spec.Image] }
}

// object is the object with this name, without its content.
func (c *Cluster) object(name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion("v1")
	obj.SetKind(objectKind)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return obj
}

// parallel calls f for 0 to n-1, with a limited number of concurrent calls, and returns the first
// error.
func parallel(atOnce, n int, f func(i int) error) error {
	group, ctx := errgroup.WithContext(context.Background())
	group.SetLimit(atOnce)
	for i := 0; i < n && ctx.Err() == nil; i++ {
		group.Go(func() error { return f(i) })
	}
	return group.Wait()
}

// change sets the text of an object, as another client would.
func (c *Cluster) change(name, value string) {
	c.tb.Helper()
	patch := fmt.Appendf(nil, `{"data":{"value":%q}}`, value)
	must(c.tb, c.Client.Patch(c.tb.Context(), c.object(name), client.RawPatch(types.MergePatchType, patch)))
}

// hasValue compares the text of an object.
func (c *Cluster) hasValue(ctx context.Context, name, want string) error {
	obj := c.object(name)
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		return err
	}
	if got, _, _ := unstructured.NestedString(obj.Object, "data", "value"); got != want {
		return fmt.Errorf("%s has the value %q, want %q", name, got, want)
	}
	return nil
}

// objectList is an empty list for the metadata of the workload's objects.
func objectList() *metav1.PartialObjectMetadataList {
	return &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: objectKind + "List"}}
}

// countObjects compares the number of the packages' objects.
func (c *Cluster) countObjects(ctx context.Context, want int, more ...client.ListOption) error {
	list := objectList()
	if err := c.Client.List(ctx, list, append(more, client.InNamespace(namespace))...); err != nil {
		return err
	}

	got := 0
	for _, item := range list.Items {
		if strings.HasPrefix(item.Name, "shop-") {
			got++
		}
	}

	if got != want {
		return fmt.Errorf("%d objects are there, want %d", got, want)
	}

	return nil
}

// Objects counts the manager's requests about each of the packages' objects that the filters
// accept, including refused ones.
func (c *Cluster) Objects(m Measurement, filters ...sandbox.Filter) map[string]int {
	of := map[string]int{}
	accepted := all(byManager, inNamespace(namespace), sandbox.ByResource(objectResource), all(filters...))
	for _, e := range m.Entries {
		if accepted(e) {
			of[e.Object.Name]++
		}
	}
	return of
}

package measure

import (
	"slices"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// record is what the install of one package left: the bodies of its requests. The
// first is the Package; each other one comes after its owner.
type record []recorded

// recorded is an object with its resource.
type recorded struct {
	resource schema.GroupVersionResource
	body     *unstructured.Unstructured
	// owner is the index of the object that controls it, -1 where there is none.
	owner int
}

const recordNamespace = "recorded"

var (
	ownPackages    = resource(packages, corev1alpha1.GroupVersion)
	ownRevisions   = resource("objectsets", corev1alpha1.GroupVersion)
	ownDeployments = resource("objectdeployments", corev1alpha1.GroupVersion)
	ownSlices      = resource("objectslices", corev1alpha1.GroupVersion)
	events         = resource("events", eventsv1.SchemeGroupVersion)
)

// resource is a resource as the audit log has it, in a version.
func resource(name string, version schema.GroupVersion) schema.GroupVersionResource {
	return version.WithResource(schema.ParseGroupResource(name).Resource)
}

// objects is the resource of the workload's objects.
func (c *Cluster) objects() schema.GroupVersionResource {
	return resource(c.kind().resource, c.kind().gvk.GroupVersion())
}

// record installs the first package once more, in a namespace of its own, and
// reads what that leaves.
func (c *Cluster) record() record {
	c.tb.Helper()
	c.Namespace(c.tb, recordNamespace)
	name := packageName(0)
	seen := c.watch(recordNamespace, []string{name})
	c.create(recordNamespace, []string{name}, []string{c.image(0)})
	seen.wait(func(*corev1alpha1.Package) bool { return true })
	c.waitQuiescent()
	client, err := dynamic.NewForConfig(c.Config())
	must(c.tb, err)
	var r record
	for _, resource := range []schema.GroupVersionResource{ownPackages, ownDeployments, ownSlices, ownRevisions, c.objects(), events} {
		list, err := client.Resource(resource).Namespace(recordNamespace).List(c.tb.Context(), metav1.ListOptions{})
		must(c.tb, err)
		for i := range list.Items {
			if owner, ok := r.ownerOf(&list.Items[i]); ok || resource == ownPackages {
				r = append(r, recorded{resource, &list.Items[i], owner})
			}
		}
	}
	return r
}

// ownerOf returns the index of what the object belongs to, -1 where that is not in
// the record: its controller, or what an event is about.
func (r record) ownerOf(obj *unstructured.Unstructured) (index int, found bool) {
	var uid types.UID
	if ref := metav1.GetControllerOf(obj); ref != nil {
		uid = ref.UID
	} else if about, ok, _ := unstructured.NestedString(obj.Object, "regarding", "uid"); ok {
		uid = types.UID(about)
	}
	index = slices.IndexFunc(r, func(x recorded) bool { return x.body.GetUID() == uid })
	return index, index >= 0
}

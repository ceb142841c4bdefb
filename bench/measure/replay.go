package measure

import (
	"context"
	"encoding/json"
	"io"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"lockstep.run/lockstep/e2e/sandbox"
)

const replayNamespace = "replay"

// replay sends the writes of an install once more from plain clients, while no
// manager runs: what the API server itself needs for them, with a watch of each
// kind as a manager has them. From the first package created to the status of the
// last one.
func (c *Cluster) replay() Measurement {
	c.tb.Helper()
	ctx, stop := context.WithCancel(c.tb.Context())
	defer stop()
	var err error
	c.mark, err = c.audit.Mark(ctx)
	must(c.tb, err)
	installed := c.record()
	c.manager.Stop()
	c.Namespace(c.tb, replayNamespace)
	p := c.newPlayer(ctx, installed)
	c.mark, err = c.audit.Mark(ctx)
	must(c.tb, err)
	p.play(ctx)
	entries := slices.DeleteFunc(c.since(), func(e sandbox.Entry) bool { return e.Object.Namespace != replayNamespace || !byAdmin(e) })
	isPackage := sandbox.ByResource(packages)
	s, err := span(entries, all(isPackage, sandbox.ByVerb("create")), all(isPackage, statusOf, succeeded))
	must(c.tb, err)
	written := slices.DeleteFunc(slices.Clone(entries), all(isPackage, sandbox.ByVerb("create")))
	return Measurement{Count: Tally(written, sandbox.AdminUser), Span: s.Took(), Entries: entries, began: s.Start}
}

// player sends the requests of a record for many packages.
type player struct {
	*Cluster
	record
	connections []dynamic.Interface
	// made is what the API server answered, for each package and entry of the record.
	made [][]*unstructured.Unstructured
}

// newPlayer connects as many clients as measure raw, and the watches.
func (c *Cluster) newPlayer(ctx context.Context, installed record) *player {
	c.tb.Helper()
	p := &player{Cluster: c, record: installed, connections: make([]dynamic.Interface, clients), made: make([][]*unstructured.Unstructured, c.Packages)}
	for i := range p.made {
		p.made[i] = make([]*unstructured.Unstructured, len(installed))
	}
	for i := range p.connections {
		var err error
		p.connections[i], err = dynamic.NewForConfig(c.ownConnection())
		must(c.tb, err)
		_, err = p.connections[i].Resource(c.objects()).Namespace(replayNamespace).List(ctx, metav1.ListOptions{Limit: 1}) // connects
		must(c.tb, err)
	}
	reader, err := kubernetes.NewForConfig(c.ownConnection())
	must(c.tb, err)
	for _, resource := range []schema.GroupVersionResource{ownPackages, ownDeployments, ownSlices, ownRevisions, c.objects()} {
		stream, err := reader.CoreV1().RESTClient().Get().AbsPath(pathOf(resource)).Param("watch", "true").Stream(ctx)
		must(c.tb, err)
		go func() { _, _ = io.Copy(io.Discard, stream) }() // ends with the context
	}
	return p
}

func pathOf(resource schema.GroupVersionResource) string {
	if resource.Group == "" {
		return path.Join("/api", resource.Version, resource.Resource)
	}
	return path.Join("/apis", resource.Group, resource.Version, resource.Resource)
}

// play sends everything: one kind of request after the other, each for all packages
// at once.
func (p *player) play(ctx context.Context) {
	p.tb.Helper()
	p.stage(p.those(ownPackages), func(to dynamic.ResourceInterface, i, x int) (*unstructured.Unstructured, error) {
		return to.Create(ctx, p.body(i, x), metav1.CreateOptions{})
	})
	p.stage(p.those(ownPackages), func(to dynamic.ResourceInterface, i, x int) (*unstructured.Unstructured, error) {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"resourceVersion": p.made[i][x].GetResourceVersion(), "finalizers": p.record[x].body.GetFinalizers(),
		}})
		must(p.tb, err)
		return to.Patch(ctx, packageName(i), types.MergePatchType, patch, metav1.PatchOptions{})
	})
	for _, resource := range []schema.GroupVersionResource{ownDeployments, ownSlices, ownRevisions, p.objects(), events} {
		p.stage(p.those(resource), func(to dynamic.ResourceInterface, i, x int) (*unstructured.Unstructured, error) {
			return to.Create(ctx, p.body(i, x), metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		})
	}
	for _, resource := range []schema.GroupVersionResource{ownRevisions, ownDeployments, ownPackages} {
		p.stage(p.those(resource), func(to dynamic.ResourceInterface, i, x int) (*unstructured.Unstructured, error) {
			return to.UpdateStatus(ctx, p.status(i, x), metav1.UpdateOptions{})
		})
	}
}

// those are the entries of the record with the resource.
func (p *player) those(resource schema.GroupVersionResource) []int {
	var indices []int
	for x, r := range p.record {
		if r.resource == resource {
			indices = append(indices, x)
		}
	}
	return indices
}

// stage sends a request for each of the entries of each package.
func (p *player) stage(entries []int, send func(to dynamic.ResourceInterface, i, x int) (*unstructured.Unstructured, error)) {
	p.tb.Helper()
	must(p.tb, parallel(clients, p.Packages*len(entries), func(client, n int) error {
		i, x := n/len(entries), entries[n%len(entries)]
		answer, err := send(p.connections[client].Resource(p.record[x].resource).Namespace(replayNamespace), i, x)
		p.made[i][x] = answer
		return err
	}))
}

// body is an entry of the record as the request of a package that creates it.
func (p *player) body(i, x int) *unstructured.Unstructured {
	r := p.record[x]
	body := r.body.DeepCopy()
	unstructured.RemoveNestedField(body.Object, "status")
	kept := map[string]any{"name": p.rename(body.GetName(), i), "namespace": replayNamespace}
	for _, field := range []string{"labels", "annotations", "finalizers"} {
		if value, ok, _ := unstructured.NestedFieldCopy(body.Object, "metadata", field); ok && r.owner >= 0 {
			kept[field] = value
		}
	}
	body.Object["metadata"] = kept
	switch {
	case r.owner < 0:
	case r.resource == events:
		must(p.tb, unstructured.SetNestedField(body.Object, replayNamespace, "regarding", "namespace"))
	default:
		owner := p.made[i][r.owner]
		ref := *metav1.GetControllerOf(r.body)
		ref.Name, ref.UID = owner.GetName(), owner.GetUID()
		body.SetOwnerReferences([]metav1.OwnerReference{ref})
	}
	return body
}

// status is the status of an entry of the record as it is sent for a package.
func (p *player) status(i, x int) *unstructured.Unstructured {
	made := p.made[i][x]
	body := &unstructured.Unstructured{Object: map[string]any{"status": p.record[x].body.DeepCopy().Object["status"]}}
	body.SetGroupVersionKind(made.GroupVersionKind())
	body.SetNamespace(made.GetNamespace())
	body.SetName(made.GetName())
	body.SetUID(made.GetUID())
	body.SetResourceVersion(made.GetResourceVersion())
	return body
}

// rename gives the name of an object of the first package to that of another one.
func (p *player) rename(name string, i int) string {
	return strings.Replace(name, packageName(0), packageName(i), 1)
}

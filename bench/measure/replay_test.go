package measure

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// TestReplayedBodies: a request of the replay says what that of the install said,
// of another package: its name, and its owner as it is now.
func TestReplayedBodies(t *testing.T) {
	t.Parallel()
	pkg := live("Package", "shop-000", "p0", "")
	pkg.SetFinalizers([]string{"example.org/held"})
	set := live("ObjectSet", "shop-000-abc", "s0", "p0")
	set.SetLabels(map[string]string{"a": "b"})
	stray := live("ObjectSet", "other", "s1", "p1")
	event := live("Event", "shop-000.1", "e0", "")
	event.Object["regarding"] = map[string]any{"uid": "s0", "namespace": recordNamespace}

	r := record{{ownPackages, pkg, -1}}
	if _, found := r.ownerOf(stray); found {
		t.Error("an object of another package is in the record")
	}
	for _, obj := range []*unstructured.Unstructured{set, event} {
		owner, found := r.ownerOf(obj)
		if !found {
			t.Fatalf("%s is not in the record", obj.GetName())
		}
		resource := ownRevisions
		if obj == event {
			resource = events
		}
		r = append(r, recorded{resource, obj, owner})
	}
	p := &player{Cluster: &Cluster{tb: t}, record: r, made: make([][]*unstructured.Unstructured, 8)}
	p.made[7] = []*unstructured.Unstructured{live("Package", "shop-007", "p7", ""), live("ObjectSet", "shop-007-abc", "s7", "p7"), nil}

	want := []map[string]any{
		{"metadata": map[string]any{"name": "shop-007", "namespace": replayNamespace}},
		{"metadata": map[string]any{
			"name": "shop-007-abc", "namespace": replayNamespace, "labels": map[string]any{"a": "b"},
			"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Package", "name": "shop-007", "uid": "p7", "controller": true}},
		}},
		{"metadata": map[string]any{"name": "shop-007.1", "namespace": replayNamespace}, "regarding": map[string]any{"uid": "s0", "namespace": replayNamespace}},
	}
	for x := range want {
		want[x]["apiVersion"], want[x]["kind"] = "v1", r[x].body.GetKind()
		if diff := cmp.Diff(want[x], p.body(7, x).Object); diff != "" {
			t.Errorf("body %d (-want +got):\n%s", x, diff)
		}
	}
	wantStatus := map[string]any{
		"apiVersion": "v1", "kind": "ObjectSet", "status": map[string]any{"of": "s0"},
		"metadata": map[string]any{"name": "shop-007-abc", "namespace": recordNamespace, "uid": "s7", "resourceVersion": "5"},
	}
	if diff := cmp.Diff(wantStatus, p.status(7, 1).Object); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

// live is an object as an API server answers it.
func live(kind, name string, uid, owner types.UID) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "status": map[string]any{"of": string(uid)}}}
	obj.SetNamespace(recordNamespace)
	obj.SetName(name)
	obj.SetUID(uid)
	obj.SetResourceVersion("5")
	obj.SetGeneration(2)
	if owner != "" {
		obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Package", Name: "shop-000", UID: owner, Controller: ptr.To(true)}})
	}
	return obj
}

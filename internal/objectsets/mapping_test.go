package objectsets_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases"
)

// observed is a cluster with these observed objects.
type observed struct {
	cluster.Cluster
	objects map[objects.Key]*objects.Observed
}

func (o observed) Observed(key objects.Key) (*objects.Observed, bool) {
	obs, ok := o.objects[key]
	return obs, ok
}

func (observed) State(schema.GroupKind) livestate.KindState {
	return livestate.KindState{Served: true, Synced: true}
}

func (observed) Passed(schema.GroupKind, string) bool { return true }

// TestMapped: conditions are mapped by object, not by its name alone. Conditions of an older
// generation or of an invalid form are ignored.
func TestMapped(t *testing.T) {
	t.Parallel()
	web, other := objects.Key{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}, objects.Key{Kind: "Service", Namespace: "shop", Name: "web"}
	maps := func(pairs ...string) (all []objects.ConditionMapping) {
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, objects.ConditionMapping{SourceType: pairs[i], DestinationType: pairs[i+1]})
		}
		return all
	}
	rev := &engine.Revision{Revision: phases.Revision{Phases: []phases.Phase{{Name: "one", Objects: []*objects.Desired{
		{Key: web, Mappings: maps("Ready", "example.com/Web", "Old", "example.com/Old")}, {Key: other, Mappings: maps("Ready", "example.com/Service")},
	}}}}}
	seen := observed{objects: map[objects.Key]*objects.Observed{
		web: {Generation: 2, Trimmed: []byte(`{"status":{"conditions":[
			{"type":"Ready","status":"True","reason":"Yes","observedGeneration":2},{"type":"Old","status":"True","reason":"Was","observedGeneration":1},
			{"status":"True"},"text",null,7]}}`)},
		other: {Generation: 1, Trimmed: []byte(`{"status":{"conditions":[{"type":"Ready","status":"False","reason":"No"}]}}`)},
	}}
	mapped, left := objectsets.Mapped(rev, seen, []objects.Key{web, other})
	want := []metav1.Condition{
		{Type: "example.com/Web", Status: "True", Reason: "Yes"}, {Type: "example.com/Service", Status: "False", Reason: "No"},
	}
	if diff := cmp.Diff(want, mapped); diff != "" || left != 0 {
		t.Errorf("%d are left out; %s", left, diff)
	}
}

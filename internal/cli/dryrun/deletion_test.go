package dryrun

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metadatafake "k8s.io/client-go/metadata/fake"

	"lockstep.run/lockstep/internal/cli/dryrun/definitions"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/test/require"
)

// Resources that the package deletes before their definition are not lost, and resources that its
// controller outlives do not hang.
func TestResourcesOfDefinition(t *testing.T) {
	t.Parallel()
	group := schema.GroupVersion{Group: "drain.example.com", Version: "v1"}
	definition := &definitions.CRD{}
	definition.Spec.Group, definition.Spec.Names.Kind, definition.Spec.Names.Plural = group.Group, "Tank", "tanks"
	for reason, tc := range map[string]struct{ phases, others, lost, held string }{
		"own ones go first": {phases: "controller own front"},
		"own ones go last":  {phases: "own controller", held: "own"},
		"another one":       {phases: "controller own", others: "a", lost: "the only other object of its kind is deleted with it", held: "a"},
		"others":            {phases: "controller own", others: "a b", lost: "all 2 other tanks are deleted with it", held: "a b"},
		"no own ones":       {phases: "controller", others: "a b", lost: "all 2 tanks are deleted with it", held: "a b"},
	} {
		scheme := metadatafake.NewTestScheme()
		require.NoError(t, metav1.AddMetaToScheme(scheme))
		c := metadatafake.NewSimpleMetadataClient(scheme)
		mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{group})
		mapper.Add(group.WithKind("Tank"), meta.RESTScopeRoot)
		s := &simulation{simulatedCluster: &simulatedCluster{Cluster: &Cluster{Metadata: c, Mapper: mapper}, objects: map[objects.Key]*object{}}}
		rev, tanks := &engine.Revision{}, strings.Fields(tc.others)
		for _, name := range strings.Fields(tc.phases) {
			key := objects.Key{Group: "apps", Kind: "Deployment", Name: name}
			if name == "own" {
				key, tanks = objects.Key{Group: group.Group, Kind: "Tank", Name: name}, append(tanks, name)
			}
			s.objects[key] = &object{liveObject: liveObject{live: &unstructured.Unstructured{}}}
			rev.Phases = append(rev.Phases, phases.Phase{Objects: []*objects.Desired{{Key: key}}})
		}
		for _, name := range tanks {
			m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"drain"}}}
			m.SetGroupVersionKind(group.WithKind("Tank"))
			require.NoError(t, c.Tracker().Add(m))
		}
		want := ""
		if tc.held != "" {
			want = "waits for Tank " + strings.ReplaceAll(tc.held, " ", " (finalizer drain), Tank ") + " (finalizer drain), whose controller"
		}
		held, err := s.held(t.Context(), rev, definition)
		require.NoError(t, err)
		if lost := s.resourcesGo(t.Context(), definition); lost != tc.lost || !strings.HasPrefix(held, want) || (held == "") != (want == "") {
			t.Errorf("%s: lost %q, held %q", reason, lost, held)
		}
	}
}

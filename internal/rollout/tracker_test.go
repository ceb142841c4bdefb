package rollout

import (
	"bytes"
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/probes"
)

// TestTrimmedBy: a record has what an owner's probes read where its number is not
// lower than the one that the owner got; and no list is asked for where none is needed.
func TestTrimmedBy(t *testing.T) {
	t.Parallel()
	kind := schema.GroupKind{Kind: "ConfigMap"}
	needs := func(paths ...string) *probes.Needs {
		n := &probes.Needs{}
		for _, p := range paths {
			n.Paths = append(n.Paths, []string{"data", p})
		}
		return n
	}
	first, second := OwnerKey{Name: "first"}, OwnerKey{Name: "second"}
	type step struct {
		reason string
		owner  OwnerKey
		needs  *probes.Needs // nil: the owner probes the kind no more
		// lacks tells whether the record of the step before lacks what is read now.
		lacks bool
	}
	for name, steps := range map[string][]step{
		"one owner": {
			{"nothing was kept", first, needs("a"), true},
			{"the same again", first, needs("a"), false},
			{"less", first, needs(), false},
			{"what was left out meanwhile", first, needs("a"), true},
			{"more", first, needs("a", "b"), true},
			{"nothing", first, nil, false},
			{"all anew", first, needs("a"), true},
		},
		"two owners": {
			{"nothing was kept", first, needs("a"), true},
			{"another reads more", second, needs("a", "b"), true},
			{"what the other one reads", first, needs("b"), false},
			{"the other one goes", second, nil, false},
			{"the same as before", first, needs("b"), false},
			{"what only the other one read", first, needs("a", "b"), true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tracker := NewTracker()
			live := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"a": "1", "b": "2"}}}
			key := objects.Key{Kind: kind.Kind, Name: "one"}
			record := tracker.Observe(key, live)
			asks := map[OwnerKey]*probes.Needs{}
			for _, s := range steps {
				declared := map[schema.GroupKind]probes.Needs{}
				delete(asks, s.owner)
				if s.needs != nil {
					declared[kind], asks[s.owner] = *s.needs, s.needs
				}
				since := tracker.Probe(s.owner, declared)[kind]
				if lacks := record.TrimmedBy < since; lacks != s.lacks {
					t.Errorf("%s: the record lacks something: %t, want %t", s.reason, lacks, s.lacks)
				}
				if record = tracker.Observe(key, live); record.TrimmedBy < since {
					t.Errorf("%s: a new record lacks something", s.reason)
				}
				for _, other := range asks {
					if got := probes.Trim(decoded(t, record.Trimmed), *other); !bytes.Equal(got, probes.Trim(live.Object, *other)) {
						t.Errorf("%s: the record has %s of what is read", s.reason, got)
					}
				}
			}
		})
	}
}

func decoded(t *testing.T, trimmed []byte) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(trimmed, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

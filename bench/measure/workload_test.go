package measure

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/test/require"
)

// The loader accepts every workload, with the stated number of objects, and a revision differs from
// the next one as it should.
func TestFiles(t *testing.T) {
	t.Parallel()
	tests := map[string]Workload{
		"ConfigMaps": {Objects: 12, Phases: 3, Packages: 2},
		"large":      {Objects: 12, Phases: 3, Packages: 2, Bytes: 800},
		"unready":    {Objects: 12, Phases: 1, Packages: 2, Kind: Unready},
		"gates":      {Objects: 12, Phases: 3, Packages: 2, Kind: Gates},
	}

	for name, w := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := objectsOf(t, w, firstRelease)
			if len(before) != w.Objects || before[w.middle(1)] == "" {
				t.Fatalf("the objects are %v, the one in the middle is %s", slices.Sorted(maps.Keys(before)), w.middle(1))
			}
			one := objectsOf(t, w, release{version: "1.0.0", value: "v1", middle: "v2"})
			if changed := changes(before, one); len(changed) != 1 || changed[0] != w.middle(1) {
				t.Errorf("an upgrade of one changes %v, want %s", changed, w.middle(1))
			}
			every := w.Objects
			if w.Kind == Gates {
				every -= w.Phases // gates have no value
			}
			if changed := changes(before, objectsOf(t, w, release{version: "1.0.0", value: "v2", middle: "v2"})); len(changed) != every {
				t.Errorf("an upgrade of all changes %v", changed)
			}
		})
	}
}

// objectsOf returns the loaded objects of the second package by name.
func objectsOf(t *testing.T, w Workload, r release) map[string]string {
	t.Helper()
	o := loader.Options{}
	o.Package.Metadata.Name, o.Package.Metadata.Namespace, o.Package.Image = packageName(1), namespace, "example.invalid/shop:v1"
	pkg, err := loader.Load(t.Context(), w.files(1, r).Bytes(), o)
	require.NoError(t, err)
	if len(pkg.Phases) != w.Phases {
		t.Errorf("%d phases, want %d", len(pkg.Phases), w.Phases)
	}

	objects := map[string]string{}
	for _, phase := range pkg.Phases {
		for _, object := range phase.Objects {
			raw, err := json.Marshal(object)
			require.NoError(t, err)
			var named struct {
				Object struct{ Metadata struct{ Name string } }
			}
			require.NoError(t, json.Unmarshal(raw, &named))
			objects[named.Object.Metadata.Name] = string(raw)
		}
	}

	return objects
}

func changes(before, after map[string]string) []string {
	var names []string
	for name := range after {
		if before[name] != after[name] {
			names = append(names, name)
		}
	}
	return names
}

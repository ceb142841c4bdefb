package handover_test

import (
	"testing"

	"lockstep.run/lockstep/internal/cli/handover"
	"lockstep.run/lockstep/internal/limits"
)

// Whatever a record says, it is read within the limits, twice in the same way, and each object has a kind, a
// name and a namespace.
//
// Code: record.go
func FuzzReadHelmRelease(f *testing.F) {
	for _, manifest := range []string{"", "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n", "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: A, metadata: {name: a}}]\n", "a: [", "- 1"} {
		f.Add(record(manifest, nil), true)
		f.Add(record(manifest, nil), false)
	}
	f.Add([]byte(`{"name":"web","hooks":[{"manifest":"kind: A"}],"chart":{"files":[{"name":"crds/a","data":"YTog"}]}}`), true)
	f.Fuzz(func(t *testing.T, data []byte, compress bool) {
		text := string(data)
		if compress {
			text = zipped(data)
		}
		got, err := handover.ReadHelmRelease(text, "store", "web")
		again, errAgain := handover.ReadHelmRelease(text, "store", "web")
		if (err == nil) != (errAgain == nil) || err != nil && err.Error() != errAgain.Error() {
			t.Fatalf("%v, and again %v", err, errAgain)
		}
		if err != nil {
			return
		}
		if len(got.Objects) != len(again.Objects) || len(got.Objects) > limits.PackageObjects {
			t.Fatalf("%d objects, and again %d", len(got.Objects), len(again.Objects))
		}
		for _, o := range got.Objects {
			if o.Kind == "" || o.Version == "" || o.Name == "" || o.Namespace == "" {
				t.Errorf("an object is %+v", o)
			}
		}
	})
}

package repository_test

import (
	"testing"

	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/test/require"
)

// FuzzRepository checks any repository. It is refused with a message, or read, and its encoding can
// be read again.
//
// Code: read.go, index.go, write.go
func FuzzRepository(f *testing.F) {
	f.Add([]byte("apiVersion: manifests.package-operator.run/v1alpha1\nkind: Repository\nmetadata: {name: shop}\n---\napiVersion: manifests.package-operator.run/v1alpha1\nkind: RepositoryEntry\nmetadata: {name: web." + one[7:] + "}\ndata: {name: web, image: example.com/web, digest: " + one + ", versions: [v1.0.0]}\n"))
	f.Add([]byte("kind: Repository"))
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := repository.Parse("r.yaml", data)
		if err != nil {
			return
		}
		written, err := x.Marshal()
		require.NoError(t, err)
		if _, err := repository.Parse("r.yaml", written); err != nil {
			t.Fatalf("its encoding cannot be read: %v\n%s", err, written)
		}
	})
}

package repositories_test

import (
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/test/require"
)

// push pushes a repository of packages as an image, and returns its reference by digest.
func push(t *testing.T, tag string, packages ...string) string {
	t.Helper()
	image, err := loader.BuildFolder(repository.Folder, loader.Files{"repository.yaml": []byte(document(packages...))}, loader.BuildOptions{})
	require.NoError(t, err)
	ref, err := name.ParseReference(env.Registry()+"/"+tag, name.Insecure)
	require.NoError(t, err)
	require.NoError(t, remote.Write(ref, image, remote.WithContext(t.Context())))
	digest, err := image.Digest()
	require.NoError(t, err)
	return ref.Context().Digest(digest.String()).Name()
}

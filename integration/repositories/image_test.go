package repositories_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
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

// An image is followed by the highest of its tags, by one tag, or is what its digest says.
func TestImages(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	of := func(ref string, selection *corev1alpha1.VersionSelection) corev1alpha1.RepositorySource {
		return corev1alpha1.RepositorySource{Image: &corev1alpha1.RepositoryImageSource{Ref: ref, TagSelection: selection}}
	}
	byDigest := push(t, "catalogue:1.0.0", "shop@1.0.0")
	push(t, "catalogue:latest", "cart@1.0.0")
	selected := newRepository(ns, "selected", of(env.Registry()+"/catalogue", &corev1alpha1.VersionSelection{Version: "<2"}))
	tagged, pinned := newRepository(ns, "tagged", of(env.Registry()+"/catalogue:latest", nil)), newRepository(ns, "pinned", of(byDigest, nil))
	for _, r := range []*corev1alpha1.PackageRepository{tagged, pinned, selected} {
		env.Create(t, r)
		awaitReady(t, r)
	}
	if !strings.Contains(selected.Status.Artifact.Revision, "1.0.0") {
		t.Errorf("revision %q", selected.Status.Artifact.Revision)
	}
	awaitOffers(t, ns, "cart@1.0.0=tagged", "shop@1.0.0=pinned")

	push(t, "catalogue:1.1.0", "shop@1.1.0")
	push(t, "catalogue:2.0.0", "shop@2.0.0")
	push(t, "catalogue:latest", "cart@2.0.0")
	for i, r := range []*corev1alpha1.PackageRepository{tagged, pinned, selected} {
		retry(t, r, fmt.Sprint(i))
		awaitHandled(t, r, fmt.Sprint(i))
	}
	awaitOffers(t, ns, "cart@2.0.0=tagged", "shop@1.0.0=pinned", "shop@1.1.0=selected")
}

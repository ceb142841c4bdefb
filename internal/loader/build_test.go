package loader

import (
	"context"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"lockstep.run/lockstep/test/require"
)

func TestBuild(t *testing.T) {
	t.Parallel()
	files := pkg("manifest.yaml", plain, "a/b/c.yaml", "c", "a.yaml", "a", ".git/config", "x", "a/.hidden", "x", "empty", "")
	opts := BuildOptions{Labels: map[string]string{"l": "v"}, Annotations: map[string]string{"a": "v"}}
	img, err := Build(files, opts)
	require.NoError(t, err)
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatal(layers, err)
	}
	if err := validate.Layer(layers[0]); err != nil {
		t.Error(err)
	}

	digest, err := img.Digest()
	require.NoError(t, err)
	again, err := Build(maps.Clone(files), opts)
	require.NoError(t, err)
	if d, err := again.Digest(); d != digest || err != nil {
		t.Error("the digest differs from build to build", err)
	}

	got, err := ReadImage(context.Background(), img)
	want := pkg("manifest.yaml", plain, "a/b/c.yaml", "c", "a.yaml", "a", "empty", "")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}

	config, err := img.ConfigFile()
	if err != nil || config.OS != "linux" || config.Architecture != "amd64" || config.Config.Labels["l"] != "v" || !config.Created.IsZero() {
		t.Errorf("%v %+v", err, config)
	}

	manifest, err := img.Manifest()
	if err != nil || manifest.MediaType != types.OCIManifestSchema1 || len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != types.OCILayer || manifest.Annotations["a"] != "v" {
		t.Errorf("%v %+v", err, manifest)
	}
}

func TestBuildDigest(t *testing.T) {
	t.Parallel()
	img, err := Build(pkg("manifest.yaml", plain), BuildOptions{})
	require.NoError(t, err)
	layers, err := img.Layers()
	require.NoError(t, err)
	// The digest of the uncompressed layer depends only on the files.
	const want = "sha256:5793922428092905f47fe39873c7a5d0b5f8e5409f79189f21f75ce8e5923153"
	if h, err := layers[0].DiffID(); err != nil || h.String() != want {
		t.Errorf("the layer is %s (%v)", h, err)
	}
}

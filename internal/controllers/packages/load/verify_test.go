package load

import (
	"archive/tar"
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	ggcrremote "github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/internal/loader/registry"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/signed"
)

// The digest that was verified is the one that is pulled, even if the tag has moved to another
// image since.
func TestTagMovesAfterVerification(t *testing.T) {
	t.Parallel()
	own, swap := signed.NewPair(t), func() {}
	inner := ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/referrers/") {
			swap()
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	ref, err := name.ParseReference(host+"/shop:v1", name.Insecure)
	require.NoError(t, err)
	push := func(text string) string {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		_ = w.WriteHeader(&tar.Header{Name: "package/manifest.yaml", Typeflag: tar.TypeReg, Size: int64(len(text)), Mode: 0o644})
		_, _ = w.Write([]byte(text))
		_ = w.Close()
		image, err := mutate.AppendLayers(empty.Image, static.NewLayer(b.Bytes(), types.OCIUncompressedLayer))
		if err == nil {
			err = ggcrremote.Write(ref, image)
		}
		require.NoError(t, err)
		digest, _ := image.Digest()
		return digest.String()
	}
	digest := push("good")
	signed.Attach(t, ref.Context(), digest, own.Bundle(t, digest))
	swapped := ""
	swap = func() {
		if swapped == "" {
			swapped = push("evil")
		}
	}
	puller, err := registry.NewPuller(registry.Options{InsecureRegistries: []string{host}})
	require.NoError(t, err)
	policies := []imagepolicy.Policy{{Name: "p", Prefixes: []string{host}, Verification: &imagepolicy.Verification{
		Mode: imagepolicy.Enforce, Purposes: []imagepolicy.Purpose{imagepolicy.Package}, Authorities: []imagepolicy.Authority{own.Authority()},
	}}}
	in := Request{Pkg: newPackage(), Image: ref.String(), Policies: imagepolicy.NewSet(policies, false, time.Now())}
	in.Origin.Image = in.Image
	p := &Pipeline{Puller: puller, ClusterPullSecrets: true, Credentials: &sources.Credentials{}, Memory: quota.New(0)}
	admit := func() error { return nil }
	image, outcome, err := p.pull(t.Context(), in, admit, nil)
	if err != nil || swapped == "" || image.Digest != digest || string(image.Files["manifest.yaml"]) != "good" || outcome.Verified == nil {
		t.Fatalf("%v, %+v, %+v, the tag leads to %s", err, image, outcome, swapped)
	}
	_, _, err = p.pull(t.Context(), in, admit, nil)
	if refusal := imagepolicy.RefusalOf(err); refusal == nil || refusal.Reason != imagepolicy.ReasonNoSignature || !strings.Contains(refusal.Message, "no signature of "+swapped) {
		t.Errorf("the other image: %v", err)
	}
}

// An error of a pull from a mirror names the image of the spec, and the author of the mirror.
func TestMirrorThatFails(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	puller, err := registry.NewPuller(registry.Options{InsecureRegistries: []string{host}})
	require.NoError(t, err)
	policies := []imagepolicy.Policy{{Name: "mirror", Prefixes: []string{"registry.example.com"}, Rewrite: host}}
	in := Request{Pkg: newPackage(), Image: "registry.example.com/shop:v1", Policies: imagepolicy.NewSet(policies, false, time.Now())}
	in.Origin.Image = in.Image
	p := &Pipeline{Puller: puller, ClusterPullSecrets: true, Credentials: &sources.Credentials{}, Memory: quota.New(0)}
	_, _, err = p.pull(t.Context(), in, func() error { return nil }, nil)
	if err == nil || !strings.Contains(err.Error(), host+"/shop:v1") || !strings.Contains(err.Error(), "(the ImageConfig mirror has it pulled in place of registry.example.com/shop:v1)") {
		t.Error(err)
	}
}

package load

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	ggcrremote "github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/internal/loader/registry"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/signed"
)

// A remedy names the object that the user has.
func TestRemediesNameTheKind(t *testing.T) {
	t.Parallel()
	wrong := fmt.Errorf("load: %w", violation.Violations{
		{Reason: violation.ReasonConfigInvalid}, {Reason: violation.ReasonPatchInvalid}, {Reason: violation.ReasonTemplate, Remedy: "Drop it."},
	})
	from, both := &corev1alpha1.ClusterPackage{}, newPackage()
	from.Spec.ConfigFrom = []corev1alpha1.ValueSource{{}}
	both.Spec.ConfigFrom, both.Spec.Config = from.Spec.ConfigFrom, &runtime.RawExtension{}
	for want, pkg := range map[string]corev1alpha1.GenericPackage{
		"Correct the values that spec.configFrom names of the ClusterPackage.":           from,
		"Correct spec.config, or the values that spec.configFrom names, of the Package.": both,
		"Correct spec.config of the Package.":                                            newPackage(),
		"Correct spec.config of the ClusterPackage.":                                     &corev1alpha1.ClusterPackage{},
	} {
		err := forKindOf(pkg, wrong)
		var found violation.Violations
		if !errors.As(err, &found) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "Drop it.") {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	require.Contains(t, wrong.Error(), "spec.config of the Package.", fmt.Sprintf("the error was changed: %v", wrong))
	for _, err := range []error{nil, errors.New("no route")} {
		if got := forKindOf(&corev1alpha1.ClusterPackage{}, err); !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
}

// A package by image is checked against the version of the manager that loads it.
func TestOptionsForTheManager(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v0.2.1", ""} {
		p := &Pipeline{Memory: quota.New(0)}
		if got := p.optionsFor(Request{Pkg: newPackage(), Manager: version}, &sources.Values{}).ManagerVersion; got != version {
			t.Errorf("%s: got %q", version, got)
		}
	}
}

// The annotation of objects on a Package is named, unless the field has the same value.
func TestCollisionProtectionOfAPackage(t *testing.T) {
	t.Parallel()
	for _, mode := range []corev1alpha1.CollisionProtection{"", corev1alpha1.CollisionProtectionNone} {
		pkg := newPackage()
		pkg.Annotations, pkg.Spec.CollisionProtection = map[string]string{corev1alpha1.CollisionProtectionAnnotation: "None"}, mode
		got := (&Pipeline{}).contentOf(Request{Pkg: pkg}, &registry.Image{}, &loader.Package{Manifest: &manifestsv1alpha1.PackageManifest{}}).Warnings
		if (len(got) == 1) != (mode == "") {
			t.Errorf("%q: %q", mode, got)
		}
	}
}

// Content names the mirror that its image was pulled from instead of the registry of the spec.
func TestContentNamesTheMirror(t *testing.T) {
	t.Parallel()
	policies := imagepolicy.NewSet([]imagepolicy.Policy{{Name: "mirrors", Prefixes: []string{"registry.example.com"}, Rewrite: "mirror.example.com/team"}}, false, time.Now())
	for image, want := range map[string]string{"registry.example.com/shop:v1": "mirror.example.com/team/shop:v1 by the ImageConfig mirrors", "ghcr.io/shop:v1": ""} {
		in := Request{Pkg: newPackage(), Image: image, Policies: policies}
		require.Equal(t, want, (&Pipeline{}).contentOf(in, &registry.Image{}, &loader.Package{Manifest: &manifestsv1alpha1.PackageManifest{}}).Mirror, image)
	}
}

// A large package waits for another one, before any of its content is in memory, in turn by
// namespace. It does not hold up small packages.
func TestLargePackagesAreLoadedOneAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &Pipeline{Memory: quota.New(0), rendering: queueing.NewStages(limits.LoadsShort, limits.LoadsLong, limits.LoadShort)}
		enter := func(ctx context.Context, namespace string, size int) (*admission, chan error) {
			pkg := newPackage()
			pkg.Namespace = namespace
			a, entered := &admission{pipeline: p, in: Request{Pkg: pkg, Size: size}, load: ctx}, make(chan error, 1)
			go func() { entered <- a.enter() }()
			synctest.Wait()
			return a, entered
		}
		first, entered := enter(t.Context(), "many", 2)
		if err := <-entered; err != nil || first.ctx == nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		second, second2 := enter(ctx, "many", 2)
		third, third3 := enter(t.Context(), "few", 2)
		for size, name := range []string{"small"} {
			a, entered := enter(t.Context(), "few", size)
			if err := <-entered; err != nil {
				t.Errorf("%s: %v", name, err)
			}
			a.leave()
		}
		if len(second2)+len(third3) > 0 {
			t.Error("another large package is loaded at the same time")
		}
		cancel()
		if err := <-second2; !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
		second.leave()
		first.leave()
		if err := <-third3; err != nil {
			t.Error(err)
		}
		if err := third.enter(); err != nil {
			t.Errorf("again: %v", err)
		}
		third.pause() // it downloads something else
		if release, err := p.Memory.Acquire(t.Context(), "", math.MaxInt64); err != nil {
			t.Error(err)
		} else {
			release()
		}
		if err := third.enter(); err != nil {
			t.Errorf("after a pause: %v", err)
		}
		third.leave()
		if err := third.enter(); !errors.Is(err, errLoadEnded) {
			t.Errorf("after its end: %v", err)
		}
		if release, err := p.Memory.Acquire(t.Context(), "", math.MaxInt64); err != nil {
			t.Error(err)
		} else {
			release()
		}
	})
}

func TestRooms(t *testing.T) {
	t.Parallel()
	const mebibyte = 1 << 20
	for _, tc := range []struct {
		reason string
		limit  int64
		rooms  []int64
		weight int64
	}{
		{"as config gives", 400 * mebibyte, []int64{mebibyte, 8 * mebibyte, 0}, 99 * mebibyte},
		{"much memory", 4096 * mebibyte, []int64{mebibyte, 8 * mebibyte, 0}, 192 * mebibyte},
		{"little memory", 60 * mebibyte, []int64{mebibyte, 0, 0}, 15 * mebibyte},
	} {
		p := &Pipeline{Memory: quota.New(tc.limit)}
		for size, want := range tc.rooms {
			require.Equal(t, want, p.roomOf(size), fmt.Sprintf("%s: size %d has room for", tc.reason, size))
		}
		if got := p.weightOf(2) / mebibyte * mebibyte; got != tc.weight {
			t.Errorf("%s: %d MiB", tc.reason, got/mebibyte)
		}
	}
	for _, tc := range []struct {
		err  error
		long bool
		size int
		ok   bool
	}{
		{nil, false, 0, false}, {errors.New("no"), false, 0, false}, {fmt.Errorf("render: %w", queueing.ErrLong), true, 0, true},
		{fmt.Errorf("pull: %w", archive.ErrRoom), false, 1, true},
	} {
		if again, ok := repeated(Request{}, tc.err); ok != tc.ok || again.Long != tc.long || again.Size != tc.size {
			t.Errorf("%v: %t, long %t, size %d", tc.err, ok, again.Long, again.Size)
		}
	}
}

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

package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
	if !strings.Contains(wrong.Error(), "spec.config of the Package.") {
		t.Errorf("the error was changed: %v", wrong)
	}
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
		if got := (&Pipeline{}).contentOf(in, &registry.Image{}, &loader.Package{Manifest: &manifestsv1alpha1.PackageManifest{}}).Mirror; got != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
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
			if got := p.roomOf(size); got != want {
				t.Errorf("%s: size %d has room for %d, want %d", tc.reason, size, got, want)
			}
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

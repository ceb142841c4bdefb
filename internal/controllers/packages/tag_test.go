package packages

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// looker returns a function that looks a tag up as a reconcile at the time now does. next is
// zero while the registry is requested.
func looker(t *testing.T, now *time.Time, resolve func(context.Context, load.Request) (string, error)) (
	look func(*corev1alpha1.Package) (digest string, next time.Time, err error), r *Reconciler, woken chan types.NamespacedName,
) {
	t.Helper()
	r, woken = newReconciler(t)
	r.loads.Resolve, r.Now = resolve, func() time.Time { return *now }
	r.loads.Spread = func(d time.Duration) time.Duration { return d * 3 / 4 }
	return func(pkg *corev1alpha1.Package) (string, time.Time, error) {
		known := r.of(pkg).lookUpTag()
		if known.Resolving {
			known.Due = time.Time{}
		}
		return known.Digest, known.Due, known.Err
	}, r, woken
}

// A tag is resolved once in each interval, and its digest is reported.
func TestTags(t *testing.T) {
	t.Parallel()
	now := start
	answers := make(chan error, 1)
	stands := digest
	lookUp, r, woken := looker(t, &now, func(_ context.Context, in load.Request) (string, error) {
		if in.Image != image {
			t.Errorf("asked for %s", in.Image)
		}
		return stands, <-answers
	})
	pkg := newPackage(every(10 * time.Minute))
	look := func() (string, time.Time, error) { return lookUp(pkg) }

	if got, next, err := look(); got != "" || err != nil || !next.Equal(start.Add(7*time.Minute+30*time.Second)) {
		t.Errorf("at first no registry is asked: %q, next %s, %v", got, next, err)
	}
	now = now.Add(8 * time.Minute)
	if got, next, err := look(); got != "" || err != nil || !next.IsZero() {
		t.Errorf("asking: %q, next %s, %v", got, next, err)
	}
	if _, next, _ := look(); !next.IsZero() {
		t.Errorf("it is asked once at a time, next %s", next)
	}
	answers <- nil
	<-woken
	if got, next, err := look(); got != digest || err != nil || !next.Equal(now.Add(7*time.Minute+30*time.Second)) {
		t.Errorf("answered: %q, next %s, %v", got, next, err)
	}
	now = now.Add(8 * time.Minute)
	_, _, _ = look()
	answers <- errors.New("the registry is away")
	<-woken
	if got, next, err := look(); got != digest || err == nil || next.IsZero() {
		t.Errorf("the last answer stays: %q, next %s, %v", got, next, err)
	}
	stands, now = "sha256:other", now.Add(8*time.Minute)
	_, _, _ = look()
	answers <- nil
	<-woken
	if got, _, err := look(); got != "sha256:other" || err != nil {
		t.Errorf("newDigest: %q, %v", got, err)
	}

	// The tag moved again and was unpacked by a change of the spec: an answer from
	// before must not take that back.
	pkg.Status.Resolved = &corev1alpha1.ResolvedPackage{Digest: "sha256:other"}
	if got, _, _ := look(); got != "sha256:other" {
		t.Errorf("unpacked as answered: %q", got)
	}
	pkg.Status.Resolved = &corev1alpha1.ResolvedPackage{Digest: "sha256:newest"}
	if got, _, _ := look(); got != "" {
		t.Errorf("the answer is older than the unpacked content: %q", got)
	}

	// A retry resolves the tag at once.
	retried("1")(pkg)
	if _, next, _ := look(); !next.IsZero() {
		t.Errorf("a retry resolves the tag at %s, want at once", next)
	}
	answers <- nil
	<-woken
	if _, next, _ := look(); next.IsZero() {
		t.Error("one retry resolves the tag twice")
	}

	pkg = newPackage(every(time.Second))
	if _, next, _ := look(); !next.Equal(now.Add(45 * time.Second)) {
		t.Errorf("less than the least interval: next %s", next)
	}
	now = now.Add(time.Minute)
	_, _, _ = look()
	dropped := r.of(pkg) // it has resolved nothing yet
	require.NoError(t, dropped.resolve(t.Context()))
	answers <- nil // nothing waits for it
	if got, _, _ := look(); got != "" {
		t.Errorf("a Package that was recreated knows %q", got)
	}
	select {
	case key := <-woken:
		t.Errorf("%s is woken after it went", key)
	default:
	}
}

// A panic over a registry's answer is an error of the one tag, which is resolved again when that is
// due.
func TestPanicOverATag(t *testing.T) {
	t.Parallel()
	now := start
	look, _, woken := looker(t, &now, func(context.Context, load.Request) (string, error) { panic("hunter2") })
	pkg := newPackage(every(10 * time.Minute))
	_, now, _ = look(pkg)
	for range limits.LoadsPerHost + 1 { // more often than the queue has capacity
		_, _, _ = look(pkg)
		<-woken
		_, next, err := look(pkg)
		var caught *panics.Error
		if !errors.As(err, &caught) || !strings.Contains(err.Error(), image) || strings.Contains(err.Error(), "hunter2") || !next.After(now) {
			t.Errorf("next %s, %v", next, err)
		}
		now = next
	}
}

func every(d time.Duration) func(*corev1alpha1.Package) {
	return func(p *corev1alpha1.Package) { p.Spec.Interval = &metav1.Duration{Duration: d} }
}

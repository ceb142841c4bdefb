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
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
)

// looker returns a function that looks a tag up as a reconcile at the time now does. next is
// zero while the registry is requested.
func looker(t *testing.T, now *time.Time, resolve func(context.Context, input) (string, error)) (
	look func(*corev1alpha1.Package) (digest string, next time.Time, err error), r *Reconciler, woken chan types.NamespacedName,
) {
	t.Helper()
	r, woken = newReconciler(t)
	r.resolveTag, r.Now = resolve, func() time.Time { return *now }
	r.spread = func(d time.Duration) time.Duration { return d * 3 / 4 }
	return func(pkg *corev1alpha1.Package) (string, time.Time, error) {
		known := r.of(pkg).lookUpTag()
		if known.resolving {
			known.due = time.Time{}
		}
		return known.digest, known.due, known.err
	}, r, woken
}

// A tag is resolved once in each interval, and its digest is reported.
func TestTags(t *testing.T) {
	t.Parallel()
	now := start
	answers := make(chan error, 1)
	stands := digest
	lookUp, r, woken := looker(t, &now, func(_ context.Context, in input) (string, error) {
		if in.image != image {
			t.Errorf("asked for %s", in.image)
		}
		return stands, <-answers
	})
	pkg := newPackage(every(10 * time.Minute))
	look := func() (string, time.Time, error) { return lookUp(pkg) }

	if got, next, err := look(); got != "" || err != nil || !next.Equal(start.Add(7*time.Minute+30*time.Second)) {
		t.Errorf("at first nothing is asked: %q, next %s, %v", got, next, err)
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
	if err := dropped.resolve(t.Context()); err != nil {
		t.Fatal(err)
	}
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

// A panic over what a registry answers is an error of the one tag, which is asked for
// again when that is due.
func TestPanicOverATag(t *testing.T) {
	t.Parallel()
	now := start
	look, _, woken := looker(t, &now, func(context.Context, input) (string, error) { panic("hunter2") })
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

// Spread looks stay within the interval, and not at its beginning.
func TestSpread(t *testing.T) {
	t.Parallel()
	for range 100 {
		if got := spread(time.Minute); got < 30*time.Second || got >= time.Minute {
			t.Fatal(got)
		}
	}
}

func TestReference(t *testing.T) {
	t.Parallel()
	byTheDigest := "registry.test/shop@" + digest
	with := func(policy corev1alpha1.ImagePullPolicy) func(*corev1alpha1.Package) {
		return func(p *corev1alpha1.Package) { p.Spec.ImagePullPolicy = policy }
	}
	for name, tc := range map[string]struct {
		reason    string
		policy    corev1alpha1.ImagePullPolicy
		reuse     unpacked
		newDigest string
		want      string
	}{
		"another spec":                {reason: "as by earlier engines", reuse: unpackedNever, want: image},
		"another cluster":             {reason: "the spec did not change", reuse: unpackedElsewhere, want: byTheDigest},
		"always, another cluster":     {reason: "whenever it is rendered", policy: corev1alpha1.ImagePullPolicyAlways, reuse: unpackedElsewhere, want: image},
		"if not present, other spec":  {reason: "what it stands for is known", policy: corev1alpha1.ImagePullPolicyIfNotPresent, reuse: unpackedNever, want: byTheDigest},
		"never, another spec":         {reason: "no registry is asked", policy: corev1alpha1.ImagePullPolicyNever, reuse: unpackedNever, want: byTheDigest},
		"the tag has moved":           {reason: "the digest found is rolled out", reuse: unpackedCurrent, newDigest: "sha256:" + digest[7:], want: byTheDigest},
		"the tag has moved, elsewise": {reason: "the interval is the user's wish", policy: corev1alpha1.ImagePullPolicyIfNotPresent, newDigest: "sha256:" + digest[7:], want: byTheDigest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := reference(unpackedPackage(with(tc.policy)), image, tc.reuse, tc.newDigest); got != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
	other := unpackedPackage(with(corev1alpha1.ImagePullPolicyIfNotPresent))
	other.Spec.Image = "registry.test/shop:v2"
	if got := reference(other, other.Spec.Image, unpackedNever, ""); got != other.Spec.Image {
		t.Errorf("another image: %s", got)
	}
}

func TestTagged(t *testing.T) {
	t.Parallel()
	for ref, want := range map[string]bool{"a": true, "a:b": true, "a@" + digest: false, "a:b@" + digest: false, "A!": false} {
		if got := tagged(ref); got != want {
			t.Errorf("%s: %t", ref, got)
		}
	}
}

package packages

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
)

// tags looks after the tags of Packages with an interval: now and then it asks
// the registry what they stand for. It is safe for concurrent use.
type tags struct {
	resolve Resolve
	// wake is called when something is known that was not known before.
	wake func(types.NamespacedName)
	now  func() time.Time
	// spread returns a time between half of d and d, so that packages that were
	// installed together, or found by a restart, do not ask together.
	spread func(d time.Duration) time.Duration
	pool   *pool

	mu    sync.Mutex
	ctx   context.Context
	byUID map[types.UID]*tag
}

// tag is what is known of the tag of one Package.
type tag struct {
	image    string
	interval time.Duration
	due      time.Time
	asking   bool
	// digest is what it stood for last, and err why it could not be asked for then.
	digest string
	err    error
	// unpacked is the digest that was unpacked when the registry was asked. An
	// answer is older than what was unpacked since, and must not take that back.
	unpacked string
	// retryValue is that of the Package's retry annotation at the last look.
	retryValue string
}

func newTags(resolve Resolve, wake func(types.NamespacedName), now func() time.Time, pool *pool) *tags {
	return &tags{resolve: resolve, wake: wake, now: now, spread: spread, pool: pool, byUID: map[types.UID]*tag{}}
}

func spread(d time.Duration) time.Duration { return d/2 + rand.N(d/2) } //nolint:gosec // no secret depends on it

func (t *tags) begin(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ctx = ctx
}

// look returns what is known of the Package's tag, and when to look again; it
// asks the registry in the background where that is due. next is zero where the
// answer wakes the Package.
func (t *tags) look(ctx context.Context, in Input) (digest string, next time.Time, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	spec, uid := in.Package.PackageSpec(), in.Package.GetUID()
	interval := max(spec.Interval.Duration, limits.TagIntervalMin)
	known := t.byUID[uid]
	if known == nil || known.image != spec.Image || known.interval != interval {
		known = &tag{image: spec.Image, interval: interval, due: t.now().Add(t.spread(interval)), retryValue: retryValue(in.Package)}
		t.byUID[uid] = known
	}
	switch unpacked := unpackedDigest(in.Package); unpacked {
	case known.digest:
		known.unpacked = unpacked
	case known.unpacked:
	default:
		known.digest = ""
	}
	if known.asking {
		return known.digest, time.Time{}, known.err
	}
	if retry := retryValue(in.Package); retry != known.retryValue {
		known.retryValue, known.due = retry, t.now()
	}
	if t.now().Before(known.due) {
		return known.digest, known.due, known.err
	}
	known.asking, known.unpacked = true, unpackedDigest(in.Package)
	life := t.ctx
	if life == nil {
		life = context.WithoutCancel(ctx)
	}
	in.Image = spec.Image
	in.Package = in.Package.DeepCopyObject().(corev1alpha1.GenericPackage)
	t.pool.run(registryOf(spec.Image), func() { t.ask(life, in, known) })
	return known.digest, time.Time{}, known.err
}

// ask asks the registry, unless the answer is not needed any more.
func (t *tags) ask(ctx context.Context, in Input, known *tag) {
	uid := in.Package.GetUID()
	if ctx.Err() != nil || !t.current(uid, known) {
		return
	}
	digest, err := t.try(ctx, in)
	t.mu.Lock()
	known.asking, known.due = false, t.now().Add(t.spread(known.interval))
	if known.err = err; err == nil {
		known.digest = digest
	}
	t.mu.Unlock()
	if t.current(uid, known) {
		t.wake(keyOf(in.Package))
	}
}

// try asks; a panic becomes an error of this one tag.
func (t *tags) try(ctx context.Context, in Input) (digest string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panics.Caught(logOf(ctx, in), p, "asking what "+in.Image+" stands for")
		}
	}()
	return t.resolve(ctx, in)
}

func unpackedDigest(pkg corev1alpha1.GenericPackage) string {
	if resolved := pkg.PackageStatus().Resolved; resolved != nil {
		return resolved.Digest
	}
	return ""
}

func (t *tags) current(uid types.UID, known *tag) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byUID[uid] == known
}

// drop forgets the tag of a Package.
func (t *tags) drop(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byUID, uid)
}

// followTag notes where the tag of a Package with an interval has moved to. One
// that is paused, or that must not ask a registry, stays where it is.
func (s *session) followTag(ctx context.Context) {
	spec, resolved := s.pkg.PackageSpec(), s.pkg.PackageStatus().Resolved
	if spec.Interval == nil || spec.Paused || spec.ImagePullPolicy == corev1alpha1.ImagePullPolicyNever ||
		resolved == nil || resolved.Image != spec.Image || !tagged(spec.Image) {
		s.tags.drop(s.pkg.GetUID())
		return
	}
	digest, next, err := s.tags.look(ctx, s.input)
	if !next.IsZero() {
		s.requeue(next.Sub(s.now))
	}
	if err != nil {
		s.lookup = err.Error()
	}
	if digest != "" && digest != resolved.Digest {
		s.moved = digest
	}
}

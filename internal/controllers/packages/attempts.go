package packages

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/violation"
)

// attempts are the running and the finished attempts to load packages, at most
// one for each Package. It is safe for concurrent use.
type attempts struct {
	load Load
	// wake is called when an attempt has ended.
	wake func(types.NamespacedName)
	now  func() time.Time
	pool pool
	// underway is how many Packages and deployments are reconciled or wait for that.
	underway func() int

	mu    sync.Mutex
	ctx   context.Context
	byUID map[types.UID]*job
	// failed is how many of them have ended with an error.
	failed int
}

// attempt is one attempt and what came of it.
type attempt struct {
	// fingerprint names what is loaded, and moved the digest, where it is that of a
	// tag that has moved.
	fingerprint fingerprint
	moved       string
	// turn is how often the Package was given another try for what others did.
	turn int
	// retryValue is that of the Package's retry annotation.
	retryValue string
	// around is what a failed attempt may have failed by, beside its input; empty
	// while that is not known.
	around string
	// started is when it was asked for.
	started time.Time
	// done means that it has ended, with content or with err.
	done    bool
	content *Content
	err     error
	// retry is when to try again; zero where that is pointless until the spec
	// changes.
	retry time.Time
	// took is how long loading took.
	took time.Duration
	// deployed is when the content was written; zero before. After that only what a
	// status says of it is kept.
	deployed time.Time
}

// job is an attempt that goes on or has ended.
type job struct {
	attempt
	cancel   context.CancelFunc
	failures int
}

func newAttempts(load Load, wake func(types.NamespacedName), now func() time.Time) *attempts {
	return &attempts{
		load: load, wake: wake, now: now, underway: func() int { return 0 },
		pool:  pool{perHost: limits.PullsPerHost},
		byUID: map[types.UID]*job{},
	}
}

// begin sets the context of all attempts. It is that of the manager's life as
// the leader.
func (a *attempts) begin(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ctx = ctx
}

// of returns the attempt of a Package, or nil.
func (a *attempts) of(uid types.UID) *attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	if found := a.byUID[uid]; found != nil {
		state := found.attempt
		return &state
	}
	return nil
}

// start begins to load, instead of whatever is being loaded for the Package.
func (a *attempts) start(ctx context.Context, in Input, f fingerprint, moved string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	uid := in.Package.GetUID()
	failures := 0
	if old := a.byUID[uid]; old != nil {
		a.remove(uid, old)
		if old.fingerprint == f && old.moved == moved && old.retryValue == retryValue(in.Package) {
			failures = old.failures
		}
	}
	life := a.ctx
	if life == nil {
		life = context.WithoutCancel(ctx)
	}
	life, cancel := context.WithCancel(life)
	j := &job{attempt: attempt{fingerprint: f, moved: moved, turn: in.turn, retryValue: retryValue(in.Package), started: a.now()}, cancel: cancel, failures: failures}
	a.byUID[uid] = j
	in.Package = in.Package.DeepCopyObject().(corev1alpha1.GenericPackage)
	*in.Package.PackageStatus() = corev1alpha1.PackageStatus{}
	a.enqueue(life, in, j)
}

// enqueue runs an attempt when its queue has capacity. Long attempts have queues of their
// own.
func (a *attempts) enqueue(ctx context.Context, in Input, j *job) {
	room := registryOf(in.Image)
	if in.Level > 0 {
		room = fmt.Sprintf("%s, level %d", room, in.Level)
	}
	a.pool.run(room, func() { a.run(ctx, in, j) })
}

// run loads, unless the attempt was given up while it waited.
func (a *attempts) run(ctx context.Context, in Input, j *job) {
	a.awaitTurn(ctx)
	if ctx.Err() != nil {
		j.cancel()
		return
	}
	begin := a.now()
	content, err := a.try(ctx, in)
	if level, later := queueing.Later(err); later && ctx.Err() == nil {
		in.Level = level
		a.enqueue(ctx, in, j)
		return
	}
	defer j.cancel()
	a.mu.Lock()
	if a.byUID[in.Package.GetUID()] != j || ctx.Err() != nil {
		a.mu.Unlock()
		return
	}
	j.done, j.content, j.err, j.took = true, content, err, a.now().Sub(begin)
	if err != nil {
		a.failed++
	}
	if err != nil && retryable(err) {
		j.retry = a.now().Add(backoff(j.failures))
		j.failures++
	}
	a.mu.Unlock()
	a.wake(types.NamespacedName{Namespace: in.Package.GetNamespace(), Name: in.Package.GetName()})
}

// deployed notes that what was loaded for a Package was written.
func (a *attempts) deployed(uid types.UID, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if found := a.byUID[uid]; found != nil && found.content != nil {
		found.deployed, found.content = at, found.content.summary()
	}
}

// awaitTurn waits until fewer than limits.PackagesUnderway are under way, for
// limits.TurnMax at most. What was begun is finished before more is begun: of a
// thousand packages that are upgraded together, only some are in memory.
func (a *attempts) awaitTurn(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, limits.TurnMax)
	defer cancel()
	for a.underway() >= limits.PackagesUnderway && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(limits.TurnPeriod):
		}
	}
}

// surround notes what a failed attempt of a Package may have failed by.
func (a *attempts) surround(uid types.UID, around string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if found := a.byUID[uid]; found != nil && found.done && found.err != nil {
		found.around = around
	}
}

// try loads; a panic becomes an error of this one package.
func (a *attempts) try(ctx context.Context, in Input) (content *Content, err error) {
	defer func() {
		if p := recover(); p != nil {
			content, err = nil, panics.Caught(logOf(ctx, in), p, "loading the package")
		}
	}()
	return a.load(ctx, in)
}

func logOf(ctx context.Context, in Input) logr.Logger {
	return log.FromContext(ctx).WithValues("namespace", in.Package.GetNamespace(), "name", in.Package.GetName())
}

// inFlight counts the Packages that are being loaded, or whose content no status
// records yet.
func (a *attempts) inFlight() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.byUID) - a.failed
}

// drop gives up and forgets the attempt of a Package.
func (a *attempts) drop(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if found := a.byUID[uid]; found != nil {
		a.remove(uid, found)
	}
}

// remove gives up an attempt. It is called with mu held.
func (a *attempts) remove(uid types.UID, j *job) {
	j.cancel()
	if j.err != nil {
		a.failed--
	}
	delete(a.byUID, uid)
}

// retryable reports whether the same attempt may succeed later: what is wrong with
// the package itself stays so.
func retryable(err error) bool {
	var wrong violation.Violations
	return !errors.As(err, &wrong)
}

// Delays between attempts to pull.
const (
	firstBackoff = 10 * time.Second
	maxBackoff   = 300 * time.Second
)

// backoff returns the delay after so many earlier failures.
func backoff(failures int) time.Duration {
	if failures > 5 {
		return maxBackoff
	}
	return min(firstBackoff<<failures, maxBackoff)
}

// registryOf returns the registry of an image; all references that cannot be
// read share one.
func registryOf(image string) string {
	ref, err := name.ParseReference(image)
	if err != nil {
		return ""
	}
	return ref.Context().RegistryStr()
}

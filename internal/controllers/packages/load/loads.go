package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/background"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/internal/loader/violation"
)

// Setting has the functions of the controller that Loads needs.
type Setting struct {
	Pipeline *Pipeline
	// Cache has the Packages.
	Cache   client.Reader
	Now     func() time.Time
	Enqueue func(types.NamespacedName)
	// Underway returns how many reconciles go on or wait that a load would add to, in all and of a
	// namespace.
	Underway func(namespace string) (all, own int)
	// Loaded is called after each load of a package if it is not nil.
	Loaded func(took time.Duration, err error)
}

// Loads loads packages in the background: one attempt of each Package at a time, whose end enqueues
// the Package. It is safe for concurrent use. A Package in it is safe as long as one reconcile uses
// it at a time.
type Loads struct {
	Setting
	// Load loads a package, and Resolve resolves a tag.
	Load    func(context.Context, Request) (*Content, error)
	Resolve func(context.Context, Request) (digest string, err error)
	// Spread returns a duration between half of the given one and all of it.
	Spread func(time.Duration) time.Duration
	// Life ends with the leadership of this process, and all loads with it.
	Life context.Context

	// attempts has the lock of the following, and of the Packages.
	attempts background.Attempts[Input, Out]
	hosts    queueing.Keyed
	packages map[types.NamespacedName]*Package
	// loading counts Packages that are being loaded, or whose content no status records yet.
	loading int
}

// Package is the state of loading one Package.
type Package struct {
	uid types.UID
	// pace limits the loads of a generation.
	pace      *rate.Limiter
	pacedFrom int64

	// ---- the lock of Loads ----

	attempt *Attempt
	tag     *Tag
	// loads counts loads; took is the duration of the last deployed one.
	loads int
	took  time.Duration
	installation
}

// Attempt is the last load of a Package. Its input is compared with the next one.
type Attempt = background.Attempt[Input, Out]

// Input identifies the input of an attempt.
type Input struct {
	Fingerprint Fingerprint
	// NewDigest is the digest of a tag that has moved, if it is loaded.
	NewDigest string
	// RetryNumber is the number of retries of the Package at the start.
	RetryNumber int
}

// Out is the state of a load, and of the deployment of its content.
type Out struct {
	// Dependencies are the dependencies of a failed attempt; empty while they are not known.
	Dependencies string
	// Large means that the status has a record of the load until it has ended. Once the
	// record is written, the controller calls the function, which is nil after that.
	Large bool
	Begin func(*Attempt)
	// memory is the key under which the content is counted until it is deployed.
	memory  quota.Key
	Content *Content
	took    time.Duration
	// unread is why the other installations of the package are not known.
	unread error
	// Deployed is when the content was written, and then only a summary is kept.
	Deployed time.Time
}

// New returns Loads by a pipeline.
func New(s Setting) *Loads {
	s.Pipeline.rendering = queueing.NewStages(limits.LoadsShort, limits.LoadsLong, limits.LoadShort)
	l := &Loads{
		Setting: s, Load: s.Pipeline.Load, Resolve: s.Pipeline.Resolve, Spread: spread,
		hosts:    queueing.Keyed{Most: limits.LoadsPerHostInAll, Share: limits.LoadsPerHost},
		packages: map[types.NamespacedName]*Package{},
	}
	l.attempts.Changed = l.count
	return l
}

// spread returns a time between half of d and d, so that packages are not resolved together after a
// restart.
func spread(d time.Duration) time.Duration { return d/2 + rand.N(d/2) } //nolint:gosec // no secret depends on it

// Meet returns a new Package in place of any other with its name.
func (l *Loads) Meet(pkg corev1alpha1.GenericPackage) *Package {
	p := &Package{uid: pkg.GetUID()}
	l.attempts.Lock()
	defer l.attempts.Unlock()
	l.packages[client.ObjectKeyFromObject(pkg)] = p
	return p
}

// Forget ends the work for a Package, and retries others that it blocked.
func (l *Loads) Forget(key types.NamespacedName) {
	l.attempts.Lock()
	p := l.packages[key]
	if p != nil {
		p.tag = nil
		delete(l.packages, key)
	}
	l.attempts.Unlock()
	if p != nil {
		l.Drop(p)
		l.retryOthers(key)
	}
}

// Last returns the last attempt to load a Package, or nil, and how often others gave rise to a
// retry.
func (l *Loads) Last(p *Package) (a *Attempt, retryNumber int) {
	l.attempts.Lock()
	defer l.attempts.Unlock()
	return p.attempt, p.retryNumber
}

// Drop ends the attempt of a Package, and forgets it.
func (l *Loads) Drop(p *Package) { l.attempts.Set(&p.attempt, nil) }

// Fail replaces the attempt of a Package by a failed one.
func (l *Loads) Fail(p *Package, a *Attempt) { l.attempts.Set(&p.attempt, a) }

// Update changes an attempt.
func (l *Loads) Update(p *Package, a *Attempt, change func(*Attempt)) *Attempt {
	changed, _ := l.attempts.Update(&p.attempt, a, change)
	return changed
}

// Deployed keeps a summary of content that was written.
func (l *Loads) Deployed(p *Package, a *Attempt) *Attempt {
	return l.Update(p, a, func(a *Attempt) { a.Out.Deployed, a.Out.Content = l.Now(), a.Out.Content.summary() })
}

// Finish forgets an attempt that the status records.
func (l *Loads) Finish(p *Package, a *Attempt) {
	l.attempts.Lock()
	p.took = a.Out.took
	l.attempts.Unlock()
	l.Drop(p)
}

// Resume starts a large load that the status has a record of.
func (l *Loads) Resume(p *Package, a *Attempt) *Attempt {
	begun, current := l.attempts.Update(&p.attempt, a, func(a *Attempt) { a.Out.Begin = nil })
	if !current {
		return a
	}
	a.Out.Begin(begun)
	return begun
}

// Loading returns how many Packages are being loaded, or have content that no status records yet.
func (l *Loads) Loading() int {
	l.attempts.Lock()
	defer l.attempts.Unlock()
	return l.loading
}

// Taken returns how often a Package was loaded, and how long the last time took.
func (l *Loads) Taken(pkg corev1alpha1.GenericPackage) (loads int, took time.Duration) {
	l.attempts.Lock()
	defer l.attempts.Unlock()
	if p := l.packages[client.ObjectKeyFromObject(pkg)]; p != nil && p.uid == pkg.GetUID() {
		return p.loads, p.took
	}
	return 0, 0
}

// EnqueueLoaded enqueues the Packages with some content that is not deployed yet.
func (l *Loads) EnqueueLoaded(of func(*Content) bool) {
	var waiting []types.NamespacedName
	l.attempts.Lock()
	for key, p := range l.packages {
		if keeps(p.attempt) && of(p.attempt.Out.Content) {
			waiting = append(waiting, key)
		}
	}
	l.attempts.Unlock()
	for _, key := range waiting {
		l.Enqueue(key)
	}
}

// Delay returns how long a load waits, and counts it if it does not. A Package that writes one of
// its own sources would be loaded again and again, so it waits; a Package whose spec changed is
// loaded at once.
func (p *Package) Delay(generation int64, now time.Time) time.Duration {
	if p.pace == nil || p.pacedFrom != generation {
		p.pace, p.pacedFrom = rate.NewLimiter(rate.Every(limits.PackageLoadInterval), limits.PackageLoadBurst), generation
	}
	turn := p.pace.ReserveN(now, 1)
	delay := turn.DelayFrom(now)
	if delay > 0 {
		turn.CancelAt(now)
	}
	return delay
}

// Start starts an attempt, and cancels the last one.
func (l *Loads) Start(p *Package, in Request, a, last *Attempt) {
	if last != nil && last.In.Fingerprint == a.In.Fingerprint && last.In.NewDigest == a.In.NewDigest && last.RetryValue == a.RetryValue {
		a.Failures = last.Failures
	}

	own := client.ObjectKeyFromObject(in.Pkg)
	in.installations = func(name string) (others []types.NamespacedName) {
		others, a.Out.unread = l.claim(l.Life, p, own, name)
		return others
	}

	l.attempts.Lock()
	p.loads++
	a.Out.memory = quota.Key{Namespace: own.Namespace, Name: "the package " + own.Name, ID: strconv.Itoa(p.loads)}
	l.attempts.Unlock()
	l.queue(l.attempts.Start(l.Life, &p.attempt, a), in, p, a)
}

// queue loads when the queue of the registry, and of loads of the kind, has capacity.
func (l *Loads) queue(ctx context.Context, in Request, p *Package, a *Attempt) {
	host := hostOf(in.decision().Pull)
	if in.isLarge() {
		host = fmt.Sprintf("%s, long %t, size %d", host, in.Long, in.Size)
	}

	var begin time.Time
	background.Run(ctx, &l.hosts, background.Job{
		Owner: in.Pkg, Host: host, Doing: "loading the package", Await: func(ctx context.Context) bool { return l.awaitAdmission(ctx, in.Pkg.GetNamespace()) },
	}, func(ctx context.Context) (*Content, error) {
		begin = l.Now()
		return l.Load(ctx, in)
	}, func(loaded *Content, err error) {
		if err != nil {
			l.releaseClaim(p, client.ObjectKeyFromObject(in.Pkg))
		}
		if again, ok := repeated(in, err); ok && ctx.Err() == nil {
			l.repeat(ctx, again, p, a)
			return
		}
		l.end(in, p, a, loaded, err, l.Now().Sub(begin))
	})
}

// end records the outcome of a load.
func (l *Loads) end(in Request, p *Package, a *Attempt, loaded *Content, err error, took time.Duration) {
	account := l.Pipeline.Memory
	if err = cmp.Or(err, a.Out.unread); err == nil {
		err = account.Hold(a.Out.memory, loaded.atRest())
	}
	if l.Loaded != nil {
		l.Loaded(took, err)
	}

	_, current := l.attempts.Update(&p.attempt, a, func(a *Attempt) {
		a.Done, a.Err, a.Out.took = true, err, took
		if err == nil {
			a.Out.Content = loaded
		}
		var wrong violation.Violations // a fault of the package itself is permanent
		if err != nil && !errors.As(err, &wrong) {
			a.RetryAfter(l.Now(), limits.LoadBackoffMin, limits.LoadBackoffMax)
		}
	})
	if current {
		l.Enqueue(client.ObjectKeyFromObject(in.Pkg))
	} else {
		account.Count(a.Out.memory, 0)
	}
}

// repeated returns the load that has to follow one that ended with err: as a long one, or with a
// higher limit.
func repeated(in Request, err error) (again Request, ok bool) {
	long, larger := errors.Is(err, queueing.ErrLong), errors.Is(err, archive.ErrRoom)
	in.Long = in.Long || long
	if larger {
		in.Size++
	}
	return in, long || larger
}

// repeat repeats a load as a large one, once the status has a record of it.
func (l *Loads) repeat(ctx context.Context, in Request, p *Package, a *Attempt) {
	if a.Out.Large {
		l.queue(ctx, in, p, a)
		return
	}
	_, current := l.attempts.Update(&p.attempt, a, func(a *Attempt) {
		a.Out.Large, a.Out.Begin = true, func(a *Attempt) { l.queue(ctx, in, p, a) }
	})
	if current {
		l.Enqueue(client.ObjectKeyFromObject(in.Pkg))
	}
}

// admissionPoll is the time between looks at how much is underway.
const admissionPoll = 5 * time.Millisecond

// awaitAdmission waits until fewer than limits.PackagesUnderway are reconciled, for
// limits.AdmissionWait at most.
func (l *Loads) awaitAdmission(ctx context.Context, namespace string) bool {
	_ = wait.PollUntilContextTimeout(ctx, admissionPoll, limits.AdmissionWait, true, func(context.Context) (bool, error) {
		return admitted(l.Underway(namespace)), nil
	})
	return true
}

// admitted decides whether a load starts while others are underway, in all and in its own
// namespace: if others have more than is allowed, a namespace with little does not wait.
func admitted(all, own int) bool {
	return all < limits.PackagesUnderway || own < limits.PackagesUnderwayOwn && all-own >= limits.PackagesUnderway
}

// count counts loaded and loading content if one attempt replaces another. The caller holds the
// lock.
func (l *Loads) count(before, after *Attempt) {
	if keeps(before) && (!keeps(after) || after.Out.memory != before.Out.memory) {
		l.Pipeline.Memory.Count(before.Out.memory, 0)
	}
	l.loading += inFlight(after) - inFlight(before)
}

// keeps reports whether an attempt has content in memory that is not deployed yet.
func keeps(a *Attempt) bool { return a != nil && a.Out.Content != nil && a.Out.Deployed.IsZero() }

// inFlight returns 1 for an attempt in progress, or whose content is not recorded on a status yet.
func inFlight(a *Attempt) int {
	if a == nil || a.Err != nil {
		return 0
	}
	return 1
}

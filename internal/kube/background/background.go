package background

import (
	"context"
	"errors"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
)

// Attempt is work for one owner.
type Attempt[In, Out any] struct {
	// In identifies the input of the attempt. RetryValue is the owner's retry annotation at the
	// start.
	In         In
	RetryValue string
	Started    time.Time
	// Done means that it has ended, with or without Err. Out is its outcome so far.
	Done bool
	Out  Out
	Err  error
	// Failures counts attempts in sequence, and Retry is when the next one is due; zero for never.
	Failures int
	Retry    time.Time

	cancel context.CancelFunc
}

// RetryAfter makes the next attempt due after a pause from least to most, which doubles with each
// failure. A server that wants no request for longer, by an error with RetryAfter, is left alone
// for up to an hour.
func (a *Attempt[In, Out]) RetryAfter(now time.Time, least, most time.Duration) {
	pause := min(least<<min(a.Failures, 20), most)
	var busy interface{ RetryAfter() time.Duration }
	if errors.As(a.Err, &busy) {
		pause = max(pause, min(busy.RetryAfter(), longestBusy))
	}
	a.Retry = now.Add(pause)
	a.Failures++
}

const longestBusy = time.Hour // during which a server can keep requests away

// Attempts keeps the attempts of all owners. Each owner has a pointer to its attempt, guarded by
// the lock. The zero value is ready to use.
type Attempts[In, Out any] struct {
	sync.Mutex
	// Changed is called under the lock if an attempt replaces another. Both attempts can be nil, as
	// can Changed.
	Changed func(before, after *Attempt[In, Out])
}

// Of returns the attempt of an owner, or nil.
func (b *Attempts[In, Out]) Of(at **Attempt[In, Out]) *Attempt[In, Out] {
	b.Lock()
	defer b.Unlock()
	return *at
}

// Start replaces the attempt of an owner, cancels the old one, and returns the context of the new
// one.
func (b *Attempts[In, Out]) Start(life context.Context, at **Attempt[In, Out], a *Attempt[In, Out]) context.Context {
	ctx, cancel := context.WithCancel(life)
	a.cancel = cancel
	b.Set(at, a)
	return ctx
}

// Set cancels the attempt of an owner and replaces it; a nil attempt removes it.
func (b *Attempts[In, Out]) Set(at **Attempt[In, Out], a *Attempt[In, Out]) {
	b.Lock()
	defer b.Unlock()
	if *at != nil && (*at).cancel != nil {
		(*at).cancel()
	}
	b.replace(at, a)
}

// Update puts a changed copy of an attempt in its place, and reports whether it is still the
// owner's.
func (b *Attempts[In, Out]) Update(at **Attempt[In, Out], a *Attempt[In, Out], change func(*Attempt[In, Out])) (*Attempt[In, Out], bool) {
	changed := *a
	change(&changed)
	if changed.Done && a.cancel != nil {
		a.cancel()
	}
	b.Lock()
	defer b.Unlock()
	if *at != a {
		return &changed, false
	}

	b.replace(at, &changed)
	return &changed, true
}

func (b *Attempts[In, Out]) replace(at **Attempt[In, Out], a *Attempt[In, Out]) {
	if b.Changed != nil {
		b.Changed(*at, a)
	}
	*at = a
}

// Job is work for an owner, on a host.
type Job struct {
	Owner client.Object
	// Host names the queue: jobs of one host wait for each other.
	Host string
	// Doing describes the work in errors.
	Doing string
	// Await blocks until the work can start, and returns false if it is no longer needed. It can be
	// nil.
	Await func(context.Context) bool
}

// Run does the work once the queue of its host has capacity, and calls end with the result. It does
// neither if ctx has ended by then.
func Run[Out any](ctx context.Context, hosts *queueing.Keyed, j Job, work func(context.Context) (Out, error), end func(Out, error)) {
	hosts.Run(j.Host, j.Owner.GetNamespace(), func() {
		if j.Await != nil && !j.Await(ctx) || ctx.Err() != nil {
			return
		}
		var out Out
		logger := log.FromContext(ctx).WithValues("namespace", j.Owner.GetNamespace(), "name", j.Owner.GetName())
		err := panics.Guard(log.IntoContext(ctx, logger), j.Doing, func() (err error) { // an error of this one owner
			out, err = work(ctx)
			return err
		})
		end(out, err)
	})
}

// RetryValue returns the retry annotation of an owner, unless it is too long for the status.
func RetryValue(owner client.Object) string {
	value := owner.GetAnnotations()[corev1alpha1.RetryAnnotation]
	if len(value) > limits.RetryValue {
		return ""
	}
	return value
}

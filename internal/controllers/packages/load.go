package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/background"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/internal/loader/violation"
)

// newAttempt returns an attempt to load the Package as it is known now.
func (s *reconciliation) newAttempt() *attempt {
	return &attempt{
		In: loadInput{fingerprint: s.fingerprint, newDigest: s.newDigest, retryNumber: s.retryNumber}, RetryValue: background.RetryValue(s.pkg), Started: s.now,
	}
}

// startLoad starts a load where that was decided and need not wait, and cancels any other. Its end enqueues the Package.
func (s *reconciliation) startLoad(ctx context.Context) (step, string, error) {
	s.state.change.decided(s.step)
	switch {
	case s.step != stepLoad:
		return s.step, s.why, nil
	case s.backOff():
		return stepWait, "", nil
	}
	if delay := s.state.delayLoad(s.pkg.GetGeneration(), s.now); delay > 0 {
		s.Requeue(delay)
		return stepGather, "", nil
	}
	in := s.newInput(reference(s.pkg, s.choice.Origin.Image, compare(s.pkg, s.fingerprint), s.newDigest))
	if sources.FromSecrets(s.pkg.PackageSpec()) {
		key, err := s.hashKeyOf(ctx, s.pkg, s.state)
		if err != nil {
			return stepGather, err.Error(), nil
		}
		in.hashKey = key
	}
	a := s.newAttempt()
	if last := s.attempt; last != nil && last.In.fingerprint == a.In.fingerprint && last.In.newDigest == a.In.newDigest && last.RetryValue == a.RetryValue {
		a.Failures = last.Failures
	}
	s.state.change.begin(a, s.attempt, compare(s.pkg, s.fingerprint))
	// A load may wait for long: it must not keep the reconciliation in memory.
	r, st := s.Reconciler, s.state
	in.installations = func(name string) (others []types.NamespacedName) {
		others, a.Out.unread = r.claim(r.life, st, keyOf(in.pkg), name)
		return others
	}
	r.memory.Lock()
	st.loads++
	a.Out.memory = quota.Key{Namespace: in.pkg.GetNamespace(), Name: "the package " + in.pkg.GetName(), ID: strconv.Itoa(st.loads)}
	r.memory.Unlock()
	s.attempt = a
	r.queueLoad(r.memory.Begin(r.life, &st.attempt, a), in, st, a)
	return stepLoad, "", nil
}

// delayLoad returns how long a load waits, and counts it where it does not: a Package that writes a source of its own is
// loaded again and again, while one whose spec is changed is loaded at once.
func (st *state) delayLoad(generation int64, now time.Time) time.Duration {
	if st.pace == nil || st.pacedFrom != generation {
		st.pace, st.pacedFrom = rate.NewLimiter(rate.Every(limits.PackageLoadInterval), limits.PackageLoadBurst), generation
	}
	turn := st.pace.ReserveN(now, 1)
	delay := turn.DelayFrom(now)
	if delay > 0 {
		turn.CancelAt(now)
	}
	return delay
}

func (s *reconciliation) newInput(image string) input {
	pkg := copyOf(s.pkg)
	*pkg.PackageStatus() = corev1alpha1.PackageStatus{}
	in := input{pkg: pkg, image: image, origin: s.choice.Origin, namespace: s.namespaceOf(pkg), environment: s.environment, manager: s.Version, policies: s.policies, reader: s.Accounts.reader(pkg)}
	if s.target != nil {
		in.namespaced = s.target.Namespaced
	}
	return in
}

// queueLoad loads when the queue of the registry and level has capacity.
func (r *Reconciler) queueLoad(ctx context.Context, in input, st *state, a *attempt) {
	host := hostOf(in.decision().Pull)
	if in.level+in.size > 0 {
		host = fmt.Sprintf("%s, level %d, size %d", host, in.level, in.size)
	}
	var begin time.Time
	background.Run(ctx, &r.hosts, background.Job{
		Owner: in.pkg, Host: host, Doing: "loading the package", Await: func(ctx context.Context) bool { return r.awaitAdmission(ctx, in.pkg.GetNamespace()) },
	}, func(ctx context.Context) (*content, error) {
		begin = r.Now()
		return r.load(ctx, in)
	}, func(loaded *content, err error) {
		if err != nil {
			r.releaseClaim(st, keyOf(in.pkg))
		}
		if again, ok := repeated(in, err); ok && ctx.Err() == nil {
			r.loadAgain(ctx, again, st, a)
			return
		}
		r.endLoad(in, st, a, loaded, err, r.Now().Sub(begin))
	})
}

// endLoad records the outcome of a load.
func (r *Reconciler) endLoad(in input, st *state, a *attempt, loaded *content, err error, took time.Duration) {
	if err = cmp.Or(err, a.Out.unread); err == nil {
		err = r.memory.account.Hold(a.Out.memory, loaded.atRest())
	}
	if r.Loaded != nil {
		r.Loaded(took, err)
	}
	_, current := r.memory.Update(&st.attempt, a, func(a *attempt) {
		a.Done, a.Err, a.Out.took = true, err, took
		if err == nil {
			a.Out.content = loaded
		}
		var wrong violation.Violations // a fault of the package itself is permanent
		if err != nil && !errors.As(err, &wrong) {
			a.RetryAfter(r.Now(), limits.LoadBackoffMin, limits.LoadBackoffMax)
		}
	})
	if current {
		r.enqueue(keyOf(in.pkg))
	} else {
		r.memory.account.Count(a.Out.memory, 0)
	}
}

// repeated returns the load that has to follow one that ended with err: at another level, or with more room.
func repeated(in input, err error) (again input, ok bool) {
	level, deferred := queueing.Deferred(err)
	if deferred {
		in.level = level
	}
	larger := errors.Is(err, archive.ErrRoom)
	if larger {
		in.size++
	}
	return in, deferred || larger
}

// loadAgain loads with more room or at another level: a large load once the status has a record of it.
func (r *Reconciler) loadAgain(ctx context.Context, in input, st *state, a *attempt) {
	if a.Out.large || !isLarge(in, r.Pipeline.rendering.Last()) {
		r.queueLoad(ctx, in, st, a)
		return
	}
	_, current := r.memory.Update(&st.attempt, a, func(a *attempt) {
		a.Out.large, a.Out.begin = true, func(a *attempt) { r.queueLoad(ctx, in, st, a) }
	})
	if current {
		r.enqueue(keyOf(in.pkg))
	}
}

// backOff replaces an attempt that has to wait by one that failed, and reports whether it did.
func (s *reconciliation) backOff() bool {
	record := afterInterruption(s.pkg.PackageStatus().Load, s.view)
	if record == nil {
		return false
	}
	a := s.newAttempt()
	a.Done, a.Err, a.Retry = true, &interrupted{record: record, limit: s.memory.account.Limit()}, record.NotBefore.Time
	s.memory.Set(&s.state.attempt, a)
	s.attempt = a
	return true
}

// awaitAdmission waits until fewer than limits.PackagesUnderway are reconciled, for limits.AdmissionWait at most.
func (r *Reconciler) awaitAdmission(ctx context.Context, namespace string) bool {
	_ = wait.PollUntilContextTimeout(ctx, limits.AdmissionPoll, limits.AdmissionWait, true, func(context.Context) (bool, error) {
		all, own := r.Underway(namespace)
		packages, ownPackages := r.queue.Depth(namespace)
		return admitted(all+packages, own+ownPackages), nil
	})
	return true
}

// admitted decides whether a load may begin beside those underway, in all and in its own
// namespace: where others have more than is allowed, a namespace with little does not wait.
func admitted(all, own int) bool {
	return all < limits.PackagesUnderway || own < limits.PackagesUnderwayOwn && all-own >= limits.PackagesUnderway
}

func (s *reconciliation) dropAttempt() { s.memory.Set(&s.state.attempt, nil) }

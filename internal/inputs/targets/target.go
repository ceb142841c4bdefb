package targets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/panics"
)

const (
	targetBackoffMin = time.Second     // after the first failed attempt to reach a target
	targetBackoffMax = 5 * time.Minute // between attempts to reach a target; a changed Secret is tried at once
)

// target is one kubeconfig in use. Only its goroutine changes it, except for the users.
type target[S any] struct {
	all *Targets[S]
	ref Ref
	// changed is filled if the Secret has changed, or the target might be away.
	changed chan struct{}

	// Targets.mu guards these.
	users   map[string]func()
	idle    *time.Timer
	stop    context.CancelFunc
	state   State
	session *session[S]
	// admitted means that the target has its share of the memory of all targets.
	admitted bool

	// version and data belong to the kubeconfig that was read last. config and invalid are the
	// results of parsing it.
	version  string
	data     []byte
	config   *rest.Config
	invalid  error
	failures int
	// excesses counts consecutive sessions that ended because the target exceeded a limit.
	excesses int
	// held means that only another Secret shortens the pause.
	held bool
}

// session is a connection with one kubeconfig to one cluster.
type session[S any] struct {
	value   S
	cluster types.UID
	link    *link
	stop    context.CancelFunc
	began   time.Time
}

// link is a way to the server of a kubeconfig.
type link struct {
	transport  *http.Transport
	authorized http.RoundTripper
	gate       *gate
}

func newTarget[S any](all *Targets[S], ref Ref) *target[S] {
	return &target[S]{all: all, ref: ref, changed: make(chan struct{}, 1), users: map[string]func(){}, state: connecting}
}

// start starts the goroutine. Targets.mu is held.
func (t *target[S]) start(ctx context.Context) {
	ctx, t.stop = context.WithCancel(ctx)
	panics.Go(ctx, "keeping "+t.ref.String()+" connected", func() { t.run(ctx) })
}

func (t *target[S]) wakeUp() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

func (t *target[S]) run(ctx context.Context) {
	defer t.end()
	for ctx.Err() == nil {
		t.await(ctx, t.guarded(ctx))
	}
}

// guarded calls attempt, and treats a panic like other failures.
func (t *target[S]) guarded(ctx context.Context) (pause time.Duration) {
	err := panics.Guard(ctx, "connecting the target", func() error { pause = t.attempt(ctx); return nil })
	if err != nil {
		pause = t.report(&awayError{corev1alpha1.ReasonKubeconfigRefused, fmt.Sprintf("%s: %s", t.ref, err)})
	}
	return pause
}

// await waits for a change, or for a pause if it is not zero. It delays repeated suspicions, so
// that the target is probed at most once per targetBackoffMin.
func (t *target[S]) await(ctx context.Context, pause time.Duration) {
	var due <-chan time.Time
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		due = timer.C
	}

	began := time.Now()
	for held := true; held; held = t.held && !t.secretChanged() {
		select {
		case <-ctx.Done():
			return
		case <-due:
			return
		case <-t.changed:
		}
	}

	if rest := targetBackoffMin - time.Since(began); rest > 0 && !t.secretChanged() {
		select {
		case <-ctx.Done():
		case <-time.After(rest):
		}
	}
}

// secretChanged reports whether the Secret differs from the one that was read last.
func (t *target[S]) secretChanged() bool {
	return t.version != t.all.watches.State(t.secret()).Version
}

func (t *target[S]) secret() sources.Ref {
	return sources.Ref{Kind: sources.KindSecret, Namespace: t.ref.Namespace, Name: t.ref.Name}
}

// attempt brings the session in line with the Secret and the server. It returns the pause before
// the next attempt if nothing changes; zero means never.
func (t *target[S]) attempt(ctx context.Context) time.Duration {
	source := t.all.watches.State(t.secret())
	if !source.Known && source.Err == nil {
		return 0 // the watch's list wakes it up
	}

	err := source.Err
	if source.Known {
		err = t.load(ctx, source.Version)
	}
	if err == nil {
		err = t.connect(ctx)
	}
	if ctx.Err() != nil {
		return 0
	}

	return t.report(err)
}

// load reads the kubeconfig if the Secret has changed. A different kubeconfig ends the session. If
// the Secret was deleted, the session stays for owners that are being deleted.
func (t *target[S]) load(ctx context.Context, version string) error {
	if version != "" && version == t.version {
		return t.invalid
	}

	object, err := t.all.options.Get(ctx, t.secret())
	var refused *RefusedError
	if errors.As(err, &refused) {
		t.end()
		t.version, t.data, t.config, t.invalid = version, nil, nil, err
		return err
	}

	if err != nil {
		return &awayError{corev1alpha1.ReasonKubeconfigMissing, fmt.Sprintf("%s cannot be read", t.ref)}
	}
	if object == nil {
		t.version = ""
		return &awayError{corev1alpha1.ReasonKubeconfigMissing, fmt.Sprintf("%s does not exist: create it", t.ref)}
	}

	if object.Refused != "" {
		t.end()
		t.version, t.data, t.config = version, nil, nil
		t.invalid = &RefusedError{Problem: "is not read: " + object.Refused, Remedy: "name one that has a kubeconfig"}
		return t.invalid
	}

	data, has := object.Data[t.ref.Key]
	if !has {
		t.version, t.invalid = version, &awayError{corev1alpha1.ReasonKubeconfigMissing, fmt.Sprintf("%s has no key %q: add it", t.ref, t.ref.Key)}
		return t.invalid
	}

	if t.config == nil || !bytes.Equal(data, t.data) {
		t.end()
		t.data, t.failures, t.excesses = data, 0, 0
		t.config, t.invalid = t.all.options.Parse(data)
	}

	if t.version = version; t.config != nil {
		t.invalid = nil
	}

	return t.invalid
}

// connect probes the server, and opens a session unless there is one with this cluster.
func (t *target[S]) connect(ctx context.Context) error {
	way, err := t.link()
	if err != nil {
		return err
	}
	if excess := way.gate.over(); excess != nil {
		return t.excessive(way, excess)
	}

	cluster, err := probe(ctx, way.authorized, t.config.Host, t.config.BearerToken)
	if err != nil {
		return t.away(way, err)
	}

	home, err := t.all.options.Home(ctx)
	if err != nil {
		return t.away(way, &awayError{corev1alpha1.ReasonTargetConnecting, "the manager's own cluster cannot be identified: the manager has to get the namespace kube-system there"})
	}
	if cluster == home {
		return t.away(way, &RefusedError{Problem: "leads to the manager's own cluster", Remedy: t.all.options.Own})
	}

	if t.session != nil && t.session.cluster != cluster {
		t.end()
		if way, err = t.link(); err != nil {
			return err
		}
	}

	if t.session != nil {
		return nil
	}

	return t.open(ctx, way, cluster)
}

// link returns the session's link, or a new one.
func (t *target[S]) link() (*link, error) {
	if t.session != nil {
		return t.session.link, nil
	}
	transport, authorized, err := authorize(t.config, t.all.options.Policy, t.ref.Namespace != "" && t.ref.Namespace != t.all.options.Namespace)
	if err != nil {
		return nil, err
	}
	way := &link{transport: transport, authorized: authorized, gate: newGate(authorized, t.wakeUp)}
	way.gate.large = t.all.large
	way.gate.holds.memory, way.gate.holds.key = t.all.options.Memory, t.ref.memory()
	way.gate.holds.key.ID = fmt.Sprintf("%p", way) // of this session
	return way, nil
}

// excessive ends the session of a target that exceeds a limit. A long session resets the count,
// because the target was fine until then.
func (t *target[S]) excessive(way *link, excess error) error {
	if t.session != nil && time.Since(t.session.began) > targetBackoffMax {
		t.excesses = 0
	}
	t.excesses++
	return t.away(way, &excessError{excess, t.excesses})
}

// excessError is why the session of a target was ended, with the number of consecutive times.
type excessError struct {
	cause error
	times int
}

// Error names the limit.
func (e *excessError) Error() string { return e.cause.Error() }

// away ends the session, because its watches would show an outdated state, and drops a link without
// a session.
func (t *target[S]) away(way *link, err error) error {
	t.end()
	way.gate.closed.Store(true)
	way.gate.holds.end()
	way.transport.CloseIdleConnections()
	return err
}

func (t *target[S]) open(ctx context.Context, way *link, cluster types.UID) error {
	of, stop := context.WithCancel(ctx)
	way.gate.opened(stop)
	value, err := t.all.options.Open(of, t.ref, &rest.Config{Host: t.config.Host, Transport: way.gate, QPS: -1}, cluster, way.gate.hold)
	if err != nil {
		stop()
		if excess := way.gate.over(); excess != nil {
			return t.excessive(way, excess)
		}
		return t.away(way, Unreachable(t.config, err))
	}

	t.all.mu.Lock()
	t.session = &session[S]{value: value, cluster: cluster, link: way, stop: stop, began: time.Now()}
	t.all.mu.Unlock()
	return nil
}

// end ends the session.
func (t *target[S]) end() {
	t.all.mu.Lock()
	before := t.session
	if t.session = nil; before != nil {
		t.state = connecting
	}

	t.all.mu.Unlock()
	if before != nil {
		before.link.gate.closed.Store(true)
		before.stop()
		before.link.gate.holds.end()
		before.link.transport.CloseIdleConnections()
		t.all.admit()
	}
}

// report records the outcome of an attempt, notifies the users if it has changed, and returns the
// pause before the next attempt.
func (t *target[S]) report(err error) time.Duration {
	state, pause := State{Ready: true, Reason: corev1alpha1.ReasonTargetConnected, Message: "The target is connected."}, time.Duration(0)
	if t.held = errors.As(err, new(*excessError)); err == nil {
		t.failures = 0
	} else {
		state, pause = t.failed(err)
	}

	t.all.mu.Lock()
	if t.session != nil {
		state.Cluster = t.session.cluster
	}

	changed := state != t.state
	t.state = state
	t.all.mu.Unlock()
	if changed {
		t.all.Notify(t.ref)
	}

	return pause
}

func (t *target[S]) failed(err error) (State, time.Duration) {
	var refused *RefusedError
	var away *awayError
	var excess *excessError
	switch {
	case errors.As(err, &excess):
		pause := backoff(excess.times - 1)
		return State{Reason: corev1alpha1.ReasonTargetLimitExceeded, Message: fmt.Sprintf("The connection was ended: %s. It is tried again after %s.", excess, pause)}, pause
	case errors.As(err, &refused):
		where := t.ref.String()
		if t.ref.Namespace != "" {
			where += ", key " + t.ref.Key
		}
		return State{Reason: corev1alpha1.ReasonKubeconfigRefused, Message: fmt.Sprintf("%s: %s. It is tried again when the %s changes.", where, refused, t.ref.kind())}, 0
	case errors.As(err, &away) && away.reason == corev1alpha1.ReasonKubeconfigMissing:
		return State{Reason: away.reason, Message: fmt.Sprintf("%s. It is tried again when the %s changes.", away.message, t.ref.kind())}, 0
	case !errors.As(err, &away):
		away = &awayError{corev1alpha1.ReasonKubeconfigMissing, fmt.Sprintf("%s cannot be watched", t.ref)}
	}

	pause := backoff(t.failures)
	t.failures++
	return State{Reason: away.reason, Message: fmt.Sprintf("%s. It is tried again after %s.", away.message, pause)}, pause
}

// backoff returns the pause for a number of failures before the last one.
func backoff(before int) time.Duration {
	return min(targetBackoffMin<<min(before, 16), targetBackoffMax)
}

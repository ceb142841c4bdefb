package targets

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/outbound"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/kube/quota"
)

const (
	targetMemory = 1 << 20          // of a target without objects: its connections and discovery
	targetGrace  = 30 * time.Second // how long a connection stays without users, so that reinstalling a package does not list everything again
)

// Ref names a kubeconfig: a key of a Secret or, if it has no namespace, a file.
type Ref struct{ Namespace, Name, Key string }

// String returns the name for messages.
func (r Ref) String() string {
	if r.Namespace == "" {
		return "file " + r.Name
	}
	return fmt.Sprintf("Secret %s/%s", r.Namespace, r.Name)
}

// compare orders by namespace, name and key.
func (r Ref) compare(o Ref) int {
	return cmp.Or(cmp.Compare(r.Namespace, o.Namespace), cmp.Compare(r.Name, o.Name), cmp.Compare(r.Key, o.Key))
}

// kind returns the kind of the kubeconfig's container, for messages.
func (r Ref) kind() string {
	kind, _, _ := strings.Cut(r.String(), " ")
	return kind
}

// user names the target as a user of watches.
func (r Ref) user() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name + "/" + r.Key}
}

// memory is the key of the memory that a target without objects takes.
func (r Ref) memory() quota.Key { return quota.Key{Namespace: r.Namespace, Name: r.user().Name} }

// State is the state of a target.
type State struct {
	// Ready means that the target is connected.
	Ready bool
	// Reason and Message belong to the condition TargetConnected.
	Reason, Message string
	// Cluster is the UID of the target's namespace kube-system; empty without a session.
	Cluster types.UID
}

// Connecting reports whether the first attempt to connect is still running. The state will be known
// in a moment.
func (s State) Connecting() bool { return s == connecting }

// Stalls reports whether the target cannot be connected before a user acts.
func (s State) Stalls() bool {
	switch s.Reason {
	case corev1alpha1.ReasonKubeconfigMissing, corev1alpha1.ReasonKubeconfigRefused, corev1alpha1.ReasonTargetUnauthorized,
		corev1alpha1.ReasonOtherCluster, corev1alpha1.ReasonUnsupported:
		return true
	}
	return false
}

// Options are the dependencies of Targets.
type Options[S any] struct {
	// Get reads Secrets, Listen watches them, and Read reads their metadata.
	Get    sources.Get
	Listen sources.Listen
	Read   sources.ReadObject
	// Home returns the UID of the namespace kube-system of the manager's own cluster.
	Home func(context.Context) (types.UID, error)
	// Open makes a session, which ends with its context. The transport in config adds the
	// credentials and enforces the limits of the target. The session calls held with the number of
	// bytes of the target's answers that it keeps, and with a negative number when it releases
	// them.
	Open func(ctx context.Context, ref Ref, config *rest.Config, cluster types.UID, held func(bytes int64)) (S, error)
	// Memory is the account shared by all targets; nil means unlimited.
	Memory *quota.Memory
	// Policy decides which addresses targets can have. Namespace is the manager's, which contains
	// the kubeconfigs of cluster-scoped packages.
	Policy    outbound.Policy
	Namespace string
	// Parse reads a kubeconfig; nil means this package's Parse.
	Parse func([]byte) (*rest.Config, error)
	// Own is the remedy if a kubeconfig leads to the manager's own cluster.
	Own string
}

// Targets are the connections to other clusters. It is safe for concurrent use.
type Targets[S any] struct {
	options Options[S]
	watches *sources.Watches
	large   *queueing.Semaphore

	mu      sync.Mutex
	ctx     context.Context
	targets map[Ref]*target[S]
	users   map[string]Ref
}

// New returns Targets that connect once Start is called.
func New[S any](options Options[S]) *Targets[S] {
	options.Own = cmp.Or(options.Own, "leave targetRef out")
	if options.Parse == nil {
		options.Parse = Parse
	}
	t := &Targets[S]{options: options, large: queueing.NewSemaphore(targetsAtATime, 1), watches: sources.NewWatches(options.Listen, options.Read), targets: map[Ref]*target[S]{}, users: map[string]Ref{}}
	t.watches.Enqueue = t.secretChanged
	return t
}

// NeedLeaderElection reports that only the leader connects.
func (t *Targets[S]) NeedLeaderElection() bool { return true }

// Start connects until the context ends.
func (t *Targets[S]) Start(ctx context.Context) error {
	t.mu.Lock()
	t.ctx = ctx
	for _, one := range t.targets {
		if one.admitted {
			one.start(ctx)
		}
	}
	t.mu.Unlock()
	return t.watches.Start(ctx)
}

// Use keeps a target connected for a user, and replaces the user's previous target. wake is called
// when the state or the session of the target has changed. It must not block.
func (t *Targets[S]) Use(user string, ref Ref, wake func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if before, used := t.users[user]; used && before != ref {
		t.release(user, before)
	}

	t.users[user] = ref
	one := t.targets[ref]
	if one == nil {
		one = newTarget(t, ref)
		t.targets[ref] = one
		t.connect(one)
	}

	if one.idle != nil {
		one.idle.Stop()
		one.idle = nil
	}

	one.users[user] = wake
}

// connect starts connecting a target, if its namespace can have another one. t.mu is held.
func (t *Targets[S]) connect(one *target[S]) {
	if one.admitted = t.options.Memory.Hold(one.ref.memory(), targetMemory) == nil; !one.admitted {
		one.state = State{Reason: corev1alpha1.ReasonTargetLimitExceeded, Message: fmt.Sprintf(
			"The manager has no memory for another target: %s have used up their share: %s. It is connected when there is room.",
			whose(one.ref.Namespace), moreMemory)}
		return
	}
	one.state = connecting
	t.watches.Use(one.ref.user(), []sources.Ref{{Kind: sources.KindSecret, Namespace: one.ref.Namespace, Name: one.ref.Name}})
	if t.ctx != nil {
		one.start(t.ctx)
	}
}

// admit connects the targets that have room now.
func (t *Targets[S]) admit() {
	t.mu.Lock()
	var admitted []Ref
	for _, ref := range slices.SortedFunc(maps.Keys(t.targets), Ref.compare) {
		if one := t.targets[ref]; !one.admitted {
			if t.connect(one); one.admitted {
				admitted = append(admitted, ref)
			}
		}
	}

	t.mu.Unlock()
	for _, ref := range admitted {
		t.Notify(ref)
	}
}

// Release ends the use of a target.
func (t *Targets[S]) Release(user string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ref, used := t.users[user]; used {
		delete(t.users, user)
		t.release(user, ref)
	}
}

// release removes a user from its target. t.mu is held.
func (t *Targets[S]) release(user string, ref Ref) {
	one := t.targets[ref]
	delete(one.users, user)
	if len(one.users) == 0 {
		one.idle = panics.After(targetGrace, "retiring a target", func() { t.retire(one) })
	}
}

// retire ends an unused target.
func (t *Targets[S]) retire(one *target[S]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(one.users) > 0 || t.targets[one.ref] != one {
		return
	}

	delete(t.targets, one.ref)
	if !one.admitted {
		return
	}

	t.options.Memory.Count(one.ref.memory(), 0)
	t.watches.Use(one.ref.user(), nil)
	if one.stop != nil {
		one.stop()
	}

	panics.Go(context.Background(), "admitting targets", t.admit)
}

// Notify wakes the users of a target, because the data that they read from its session has changed.
func (t *Targets[S]) Notify(ref Ref) {
	t.mu.Lock()
	var wake []func()
	if one := t.targets[ref]; one != nil {
		wake = slices.Collect(maps.Values(one.users))
	}
	t.mu.Unlock()
	for _, one := range wake {
		one()
	}
}

// Find returns the session of a target in use, with ok, and its state. A session outlives its
// Secret.
func (t *Targets[S]) Find(ref Ref) (session S, ok bool, state State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.targets[ref]
	if one == nil {
		return session, false, connecting
	}
	if one.session == nil {
		return session, false, one.state
	}
	return one.session.value, true, one.state
}

var connecting = State{Reason: corev1alpha1.ReasonTargetConnecting, Message: "The target is being connected."}

// secretChanged is called by the watches.
func (t *Targets[S]) secretChanged(user types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.targets {
		if one.ref.user() == user {
			one.wakeUp()
		}
	}
}

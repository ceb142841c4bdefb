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
	targetMemory = 1 << 20          // of a target without objects: connections, and what it serves
	targetGrace  = 30 * time.Second // of a connection without users: a package that is installed again needs no second list
)

// Ref names a kubeconfig: a key of a Secret, or without a namespace a file.
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

// kind returns what the kubeconfig is in, for messages.
func (r Ref) kind() string {
	kind, _, _ := strings.Cut(r.String(), " ")
	return kind
}

// user names the target among the users of watches.
func (r Ref) user() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name + "/" + r.Key}
}

// memory is the key of the memory of a target without objects.
func (r Ref) memory() quota.Key { return quota.Key{Namespace: r.Namespace, Name: r.user().Name} }

// State is how a target stands.
type State struct {
	// Ready means that it is connected.
	Ready bool
	// Reason and Message are those of the condition TargetConnected.
	Reason, Message string
	// Cluster is the UID of the namespace kube-system of the target; empty while there is
	// no session.
	Cluster types.UID
}

// Connecting reports whether no attempt to connect has ended yet: the state is known in a
// moment.
func (s State) Connecting() bool { return s == connecting }

// Stalls reports whether a user has to act before the target is connected.
func (s State) Stalls() bool {
	switch s.Reason {
	case corev1alpha1.ReasonKubeconfigMissing, corev1alpha1.ReasonKubeconfigRefused, corev1alpha1.ReasonTargetUnauthorized,
		corev1alpha1.ReasonOtherCluster, corev1alpha1.ReasonUnsupported:
		return true
	}
	return false
}

// Options are what Targets work with.
type Options[S any] struct {
	// Get reads Secrets, Listen watches them, and Read reads their metadata.
	Get    sources.Get
	Listen sources.Listen
	Read   sources.ReadObject
	// Home returns the UID of the namespace kube-system of the manager's own cluster.
	Home func(context.Context) (types.UID, error)
	// Open makes a session, which ends with its context. config has a transport that has
	// the credentials, and the limits of the target. held is told how many bytes are kept of
	// what the target says, and how many of these no more, as negative numbers.
	Open func(ctx context.Context, ref Ref, config *rest.Config, cluster types.UID, held func(bytes int64)) (S, error)
	// Memory is the account that all targets have together; nil is without a limit.
	Memory *quota.Memory
	// Policy states which addresses targets may have. Namespace is the manager's, which has the kubeconfigs of cluster-scoped
	// packages.
	Policy    outbound.Policy
	Namespace string
	// Parse reads a kubeconfig; Parse of this package if it is nil.
	Parse func([]byte) (*rest.Config, error)
	// Own is the remedy where a kubeconfig leads to the manager's own cluster.
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

// New returns Targets that connect from Start on.
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
			one.begin(ctx)
		}
	}
	t.mu.Unlock()
	return t.watches.Start(ctx)
}

// Use keeps a target connected for a user, in place of the one before. wake is called when
// the state or the session of the target changed; it must not block.
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

// connect starts to connect a target, if its namespace may have one more. t.mu is held.
func (t *Targets[S]) connect(one *target[S]) {
	if one.admitted = t.options.Memory.Hold(one.ref.memory(), targetMemory) == nil; !one.admitted {
		one.state = State{Reason: corev1alpha1.ReasonTargetLimitExceeded, Message: fmt.Sprintf(
			"There are as many targets as have room in the memory of the manager: %s may have no more beside those of others: %s. It is connected when there is room.",
			whose(one.ref.Namespace), moreMemory)}
		return
	}
	one.state = connecting
	t.watches.Use(one.ref.user(), []sources.Ref{{Kind: sources.KindSecret, Namespace: one.ref.Namespace, Name: one.ref.Name}})
	if t.ctx != nil {
		one.begin(t.ctx)
	}
}

// admit connects targets for which there is room now.
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

// release takes a user off its target. t.mu is held.
func (t *Targets[S]) release(user string, ref Ref) {
	one := t.targets[ref]
	delete(one.users, user)
	if len(one.users) == 0 {
		one.idle = panics.After(targetGrace, "retiring a target", func() { t.retire(one) })
	}
}

// retire ends a target that is not used.
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

// Notify wakes the users of a target: what they read of its session changed.
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

// Find returns the session of a target in use, false if there is none, and its state. A
// session outlives its Secret.
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

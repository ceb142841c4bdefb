package livestate

import (
	"context"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"lockstep.run/lockstep/internal/limits"
)

// Follower keeps a store up to date with a source: a list, then a watch that goes
// on where it broke off. The protocol is client-go's Reflector. The pauses are
// not: its own grow to a minute where watches break again and again, and for so
// long nothing is known of what changes.
type Follower struct {
	// Name and Type are for logs.
	Name, Type string
	// Of is an example of the objects; nil takes any.
	Of     runtime.Object
	Source cache.ListerWatcherWithContext
	Store  cache.ReflectorStore
	// Ask is told each time that a list is asked for, and returns the resource version to
	// ask with in place of its argument; it may be nil.
	Ask func(resourceVersion string) string
	// Failed is told each error after which the source is asked again.
	Failed func(error)

	// answered means that the source gave an answer since the last pause.
	answered atomic.Bool
	// opened is the last watch. The Reflector leaves one open whose list the store refused.
	opened watch.Interface
}

// Run works until the context ends.
func (f *Follower) Run(ctx context.Context) {
	source := &cache.ListWatch{ListWithContextFunc: f.list, WatchFuncWithContext: f.open}
	reflector := cache.NewReflectorWithOptions(source, f.Of, f.Store, cache.ReflectorOptions{
		Name: f.Name, TypeDescription: f.Type, Backoff: newBackoff(limits.ReconnectMax),
	})
	// A connection that breaks within an event is no reason to list again.
	reflector.MaxInternalErrorRetryDuration = time.Second
	// An API server that answers and breaks watches gets short pauses, one that
	// does not even answer, or refuses, gets long ones.
	short, long := newBackoff(limits.ReconnectMax), newBackoff(limits.WatchBackoffMax)
	for {
		began := time.Now()
		f.answered.Store(false)
		err := reflector.ListAndWatchWithContext(ctx)
		if f.opened != nil {
			f.opened.Stop()
		}
		if err != nil && ctx.Err() == nil {
			f.Failed(err)
		}
		if time.Since(began) > limits.ReconnectMax {
			short = newBackoff(limits.ReconnectMax)
		}
		pauses := long
		if f.answered.Load() {
			pauses, long = short, newBackoff(limits.WatchBackoffMax)
		}
		if !sleep(ctx, pauses.Step()) {
			return
		}
	}
}

func (f *Follower) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if options.ResourceVersion == "0" {
		// Not what some cache remembers: a list decides what is absent.
		options.ResourceVersion = ""
	}
	if f.Ask != nil && options.Continue == "" { // else it is a page of the same list
		options.ResourceVersion = f.Ask(options.ResourceVersion)
	}
	list, err := f.Source.ListWithContext(ctx, options)
	f.note(err)
	return list, err
}

func (f *Follower) open(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if f.Ask != nil && ptr.Deref(options.SendInitialEvents, false) {
		options.ResourceVersion = f.Ask(options.ResourceVersion)
	}
	w, err := f.Source.WatchWithContext(ctx, options)
	f.note(err)
	f.opened = w
	return w, err
}

func (f *Follower) note(err error) {
	if err == nil {
		f.answered.Store(true)
	}
}

func newBackoff(longest time.Duration) *wait.Backoff {
	return &wait.Backoff{Duration: limits.WatchBackoffMin, Cap: longest, Factor: 2, Jitter: 0.2, Steps: 32}
}

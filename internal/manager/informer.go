package manager

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/cluster/reflector"
)

// newInformer returns an informer that is up to date soon after an outage, however
// often its watch breaks: it is given a watch that never ends.
func newInformer(source toolscache.ListerWatcherWithContext, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers, newest *livestate.Newest) toolscache.SharedIndexInformer {
	return toolscache.NewSharedIndexInformer(newRelay(source, obj, newest), obj, resync, indexers)
}

// ask notes that a list is requested, and returns its resource version.
func (r *relay) ask(version string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.progress.Request(version)
}

// follow keeps the relay up to date until the informer's context ends.
func (r *relay) follow(ctx context.Context) {
	reflecting := reflector.Reflector{
		Name: "informer", Type: fmt.Sprintf("%T", r.of), Of: r.of, Source: r.source, Store: r, ListVersion: r.ask,
	}
	reflecting.Run(ctx)
}

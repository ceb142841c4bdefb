package cluster_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/test/require"
)

// listing is a fake client that cannot stream lists. Unlike an API server, it misses changes
// between a list and its watch. A test that changes an object only once waits until a package is
// watched.
type listing struct {
	client.WithWatch
	watched chan struct{}
	once    *sync.Once
}

func (listing) IsWatchListSemanticsUnSupported() bool { return true }

func (l listing) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	w, err := l.WithWatch.Watch(ctx, list, opts...)
	if _, ok := list.(*corev1alpha1.PackageList); ok && err == nil {
		l.once.Do(func() { close(l.watched) })
	}
	return w, err
}

// watched returns once a package is watched.
func watched(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	select {
	case <-c.WithWatch.(listing).watched:
	case <-testContext(t).Done():
		t.Fatal("no kind is watched")
	}
}

// fakeCluster holds objects in memory; intercept, which may be nil, fails
// requests.
func fakeCluster(t *testing.T, intercept *interceptor.Funcs, objects ...client.Object) *cluster.Cluster {
	t.Helper()
	c, err := cluster.New("https://fake", "shop", func(o client.Options) (client.WithWatch, error) {
		byName := func(obj client.Object) []string { return []string{obj.GetName()} }
		b := fake.NewClientBuilder().WithScheme(o.Scheme).WithRESTMapper(o.Mapper).WithObjects(objects...).
			WithIndex(&corev1alpha1.Package{}, "metadata.name", byName).
			WithIndex(&corev1alpha1.ClusterPackage{}, "metadata.name", byName)
		if intercept != nil {
			b = b.WithInterceptorFuncs(*intercept)
		}
		return listing{b.Build(), make(chan struct{}), &sync.Once{}}, nil
	})
	require.NoError(t, err)
	return c
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

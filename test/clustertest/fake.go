package clustertest

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
)

// Streams returns the streams of a command without input.
func Streams(out, errOut io.Writer) genericiooptions.IOStreams {
	return genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: errOut}
}

// Listing is a fake client that cannot stream lists. OnWatch, if not nil, is called when a cluster
// package is watched.
type Listing struct {
	client.WithWatch
	OnWatch func()

	mu sync.Mutex
	// started are the watches of informers that have listed. The fake client has no history from
	// which a watch could get the changes between list and watch, so the watch starts before the
	// list. At most one informer can list the same kind at a time.
	started map[string]watch.Interface
}

// IsWatchListSemanticsUnSupported implements the interface that reflectors check.
func (*Listing) IsWatchListSemanticsUnSupported() bool { return true }

// List implements client.Reader.
func (l *Listing) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, nested := l.WithWatch.(*Listing); !nested && informs(opts) {
		w, err := l.WithWatch.Watch(ctx, list, opts...)
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, w.Stop) // an unread watch panics after 100 events
		if before := l.swap(list, opts, w); before != nil {
			before.Stop()
		}
	}
	return l.WithWatch.List(ctx, list, opts...)
}

// Watch implements client.WithWatch.
func (l *Listing) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	w := l.swap(list, opts, nil)
	if w == nil {
		var err error
		if w, err = l.WithWatch.Watch(ctx, list, opts...); err != nil {
			return nil, err
		}
	}
	if _, ok := list.(*corev1alpha1.ClusterPackageList); ok && l.OnWatch != nil {
		l.OnWatch()
	}
	return w, nil
}

// informs reports whether the options belong to an informer.
func informs(opts []client.ListOption) bool {
	o := client.ListOptions{}
	return o.ApplyOptions(opts).Raw != nil
}

// swap keeps a watch for the informer that lists, and returns the previous one.
func (l *Listing) swap(list client.ObjectList, opts []client.ListOption, w watch.Interface) (before watch.Interface) {
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	key := fmt.Sprintf("%T %s %v %v", list, o.Namespace, o.LabelSelector, o.FieldSelector)
	l.mu.Lock()
	defer l.mu.Unlock()
	before = l.started[key]
	if l.started == nil {
		l.started = map[string]watch.Interface{}
	}
	l.started[key] = w
	return before
}

// FakeCluster holds objects in memory. Like an API server, it gives each created object a UID and a
// generation.
func FakeCluster(t *testing.T, objects ...client.Object) *cluster.Cluster {
	t.Helper()
	c, err := cluster.New("https://fake", "shop", func(o client.Options) (client.WithWatch, error) {
		byName := func(obj client.Object) []string { return []string{obj.GetName()} }
		return &Listing{WithWatch: fake.NewClientBuilder().WithScheme(o.Scheme).WithRESTMapper(o.Mapper).WithObjects(objects...).
			WithStatusSubresource(&corev1alpha1.Package{}, &corev1alpha1.ClusterPackage{}).
			WithIndex(&corev1alpha1.Package{}, "metadata.name", byName).
			WithIndex(&corev1alpha1.ClusterPackage{}, "metadata.name", byName).
			WithInterceptorFuncs(interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
					obj.SetUID("new")
					obj.SetGeneration(1)
					return c.Create(ctx, obj, opts...)
				},
			}).Build()}, nil
	})
	if err != nil {
		t.Fatal(err)
	}

	return c
}

// DialTo connects every command to one cluster.
func DialTo(c *cluster.Cluster) func(genericclioptions.RESTClientGetter, io.Writer) (*cluster.Cluster, error) {
	return func(getter genericclioptions.RESTClientGetter, _ io.Writer) (*cluster.Cluster, error) {
		if namespace := *getter.(*genericclioptions.ConfigFlags).Namespace; namespace != "" {
			c.Namespace = namespace
		}
		return c, nil
	}
}

package cluster_test

import (
	"context"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
)

// listing is a fake client, which cannot stream lists.
type listing struct{ client.WithWatch }

func (listing) IsWatchListSemanticsUnSupported() bool { return true }

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
		return listing{b.Build()}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

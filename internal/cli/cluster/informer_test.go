package cluster_test

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
)

// An informer has synced once the handler has all objects of the first list.
func TestInformerSyncsWithHandler(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, nil, pkg("a"), pkg("b"))
	handle := make(chan struct{})
	informer := c.Inform(testContext(t), cluster.Watched{
		Example: &corev1alpha1.Package{}, List: &corev1alpha1.PackageList{},
		Options: func() client.ListOptions { return client.ListOptions{} }, Report: func(error) {},
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-handle }},
	})
	wait := func(synced cache.InformerSynced) {
		t.Helper()
		if !cache.WaitForCacheSync(t.Context().Done(), synced) {
			t.Fatal("it has not synced")
		}
	}
	wait(informer.SharedIndexInformer.HasSynced)
	handle <- struct{}{}
	if informer.HasSynced() {
		t.Error("it has synced before the handler has all objects")
	}
	close(handle)
	wait(informer.HasSynced)
}

// unanswered is a cluster whose watch connections end without an answer.
type unanswered struct{ client.WithWatch }

// Watch implements client.WithWatch.
func (unanswered) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	return watch.NewEmptyWatch(), nil
}

// Connections that end without an answer are reported, although client-go returns no error for
// them.
func TestInformerReportsUnansweredWatches(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, nil, pkg("a"))
	c.WithWatch = unanswered{c.WithWatch}
	ctx, reports := testContext(t), make(chan error)
	c.Inform(ctx, cluster.Watched{
		Example: &corev1alpha1.Package{}, List: &corev1alpha1.PackageList{},
		Options: func() client.ListOptions { return client.ListOptions{} }, Handler: cache.ResourceEventHandlerFuncs{},
		Report: func(err error) {
			select {
			case reports <- err:
			case <-ctx.Done():
			}
		},
	})
	for {
		select {
		case err := <-reports:
			if err != nil && strings.Contains(c.Explain("it cannot be watched", err).Error(), "cannot be reached: the API server does not answer") {
				return
			}
		case <-ctx.Done():
			t.Fatal("no event is reported")
		}
	}
}

package cluster_test

import (
	"testing"

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

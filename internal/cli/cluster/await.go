package cluster

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Await looks at an object whenever it changes, until done says so or fails, or
// ctx ends, whose cause is the error then. It begins with what is there now. list
// is an empty list of its kind; doing begins the sentence of an error.
func (c *Cluster) Await(ctx context.Context, doing string, obj client.Object, list client.ObjectList, done func() (bool, error)) error {
	for {
		if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil && ctx.Err() == nil {
			return c.Explain(doing, err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if ok, err := done(); ok || err != nil {
			return err
		}
		if err := c.change(ctx, obj, list); err != nil {
			return err
		}
	}
}

// change returns when the object has changed, or may have. Lost connections are
// made anew after a pause.
func (c *Cluster) change(ctx context.Context, obj client.Object, list client.ObjectList) error {
	w, err := c.Watch(ctx, list, &client.ListOptions{
		Namespace: obj.GetNamespace(), FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, obj.GetName()),
		Raw: &metav1.ListOptions{ResourceVersion: obj.GetResourceVersion()},
	})
	pause := time.NewTimer(retryInterval)
	defer pause.Stop()
	var events <-chan watch.Event
	if err == nil {
		defer w.Stop()
		events = w.ResultChan()
	}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-pause.C:
			return nil // so that a watch that breaks, or says nothing, is no end
		case _, open := <-events:
			if open {
				return nil
			}
			events = nil
		}
	}
}

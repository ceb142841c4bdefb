package queueing

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"lockstep.run/lockstep/internal/kube/panics"
)

// Changes calls handle with the states before and after a change; nil for one that does not exist.
func Changes(handle func(ctx context.Context, before, after client.Object)) handler.EventHandler {
	// client-go ends the process where a handler panics, and would do so again after a restart.
	changed := func(ctx context.Context, before, after client.Object) {
		_ = panics.Guard(ctx, "handling an event", func() error { handle(ctx, before, after); return nil })
	}
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, _ queue) { changed(ctx, nil, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, _ queue) { changed(ctx, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, _ queue) { changed(ctx, e.Object, nil) },
	}
}

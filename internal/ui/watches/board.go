package watches

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/ui/page"
)

// Board has all installed packages that the user may watch.
type Board struct {
	cluster *cluster.Cluster
	kinds   []*kind
	topic
}

// kind is one of the watched kinds.
type kind struct {
	name     string
	scope    corev1alpha1.Scope
	informer cache.SharedIndexInformer

	mu sync.Mutex

	// namespace is empty for all.
	namespace string
	// lost is the last error, and since is the time when it was first reported.
	lost  error
	since time.Time
}

// Start watches until ctx ends.
func Start(ctx context.Context, cl *cluster.Cluster) *Board {
	b := &Board{cluster: cl}
	for _, scope := range []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster} {
		b.watch(ctx, &kind{name: strings.ToLower(scope.Kind("Package")) + "s", scope: scope}, cluster.Watched{
			Example: scope.NewPackage(), List: scope.NewPackageList().(client.ObjectList), Transform: slim,
			Handler: cache.ResourceEventHandlerFuncs{
				AddFunc: func(any) { b.publish() }, UpdateFunc: func(_, _ any) { b.publish() }, DeleteFunc: func(any) { b.publish() },
			},
		})
	}
	return b
}

// watch watches one kind. An error is a change, too, because it is a note on every page.
func (b *Board) watch(ctx context.Context, k *kind, w cluster.Watched) {
	w.Options = func() client.ListOptions {
		k.mu.Lock()
		defer k.mu.Unlock()
		return client.ListOptions{Namespace: k.namespace}
	}

	w.Report = func(err error) {
		if k.report(err, b.cluster.Namespace, time.Now()) {
			b.publish()
		}
	}

	k.mu.Lock()
	k.informer = b.cluster.Inform(ctx, w)
	k.mu.Unlock()
	b.kinds = append(b.kinds, k)
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), k.informer.HasSynced) {
			b.publish() // an empty list has no events
		}
	}()
}

// report records the API server's answer, and reports whether it differs from the previous one. If
// the user may not watch all namespaces, it switches to the namespace of the context.
func (k *kind) report(err error, namespace string, now time.Time) bool {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsInvalid(err) {
		err = nil // the informer lists again
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	// Only the first list decides. A right that is revoked later is a note, and the last state
	// stays.
	if namespace != "" && apierrors.IsForbidden(err) && k.scope == corev1alpha1.ScopeNamespaced && k.namespace == "" && (k.informer == nil || !k.informer.HasSynced()) {
		k.namespace, err = namespace, nil // the next request is for this namespace
	}

	was := k.lost
	if k.lost = err; err != nil && was == nil {
		k.since = now
	}
	return (was == nil) != (err == nil) || err != nil && was.Error() != err.Error()
}

// note is the page's remark about the kind; empty if all of it is shown.
func (k *kind) note(cl *cluster.Cluster) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	synced := k.informer.HasSynced()
	as := "they are not shown."
	if synced {
		as = "they are shown as they were at " + k.since.Format(time.TimeOnly) + "."
	}

	switch err := k.lost; {
	case err == nil && k.namespace != "":
		return fmt.Sprintf("You may only watch %s in namespace %s; other namespaces are not shown.", k.name, k.namespace)
	case err == nil && !synced:
		return fmt.Sprintf("The first list of %s is not complete yet.", k.name)
	case err == nil:
		return ""
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("You may not watch %s: %s", k.name, as)
	case cluster.Unserved(err):
		return fmt.Sprintf("The cluster does not serve %s: %s", k.name, as)
	default:
		return fmt.Sprintf("%s. It is retried automatically; %s", cl.Explain("The "+k.name+" cannot be watched", err), as)
	}
}

// slim drops fields that no page shows.
func slim(obj any) (any, error) {
	if o, is := obj.(metav1.Object); is {
		o.SetManagedFields(nil)
	}
	pkg, is := obj.(corev1alpha1.GenericPackage)
	if !is {
		return obj, nil
	}

	message, paused := pkg.GetAnnotations()[corev1alpha1.PauseMessageAnnotation]
	pkg.SetAnnotations(nil)
	if paused {
		pkg.SetAnnotations(map[string]string{corev1alpha1.PauseMessageAnnotation: message})
	}
	spec := pkg.PackageSpec()
	*spec = corev1alpha1.PackageSpec{
		Image: spec.Image, PackageRef: spec.PackageRef, Component: spec.Component, TargetRef: spec.TargetRef, ServiceAccountName: spec.ServiceAccountName,
		Paused: spec.Paused, DowngradePolicy: spec.DowngradePolicy, UpgradePolicy: spec.UpgradePolicy,
	}

	return pkg, nil
}

// Rows returns the rows in the order of the list.
func (b *Board) Rows() []page.Row {
	var rows []page.Row
	for _, k := range b.kinds {
		for _, item := range k.informer.GetStore().List() {
			rows = append(rows, page.RowOf(item.(corev1alpha1.GenericPackage)))
		}
	}
	page.Sort(rows)
	return rows
}

// Package returns the observed state of a package; nil if it was not observed.
func (b *Board) Package(t progress.Target) corev1alpha1.GenericPackage {
	key := cache.ObjectName{Namespace: t.Namespace, Name: t.Name}.String()
	for _, k := range b.kinds {
		if k.scope != t.Scope {
			continue
		}
		if item, found, _ := k.informer.GetStore().GetByKey(key); found {
			if pkg, is := item.(corev1alpha1.GenericPackage); is {
				return pkg
			}
		}
	}
	return nil
}

// Notes name the parts that are not shown, and the reasons.
func (b *Board) Notes() (notes []string) {
	for _, k := range b.kinds {
		if note := k.note(b.cluster); note != "" {
			notes = append(notes, note)
		}
	}
	return notes
}

// Synced waits for the first lists, or until ctx ends.
func (b *Board) Synced(ctx context.Context) {
	changed, end := b.Subscribe()
	defer end()
	unknown := func(k *kind) bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return !k.informer.HasSynced() && k.lost == nil
	}
	// A kind that cannot be listed needs no wait.
	for slices.ContainsFunc(b.kinds, unknown) {
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// topic notifies subscribers of changes. Changes before the next read become one.
type topic struct {
	mu          sync.Mutex
	subscribers map[chan struct{}]bool
}

// Subscribe returns a channel that receives a value after one or more changes, and a function that
// ends the subscription.
func (t *topic) Subscribe() (<-chan struct{}, func()) {
	ch := make(chan struct{}, 1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.subscribers == nil {
		t.subscribers = map[chan struct{}]bool{}
	}
	t.subscribers[ch] = true

	return ch, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.subscribers, ch)
	}
}

// publish notifies all subscribers. A subscriber that has not read the last notification gets no
// second one.
func (t *topic) publish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for ch := range t.subscribers {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

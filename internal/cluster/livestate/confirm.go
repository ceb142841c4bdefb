package livestate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/pager"

	"lockstep.run/lockstep/internal/cluster/reflector"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/objects"
)

const confirmParallel = 4 // kinds that are listed at a time to confirm records

// errNotCurrent and errConfirmed end a list early.
var errNotCurrent, errConfirmed = errors.New("not current"), errors.New("confirmed")

// Confirm reports whether the objects are still at the resource versions of seen, with one
// consistent LIST of metadata per kind: then all of them had these states together at one moment
// before this call. The watches alone prove that only for one kind.
//
// If the selector does not match an object, a second list uses the selector of the watch: the
// object may still have the labels of an earlier revision.
func (c *Cache) Confirm(ctx context.Context, seen map[objects.Key]string, labelSelector string) (current bool, err error) {
	byKind := map[schema.GroupKind]map[name]string{}
	for key, resourceVersion := range seen {
		gk := key.GroupKind()
		if byKind[gk] == nil {
			byKind[gk] = map[name]string{}
		}
		byKind[gk][name{Namespace: key.Namespace, Name: key.Name}] = resourceVersion
	}

	group, ctx := panics.NewGroup(ctx, confirmParallel, "listing objects to be confirmed")
	for gk, versions := range byKind {
		group.Go(func() error { return c.confirmKind(ctx, gk, versions, labelSelector) })
	}
	err = group.Wait()
	if errors.Is(err, errNotCurrent) {
		return false, nil
	}

	return err == nil, err
}

// confirmKind returns nil if all objects of one kind are as wanted.
func (c *Cache) confirmKind(ctx context.Context, gk schema.GroupKind, want map[name]string, selector string) error {
	all := c.options.Names.WatchSelector(gk, c.options.Selector)
	if all == "" {
		selector = all
	}
	if err := c.listAsWanted(ctx, gk, want, selector); err != nil || len(want) == 0 {
		return err
	}
	if selector != all {
		if err := c.listAsWanted(ctx, gk, want, all); err != nil {
			return err
		}
	}

	if len(want) > 0 {
		return errNotCurrent
	}
	return nil
}

// listAsWanted removes the objects that a LIST confirms from want.
func (c *Cache) listAsWanted(ctx context.Context, gk schema.GroupKind, want map[name]string, selector string) error {
	m, err := c.Mapping(gk, "")
	if meta.IsNoMatchError(err) {
		return errNotCurrent
	}
	if err != nil {
		return err
	}

	source := &reflector.Source{
		Client: c.clients.metadata, Resource: m.Resource, Namespace: onlyNamespace(want), MetadataOnly: true, LabelSelector: selector,
		NewList: func() runtime.Object { return &metav1.PartialObjectMetadataList{} },
	}

	pages := pager.New(source.ListWithContext)
	pages.PageBufferSize, pages.FullListIfExpired = 0, false // the defaults would read six pages at a time, or all in one
	err = pages.EachListItem(ctx, metav1.ListOptions{}, func(obj runtime.Object) error {
		item := obj.(*metav1.PartialObjectMetadata)
		n := name{Namespace: item.Namespace, Name: item.Name}
		if version, asked := want[n]; asked && version != item.ResourceVersion {
			return errNotCurrent
		}
		if delete(want, n); len(want) == 0 {
			return errConfirmed
		}
		return nil
	})
	if err == nil || errors.Is(err, errConfirmed) {
		return nil
	}
	if apierrors.IsResourceExpired(err) {
		return errNotCurrent // the next list starts anew
	}

	return fmt.Errorf("list the metadata of %s: %w", m.Resource.GroupResource(), err)
}

// onlyNamespace returns the namespace of all names, or "" if they differ.
func onlyNamespace(names map[name]string) (namespace string) {
	first := true
	for n := range names {
		if !first && n.Namespace != namespace {
			return ""
		}
		namespace, first = n.Namespace, false
	}
	return namespace
}

// Fetch reads one live object, in the preferred version, with or without the label of the
// watch. It returns the errors of Mapping and of the API server.
func (c *Cache) Fetch(ctx context.Context, key objects.Key) (*unstructured.Unstructured, error) {
	m, err := c.Mapping(key.GroupKind(), "")
	if err != nil {
		return nil, err
	}
	live := &unstructured.Unstructured{}
	path := append(reflector.Path(m.Resource, key.Namespace), key.Name)
	if err := c.clients.objects.Get().AbsPath(path...).MaxRetries(0).Do(ctx).Into(live); err != nil {
		return nil, fmt.Errorf("get %s: %w", strings.TrimSpace(key.String()), err)
	}
	return live, nil
}

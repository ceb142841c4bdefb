package livestate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
)

// errNotCurrent ends a confirmation early.
var errNotCurrent = errors.New("not current")

// Confirm reports whether the objects are still in the states that were seen, by
// their resource versions, with one consistent LIST of metadata per kind. If so,
// there was a moment at which all were in these states together: the one between
// the reads of the records and this call. The watches alone prove that for one kind
// only.
//
// seen holds the resource versions of the records that the caller judged, not
// of those that are kept by now. The selector is to match all of these objects. For
// those that it does not match another LIST is made, of all that the watch shows: an
// object may carry the labels of an earlier revision, or edited ones.
func (c *Cache) Confirm(ctx context.Context, seen map[objects.Key]string, labelSelector string) (current bool, err error) {
	byKind := map[schema.GroupKind]map[name]string{}
	for key, resourceVersion := range seen {
		gk := key.GroupKind()
		if byKind[gk] == nil {
			byKind[gk] = map[name]string{}
		}
		byKind[gk][name{key.Namespace, key.Name}] = resourceVersion
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(limits.ConfirmParallel)
	for gk, versions := range byKind {
		group.Go(func() error { return c.confirmKind(ctx, gk, versions, labelSelector) })
	}
	err = group.Wait()
	if errors.Is(err, errNotCurrent) {
		return false, nil
	}
	return err == nil, err
}

// metadataPage is what is decoded of a list of PartialObjectMetadata.
type metadataPage struct {
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Items []struct {
		Metadata struct {
			Namespace       string `json:"namespace"`
			Name            string `json:"name"`
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	} `json:"items"`
}

const metadataAccept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

// confirmKind returns nil where all objects of one kind are as wanted.
func (c *Cache) confirmKind(ctx context.Context, gk schema.GroupKind, want map[name]string, selector string) error {
	if err := c.listAsWanted(ctx, gk, want, selector); err != nil || len(want) == 0 {
		return err
	}
	if selector != c.options.Selector {
		if err := c.listAsWanted(ctx, gk, want, c.options.Selector); err != nil {
			return err
		}
	}
	if len(want) > 0 {
		return errNotCurrent
	}
	return nil
}

// listAsWanted takes off want what a LIST shows to be so.
func (c *Cache) listAsWanted(ctx context.Context, gk schema.GroupKind, want map[name]string, selector string) error {
	m, err := c.Mapping(gk, "")
	if meta.IsNoMatchError(err) {
		return errNotCurrent
	}
	if err != nil {
		return err
	}
	path := collection(m.Resource, onlyNamespace(want))
	for token := ""; ; {
		req := c.clients.objects.Get().AbsPath(path...).SetHeader("Accept", metadataAccept).
			Param("labelSelector", selector).Param("limit", strconv.Itoa(limits.WatchPage)).MaxRetries(0)
		if token != "" {
			req.Param("continue", token)
		}
		body, err := req.Do(ctx).Raw()
		if err != nil {
			return fmt.Errorf("list the metadata of %s: %w", m.Resource.GroupResource(), err)
		}
		var page metadataPage
		if err := json.Unmarshal(body, &page); err != nil {
			return fmt.Errorf("list the metadata of %s: %w", m.Resource.GroupResource(), err)
		}
		for _, item := range page.Items {
			n := name{item.Metadata.Namespace, item.Metadata.Name}
			if version, asked := want[n]; asked && version != item.Metadata.ResourceVersion {
				return errNotCurrent
			}
			delete(want, n)
		}
		if token = page.Metadata.Continue; token == "" || len(want) == 0 {
			return nil
		}
	}
}

// onlyNamespace returns the namespace of all names, or "" where they differ.
func onlyNamespace(names map[name]string) string {
	namespaces := map[string]struct{}{}
	for n := range names {
		namespaces[n.namespace] = struct{}{}
	}
	if len(namespaces) != 1 {
		return ""
	}
	for namespace := range namespaces {
		return namespace
	}
	return ""
}

// Fetch reads one live object, in the preferred version, with or without the
// label of the watch. Its errors are those of Mapping and of the API server.
func (c *Cache) Fetch(ctx context.Context, key objects.Key) (*unstructured.Unstructured, error) {
	m, err := c.Mapping(key.GroupKind(), "")
	if err != nil {
		return nil, err
	}
	live := &unstructured.Unstructured{}
	path := append(collection(m.Resource, key.Namespace), key.Name)
	if err := c.clients.objects.Get().AbsPath(path...).MaxRetries(0).Do(ctx).Into(live); err != nil {
		return nil, fmt.Errorf("get %s: %w", strings.TrimSpace(key.String()), err)
	}
	return live, nil
}

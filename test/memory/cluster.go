package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Request is one request of a connection.
type Request struct {
	// Verb is the Verb of [apply.Error].
	Verb string
	Key  objects.Key
	// Body is the body of the request.
	Body   []byte
	DryRun bool
	// Account is the account that makes a write.
	Account objects.Account
}

// Writes reports whether the request can change something.
func (r Request) Writes() bool {
	return !r.DryRun && (r.Verb == "create" || r.Verb == "apply" || r.Verb == "patch" || r.Verb == "delete")
}

// Cluster is a connection to a Server by one process.
type Cluster struct {
	*Server
	// Observe, Changed and KindChanged have the same meaning as in livestate.Options.
	Observe     func(objects.Key, *unstructured.Unstructured) *objects.Observed
	Changed     func(...objects.Change)
	KindChanged func(schema.GroupKind)
	// Send performs a request by calling do. It can also fail before or after that.
	Send func(ctx context.Context, r Request, do func() error) error

	kinds   map[schema.GroupKind]*watched
	used    map[string][]schema.GroupKind
	account objects.Account
}

var _ cluster.Cluster = (*Cluster)(nil)

// Connect returns a new connection, which knows nothing yet. The caller has to set its functions.
func (s *Server) Connect() *Cluster {
	return &Cluster{Server: s, kinds: map[schema.GroupKind]*watched{}, used: map[string][]schema.GroupKind{}}
}

// As returns the writes as an account. Send decides whether they are permitted.
func (c *Cluster) As(account objects.Account) cluster.Writes {
	as := *c
	as.account = account
	return &as
}

// Now is the time of the server.
func (c *Cluster) Now() time.Time { return c.Server.Now() }

// Check accepts every object.
func (c *Cluster) Check(_ context.Context, objs []*unstructured.Unstructured) []error {
	return make([]error, len(objs))
}

// Mapping returns the mapping of a kind.
func (c *Cluster) Mapping(gk schema.GroupKind, version string) (*meta.RESTMapping, error) {
	k := c.Server.kinds[gk]
	if k == nil || k.Unserved || version != "" && version != k.Version {
		return nil, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: []string{version}}
	}
	m := &meta.RESTMapping{GroupVersionKind: k.GroupVersionKind, Scope: meta.RESTScopeNamespace}
	m.Resource, _ = meta.UnsafeGuessKindToResource(k.GroupVersionKind)
	if k.ClusterScoped {
		m.Scope = meta.RESTScopeRoot
	}
	return m, nil
}

func keyOf(m *meta.RESTMapping, namespace, name string) objects.Key {
	return objects.Key{Group: m.GroupVersionKind.Group, Kind: m.GroupVersionKind.Kind, Namespace: namespace, Name: name}
}

// request sends a request, and returns a copy of the object in the answer.
func (c *Cluster) request(ctx context.Context, m *meta.RESTMapping, r Request, do func() (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	var answer *unstructured.Unstructured
	r.Account = c.account
	err := c.Send(ctx, r, func() error {
		live, err := do()
		if err == nil && live != nil {
			answer = live.DeepCopy()
		}
		return err
	})
	if err != nil {
		return nil, &apply.Error{Verb: r.Verb, Resource: m.Resource.Resource, Key: r.Key, Err: err}
	}

	return answer, nil
}

// Get reads an object.
func (c *Cluster) Get(ctx context.Context, m *meta.RESTMapping, namespace, name string) (*unstructured.Unstructured, error) {
	key := keyOf(m, namespace, name)
	return c.request(ctx, m, Request{Verb: "get", Key: key}, func() (*unstructured.Unstructured, error) {
		if err := c.served(key); err != nil {
			return nil, err
		}
		if live := c.Server.Get(key); live != nil {
			return live, nil
		}
		return nil, apierrors.NewNotFound(m.Resource.GroupResource(), name)
	})
}

// GetMetadata reads the metadata of an object.
func (c *Cluster) GetMetadata(ctx context.Context, m *meta.RESTMapping, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	live, err := c.Get(ctx, m, namespace, name)
	if err != nil {
		return nil, err
	}
	return metadata(live)
}

// ListMetadata lists metadata in one page.
func (c *Cluster) ListMetadata(ctx context.Context, m *meta.RESTMapping, namespace string, opts metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	selector, err := labels.Parse(opts.LabelSelector)
	if err != nil {
		return nil, err
	}

	list := &metav1.PartialObjectMetadataList{}
	_, err = c.request(ctx, m, Request{Verb: "list", Key: keyOf(m, namespace, "")}, func() (*unstructured.Unstructured, error) {
		list.Items, list.ResourceVersion = nil, strconv.FormatInt(c.version, 10)
		for _, key := range c.Keys() {
			live := c.Server.Get(key)
			if key.GroupKind() != m.GroupVersionKind.GroupKind() || namespace != "" && key.Namespace != namespace || !selector.Matches(labels.Set(live.GetLabels())) {
				continue
			}
			item, err := metadata(live)
			if err != nil {
				return nil, err
			}
			list.Items = append(list.Items, *item)
		}
		return nil, c.served(keyOf(m, namespace, ""))
	})

	return list, err
}

func metadata(live *unstructured.Unstructured) (*metav1.PartialObjectMetadata, error) {
	m := &metav1.PartialObjectMetadata{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{
		"apiVersion": live.GetAPIVersion(), "kind": live.GetKind(), "metadata": live.Object["metadata"],
	}, m)
	return m, err
}

// Create sends a POST.
func (c *Cluster) Create(ctx context.Context, m *meta.RESTMapping, namespace, name string, body []byte, dryRun bool) (*unstructured.Unstructured, error) {
	key := keyOf(m, namespace, name)
	return c.request(ctx, m, Request{Verb: "create", Key: key, Body: body, DryRun: dryRun}, func() (*unstructured.Unstructured, error) {
		obj := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(body, &obj.Object); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return c.Server.create(key, obj, c.Names.FieldManager, dryRun)
	})
}

// Apply sends a server-side apply.
func (c *Cluster) Apply(ctx context.Context, r apply.ApplyRequest) (*unstructured.Unstructured, error) {
	request := Request{Verb: "apply", Key: keyOf(r.Mapping, r.Namespace, r.Name), Body: r.Body, DryRun: r.DryRun}
	return c.request(ctx, r.Mapping, request, func() (*unstructured.Unstructured, error) {
		return c.Server.Apply(request.Key, r.Body, c.Names.FieldManager, r.Force, r.DryRun)
	})
}

// Patch sends a JSON patch.
func (c *Cluster) Patch(ctx context.Context, m *meta.RESTMapping, namespace, name string, jsonPatch []byte, dryRun bool) (*unstructured.Unstructured, error) {
	key := keyOf(m, namespace, name)
	return c.request(ctx, m, Request{Verb: "patch", Key: key, Body: jsonPatch, DryRun: dryRun}, func() (*unstructured.Unstructured, error) {
		return c.jsonPatch(key, jsonPatch, c.Names.FieldManager, dryRun)
	})
}

// Delete sends a DELETE with preconditions.
func (c *Cluster) Delete(
	ctx context.Context, m *meta.RESTMapping, namespace, name string, uid types.UID, resourceVersion string, policy metav1.DeletionPropagation,
) (gone bool, live *unstructured.Unstructured, err error) {
	key := keyOf(m, namespace, name)
	live, err = c.request(ctx, m, Request{Verb: "delete", Key: key}, func() (*unstructured.Unstructured, error) {
		return c.Server.delete(key, uid, resourceVersion, policy == metav1.DeletePropagationForeground)
	})
	if apply.IsAbsent(err) {
		return true, nil, nil
	}
	return err == nil && live == nil, live, err
}

// Confirm lists the metadata of each kind, in order.
func (c *Cluster) Confirm(ctx context.Context, seen map[objects.Key]string, labelSelector string) (bool, error) {
	kinds := map[schema.GroupKind]bool{}
	for key := range seen {
		kinds[key.GroupKind()] = true
	}
	for _, gk := range sorted(kinds) {
		current, err := c.confirm(ctx, gk, seen, labelSelector)
		if err != nil || !current {
			return false, err
		}
	}
	return true, nil
}

func (c *Cluster) confirm(ctx context.Context, gk schema.GroupKind, seen map[objects.Key]string, selector string) (bool, error) {
	mapping, err := c.Mapping(gk, "")
	if err != nil {
		return false, nil
	}

	left := map[objects.Key]string{}
	for key, version := range seen {
		if key.GroupKind() == gk {
			left[key] = version
		}
	}

	for _, selector := range []string{selector, c.Names.WatchSelector(gk, c.Names.Selector())} {
		if len(left) == 0 {
			break
		}
		list, err := c.ListMetadata(ctx, mapping, "", metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			key := keyOf(mapping, list.Items[i].Namespace, list.Items[i].Name)
			if version, asked := left[key]; asked && version != list.Items[i].ResourceVersion {
				return false, nil
			}
			delete(left, key)
		}
	}

	return len(left) == 0, nil
}

func sorted(kinds map[schema.GroupKind]bool) []schema.GroupKind {
	return slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
}

// String describes the request.
func (r Request) String() string {
	if r.DryRun {
		return fmt.Sprintf("dry run: %s %s", r.Verb, r.Key)
	}
	return r.Verb + " " + r.Key.String()
}

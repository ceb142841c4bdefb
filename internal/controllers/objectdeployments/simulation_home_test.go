package objectdeployments

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
	inmemory "lockstep.run/lockstep/test/memory"
)

// view is the content of the caches for deployments and sets.
type view map[objects.Key]*unstructured.Unstructured

// observe returns a view that is up to date, or whose objects of some kinds are. wake is called
// with the objects whose events the predicates of the controller let pass.
func observe(server *inmemory.Server, last view, r *Reconciler, wake func(*unstructured.Unstructured), only ...string) view {
	shown := func(key objects.Key) bool { return len(only) == 0 || slices.Contains(only, key.Kind) }
	now := view{}
	for key, u := range last {
		if !shown(key) {
			now[key] = u
		}
	}
	for _, key := range server.Keys() {
		if key.Group == corev1alpha1.GroupVersion.Group && shown(key) {
			now[key] = server.Get(key)
		}
	}
	for key, u := range now {
		if old := last[key]; old == nil || old.GetResourceVersion() != u.GetResourceVersion() && (relevant(old, u) || !r.Fresh.Contains(u)) {
			wake(u)
		}
	}
	for key, old := range last {
		if now[key] == nil {
			wake(old)
			r.Fresh.Handler().OnDelete(old)
		}
	}
	return now
}

// home is the client of deployments and sets.
type home struct {
	client.Client
	server *inmemory.Server
	// view is the caches' content. Lists are always as old as it, and so are other reads if the
	// client is cached.
	view   func() view
	cached bool
	// request sends a request, which do performs.
	request func(ctx context.Context, what string, writes bool, do func() error) error
	// absent are accounts that do not exist.
	absent map[string]bool
}

func homeKey(obj client.Object) objects.Key {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = reflect.TypeOf(obj).Elem().Name()
	}
	return objects.Key{Group: corev1alpha1.GroupVersion.Group, Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// answer copies the answer of the API server into obj.
func answer(u *unstructured.Unstructured, obj client.Object) {
	switch obj := obj.(type) {
	case *corev1alpha1.ObjectDeployment:
		decode(u, obj)
	case *corev1alpha1.ObjectSet:
		decode(u, obj)
	case *corev1alpha1.ClusterObjectDeployment:
		decode(u, obj)
	case *corev1alpha1.ClusterObjectSet:
		decode(u, obj)
	case *metav1.PartialObjectMetadata:
		decode(u, obj)
	}
}

func (h *home) Get(ctx context.Context, name client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	key := homeKey(obj)
	key.Namespace, key.Name = name.Namespace, name.Name
	absent := apierrors.NewNotFound(resourceOf(key), key.Name)
	read := func(u *unstructured.Unstructured) error {
		if u == nil {
			return absent
		}
		answer(u, obj)
		return nil
	}
	if h.cached && key.Kind != "ServiceAccount" {
		return read(h.view()[key])
	}
	return h.request(ctx, "get "+key.String(), false, func() error {
		switch {
		case key.Kind != "ServiceAccount":
			return read(h.server.Get(key))
		case h.absent[key.Name]:
			return absent
		}
		return nil
	})
}

func (h *home) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	shown := h.view()
	for _, key := range slices.SortedFunc(maps.Keys(shown), objects.Key.Compare) {
		set := decode(shown[key], &corev1alpha1.ClusterObjectSet{})
		if o.FieldSelector != nil && !o.FieldSelector.Matches(fields.Set{ownerIndex: objectsets.OwnerOf(set).String()}) {
			continue
		}
		switch list := list.(type) {
		case *corev1alpha1.ObjectSetList:
			if key.Kind == "ObjectSet" {
				list.Items = append(list.Items, corev1alpha1.ObjectSet(*set))
			}
		case *corev1alpha1.ClusterObjectSetList:
			if key.Kind == "ClusterObjectSet" {
				list.Items = append(list.Items, *set)
			}
		}
	}
	return nil
}

// write sends a request that changes an object.
func (h *home) write(ctx context.Context, verb string, obj client.Object, do func(objects.Key) (*unstructured.Unstructured, error)) error {
	key := homeKey(obj)
	return h.request(ctx, verb+" "+key.String(), true, func() error {
		u, err := do(key)
		if err == nil && u != nil {
			answer(u, obj)
		}
		return err
	})
}

func (h *home) Create(ctx context.Context, obj client.Object, _ ...client.CreateOption) error {
	return h.write(ctx, "create", obj, func(key objects.Key) (*unstructured.Unstructured, error) {
		u := encode(obj)
		u.SetGroupVersionKind(corev1alpha1.GroupVersion.WithKind(key.Kind))
		return h.server.Create(key, u, "")
	})
}

func (h *home) Patch(ctx context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	return h.write(ctx, "patch "+string(data), obj, func(key objects.Key) (*unstructured.Unstructured, error) {
		return h.server.MergePatch(key, data, "")
	})
}

func (h *home) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	o := (&client.DeleteOptions{}).ApplyOptions(opts)
	return h.write(ctx, "delete", obj, func(key objects.Key) (*unstructured.Unstructured, error) {
		_, err := h.server.Delete(key, *o.Preconditions.UID, ptr.Deref(o.Preconditions.ResourceVersion, ""))
		return nil, err
	})
}

func (h *home) Status() client.SubResourceWriter { return statusOf{home: h} }

type statusOf struct {
	client.SubResourceWriter
	home *home
}

func (w statusOf) Update(ctx context.Context, obj client.Object, _ ...client.SubResourceUpdateOption) error {
	u := encode(obj)
	return w.home.write(ctx, fmt.Sprintf("status %v of", phasesOf(u)), obj, func(key objects.Key) (*unstructured.Unstructured, error) {
		return w.home.server.UpdateStatus(key, u)
	})
}

// phasesOf describes the status of a set for the log.
func phasesOf(u *unstructured.Unstructured) string {
	set := decode(u, &corev1alpha1.ObjectSet{})
	var b strings.Builder
	for _, ph := range set.Status.Phases {
		fmt.Fprintf(&b, "%s ", ph.State)
	}
	for _, typ := range []string{corev1alpha1.ConditionClaimed, corev1alpha1.ConditionSucceeded, corev1alpha1.ConditionArchived} {
		if meta.IsStatusConditionTrue(set.Status.Conditions, typ) {
			b.WriteString(typ + " ")
		}
	}
	return b.String()
}

func resourceOf(key objects.Key) schema.GroupResource {
	return schema.GroupResource{Group: key.Group, Resource: strings.ToLower(key.Kind) + "s"}
}

package dryrun

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases/drift"
)

// simulatedCluster is the cluster after the writes so far. Writes are dry runs, and later reads
// return their results.
type simulatedCluster struct {
	*Cluster
	tracker *tracking.Tracker

	// owner of the objects, and the UIDs that it controls them by.
	owner       objects.Owner
	controllers sets.Set[types.UID]
	definitions *writtenDefinitions

	now     time.Time
	objects map[objects.Key]*object

	// reached means that the engine would get this far.
	reached bool
	// removed objects, in their order.
	removed   []objects.Key
	pretended map[schema.GroupKind]*objects.Desired

	// asUser are accounts that the user may not impersonate.
	asUser map[objects.Account]bool
	// failed is an error that ends the simulation.
	failed error
}

var _ cluster.Cluster = (*simulatedCluster)(nil)

// object is an object of the package before and after the writes so far.
type object struct {
	// live is the object in the API server; nil for an absent one.
	live *unstructured.Unstructured
	// now is the object after the writes; nil if it would not exist.
	now *unstructured.Unstructured
	// observed is the record of now; nil until it is needed.
	observed *objects.Observed
	// changed by a write; released, so that it has no manager.
	changed, released bool
	version           string

	// unverified is the reason why no dry run was possible.
	unverified string
	// refusal is the reason why the engine would not write it. refused are the fields that the API
	// server named, and immutable the same if it would create the object.
	refusal            *Refusal
	refused, immutable []string

	// reached by the engine at the last write.
	reached bool
	// migrated are managedFields rewritten by a patch.
	migrated []metav1.ManagedFieldsEntry
	// dry has responses to dry runs by body.
	dry map[string]*unstructured.Unstructured
}

// object returns the record of a key, and creates it for an unknown one.
func (c *simulatedCluster) object(key objects.Key) *object {
	o := c.objects[key]
	if o == nil {
		o = &object{reached: true}
		c.objects[key] = o
	}
	return o
}

func keyOf(m *meta.RESTMapping, namespace, name string) objects.Key {
	return objects.Key{Group: m.GroupVersionKind.Group, Kind: m.GroupVersionKind.Kind, Namespace: namespace, Name: name}
}

// Get implements cluster.Cluster. It returns a copy of the object after the writes so far.
func (c *simulatedCluster) Get(_ context.Context, m *meta.RESTMapping, namespace, name string) (*unstructured.Unstructured, error) {
	o := c.object(keyOf(m, namespace, name))
	if o.now == nil {
		return nil, apierrors.NewNotFound(m.Resource.GroupResource(), name)
	}
	return o.now.DeepCopy(), nil
}

// GetMetadata implements cluster.Cluster.
func (c *simulatedCluster) GetMetadata(ctx context.Context, m *meta.RESTMapping, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	live, err := c.Get(ctx, m, namespace, name)
	if err != nil {
		return nil, err
	}
	return meta.AsPartialObjectMetadata(live), nil
}

// ListMetadata only lists objects of the package.
func (c *simulatedCluster) ListMetadata(
	_ context.Context, m *meta.RESTMapping, namespace string, opts metav1.ListOptions,
) (*metav1.PartialObjectMetadataList, error) {
	selector, err := labels.Parse(opts.LabelSelector)
	if err != nil {
		return nil, err
	}

	list := &metav1.PartialObjectMetadataList{}
	for key, o := range c.objects {
		if o.now != nil && key.GroupKind() == m.GroupVersionKind.GroupKind() && key.Namespace == namespace && selector.Matches(labels.Set(o.now.GetLabels())) {
			list.Items = append(list.Items, *meta.AsPartialObjectMetadata(o.now))
		}
	}

	return list, nil
}

// As returns writes whose dry runs run as an account, if the user may impersonate it.
func (c *simulatedCluster) As(account objects.Account) cluster.Writes {
	return simulatedWrites{simulatedCluster: c, account: account}
}

// simulatedWrites are the writes of one account.
type simulatedWrites struct {
	*simulatedCluster
	account objects.Account
}

// Create predicts the object after its creation. With dryRun, it asks the API server.
func (c simulatedWrites) Create(
	ctx context.Context, m *meta.RESTMapping, namespace, name string, body []byte, dryRun bool,
) (*unstructured.Unstructured, error) {
	if !dryRun {
		return c.predict(ctx, m, namespace, name, body, true)
	}

	var live *unstructured.Unstructured
	err := c.asAccount(c.account, func(w *apply.Writer) (err error) {
		live, err = w.Create(ctx, m, namespace, name, body, true)
		return err
	})
	// A template that the API server would create is valid, so the fields that it refused before
	// are immutable ones.
	if apierrors.IsAlreadyExists(err) {
		o := c.object(keyOf(m, namespace, name))
		o.immutable = o.refused
	}

	return live, err
}

// Apply predicts the object after an apply.
func (c simulatedWrites) Apply(ctx context.Context, r apply.ApplyRequest) (*unstructured.Unstructured, error) {
	return c.predict(ctx, r.Mapping, r.Namespace, r.Name, r.Body, !r.DryRun)
}

// Patch applies a JSON patch. A patch that removes the label of the watch releases the object.
func (c simulatedWrites) Patch(
	ctx context.Context, m *meta.RESTMapping, namespace, name string, jsonPatch []byte, dryRun bool,
) (*unstructured.Unstructured, error) {
	before, err := c.Get(ctx, m, namespace, name)
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(jsonPatch)
	if err != nil {
		return nil, err
	}

	raw, err := json.Marshal(before.Object)
	if err != nil {
		return nil, err
	}
	if raw, err = patch.Apply(raw); err != nil {
		return nil, err
	}
	after := &unstructured.Unstructured{}
	if err := after.UnmarshalJSON(raw); err != nil {
		return nil, err
	}

	key := keyOf(m, namespace, name)
	o := c.object(key)
	// The API server defaults and validates content, so only a dry run shows it. Patches of
	// bookkeeping need none.
	if len(Differences(before, after)) > 0 {
		return c.predicted(ctx, m, key, after.Object, !dryRun, func() (*unstructured.Unstructured, error) {
			return c.patched(ctx, m, o.live, after.Object)
		})
	}
	if dryRun {
		return after, nil
	}
	// A response to an earlier dry run does not have the new managedFields.
	o.now, o.observed, o.migrated, o.dry = after, nil, after.GetManagedFields(), nil
	if before.GetLabels()[corev1alpha1.CacheLabel] != "" && after.GetLabels()[corev1alpha1.CacheLabel] == "" {
		o.released = true
		c.remove(key, o)
	}
	if metav1.GetControllerOf(before) != nil && metav1.GetControllerOf(after) == nil && !o.released { // its set retains it
		o.released = true
		c.removed = append(c.removed, key)
	}
	return after.DeepCopy(), nil
}

// patched dry-runs a patch that changes the content of a live object.
func (c simulatedWrites) patched(
	ctx context.Context, m *meta.RESTMapping, live *unstructured.Unstructured, next map[string]any,
) (*unstructured.Unstructured, error) {
	patch, err := drift.Replace(live, next)
	if err != nil {
		return nil, err
	}
	var after *unstructured.Unstructured
	err = c.asAccount(c.account, func(w *apply.Writer) (err error) {
		after, err = w.Patch(ctx, m, live.GetNamespace(), live.GetName(), patch, true)
		return err
	})

	return after, err
}

// Delete removes the object at once. Finalizers are assumed to be handled.
func (c simulatedWrites) Delete(
	_ context.Context, m *meta.RESTMapping, namespace, name string, _ types.UID, _ string, _ metav1.DeletionPropagation,
) (gone bool, live *unstructured.Unstructured, err error) {
	key := keyOf(m, namespace, name)
	o := c.object(key)
	c.remove(key, o)
	return true, nil, nil
}

// remove stores that an object no longer exists.
func (c *simulatedCluster) remove(key objects.Key, o *object) {
	o.now, o.observed = nil, nil
	o.changed, o.reached = true, o.reached && c.reached
	c.removed = append(c.removed, key)
}

// write stores the result of a write. Writes that only change labels do not change reached.
func (c *simulatedCluster) write(key objects.Key, o *object, after *unstructured.Unstructured) {
	if !o.changed || o.now == nil || len(Differences(o.now, after)) > 0 {
		o.reached = o.reached && c.reached
	}
	o.now, o.observed, o.changed, o.migrated, o.dry = after, nil, true, nil, nil
	o.version = after.GroupVersionKind().Version
	if key.GroupKind() == definitionKind {
		c.definitions.learn(o.live, after)
	}
}

// State implements cluster.Cluster. Kinds of the package's definitions count as served.
func (c *simulatedCluster) State(gk schema.GroupKind) livestate.KindState {
	m, err := c.Mapping(gk, "")
	if meta.IsNoMatchError(err) {
		return livestate.KindState{}
	}
	if err != nil {
		return livestate.KindState{Err: err}
	}
	return livestate.KindState{
		Served: true, Namespaced: m.Scope.Name() == meta.RESTScopeNameNamespace, Version: m.GroupVersionKind.Version, Synced: true,
	}
}

// Mapping returns the API server's mapping, or a mapping from the package's definitions.
func (c *simulatedCluster) Mapping(gk schema.GroupKind, version string) (*meta.RESTMapping, error) {
	if m, defined := c.definitions.mapping(gk, version); defined {
		return m, nil
	}

	m, err := c.Mapper.RESTMapping(gk, slices.DeleteFunc([]string{version}, func(v string) bool { return v == "" })...)
	// A kind that a refused definition would have defined gets a plausible mapping.
	if d := c.pretended[gk]; meta.IsNoMatchError(err) && d != nil {
		resource, _ := meta.UnsafeGuessKindToResource(d.GroupVersionKind())
		scope := meta.RESTScopeNamespace
		if d.Key.Namespace == "" {
			scope = meta.RESTScopeRoot
		}

		return &meta.RESTMapping{GroupVersionKind: d.GroupVersionKind(), Resource: resource, Scope: scope}, nil
	}

	return m, err
}

// Observed returns the record of an object, and makes it on the first read after a write.
func (c *simulatedCluster) Observed(key objects.Key) (*objects.Observed, bool) {
	o := c.objects[key]
	if o == nil || o.now == nil {
		return nil, false
	}
	if o.observed == nil {
		c.Remember(key, c.tracker.Observe(key, o.now))
	}
	return o.observed, true
}

// Remember implements cluster.Cluster. It sets the record up as if the object was watched in full.
func (c *simulatedCluster) Remember(key objects.Key, obs *objects.Observed) {
	o := c.object(key)
	obs.Watched = true
	obs.Trimmed = nil
	obs.Unrecorded = obs.Unrecorded && len(o.now.GetManagedFields()) > 0 // a guess has no managedFields
	o.observed = obs
}

// Reads and watches are always current.

func (c *simulatedCluster) Use(string, []schema.GroupKind)       {}
func (c *simulatedCluster) Gone(objects.Key, types.UID)          {}
func (c *simulatedCluster) Passed(schema.GroupKind, string) bool { return true }
func (c *simulatedCluster) Confirm(context.Context, map[objects.Key]string, string) (bool, error) {
	return true, nil
}

// Relist drops the records of a kind, so that the next read also returns the fields that probes
// read.
func (c *simulatedCluster) Relist(gk schema.GroupKind) int64 {
	for key, o := range c.objects {
		if key.GroupKind() == gk {
			o.observed = nil
		}
	}
	return 0
}

// Check validates against the served schemas, or the schemas of the package's definitions.
func (c *simulatedCluster) Check(ctx context.Context, objs []*unstructured.Unstructured) []error {
	errs := make([]error, len(objs))
	var served []*unstructured.Unstructured
	var at []int
	for i, obj := range objs {
		why, err := c.definitions.validate(obj.GroupVersionKind())
		switch {
		case err != nil:
			errs[i] = err
		case why == "":
			served, at = append(served, obj), append(at, i)
		}
	}

	for i, err := range c.Schemas.Check(ctx, served) {
		errs[at[i]] = err
	}

	return errs
}

// Now returns the time of the simulated clock.
func (c *simulatedCluster) Now() time.Time {
	return c.now
}

// Run implements engine.Runner. It calls do for one number after the other, as kubectl diff does, so
// that the simulation needs no locks.
func (c *simulatedCluster) Run(ctx context.Context, _ objects.OwnerKey, _ bool, n int, do func(int)) {
	for i := 0; i < n && ctx.Err() == nil; i++ {
		do(i)
	}
}

// asAccount sends a dry run as an account. If the user may not impersonate the account, it sends
// the dry run as the user.
func (c *simulatedCluster) asAccount(account objects.Account, send func(*apply.Writer) error) error {
	if !c.impersonated(account) {
		return send(c.Writer)
	}
	// The API server checks the right to impersonate first, so a refusal is not about the write
	// itself.
	err := send(c.Writer.As(account.User()))
	if denied, is := apply.AsUnauthorized(err); !is || denied.Verb != "impersonate" {
		return err
	}
	c.asUser[account] = true

	return send(c.Writer)
}

// impersonated reports whether dry runs are made as the account.
func (c *simulatedCluster) impersonated(account objects.Account) bool {
	return !account.IsZero() && !c.asUser[account]
}

// accountExists reads a ServiceAccount. If the user may not read it, it is assumed to exist.
func (c *Cluster) accountExists(ctx context.Context, account objects.Account) (bool, error) {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	err := c.Reader.Get(ctx, client.ObjectKey{Namespace: account.Namespace, Name: account.Name}, m)
	switch {
	case apply.IsAbsent(err):
		return false, nil
	// A user without the right to read accounts can still plan. The engine reports a missing
	// account.
	case apierrors.IsForbidden(err):
		return true, nil
	}
	return err == nil, err
}

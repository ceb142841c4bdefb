package dryrun

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/objects/listkeys"
	"lockstep.run/lockstep/internal/phases/drift"
)

// predict returns the object after a write of content. The write takes effect unless it is itself a
// dry run.
func (c simulatedWrites) predict(
	ctx context.Context, m *meta.RESTMapping, namespace, name string, body []byte, write bool,
) (*unstructured.Unstructured, error) {
	template := &unstructured.Unstructured{}
	if err := template.UnmarshalJSON(body); err != nil {
		return nil, err
	}
	// The preconditions of the write are not content.
	template.SetResourceVersion("")
	template.SetUID("")
	key := keyOf(m, namespace, name)
	return c.predicted(ctx, m, key, template.Object, write, func() (*unstructured.Unstructured, error) {
		return c.dryRun(ctx, m, key, c.object(key), body)
	})
}

// predicted returns the response to a dry run, or else a guess: the written content merged into the
// live object.
func (c simulatedWrites) predicted(
	ctx context.Context, m *meta.RESTMapping, key objects.Key, content map[string]any, write bool, dryRun func() (*unstructured.Unstructured, error),
) (*unstructured.Unstructured, error) {
	o := c.object(key)
	why, err := c.definitions.validate(m.GroupVersionKind)
	if err != nil {
		return nil, c.refuse(ctx, key, o, err)
	}

	var after *unstructured.Unstructured
	if why = cmp.Or(why, c.blind(key, o)); why == "" {
		if after, err = dryRun(); err != nil {
			// The engine is refused like a dry run that runs as the account of the revision, or as the
			// user of the kubeconfig.
			_, denied := apply.AsUnauthorized(err)
			denied = denied && (c.remote() || c.impersonated(c.account))
			if why = cmp.Or(unverifiable(err), c.deniedByStale(err)); why == "" || denied {
				return nil, c.refuse(ctx, key, o, err)
			}
		}
	}

	if why != "" {
		after = c.guess(o, content, why)
	}
	if write {
		c.write(key, o, after)
	}
	return after.DeepCopy(), nil
}

// blind returns the reason why no dry run is possible; empty if one is.
func (c *simulatedCluster) blind(key objects.Key, o *object) string {
	switch {
	case o.now == nil && key.Namespace != "" && c.bringsNamespace(key.Namespace):
		return "the package creates its namespace"
	case o.now != nil && o.live == nil:
		return "the package itself creates it"
	case o.now == nil && o.live != nil:
		return cmp.Or(o.unverified, "it is deleted first")
	}
	return ""
}

// dryRun returns the API server's response to an apply. Responses are kept by body, because the
// engine repeats an apply in every round.
func (c simulatedWrites) dryRun(
	ctx context.Context, m *meta.RESTMapping, key objects.Key, o *object, body []byte,
) (*unstructured.Unstructured, error) {
	dry, exists, migrated := o.dry[string(body)], o.now != nil, o.migrated

	switch {
	case dry != nil:
		return dry, nil
	case exists && len(migrated) > 0 && o.live != nil:
		return c.migratedDryRun(ctx, m, o, body)
	}

	request := apply.ApplyRequest{Mapping: m, Namespace: key.Namespace, Name: key.Name, Body: body, Force: true, DryRun: true}
	var err error
	// The write is guarded, so that the API server answers with a conflict if another client
	// creates the object first.
	if !exists {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(body); err != nil {
			return nil, err
		}
		u.SetResourceVersion(apply.AbsentVersion)
		if request.Body, err = json.Marshal(u.Object); err != nil {
			return nil, err
		}
		request.FieldValidation = "Strict" // as for the POST that creates it
	}

	err = c.asAccount(c.account, func(w *apply.Writer) error {
		dry, err = w.Apply(ctx, request)
		return err
	})
	if err != nil {
		return nil, err
	}

	if o.dry == nil {
		o.dry = map[string]*unstructured.Unstructured{}
	}
	o.dry[string(body)] = dry

	return dry, nil
}

// migratedDryRun dry-runs the result of an apply over an object whose managedFields were rewritten,
// because the API server does not know these.
func (c simulatedWrites) migratedDryRun(ctx context.Context, m *meta.RESTMapping, o *object, body []byte) (*unstructured.Unstructured, error) {
	template := &unstructured.Unstructured{}
	if err := template.UnmarshalJSON(body); err != nil {
		return nil, err
	}
	now := o.now
	types := drift.LearnListTypes(slices.Concat(o.live.GetManagedFields(), now.GetManagedFields()))
	implied, err := drift.Imply(apinames.Default, template.Object, now, false, types)
	if err != nil {
		return nil, err
	}

	return c.patched(ctx, m, o.live, implied.AsApplied().Object())
}

// guess replaces an impossible dry run.
func (c *simulatedCluster) guess(o *object, template map[string]any, why string) *unstructured.Unstructured {
	o.unverified = why
	now, live := o.now, o.live
	after := &unstructured.Unstructured{Object: map[string]any{}}
	switch {
	case now != nil:
		after = now.DeepCopy()
	case live != nil: // recreated: it will have the same defaults
		after = live.DeepCopy()
		after.SetManagedFields(nil)
		after.SetDeletionTimestamp(nil)
	}

	overlay(after.Object, template)
	// An object that the write creates needs a UID, because records are compared by UID.
	if now == nil {
		after.SetUID(uuid.NewUUID())
	}
	return after
}

// overlay merges maps by key. It merges elements of lists by their identifying fields, or else by
// name if they have one.
func overlay(onto, from map[string]any) {
	for key, v := range from {
		switch v := v.(type) {
		case map[string]any:
			if below, both := onto[key].(map[string]any); both {
				overlay(below, v)
				continue
			}
		case []any:
			if below, both := onto[key].([]any); both {
				onto[key] = overlayList(below, v)
				continue
			}
		}

		onto[key] = v
	}
}

// overlayList merges the elements with the same name. Elements of onto without a counterpart are
// dropped, as an apply by the only manager would drop them.
func overlayList(onto, from []any) []any {
	merged := slices.Clone(from)
	names, ok := listkeys.Identify(nil, onto, from)
	if !ok {
		names = [][]string{listkeys.Names(onto), listkeys.Names(from)}
	}

	for i, name := range names[1] {
		if at := slices.Index(names[0], name); at >= 0 && name != "" {
			below := runtime.DeepCopyJSON(onto[at].(map[string]any))
			overlay(below, from[i].(map[string]any))
			merged[i] = below
		}
	}
	return merged
}

// refuse returns the error of a refused write. An error that is not about the object ends the
// simulation.
func (c *simulatedCluster) refuse(ctx context.Context, key objects.Key, o *object, err error) error {
	var status apierrors.APIStatus
	class := apply.Classify(err)
	// A conflict is worth another attempt, and an error without a status does not come from the API
	// server.
	if ctx.Err() != nil || class == apply.Conflict || class == apply.Replaced || !errors.As(err, &status) {
		c.failed = err
		return err
	}

	o.refused = apply.CausesOf(err)
	var request *apply.Error
	if !errors.As(err, &request) {
		return err
	}
	// A Secret's values must not reach the plan, which is often pasted into tickets.
	if key.GroupKind() == (schema.GroupKind{Kind: "Secret"}) {
		return &cause{err, apply.Brief(err) + " (the rest of the API server's message is omitted, because it might repeat a value)"}
	}

	return &cause{err, strings.TrimSpace(request.Err.Error())}
}

// cause has the text of an error without its request, because a plan names the object.
type cause struct {
	error
	text string
}

func (c *cause) Error() string { return c.text }

func (c *cause) Unwrap() error { return c.error }

// controls reports whether the package controls a live object, through any of its revisions.
func (c *simulatedCluster) controls(live *unstructured.Unstructured) bool {
	ref := controllerOf(live)
	return ref != nil && ref.Remote == c.owner.Remote() && c.controllers.Has(ref.UID)
}

// controllerOf returns the controller of an object, which can be in another cluster; nil for none.
func controllerOf(live *unstructured.Unstructured) *objects.Reference {
	return (&objects.Observed{Owners: apinames.Default.References(live.GetOwnerReferences(), live.GetAnnotations())}).Controller()
}

// noController replaces the former owner of an object without a controller.
const noController = "nobody"

// formerOwner names the former controller of an adopted object; empty if it was the package.
func (c *simulatedCluster) formerOwner(o *object) string {
	if o.live == nil || o.now == nil || !c.controls(o.now) || c.controls(o.live) {
		return ""
	}
	ref := controllerOf(o.live)
	switch {
	case ref == nil:
		return noController
	// An earlier package of the same name is not another owner.
	case c.owner.SameName(ref):
		return ""
	}
	return ref.Kind + " " + ref.Name
}

// bringsNamespace reports whether the package creates a namespace.
func (c *simulatedCluster) bringsNamespace(name string) bool {
	o := c.objects[objects.Key{Kind: "Namespace", Name: name}]
	return o != nil && o.now != nil && (o.live == nil || o.live.GetUID() != o.now.GetUID())
}

// deniedByStale names the policy or webhook that denied a dry run and that the rollout changes
// before the write.
func (c *simulatedCluster) deniedByStale(err error) string {
	denial, denied := apply.DeniedBy(err.Error())
	if !denied {
		return ""
	}

	for _, kind := range denial.Kinds() {
		// Sorted, so that several matches always name the same object.
		for _, key := range sortedKeys(c.objects) {
			o := c.objects[key]
			switch own := key.Kind == kind && o.live != nil && o.now != nil && c.controls(o.now) && denial.Is(key, o.live); {
			case own && o.changed:
				return fmt.Sprintf("%s %s refuses it, but the package changes that first", key.Kind, key.Name)
			case own:
				return ""
			}
		}
	}
	return ""
}

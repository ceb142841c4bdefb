package dryrun

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects"
)

// refuse returns the error of a write that the API server refuses. One that is not about
// the object ends the simulation.
func (c *simulatedCluster) refuse(ctx context.Context, key objects.Key, o *object, err error) error {
	var status apierrors.APIStatus
	class := apply.Classify(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil || class == apply.Conflict || class == apply.Replaced || !errors.As(err, &status) {
		c.failed = err
		return err
	}
	o.immutable = apply.ImmutableFields(err)
	var request *apply.Error
	if errors.As(err, &request) {
		text := strings.TrimSpace(request.Err.Error())
		if key.GroupKind() == secretKind {
			text = apply.Brief(err) + " (what else the API server says is left out, because it may repeat a value)"
		}
		return &cause{text, err}
	}
	return err
}

// cause is the error of a request without the request: a plan names the object.
type cause struct {
	text string
	err  error
}

// Error is the text of the cause.
func (c *cause) Error() string { return c.text }

// Unwrap returns the error with its request.
func (c *cause) Unwrap() error { return c.err }

var secretKind = schema.GroupKind{Kind: "Secret"}

// Refused is a refusal that no request was needed for.
type Refused struct{ Message string }

// Error is the message.
func (r *Refused) Error() string { return r.Message }

// Status has the reason of an API server for an object that is not valid.
func (r *Refused) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: 422, Message: r.Message}
}

// controls reports whether the package controls an object.
func (c *simulatedCluster) controls(live *unstructured.Unstructured) bool {
	ref := metav1.GetControllerOf(live)
	if ref == nil {
		return false
	}
	return c.controllers.Has(ref.UID)
}

// nobody is the owner of an object that nothing controlled.
const nobody = "nobody"

// formerOwner names what controlled an adopted object; empty where the package did.
func (c *simulatedCluster) formerOwner(o *object) string {
	if o.live == nil || o.now == nil || !c.controls(o.now) || c.controls(o.live) {
		return ""
	}
	ref := metav1.GetControllerOf(o.live)
	switch {
	case ref == nil:
		return nobody
	case c.owner.Namesake(ref):
		return ""
	}
	return ref.Kind + " " + ref.Name
}

// bringsNamespace reports whether a namespace is made by the package: it is not there
// yet, or is being deleted. mu is held.
func (c *simulatedCluster) bringsNamespace(name string) bool {
	o := c.objects[objects.Key{Kind: "Namespace", Name: name}]
	return o != nil && o.now != nil && (o.live == nil || o.live.GetUID() != o.now.GetUID())
}

// denier returns the policy or webhook of the package itself that denies a write, by the
// error message. mu is held.
func (c *simulatedCluster) denier(message string) (objects.Key, *object) {
	denial, denied := apply.DeniedBy(message)
	if !denied {
		return objects.Key{}, nil
	}
	for _, kind := range denial.Kinds() {
		for _, key := range sortedKeys(c.objects) {
			o := c.objects[key]
			if key.Kind == kind && o.live != nil && o.now != nil && c.controls(o.now) && denial.Is(key, o.live) {
				return key, o
			}
		}
	}
	return objects.Key{}, nil
}

// deniedByStale reports whether a dry run was denied by a policy or webhook that the
// rollout changes before the write, so that it is not conclusive.
func (c *simulatedCluster) deniedByStale(err error) (why string, is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key, o := c.denier(err.Error())
	if o == nil || !o.changed {
		return "", false
	}
	return fmt.Sprintf("it is refused by %s %s, which the package changes before", key.Kind, key.Name), true
}

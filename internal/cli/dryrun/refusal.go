package dryrun

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects"
)

// refuse returns the error of a refused write. One that is not about the object ends the
// simulation.
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
	if !errors.As(err, &request) {
		return err
	}
	if key.GroupKind() == (schema.GroupKind{Kind: "Secret"}) {
		return &cause{err, apply.Brief(err) + " (what else the API server says is left out, because it may repeat a value)"}
	}
	return &cause{err, strings.TrimSpace(request.Err.Error())}
}

// cause has the text of an error without its request, since a plan names the object.
type cause struct {
	error
	text string
}

// Error implements error.
func (c *cause) Error() string { return c.text }

// Unwrap returns the error with its request.
func (c *cause) Unwrap() error { return c.error }

// invalid is what the API server would return for an object that is not valid.
func invalid(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity, Message: message}}
}

// controls reports whether the package controls an object.
func (c *simulatedCluster) controls(live *unstructured.Unstructured) bool {
	ref := metav1.GetControllerOf(live)
	return ref != nil && c.controllers.Has(ref.UID)
}

// noController stands for the former owner of an object without a controller.
const noController = "nobody"

// formerOwner names what controlled an adopted object; empty where the package did.
func (c *simulatedCluster) formerOwner(o *object) string {
	if o.live == nil || o.now == nil || !c.controls(o.now) || c.controls(o.live) {
		return ""
	}
	ref := metav1.GetControllerOf(o.live)
	switch {
	case ref == nil:
		return noController
	case c.owner.Namesake(ref):
		return ""
	}
	return ref.Kind + " " + ref.Name
}

// bringsNamespace reports whether the package creates a namespace. It requires mu.
func (c *simulatedCluster) bringsNamespace(name string) bool {
	o := c.objects[objects.Key{Kind: "Namespace", Name: name}]
	return o != nil && o.now != nil && (o.live == nil || o.live.GetUID() != o.now.GetUID())
}

// denier returns the policy or webhook of the package itself that an error message names.
// It requires mu.
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

// deniedByStale names the policy or webhook that denied a dry run, and that the rollout
// changes before the write.
func (c *simulatedCluster) deniedByStale(err error) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	key, o := c.denier(err.Error())
	if o == nil || !o.changed {
		return ""
	}
	return fmt.Sprintf("it is refused by %s %s, which the package changes before", key.Kind, key.Name)
}

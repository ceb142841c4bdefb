package dryrun

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cli/dryrun/definitions"
	"lockstep.run/lockstep/internal/objects"
)

const resourcesValidated = 2500 // stored objects of a changed definition that a plan reads

// invalid returns the definitions that the rollout changes, and by which stored objects become invalid. The API server keeps these as
// they are and refuses their next change.
func (s *simulation) invalid(ctx context.Context) ([]DataLoss, error) {
	var found []DataLoss
	for _, key := range sortedKeys(s.objects) {
		o := s.objects[key]
		if key.GroupKind() != definitions.Kind || o.live == nil || o.now == nil || !o.changed {
			continue
		}
		before, after := definitions.Of(o.live), definitions.Of(o.now)
		version, err := apihelpers.GetCRDStorageVersion(before)
		if err != nil || !apihelpers.HasServedCRDVersion(before, version) {
			continue
		}
		refuses, err := definitions.Refusals(before, after, version)
		if err != nil || refuses == nil {
			continue // the dry run of the definition says what is wrong with it
		}
		text := s.refusedObjects(ctx, before, version, refuses)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if text != "" {
			found = append(found, DataLoss{Object: objectName(key), Message: text})
		}
	}
	return found, nil
}

// refusedObjects names stored objects that are invalid, of the first resourcesValidated; empty for none. Of objects that cannot
// be listed, it says so.
func (s *simulation) refusedObjects(
	ctx context.Context, crd *definitions.CRD, version string, refuses func(context.Context, *unstructured.Unstructured) []string,
) string {
	resource := s.Dynamic.Resource(schema.GroupVersionResource{Group: crd.Spec.Group, Version: version, Resource: crd.Spec.Names.Plural})
	read, invalid, next := 0, 0, ""
	var names []string
	var unread error
	for first := true; first || next != "" && read < resourcesValidated; first = false {
		page, err := resource.List(ctx, metav1.ListOptions{Limit: 50, Continue: next})
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			return ""
		}
		if err != nil {
			unread = err
			break
		}
		next, read = page.GetContinue(), read+len(page.Items)
		for i := range page.Items {
			u := &page.Items[i]
			key := objects.Key{Group: crd.Spec.Group, Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
			if o := s.objects[key]; o != nil && o.changed && (o.now == nil || len(Differences(u, o.now)) > 0) {
				continue // it is deleted, or its new content is validated
			}
			fields := refuses(ctx, u)
			if len(fields) == 0 {
				continue
			}
			if invalid++; invalid <= resourcesNamed {
				names = append(names, objectName(key)+" ("+fields[0]+")")
			}
		}
	}
	if invalid == 0 && unread != nil {
		return fmt.Sprintf("may reject the next update of stored objects: only the first %d could be read: %s", read, unread)
	}
	if invalid == 0 {
		return ""
	}
	if more := invalid - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	text := "rejects the next update of " + strings.Join(names, ", ")
	if next != "" || unread != nil {
		text += fmt.Sprintf("; only the first %d objects were looked at", read)
	}
	return text
}

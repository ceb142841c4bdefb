package engine

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/claims"
)

// brokenKind is a cluster where every object has one controller, and objects of the kind Broken
// cannot be read.
type brokenKind struct {
	cluster.Cluster
	controller metav1.OwnerReference
}

func (brokenKind) Mapping(kind schema.GroupKind, _ string) (*meta.RESTMapping, error) {
	return &meta.RESTMapping{Resource: schema.GroupVersionResource{Resource: kind.Kind}}, nil
}

func (brokenKind) State(schema.GroupKind) livestate.KindState { return livestate.KindState{} }

func (c brokenKind) GetMetadata(_ context.Context, mapping *meta.RESTMapping, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	if mapping.Resource.Resource == "Broken" {
		return nil, apierrors.NewInternalError(errors.New("no conversion"))
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "live", OwnerReferences: []metav1.OwnerReference{c.controller}}}, nil
}

// A kind that cannot be read hides only the controllers of its own objects, which count as unknown,
// not as absent.
func TestRestoreWithAKindThatCannotBeRead(t *testing.T) {
	t.Parallel()
	owner := func(name string) objects.Owner {
		return objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "n", Name: name}, UID: types.UID(name)}
	}
	fine, broken := objects.Key{Kind: "ConfigMap", Namespace: "n", Name: "a"}, objects.Key{Kind: "Broken", Namespace: "n", Name: "a"}
	var all []Restored
	for _, name := range []string{"one", "two"} {
		rev := &Revision{}
		rev.Phases = []phases.Phase{{Objects: []*objects.Desired{{Key: fine, Version: "v1"}, {Key: broken, Version: "v1"}}}}
		all = append(all, Restored{Rollout: &Rollout{Owner: owner(name), Claims: claims.NewTable(func(objects.Owner) {})}, Revision: rev})
	}
	e := &Engine{Tracker: tracking.New(apinames.Default), Cluster: brokenKind{controller: metav1.OwnerReference{
		APIVersion: apinames.Default.GroupVersion.String(), Kind: "ObjectDeployment", Name: "two", UID: "two", Controller: ptr.To(true),
	}}}
	unread := 0
	controllers, err := e.controllers(t.Context(), all, []objects.Key{fine, broken}, func(error) error { unread++; return nil })
	if by, known := controllers[fine]; err != nil || !known || by.UID != "two" {
		t.Errorf("of readable owners: %v, %v", controllers, err)
	}
	if _, known := controllers[broken]; known || unread != 1 {
		t.Errorf("of unreadable owners: %v, reported %d times", controllers, unread)
	}
	strict := errors.New("not yet")
	if _, err := e.controllers(t.Context(), all, []objects.Key{fine, broken}, func(error) error { return strict }); !errors.Is(err, strict) {
		t.Errorf("goes on: %v", err)
	}
}

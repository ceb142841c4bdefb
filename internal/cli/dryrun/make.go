package dryrun

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/controllers/objectdeployments"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/objectsets"
)

// Request describes the package to plan.
type Request struct {
	Scope           corev1alpha1.Scope
	Namespace, Name string

	// Template is the rendered package, and Labels are its well-known labels.
	Template corev1alpha1.ObjectSetTemplateSpec
	Labels   map[string]string

	// Sensitive reports whether an object of the template has values of Secrets; nil if none
	// has.
	Sensitive func(phase, object int) bool
	// ReportDrift keeps changes by others.
	ReportDrift bool
	// ArchivalPolicy is for the objects that the template drops.
	ArchivalPolicy corev1alpha1.ArchivalPolicy

	// KeepAccount means that the account stays the deployment's, which might be the manager's
	// default.
	KeepAccount bool
	// Alone means that the deployment is not managed by a package.
	Alone bool
	// Annotations are assumed to be on live objects.
	Annotations map[objects.Key]map[string]string
}

// Make plans the rollout of a rendered package.
func Make(ctx context.Context, c *Cluster, r Request) (plan *Plan, err error) {
	attempts := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Steps: 8} // 13 s, because discovery can lag behind the API server
	_ = wait.ExponentialBackoffWithContext(ctx, attempts, func(ctx context.Context) (bool, error) {
		plan, err = once(ctx, c, r)
		class := apply.Classify(err)
		if class == apply.NotServed {
			meta.MaybeResetRESTMapper(c.Mapper)
		}
		// Objects can change in the meantime.
		return class != apply.NotServed && class != apply.Conflict && class != apply.Replaced, nil
	})
	return plan, cmp.Or(err, ctx.Err())
}

// once makes one attempt to plan.
func once(ctx context.Context, c *Cluster, r Request) (*Plan, error) {
	in, err := c.gather(ctx, r)
	if err != nil {
		return nil, err
	}
	s, err := in.simulation(ctx)
	if err != nil {
		return nil, err
	}

	plan := &Plan{Kind: r.Scope.Kind("Package"), Namespace: r.Namespace, Name: r.Name, Revision: in.number, Warnings: in.warnings}
	if s.next == nil {
		plan.Warnings = append(plan.Warnings, "the package has no objects, so it gets no revision")
		plan.finish()
		return plan, nil
	}

	// A refused package is still simulated, so that the plan shows all other obstacles at once.
	if why := in.foreign(); why != "" {
		s.refusePackage(objects.Key{}, why)
	}
	if err := s.run(ctx); err != nil {
		return nil, err
	}

	plan.Warnings = in.warnings
	for account := range s.asUser {
		plan.Warnings = append(plan.Warnings, fmt.Sprintf("you may not impersonate %s: the dry runs use your own rights, so it is not known whether it may write the objects", account))
	}
	slices.Sort(plan.Warnings[len(in.warnings):]) // the order of a map would make two plans of the same state differ

	plan.Refusals = s.refusals
	in.report(s, plan)
	if plan.Losses, err = s.losses(ctx); err != nil {
		return nil, err
	}
	if plan.Powers, err = s.privileges(ctx); err != nil {
		return nil, err
	}

	plan.finish()
	return plan, nil
}

// input is known before the simulation.
type input struct {
	*Cluster
	Request
	now        time.Time
	key        objects.OwnerKey
	uid        types.UID
	deployment corev1alpha1.GenericObjectDeployment
	sets       []corev1alpha1.GenericObjectSet
	stored     objectsets.Stored

	// number of the template's revision. fresh is set for a new revision.
	number   int64
	fresh    bool
	deletes  bool
	warnings []string
}

// simulation sets the simulated cluster up: live objects, revisions, the controller and its home in
// memory.
func (in *input) simulation(ctx context.Context) (*simulation, error) {
	owner := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: in.key.Kind, Namespace: in.Namespace, Name: in.Name}, UID: in.uid, Cluster: in.Home}
	own, delegated := objectsets.Controllers(in.sets...)

	c := &simulatedCluster{
		Cluster: in.Cluster, tracker: tracking.New(apinames.Default), definitions: newDefinitions(), owner: owner,
		controllers: own.Union(delegated), now: in.now, reached: true, objects: map[objects.Key]*object{}, pretended: map[schema.GroupKind]*objects.Desired{},
		asUser: map[objects.Account]bool{},
	}

	// Both UIDs control objects: the deployment's, and the one of the revision that the plan
	// creates.
	c.controllers.Insert(in.uid, newUID)
	s := &simulation{simulatedCluster: c, in: in}
	for _, set := range in.sets {
		if objectsets.Owns(set) {
			rev := in.load(set, owner)
			objectsets.Restore(rev, set, true)
			s.installed = append(s.installed, rev)
		}
	}

	switch {
	case in.fresh:
		// This is the set that the controller would create for the template.
		set := in.Scope.NewObjectSet()
		set.SetName(in.Name)
		set.SetNamespace(in.Namespace)
		set.SetUID(newUID)
		set.SetLabels(in.labels())
		in.Template.DeepCopyInto(&set.ObjectSetSpec().ObjectSetTemplateSpec)
		set.ObjectSetSpec().Revision = in.number
		s.next = in.load(set, owner)
	case len(s.installed) > 0:
		// An unchanged template continues with the newest revision.
		s.next = s.installed[len(s.installed)-1]
	}

	if err := c.fill(ctx, s.revisions(), in.Annotations); err != nil {
		return nil, err
	}
	objs, err := in.objects(ctx, s.next != nil && s.next.Claimed())
	if err != nil {
		return nil, err
	}
	h, err := newHome(in.Reader, objs)
	if err != nil {
		return nil, err
	}
	s.at = &engine.Engine{Cluster: c, Tracker: c.tracker, Pool: c}
	s.reconciler = objectdeployments.New(objectdeployments.Home{
		Client: h, Reader: h, Events: &events.FakeRecorder{}, Now: c.Now, Namespace: corev1alpha1.DefaultNamespace,
	}, s.at, func(objects.OwnerKey) {})
	// Objects in another cluster are reconciled through a target, as in the manager.
	if in.remote() {
		s.reconciler.Targets = connected{objectdeployments.NewTarget(s.at, h, func(objects.OwnerKey) {}, in.ID, in.Home)}
	}

	s.reconciler.Here.Exists = in.accountExists
	s.reconciler.Hooks = objectdeployments.Hooks{Loaded: s.loaded, Reconciled: func(r *engine.Rollout) {
		plan := *r.Plan()
		s.rollout, s.plan = r, &plan
	}}
	return s, nil
}

// load returns the engine's form of a set, with the objects of its slices.
func (in *input) load(set corev1alpha1.GenericObjectSet, owner objects.Owner) *engine.Revision {
	return objectsets.Load(set, in.stored, owner, in.namespaced)
}

// labels returns the well-known labels of the deployment. The request's labels win.
func (in *input) labels() map[string]string {
	labels := map[string]string{}
	if in.deployment != nil {
		maps.Copy(labels, apinames.Default.Inherited(in.deployment.ObjectDeploymentSpec().Template.Metadata.Labels))
	}
	maps.Copy(labels, in.Labels)
	return labels
}

// fill reads the objects of the revisions. It adds assumed annotations to live ones, for example
// the annotation of an adoption that has not started.
func (c *simulatedCluster) fill(ctx context.Context, revisions []*engine.Revision, annotations map[objects.Key]map[string]string) error {
	versions := map[objects.Key]string{}
	for _, rev := range revisions {
		for _, d := range rev.Objects() {
			versions[d.Key] = d.Version
		}
	}

	for _, key := range sortedKeys(versions) {
		live, err := c.readOne(ctx, key, versions[key])
		if err != nil {
			return err
		}
		if live != nil && len(annotations[key]) > 0 {
			merged := maps.Clone(annotations[key])
			// Annotations of the live object win over assumed ones.
			for name, value := range live.GetAnnotations() {
				if _, assumed := merged[name]; !assumed {
					merged[name] = value
				}
			}
			live.SetAnnotations(merged)
		}

		c.objects[key] = &object{live: live, now: live, version: versions[key], reached: true}
	}

	return nil
}

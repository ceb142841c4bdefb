package packages

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/controllers/packages/dependencies"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// generatedOwner is the owner of generated packages in the mutation cache.
const generatedOwner = "generated packages"

// perform takes the steps of a plan, and marks the packages that the Package requires.
func (s *reconciliation) perform(ctx context.Context, d *dependencies.Plan, k dependencies.Known) error {
	own, packages := snapshot.InstanceOf(s.pkg), k.Packages
	for _, step := range d.Steps {
		if err := dependencies.MayTake(own, step, packages[step.Instance]); err != nil {
			return err
		}
		if step.Create {
			if err := s.create(ctx, step, packages[step.For]); err != nil {
				return err
			}
			continue
		}
		err := s.change(ctx, packages[step.Instance], func(pkg corev1alpha1.GenericPackage) {
			pkg.PackageSpec().PackageRef.Version = step.Version
			if dependencies.Generated(pkg) {
				dependencies.Require(pkg, step.Needs)
			}
		})
		if err != nil {
			return err
		}
	}

	for _, o := range d.Result.Outcomes {
		if o.Satisfier == nil || packages[*o.Satisfier] == nil || !dependencies.Marked(own, packages[*o.Satisfier]) || d.Takes(*o.Satisfier) {
			continue
		}
		known := packages[*o.Satisfier]
		if resolver.IsChild(own, o.Dependency.Name, offers.NameOf(known), *o.Satisfier) {
			err := s.change(ctx, known, func(pkg corev1alpha1.GenericPackage) { dependencies.Inherit(pkg, s.pkg, o.Dependency.Name, true) })
			if err != nil {
				return err
			}
			known, _ = s.Fresh.Latest(known).(corev1alpha1.GenericPackage)
		}
		if known == nil {
			continue
		}
		if err := s.mark(ctx, known, func(pkg corev1alpha1.GenericPackage) {
			dependencies.Require(pkg, []resolver.Need{{Dependent: own, Dependency: o.Dependency}})
		}); err != nil {
			s.Requeue(limits.ConflictRetry)
		}
	}

	return nil
}

// mark changes the marks on a package. They are for people: a failed write is an event, and returns
// an error only if the write raced.
func (s *reconciliation) mark(ctx context.Context, known corev1alpha1.GenericPackage, change func(corev1alpha1.GenericPackage)) error {
	err := s.change(ctx, known, change)
	if err == nil || apply.IsAbsent(err) {
		return nil
	}
	if queueing.Raced(err) {
		return err
	}
	s.warn(eventUnmarked, "Depend", err.Error())
	return nil
}

// create creates a package for others, the first of them being the parent. A nil parent means the
// Package itself.
func (s *reconciliation) create(ctx context.Context, step resolver.Step, parent corev1alpha1.GenericPackage) error {
	if parent == nil || snapshot.InstanceOf(parent) == snapshot.InstanceOf(s.pkg) {
		parent = s.pkg
	}

	pkg := corev1alpha1.ScopeOf(step.Namespace).NewPackage()
	pkg.SetNamespace(step.Namespace)
	pkg.SetName(step.Name)
	pkg.SetLabels(map[string]string{corev1alpha1.GeneratedLabel: "true"})
	pkg.SetFinalizers([]string{corev1alpha1.MetricsFinalizer})
	first := step.Needs[0]
	pkg.PackageSpec().PackageRef = &corev1alpha1.PackageReference{Name: step.Package, VersionSelection: corev1alpha1.VersionSelection{Version: step.Version}}
	dependencies.Inherit(pkg, parent, first.Dependency.Name, first.Dependent == snapshot.InstanceOf(parent))
	dependencies.Require(pkg, step.Needs)
	if err := s.Client.Create(ctx, pkg); err != nil {
		return fmt.Errorf("install %s %s: %w", step.Package, step.Version, err)
	}

	s.Fresh.PutCreated(generatedOwner, pkg)
	return nil
}

// change patches a package if that changes it.
func (s *reconciliation) change(ctx context.Context, known corev1alpha1.GenericPackage, change func(corev1alpha1.GenericPackage)) error {
	pkg := copyOf(known)
	change(pkg)
	if equality.Semantic.DeepEqual(known, pkg) {
		return nil
	}
	if err := s.patch(ctx, known, pkg); err != nil {
		return fmt.Errorf("change %s: %w", snapshot.InstanceOf(known), err)
	}
	return nil
}

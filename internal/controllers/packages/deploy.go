package packages

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects/objectslices"
)

// fresher is how often a write is tried again on the object as it is now.
const fresher = 3

// deploy brings the deployment in line with what was loaded.
func (s *session) deploy(ctx context.Context, content *Content) error {
	template := content.Template
	strategy := s.pkg.GetAnnotations()[corev1alpha1.ChunkingStrategyAnnotation]
	phases, made, err := objectslices.Split(s.pkg.GetName(), strategy, template.Phases, content.Sealing)
	if err != nil {
		return fmt.Errorf("cut the package into slices: %w", err)
	}
	template.Phases = phases
	if s.dep == nil {
		return s.install(ctx, content, template, made)
	}
	return s.upgrade(ctx, content, template, made)
}

// install creates the deployment. Slices need it as their owner, so it is
// created without content then, which its controller makes no revision of.
func (s *session) install(
	ctx context.Context, content *Content, template corev1alpha1.ObjectSetTemplateSpec, made []objectslices.Slice,
) error {
	dep := newDeployment(s.pkg)
	follow(dep, s.pkg)
	if err := fill(dep, s.pkg, s.fingerprint, content, template); err != nil {
		return err
	}
	stamp(dep, s.pkg)
	if len(made) > 0 {
		dep.ObjectDeploymentSpec().Template.Spec = corev1alpha1.ObjectSetTemplateSpec{}
	}
	if err := s.Client.Create(ctx, dep); err != nil {
		return fmt.Errorf("create %s: %w", s.describe(), err)
	}
	s.fresh.PutCreated(string(s.pkg.GetUID()), dep)
	s.dep = dep
	if len(made) == 0 {
		s.edits.wrote(dep)
		return nil
	}
	if err := s.createSlices(ctx, made, nil); err != nil {
		return err
	}
	return s.complete(ctx, template)
}

// complete gives a deployment that was just created its template. Its controller
// may have written a status since, so it is known by its UID alone.
func (s *session) complete(ctx context.Context, template corev1alpha1.ObjectSetTemplateSpec) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": s.dep.GetUID()},
		"spec":     map[string]any{"template": map[string]any{"spec": template}},
	})
	if err != nil {
		return err
	}
	dep := s.dep.DeepCopyObject().(corev1alpha1.GenericObjectDeployment)
	if err := s.Client.Patch(ctx, dep, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("write the template of %s: %w", s.describe(), err)
	}
	s.fresh.Put(dep)
	s.edits.wrote(dep)
	s.dep = dep
	return nil
}

// upgrade changes an existing deployment where it differs. Its status changes
// all the time during a rollout: after a conflict it is read again.
func (s *session) upgrade(
	ctx context.Context, content *Content, template corev1alpha1.ObjectSetTemplateSpec, made []objectslices.Slice,
) error {
	for try := 1; ; try++ {
		dep := s.dep
		before := dep.DeepCopyObject().(corev1alpha1.GenericObjectDeployment)
		follow(dep, s.pkg)
		if err := fill(dep, s.pkg, s.fingerprint, content, template); err != nil {
			return err
		}
		if lacksSlices(before) {
			if err := s.createSlices(ctx, made, nil); err != nil {
				return err
			}
			s.mended.wrote(s.pkg.GetUID(), s.Now())
			made = nil
		}
		if equality.Semantic.DeepEqual(before, dep) {
			return nil
		}
		if err := s.createSlices(ctx, made, named(before)); err != nil {
			return err
		}
		made = nil // once is enough
		if s.edited {
			s.mended.wrote(s.pkg.GetUID(), s.Now())
		}
		stamp(dep, s.pkg)
		err := s.send(ctx, before, dep)
		if err == nil {
			s.edits.wrote(dep)
		}
		if !apierrors.IsConflict(err) || try == fresher {
			return err
		}
		if err := s.lookAgain(ctx); err != nil {
			return err
		}
	}
}

// settle makes the deployment follow settings that need no load.
func (s *session) settle(ctx context.Context) error {
	if s.dep == nil {
		return nil
	}
	for try := 1; ; try++ {
		dep := s.dep
		before := followed(dep, s.pkg)
		if before == nil {
			return nil
		}
		stamp(dep, s.pkg)
		err := s.send(ctx, before, dep)
		if !apierrors.IsConflict(err) || try == fresher {
			return err
		}
		if err := s.lookAgain(ctx); err != nil {
			return err
		}
	}
}

// followed makes a deployment follow the settings of its Package, and returns what
// it was before; nil where nothing changed. The phases are left out of the
// comparison: no setting changes them, and they are most of a deployment.
func followed(dep corev1alpha1.GenericObjectDeployment, pkg corev1alpha1.GenericPackage) corev1alpha1.GenericObjectDeployment {
	phases := dep.ObjectDeploymentSpec().Template.Spec.Phases
	dep.ObjectDeploymentSpec().Template.Spec.Phases = nil
	before := dep.DeepCopyObject().(corev1alpha1.GenericObjectDeployment)
	follow(dep, pkg)
	same := equality.Semantic.DeepEqual(before, dep)
	dep.ObjectDeploymentSpec().Template.Spec.Phases, before.ObjectDeploymentSpec().Template.Spec.Phases = phases, phases
	if same {
		return nil
	}
	return before
}

// send writes what differs in one merge patch.
func (s *session) send(ctx context.Context, before, dep client.Object) error {
	err := s.Client.Patch(ctx, dep, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return fmt.Errorf("change %s: %w", s.describe(), err)
	}
	s.fresh.Put(dep)
	return nil
}

// lookAgain reads the deployment from the API server. Where it is not ours to
// write any more, the next pass says so.
func (s *session) lookAgain(ctx context.Context) error {
	dep := corev1alpha1.ScopeOf(s.pkg.GetNamespace()).NewObjectDeployment()
	if err := s.Reader.Get(ctx, client.ObjectKeyFromObject(s.pkg), dep); err != nil {
		return fmt.Errorf("read %s: %w", s.describe(), err)
	}
	if standing, _ := standingOf(s.pkg, dep); standing != own && standing != left {
		return apierrors.NewConflict(corev1alpha1.Resource("objectdeployments"), dep.GetName(),
			fmt.Errorf("it was replaced or is being deleted"))
	}
	s.dep = dep
	return nil
}

// describe names the deployment in errors.
func (s *session) describe() string {
	kind := corev1alpha1.ScopeOf(s.pkg.GetNamespace()).Kind("ObjectDeployment")
	return kind + " " + s.pkg.GetName()
}

// named returns the slices that a deployment's template names; those exist.
func named(dep corev1alpha1.GenericObjectDeployment) map[string]bool {
	names := map[string]bool{}
	for _, phase := range dep.ObjectDeploymentSpec().Template.Spec.Phases {
		for _, name := range append(slices.Clone(phase.Slices), phase.SecretSlices...) {
			names[name] = true
		}
	}
	return names
}

package packages

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/deployment"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects/objectslices"
	"lockstep.run/lockstep/internal/objectsets"
)

// deploy writes the loaded content, once, and otherwise only the settings that do not need a
// rendering.
func (s *reconciliation) deploy(ctx context.Context) error {
	if deployment.LacksSlices(s.dep) || s.drifted {
		s.Requeue(s.Pace.Of(limits.RepairInterval))
	}

	var err error
	switch {
	case s.step == stepYield || s.step == stepAwait:
		s.dropAttempt()
		return nil
	case s.step == stepHold:
		s.dropAttempt()
		err = s.syncSettings(ctx)
	case s.step != stepDeploy || s.dep != nil && !s.attempt.Out.Deployed.IsZero():
		err = s.syncSettings(ctx)
	default:
		err = s.deployContent(ctx)
	}
	if err == nil {
		err = s.endTakeBack(ctx)
	}
	if queueing.Raced(err) {
		return err
	}

	s.writeErr = err
	if s.step == stepDeploy {
		s.content = s.attempt.Out.Content
		s.deployed = err == nil
	}

	return nil
}

// deployContent writes the loaded content, and keeps a summary for the status.
func (s *reconciliation) deployContent(ctx context.Context) error {
	if err := s.writeContent(ctx, s.attempt.Out.Content); err != nil {
		return err
	}
	s.attempt = s.loads.Deployed(s.state.load, s.attempt)
	return nil
}

// writeContent cuts the loaded template into slices, and creates or changes the deployment.
// Conflicts are repeated on the newest deployment.
func (s *reconciliation) writeContent(ctx context.Context, loaded *load.Content) error {
	template := loaded.Template
	strategy := s.pkg.GetAnnotations()[corev1alpha1.ChunkingStrategyAnnotation]
	phases, made, err := objectslices.Split(s.pkg.GetName(), strategy, template.Phases, loaded.Sealing)
	if err != nil {
		return fmt.Errorf("cut the package into slices: %w", err)
	}

	template.Phases = phases
	template.ServiceAccountName, _ = s.Accounts.of(s.pkg)
	template.TargetRef = s.pkg.PackageSpec().TargetRef
	if s.dep == nil {
		return s.install(ctx, loaded, template, made)
	}
	if err := s.retryOnConflict(ctx, s.readOwn, func() error { return s.markSliced(ctx, template.Phases) }); err != nil {
		return err
	}

	return s.retryOnConflict(ctx, s.readOwn, func() error {
		err := s.upgrade(ctx, loaded, template, made)
		made = nil // once is enough
		return err
	})
}

// slices returns the writer of slices for this package.
func (s *reconciliation) slices() deployment.Slices {
	return deployment.Slices{Client: s.Client, Reader: s.Reader, Written: s.Slices, Namespace: s.Namespace}
}

// install creates the deployment: without a template if there are slices, because these need it as
// their owner.
func (s *reconciliation) install(
	ctx context.Context, loaded *load.Content, template corev1alpha1.ObjectSetTemplateSpec, made []objectslices.Slice,
) error {
	dep := deployment.New(s.pkg)
	if s.target != nil {
		objectsets.Annotate(dep, corev1alpha1.TargetClusterAnnotation, string(s.target.ID))
	}

	s.Accounts.copySettings(dep, s.pkg)
	if err := deployment.Fill(dep, s.pkg, s.fingerprint, loaded, template); err != nil {
		return err
	}

	deployment.SetGeneration(dep, s.pkg)
	unpacked := dep.GetAnnotations()[corev1alpha1.UnpackedHashAnnotation]
	if len(made) > 0 {
		dep.ObjectDeploymentSpec().Template.Spec = corev1alpha1.ObjectSetTemplateSpec{TargetRef: template.TargetRef}
		objectsets.Annotate(dep, corev1alpha1.UnpackedHashAnnotation, "") // it marks the template as complete
	}

	if err := s.Client.Create(ctx, dep); err != nil {
		return fmt.Errorf("create %s: %w", s.depName(), err)
	}

	s.Fresh.PutCreated(string(s.pkg.GetUID()), dep)
	s.dep = dep
	if len(made) > 0 {
		if err := s.slices().Create(ctx, s.dep, made, nil); err != nil {
			return err
		}
		if err := s.writeTemplate(ctx, template, unpacked); err != nil {
			return err
		}
	}

	s.state.template.Wrote(s.dep)
	return nil
}

// writeTemplate gives a new deployment its template. Only the UID is a precondition, because its
// status might have been written already.
func (s *reconciliation) writeTemplate(ctx context.Context, template corev1alpha1.ObjectSetTemplateSpec, unpacked string) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"uid": s.dep.GetUID(), "annotations": map[string]any{corev1alpha1.UnpackedHashAnnotation: unpacked},
		},
		"spec": map[string]any{"template": map[string]any{"spec": template}},
	})
	if err != nil {
		return err
	}

	dep := copyOf(s.dep)
	if err := s.Client.Patch(ctx, dep, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("write the template of %s: %w", s.depName(), err)
	}

	s.Fresh.Put(dep)
	s.dep = dep
	return nil
}

// markSliced marks a deployment without slices that is about to get some. Its controller looks for
// them because of the mark: a crash can leave the template that names them unwritten.
func (s *reconciliation) markSliced(ctx context.Context, phases []corev1alpha1.ObjectSetTemplatePhase) error {
	marks := deployment.SlicedAnnotations(phases)
	maps.DeleteFunc(marks, func(key, value string) bool { return s.dep.GetAnnotations()[key] == value })
	if len(marks) == 0 {
		return nil
	}
	return s.changeDeployment(ctx, func() {
		for key, value := range marks {
			objectsets.Annotate(s.dep, key, value)
		}
	})
}

// changeDeployment changes the deployment, and sends the difference.
func (s *reconciliation) changeDeployment(ctx context.Context, change func()) error {
	if err := s.Fresh.Change(ctx, s.Client, s.dep, change); err != nil {
		return fmt.Errorf("change %s: %w", s.depName(), err)
	}
	return nil
}

// upgrade changes an existing deployment if it differs, after its missing slices.
func (s *reconciliation) upgrade(
	ctx context.Context, loaded *load.Content, template corev1alpha1.ObjectSetTemplateSpec, made []objectslices.Slice,
) error {
	before, lacks := copyOf(s.dep), deployment.LacksSlices(s.dep)
	s.Accounts.copySettings(s.dep, s.pkg)
	if err := deployment.Fill(s.dep, s.pkg, s.fingerprint, loaded, template); err != nil {
		return err
	}

	changed := !equality.Semantic.DeepEqual(before, s.dep)
	if !lacks && !changed {
		return nil
	}

	var exist sets.Set[string]
	if !lacks {
		exist = sliceNames(before)
	}
	if err := s.slices().Create(ctx, s.dep, made, exist); err != nil {
		return err
	}
	if lacks || s.drifted {
		s.state.repaired = s.Now()
	}
	if !changed {
		return nil
	}

	err := s.patchDeployment(ctx, before)
	if err == nil {
		s.state.template.Wrote(s.dep)
	}
	return err
}

// syncSettings copies settings that need no rendering. Phases are not compared: no setting changes
// them.
func (s *reconciliation) syncSettings(ctx context.Context) error {
	if s.dep == nil {
		return nil
	}
	return s.retryOnConflict(ctx, s.readOwn, func() error {
		template := &s.dep.ObjectDeploymentSpec().Template.Spec
		phases := template.Phases
		template.Phases = nil
		before := copyOf(s.dep)
		s.Accounts.copySettings(s.dep, s.pkg)
		same := sameSettings(before, s.dep)
		template.Phases, before.ObjectDeploymentSpec().Template.Spec.Phases = phases, phases
		if same {
			return nil
		}
		return s.patchDeployment(ctx, before)
	})
}

// sameSettings compares only the fields that copySettings can change. Most deployments are compared
// once in each reconciliation, and comparing a status and managed fields takes several times as
// long.
func sameSettings(a, b corev1alpha1.GenericObjectDeployment) bool {
	return maps.Equal(a.GetAnnotations(), b.GetAnnotations()) &&
		equality.Semantic.DeepEqual(a.GetOwnerReferences(), b.GetOwnerReferences()) &&
		equality.Semantic.DeepEqual(a.ObjectDeploymentSpec(), b.ObjectDeploymentSpec())
}

// patchDeployment sends the difference to before. A deployment that the package does not control
// yet is taken back first.
func (s *reconciliation) patchDeployment(ctx context.Context, before client.Object) error {
	if !metav1.IsControlledBy(before, s.pkg) {
		if err := s.beginTakeBack(ctx); err != nil {
			return err
		}
	}
	deployment.SetGeneration(s.dep, s.pkg)
	if err := s.patch(ctx, before, s.dep); err != nil {
		return fmt.Errorf("change %s: %w", s.depName(), err)
	}
	return nil
}

// sliceNames returns the slices and Secrets that a deployment refers to.
func sliceNames(dep corev1alpha1.GenericObjectDeployment) sets.Set[string] {
	names := sets.New[string]()
	for _, phase := range dep.ObjectDeploymentSpec().Template.Spec.Phases {
		names.Insert(phase.Slices...).Insert(phase.SecretSlices...)
	}
	return names
}

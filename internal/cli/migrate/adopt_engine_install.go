package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/config"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// installer is the field manager of kubectl apply --server-side, which installs and upgrades
// config.
const installer = "kubectl"

// managerObjects returns the manager's Deployment for an image, and the objects that belong to it.
func managerObjects(image string) ([]*unstructured.Unstructured, error) {
	all, err := config.Objects(config.FolderManager)
	if err != nil {
		return nil, err
	}

	for _, obj := range all {
		containers, found, err := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", "containers")
		if !found || err != nil || len(containers) == 0 {
			continue
		}
		// The other objects of the folder stay as they are.
		containers[0].(map[string]any)["image"] = image

		return all, unstructured.SetNestedSlice(obj.Object, containers, "spec", "template", "spec", "containers")
	}
	return nil, errors.New("config has no Deployment of the manager")
}

// applyStep applies objects that differ from the live ones.
func (c *adoptEngineCommand) applyStep(ctx context.Context, what string, all []*unstructured.Unstructured) (engineStep, error) {
	differing := 0
	for _, obj := range all {
		same, err := c.same(ctx, obj)
		if err != nil {
			return engineStep{}, err
		}
		if !same {
			differing++
		}
	}

	return engineStep{
		what: fmt.Sprintf("%s: %d of %d differ", what, differing, len(all)), done: differing == 0,
		do: func(ctx context.Context) error {
			for _, obj := range all {
				if err := c.apply(ctx, obj.DeepCopy()); err != nil {
					return c.cluster.Explain("cannot apply "+obj.GetKind()+" "+obj.GetName(), err)
				}
			}
			return nil
		},
	}, nil
}

// apply applies an object as kubectl would, so that a later kubectl apply finds its own fields.
func (c *adoptEngineCommand) apply(ctx context.Context, obj *unstructured.Unstructured, opts ...client.PatchOption) error {
	//nolint:staticcheck // the typed apply of this client needs generated types
	return c.client.Patch(ctx, obj, client.Apply, append(opts, client.FieldOwner(installer), client.ForceOwnership)...)
}

// same reports whether applying an object would not change it.
func (c *adoptEngineCommand) same(ctx context.Context, obj *unstructured.Unstructured) (bool, error) {
	live, dry := obj.DeepCopy(), obj.DeepCopy()
	err := c.client.Get(ctx, client.ObjectKeyFromObject(obj), live)
	if err == nil {
		err = c.apply(ctx, dry, client.DryRunAll)
	}

	// A missing kind means that its definition is among the objects that are still to be applied.
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return false, nil
	case err != nil:
		return false, c.cluster.Explain("cannot compare "+obj.GetKind()+" "+obj.GetName(), err)
	}

	// A dry run changes these two fields in any case.
	for _, u := range []*unstructured.Unstructured{live, dry} {
		u.SetManagedFields(nil)
		u.SetResourceVersion("")
	}

	return equality.Semantic.DeepEqual(live.Object, dry.Object), nil
}

// packages counts the packages that are taken over.
func (c *adoptEngineCommand) packages(ctx context.Context) (found engineFinding, err error) {
	packages, hidden, err := c.cluster.Packages(ctx)
	// A count without the hidden packages would promise too little.
	if err == nil && len(hidden) > 0 {
		err = fmt.Errorf("you may not read %s", strings.Join(hidden, ", "))
	}
	if err != nil {
		return found, err
	}
	// Package Operator's own package is removed and not taken over.
	packages = slices.DeleteFunc(packages, func(pkg corev1alpha1.GenericPackage) bool {
		return pkg.GetNamespace() == "" && pkg.GetName() == corev1alpha1.EnginePackage
	})
	return engineFinding{"Packages", terminal.Count(len(packages), "package") + " in all namespaces: none of their objects is written"}, nil
}

// classTexts describes the future of a deployment's phases that an agent rolls out.
func classTexts(dep corev1alpha1.GenericObjectDeployment) (all []string) {
	for _, ph := range dep.ObjectDeploymentSpec().Template.Spec.Phases {
		if ph.Class != "" {
			all = append(all, fmt.Sprintf("phase %s has the class %s: its ObjectSetPhase stays unchanged, for the agent of that class", ph.Name, ph.Class))
		}
	}
	return all
}

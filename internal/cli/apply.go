package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
)

// fieldManager is the name under which this program writes.
const fieldManager = "kubectl-package"

type wantedPackage struct {
	name  cluster.Name
	image string
	// ref, where it is set, stands in place of image.
	ref *corev1alpha1.PackageReference
	// values are added to configFrom in place of those of the same name; nil leaves them unchanged.
	values *corev1alpha1.ValueSource
	// account is left unchanged where it is empty.
	account string
	// downgradeFrom is the version below which the package may go once; empty where it may not.
	downgradeFrom string
	// pullSecrets replace those of the package where changesPullSecrets is set.
	pullSecrets        []corev1alpha1.LocalSecretReference
	changesPullSecrets bool
	// target is where a new package is installed; nil for the cluster itself.
	target *corev1alpha1.TargetReference
	// dependencies are changes of spec.dependencies, dependencyValues what they refer to.
	dependencies     corev1alpha1.PackageDependencies
	dependencyValues []dependencyValues
	// config is JSON; nil leaves it unchanged, dropsConfig removes it.
	config           []byte
	dropsConfig      bool
	component        string
	changesComponent bool
	// beforeChange may refuse a change. It may be nil.
	beforeChange func(old *corev1alpha1.PackageSpec) error
	// beforeWrite is called after it, whether or not the package itself changes. It may be nil.
	beforeWrite func(context.Context) error
	// adopts existing objects without a controller.
	adopts bool
	// retries has the manager look at the package again even where nothing of it changes.
	retries bool
}

// adopt reports whether it widened the collision protection.
func adopt(spec *corev1alpha1.PackageSpec) (changed bool) {
	switch spec.CollisionProtection {
	case corev1alpha1.CollisionProtectionIfNoController, corev1alpha1.CollisionProtectionNone:
		return false
	}
	spec.CollisionProtection = corev1alpha1.CollisionProtectionIfNoController
	return true
}

type applied struct {
	// before is nil if there was no package.
	pkg, before corev1alpha1.GenericPackage
	what        string
	// retry is the value of the retry annotation; empty if none was set.
	retry string
}

func applyPackage(ctx context.Context, cl *cluster.Cluster, t progress.Target, want wantedPackage) (applied, error) {
	old, err := cl.Read(ctx, t)
	switch {
	case err == nil:
		return changePackage(ctx, cl, t, old, want)
	case !apierrors.IsNotFound(err) || cluster.Unserved(err):
		return applied{}, cl.Explain("cannot read "+t.String(), err)
	}
	if want.beforeWrite != nil {
		if err := want.beforeWrite(ctx); err != nil {
			return applied{}, err
		}
	}
	pkg := t.Scope.NewPackage()
	pkg.SetNamespace(t.Namespace)
	pkg.SetName(t.Name)
	spec := pkg.PackageSpec()
	spec.Image, spec.Component = want.image, want.component
	spec.PackageRef, spec.ServiceAccountName = want.ref, want.account
	spec.ConfigFrom, spec.Dependencies = withValues(nil, want.values), withDependencies(nil, want.dependencies)
	spec.TargetRef, spec.ImagePullSecrets = want.target, want.pullSecrets
	if want.adopts {
		adopt(spec)
	}
	if want.config != nil {
		spec.Config = &runtime.RawExtension{Raw: want.config}
	}
	if err := cl.Create(ctx, pkg, client.FieldOwner(fieldManager)); err != nil {
		return applied{}, cl.Explain("cannot create "+t.String(), err)
	}
	return applied{pkg: pkg, what: "created"}, nil
}

func changePackage(ctx context.Context, cl *cluster.Cluster, t progress.Target, old corev1alpha1.GenericPackage, want wantedPackage) (applied, error) {
	if old.GetDeletionTimestamp() != nil {
		return applied{}, fmt.Errorf("%s is being deleted: wait until it is gone (kubectl package delete %s)", t, t.Flags())
	}
	done := applied{pkg: old.DeepCopyObject().(corev1alpha1.GenericPackage), before: old, what: "is as wanted already"}
	if err := keepsTarget(t, old.PackageSpec(), want.target); err != nil {
		return applied{}, err
	}
	patch, changes := difference(old.PackageSpec(), want)
	if want.downgradeFrom != "" {
		patch = append(patch, annotation(old, corev1alpha1.DowngradeFromAnnotation, want.downgradeFrom))
		changes = append(changes, "once below "+want.downgradeFrom)
	}
	if len(changes) > 0 && want.beforeChange != nil {
		if err := want.beforeChange(old.PackageSpec()); err != nil {
			return applied{}, err
		}
	}
	if want.beforeWrite != nil {
		if err := want.beforeWrite(ctx); err != nil {
			return applied{}, err
		}
	}
	if len(changes) > 0 {
		if err := patchPackage(ctx, cl, t, done.pkg, patch); err != nil {
			return applied{}, err
		}
		done.what = "changed: " + strings.Join(changes, ", ")
	}
	if !fails(t, old) && !want.retries || done.pkg.PackageSpec().Paused {
		return done, nil
	}
	// The cause of a failure need not be in the spec.
	retry, err := requestRetry(ctx, cl, t, done.pkg)
	if done.retry = retry; len(changes) == 0 && fails(t, old) {
		done.what += "; what has failed is tried again"
	}
	return done, err
}

func patchPackage(ctx context.Context, cl *cluster.Cluster, t progress.Target, pkg corev1alpha1.GenericPackage, patch []operation) error {
	// The package may have been deleted and created again.
	guard := []operation{{Op: "test", Path: "/metadata/uid", Value: string(pkg.GetUID())}}
	data, err := json.Marshal(append(guard, patch...))
	if err != nil {
		return err
	}
	err = cl.Patch(ctx, pkg, client.RawPatch(types.JSONPatchType, data), client.FieldOwner(fieldManager))
	return cl.Explain("cannot change "+t.String(), err)
}

// mergePatch sets, or removes, an annotation of a package and changes its spec.
func mergePatch(
	ctx context.Context, cl *cluster.Cluster, t progress.Target, pkg corev1alpha1.GenericPackage, annotation string, value any, spec map[string]any,
) error {
	patch := map[string]any{"metadata": map[string]any{"uid": string(pkg.GetUID()), "annotations": map[string]any{annotation: value}}}
	if spec != nil {
		patch["spec"] = spec
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	err = cl.Patch(ctx, pkg, client.RawPatch(types.MergePatchType, data), client.FieldOwner(fieldManager))
	return cl.Explain("cannot change "+t.String(), err)
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// annotation returns the operation that sets an annotation.
func annotation(old client.Object, name, value string) operation {
	if len(old.GetAnnotations()) == 0 {
		return operation{"add", "/metadata/annotations", map[string]string{name: value}}
	}
	return operation{"add", "/metadata/annotations/" + strings.ReplaceAll(name, "/", "~1"), value}
}

// difference also describes the changes.
func difference(old *corev1alpha1.PackageSpec, want wantedPackage) (patch []operation, changes []string) {
	patch, changes = differenceOfSource(old, want)
	if want.changesComponent && old.Component != want.component {
		patch = append(patch, operation{"add", "/spec/component", want.component})
		changes = append(changes, fmt.Sprintf("component %q → %q", old.Component, want.component))
	}
	if to := old.DeepCopy(); want.adopts && adopt(to) {
		patch = append(patch, operation{"add", "/spec/collisionProtection", to.CollisionProtection})
		changes = append(changes, "collision protection "+string(to.CollisionProtection))
	}
	if want.changesPullSecrets && !slices.Equal(old.ImagePullSecrets, want.pullSecrets) {
		patch = append(patch, operation{"add", "/spec/imagePullSecrets", slices.Concat([]corev1alpha1.LocalSecretReference{}, want.pullSecrets)})
		changes = append(changes, "pull secrets")
	}
	if want.config != nil && (old.Config == nil || !sameJSON(old.Config.Raw, want.config)) {
		patch = append(patch, operation{"add", "/spec/config", json.RawMessage(want.config)})
		changes = append(changes, "configuration")
	}
	if want.dropsConfig && old.Config != nil {
		patch = append(patch, operation{Op: "remove", Path: "/spec/config"})
		changes = append(changes, "no configuration")
	}
	return patch, changes
}

// differenceOfSource is about what is installed: image or packageRef.
func differenceOfSource(old *corev1alpha1.PackageSpec, want wantedPackage) (patch []operation, changes []string) {
	was := old.Image
	if old.PackageRef != nil {
		was = progress.Followed(old.PackageRef)
	}
	switch {
	case want.ref != nil && !equality.Semantic.DeepEqual(old.PackageRef, want.ref):
		if old.Image != "" {
			patch = append(patch, operation{Op: "remove", Path: "/spec/image"})
		}
		patch = append(patch, operation{"add", "/spec/packageRef", want.ref})
		changes = append(changes, was+" → "+progress.Followed(want.ref))
	case want.ref == nil && old.Image != want.image:
		if old.PackageRef != nil {
			patch = append(patch, operation{Op: "remove", Path: "/spec/packageRef"})
		}
		patch = append(patch, operation{"add", "/spec/image", want.image})
		changes = append(changes, "image "+was+" → "+want.image)
	}
	if want.account != "" && old.ServiceAccountName != want.account {
		patch = append(patch, operation{"add", "/spec/serviceAccountName", want.account})
		changes = append(changes, "service account "+want.account)
	}
	if from := withValues(old.ConfigFrom, want.values); !equality.Semantic.DeepEqual(old.ConfigFrom, from) {
		patch = append(patch, operation{"add", "/spec/configFrom", from})
		changes = append(changes, "where values come from")
	}
	if to := withDependencies(old.Dependencies, want.dependencies); !equality.Semantic.DeepEqual(old.Dependencies, to) {
		patch = append(patch, operation{"add", "/spec/dependencies", to})
		changes = append(changes, "dependencies")
	}
	return patch, changes
}

// sameJSON compares two JSON values, whatever the order of their fields.
func sameJSON(a, b []byte) bool {
	var values [2]any
	for i, raw := range [][]byte{a, b} {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		if dec.Decode(&values[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

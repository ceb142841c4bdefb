package desired

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/progress"
)

// Package is the desired state of an installed package.
type Package struct {
	Name  cluster.Name
	Image string

	// Ref replaces Image if it is set.
	Ref *corev1alpha1.PackageReference
	// values are added to configFrom, and replace values of the same name; nil leaves them
	// unchanged.
	values *corev1alpha1.ValueSource
	// Account is left unchanged if it is empty.
	Account string

	// DowngradeFrom is the version that the package may be downgraded from once; empty if it may
	// not.
	DowngradeFrom string
	// pullSecrets replace the package's if changesPullSecrets is set.
	pullSecrets        []corev1alpha1.LocalSecretReference
	changesPullSecrets bool

	// Target is the cluster of a new package; nil for this cluster.
	Target *corev1alpha1.TargetReference
	// Overrides are changes of spec.dependencies.
	Overrides []corev1alpha1.DependencyOverride
	// Config is JSON; nil leaves it unchanged. DropsConfig removes it.
	Config           []byte
	DropsConfig      bool
	Component        string
	ChangesComponent bool

	// Adopts existing objects without a controller.
	Adopts bool

	// Retries makes the manager reconcile the package even if its spec does not change.
	Retries bool
}

// Adopt reports whether it widened the collision protection.
func Adopt(spec *corev1alpha1.PackageSpec) (changed bool) {
	switch spec.CollisionProtection {
	case corev1alpha1.CollisionProtectionIfNoController, corev1alpha1.CollisionProtectionNone:
		return false
	}
	spec.CollisionProtection = corev1alpha1.CollisionProtectionIfNoController
	return true
}

// Applied is a package after it was created or changed.
type Applied struct {
	// Before is nil if there was no package.
	Pkg, Before corev1alpha1.GenericPackage
	What        string
	// Retry is the value of the retry annotation; empty if none was set.
	Retry string
}

// create creates a package.
func (want Package) create(ctx context.Context, cl *cluster.Cluster, t progress.Target) (Applied, error) {
	pkg := t.Scope.NewPackage()
	pkg.SetNamespace(t.Namespace)
	pkg.SetName(t.Name)
	spec := pkg.PackageSpec()
	spec.Image, spec.Component = want.Image, want.Component
	spec.PackageRef, spec.ServiceAccountName = want.Ref, want.Account
	spec.ConfigFrom, spec.Dependencies = WithValues(nil, want.values), withOverrides(nil, want.Overrides)
	spec.TargetRef, spec.ImagePullSecrets = want.Target, want.pullSecrets
	if want.Adopts {
		Adopt(spec)
	}

	if want.Config != nil {
		spec.Config = &runtime.RawExtension{Raw: want.Config}
	}
	if err := cl.Create(ctx, pkg, client.FieldOwner(command.FieldManager)); err != nil {
		return Applied{}, cl.Explain("cannot create "+t.String(), err)
	}
	return Applied{Pkg: pkg, What: "created"}, nil
}

// Change changes an installed package to the desired one.
func Change(ctx context.Context, cl *cluster.Cluster, t progress.Target, old corev1alpha1.GenericPackage, want Package) (Applied, error) {
	if err := Changeable(t, old, want); err != nil {
		return Applied{}, err
	}

	done := Applied{Pkg: old.DeepCopyObject().(corev1alpha1.GenericPackage), Before: old, What: "is already up to date"}
	patch, changes := Difference(old.PackageSpec(), want)
	if want.DowngradeFrom != "" {
		patch = append(patch, annotation(old, corev1alpha1.DowngradeFromAnnotation, want.DowngradeFrom))
		changes = append(changes, "once below "+want.DowngradeFrom)
	}
	if len(changes) > 0 {
		if err := Patch(ctx, cl, t, done.Pkg, patch); err != nil {
			return Applied{}, err
		}
		done.What = "changed: " + strings.Join(changes, ", ")
	}

	// A paused package does not react to a retry, so Follow would wait in vain.
	if !Fails(t, old) && !want.Retries || done.Pkg.PackageSpec().Paused {
		return done, nil
	}

	// The cause of a failure is not necessarily in the spec.
	retry, err := RequestRetry(ctx, cl, t, done.Pkg)
	if done.Retry = retry; len(changes) == 0 && Fails(t, old) {
		done.What += "; failed steps are retried"
	}

	return done, err
}

// Changeable refuses a change of a package that is being deleted, or of its target.
func Changeable(t progress.Target, old corev1alpha1.GenericPackage, want Package) error {
	if old.GetDeletionTimestamp() != nil {
		return fmt.Errorf("%s is being deleted: wait until it is removed (kubectl package delete %s)", t, t.Flags())
	}
	return KeepsTarget(t, old.PackageSpec(), want.Target)
}

// Patch applies a JSON patch to a package.
func Patch(ctx context.Context, cl *cluster.Cluster, t progress.Target, pkg corev1alpha1.GenericPackage, patch []Operation) error {
	// The package might have been deleted and created again.
	guard := []Operation{{Op: "test", Path: "/metadata/uid", Value: string(pkg.GetUID())}}
	data, err := json.Marshal(append(guard, patch...))
	if err != nil {
		return err
	}
	err = cl.Patch(ctx, pkg, client.RawPatch(types.JSONPatchType, data), client.FieldOwner(command.FieldManager))
	return cl.Explain("cannot change "+t.String(), err)
}

// MergePatch sets, or removes, an annotation of a package and changes its spec. The UID guards
// against a package that was deleted and created again.
func MergePatch(
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
	err = cl.Patch(ctx, pkg, client.RawPatch(types.MergePatchType, data), client.FieldOwner(command.FieldManager))

	return cl.Explain("cannot change "+t.String(), err)
}

// Operation is one operation of a JSON patch.
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// annotation returns the operation that sets an annotation.
func annotation(old client.Object, name, value string) Operation {
	if len(old.GetAnnotations()) == 0 {
		// JSON patch cannot add a key to a map that does not exist.
		return Operation{"add", "/metadata/annotations", map[string]string{name: value}}
	}
	// A slash in a key is written as ~1 in a JSON pointer.
	return Operation{"add", "/metadata/annotations/" + strings.ReplaceAll(name, "/", "~1"), value}
}

// Difference returns the patch that makes an old spec equal to the wanted package, and describes
// each change for the user.
func Difference(old *corev1alpha1.PackageSpec, want Package) (patch []Operation, changes []string) {
	patch, changes = differenceOfSource(old, want)
	if want.ChangesComponent && old.Component != want.Component {
		patch = append(patch, Operation{"add", "/spec/component", want.Component})
		changes = append(changes, fmt.Sprintf("component %q → %q", old.Component, want.Component))
	}
	if to := old.DeepCopy(); want.Adopts && Adopt(to) {
		patch = append(patch, Operation{"add", "/spec/collisionProtection", to.CollisionProtection})
		changes = append(changes, "collision protection "+string(to.CollisionProtection))
	}

	if want.changesPullSecrets && !slices.Equal(old.ImagePullSecrets, want.pullSecrets) {
		// A JSON null would be refused, so an empty list is a list.
		patch = append(patch, Operation{"add", "/spec/imagePullSecrets", slices.Concat([]corev1alpha1.LocalSecretReference{}, want.pullSecrets)})
		changes = append(changes, "pull secrets")
	}
	if want.Config != nil && (old.Config == nil || !SameJSON(old.Config.Raw, want.Config)) {
		patch = append(patch, Operation{"add", "/spec/config", json.RawMessage(want.Config)})
		changes = append(changes, "configuration")
	}

	if want.DropsConfig && old.Config != nil {
		patch = append(patch, Operation{Op: "remove", Path: "/spec/config"})
		changes = append(changes, "no configuration")
	}
	return patch, changes
}

// differenceOfSource compares the source: image or packageRef.
func differenceOfSource(old *corev1alpha1.PackageSpec, want Package) (patch []Operation, changes []string) {
	was := old.Image
	if old.PackageRef != nil {
		was = progress.Followed(old.PackageRef)
	}

	switch {
	case want.Ref != nil && !equality.Semantic.DeepEqual(old.PackageRef, want.Ref):
		// The API server refuses a package with an image and a packageRef.
		if old.Image != "" {
			patch = append(patch, Operation{Op: "remove", Path: "/spec/image"})
		}
		patch = append(patch, Operation{"add", "/spec/packageRef", want.Ref})
		changes = append(changes, was+" → "+progress.Followed(want.Ref))
	case want.Ref == nil && old.Image != want.Image:
		if old.PackageRef != nil {
			patch = append(patch, Operation{Op: "remove", Path: "/spec/packageRef"})
		}
		patch = append(patch, Operation{"add", "/spec/image", want.Image})
		changes = append(changes, "image "+was+" → "+want.Image)
	}

	if want.Account != "" && old.ServiceAccountName != want.Account {
		patch = append(patch, Operation{"add", "/spec/serviceAccountName", want.Account})
		changes = append(changes, "service account "+want.Account)
	}
	if from := WithValues(old.ConfigFrom, want.values); !equality.Semantic.DeepEqual(old.ConfigFrom, from) {
		patch = append(patch, Operation{"add", "/spec/configFrom", from})
		changes = append(changes, "sources of values")
	}

	if to := withOverrides(old.Dependencies, want.Overrides); !equality.Semantic.DeepEqual(old.Dependencies, to) {
		patch = append(patch, Operation{"add", "/spec/dependencies", to})
		changes = append(changes, "dependencies")
	}
	return patch, changes
}

// SameJSON compares two JSON values, regardless of the order of their fields.
func SameJSON(a, b []byte) bool {
	var values [2]any
	for i, raw := range [][]byte{a, b} {
		dec := json.NewDecoder(bytes.NewReader(raw))
		// Large numbers would lose digits as float64 and look equal.
		dec.UseNumber()
		if dec.Decode(&values[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

// SameConfig compares two configurations, which may be nil.
func SameConfig(a, b *runtime.RawExtension) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return SameJSON(a.Raw, b.Raw)
}

// RequestRetry requests a retry, and returns the value that the status has once the retry is
// handled.
func RequestRetry(ctx context.Context, cl *cluster.Cluster, t progress.Target, pkg corev1alpha1.GenericPackage) (string, error) {
	value := time.Now().UTC().Format(time.RFC3339Nano)
	return value, MergePatch(ctx, cl, t, pkg, corev1alpha1.RetryAnnotation, value, nil)
}

// Fails reports whether a retry might help: the package is not paused, and some step has failed.
func Fails(t progress.Target, pkg corev1alpha1.GenericPackage) bool {
	s := progress.Of(progress.Snapshot{Target: t, Package: pkg})
	return s.Paused == "" && (s.PullError != "" || s.Invalid != "" || s.Unresolved != "" || s.Stalled != "" || len(s.Blocking) > 0)
}

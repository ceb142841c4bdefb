package desired

import (
	"bytes"
	"cmp"
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
	"lockstep.run/lockstep/internal/cli/terminal"
)

// Package is the desired state of an installed package.
type Package struct {
	Name  cluster.Name
	Image string

	// Ref replaces Image if it is set. Version is the highest offered version that it allows, or else
	// the installed one, which is kept.
	Ref     *corev1alpha1.PackageReference
	Version string
	Keeps   bool
	// Values are added to configFrom, and replace values of the same name; nil leaves them
	// unchanged.
	Values *corev1alpha1.ValueSource
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

// Into changes a spec to the desired one. Fields that the package does not name stay.
func (want Package) Into(spec *corev1alpha1.PackageSpec) {
	// The API server refuses a package with an image and a packageRef.
	if want.Image != "" || want.Ref != nil {
		spec.Image, spec.PackageRef = want.Image, want.Ref
	}
	spec.ServiceAccountName = cmp.Or(want.Account, spec.ServiceAccountName)
	spec.ConfigFrom = WithValues(spec.ConfigFrom, want.Values)
	spec.Dependencies = withOverrides(spec.Dependencies, want.Overrides)
	if want.ChangesComponent {
		spec.Component = want.Component
	}
	// None already permits more than an adoption needs.
	if want.Adopts && spec.CollisionProtection != corev1alpha1.CollisionProtectionNone {
		spec.CollisionProtection = corev1alpha1.CollisionProtectionIfNoController
	}

	if want.changesPullSecrets {
		spec.ImagePullSecrets = want.pullSecrets
	}
	if want.DropsConfig {
		spec.Config = nil
	}
	// The same values in another order are not a change.
	if want.Config != nil && (spec.Config == nil || !SameJSON(spec.Config.Raw, want.Config)) {
		spec.Config = &runtime.RawExtension{Raw: want.Config}
	}
}

// Applied is a package after it was created or changed.
type Applied struct {
	// Before is nil if there was no package.
	Pkg, Before corev1alpha1.GenericPackage
	What        string
	// Version is the version that was wanted; empty for any. Keeps means that it is installed, and no
	// longer offered.
	Version string
	Keeps   bool
	// Retry is the value of the retry annotation; empty if none was set.
	Retry string
}

// create creates a package.
func (want Package) create(ctx context.Context, cl *cluster.Cluster, t progress.Target) (Applied, error) {
	pkg := t.Scope.NewPackage()
	pkg.SetNamespace(t.Namespace)
	pkg.SetName(t.Name)
	pkg.PackageSpec().TargetRef = want.Target
	want.Into(pkg.PackageSpec())
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
	patch, changes := want.Difference(old.PackageSpec())
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

// Difference returns the patch that changes an old spec to the desired one, and describes each
// change for the user.
func (want Package) Difference(old *corev1alpha1.PackageSpec) (patch []Operation, changes []string) {
	to := old.DeepCopy()
	want.Into(to)
	was := old.Image
	if old.PackageRef != nil {
		was = progress.Followed(old.PackageRef)
	}
	source := "image " + was + " → " + to.Image
	if to.PackageRef != nil {
		source = was + " → " + progress.Followed(to.PackageRef)
	}
	config := "configuration"
	if to.Config == nil {
		config = "no configuration"
	}

	for _, field := range []struct {
		name     string
		from, to any
		text     string
	}{
		{"image", old.Image, to.Image, source},
		{"packageRef", old.PackageRef, to.PackageRef, source},
		{"serviceAccountName", old.ServiceAccountName, to.ServiceAccountName, "service account " + to.ServiceAccountName},
		{"configFrom", old.ConfigFrom, to.ConfigFrom, "sources of values"},
		{"dependencies", old.Dependencies, to.Dependencies, "dependencies"},
		{"component", old.Component, to.Component, fmt.Sprintf("component %q → %q", old.Component, to.Component)},
		{"collisionProtection", old.CollisionProtection, to.CollisionProtection, "collision protection " + string(to.CollisionProtection)},
		{"imagePullSecrets", old.ImagePullSecrets, to.ImagePullSecrets, "pull secrets"},
		{"config", old.Config, to.Config, config},
	} {
		if equality.Semantic.DeepEqual(field.from, field.to) {
			continue
		}
		operation := Operation{"add", "/spec/" + field.name, field.to}
		if reflect.ValueOf(field.to).IsZero() {
			operation = Operation{Op: "remove", Path: "/spec/" + field.name}
		}
		patch = append(patch, operation)
		// A package that changes between an image and a packageRef has both in one text.
		if !slices.Contains(changes, field.text) {
			changes = append(changes, field.text)
		}
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

// Install writes values and package, and follows the rollout. old is nil for a new package. The
// values come first, because the manager would report a package with a missing source. They are
// deleted if the package is refused.
func (want Package) Install(
	ctx context.Context, c *command.Command, cl *cluster.Cluster, target progress.Target, old corev1alpha1.GenericPackage, values *Values,
) error {
	if old != nil {
		if err := Changeable(target, old, want); err != nil {
			return err
		}
	}
	var writer *valuesWriter
	if values != nil {
		writer = &valuesWriter{cluster: cl, target: target, values: values}
		want.Values = values.Source(target)
		if err := writer.write(ctx); err != nil {
			return err
		}
	}

	var done Applied
	var err error
	if old != nil {
		done, err = Change(ctx, cl, target, old, want)
	} else {
		done, err = want.create(ctx, cl, target)
	}
	if err != nil {
		// The request runs without the cancellation of an interrupt, because the interrupt is often the
		// reason.
		if writer != nil && writer.created {
			_ = cl.Delete(context.WithoutCancel(ctx), writer.object)
		}
		return err
	}

	// The owner reference needs the UID of the package, so it is set afterwards.
	if writer != nil {
		if err := writer.own(ctx, done.Pkg); err != nil {
			return err
		}
		if writer.changed {
			if rest, unchanged := strings.CutPrefix(done.What, "is already up to date"); unchanged {
				done.What = "changed: values" + rest
			} else {
				done.What += ", values"
			}

			// Values alone do not change the generation of the package. The status of the retry shows when the
			// manager has looked at the package again.
			if done.Retry == "" && !done.Pkg.PackageSpec().Paused {
				if done.Retry, err = RequestRetry(ctx, cl, target, done.Pkg); err != nil {
					return err
				}
			}
		}
	}

	done.Version, done.Keeps = want.Version, want.Keeps
	fmt.Fprintln(c.Streams.Out, terminal.Line(target.String()+" "+done.What))
	if !c.Wait {
		return nil
	}
	return done.Follow(ctx, c, cl, target)
}

// Follow waits until an applied package is available.
func (done *Applied) Follow(ctx context.Context, c *command.Command, cl *cluster.Cluster, target progress.Target) error {
	w := command.Waiter{
		Streams: c.Streams, Cluster: cl, Target: target, Uid: done.Pkg.GetUID(), Failing: "is not available",
		Before: progress.State{Target: target}, Assess: (&progress.Install{Retry: done.Retry, Keeps: done.Keeps}).Assess, Timeout: c.Timeout,
	}
	if done.Before != nil {
		w.Before = progress.Before(progress.Snapshot{Target: target, Package: done.Before})
	}

	state, elapsed, err := w.Run(ctx)
	if err != nil {
		return err
	}

	what := strings.TrimSpace(state.Package + " " + state.Version)
	if what != "" {
		what += ", "
	}
	fmt.Fprintf(c.Streams.Out, "%s is available: %srevision %d, after %s\n",
		terminal.Line(target.String()), what, state.Revision, progress.Elapsed(elapsed))
	if why := cmp.Or(state.PassedOver(done.Version), state.Unresolved); why != "" {
		fmt.Fprintln(c.Streams.ErrOut, terminal.Line("note: "+why))
	}

	return nil
}

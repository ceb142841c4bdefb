package convergence_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/loader"
)

// objects are the objects of a subject, by kind and name.
type objects map[string]map[string]any

// judge returns an error unless all subjects are in their last desired state.
func (w *world) judge(ctx context.Context) error {
	var errs []error
	for _, s := range w.subjects {
		var err error
		if s.wanted {
			err = w.judgeOne(ctx, s)
		} else {
			err = judgeGone(ctx, s)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s, err))
		}
	}
	return errors.Join(errs...)
}

// judgeOne compares a subject that should exist with the live objects.
func (w *world) judgeOne(ctx context.Context, s *subject) error {
	pkg := s.object()
	if err := env.Client.Get(ctx, client.ObjectKeyFromObject(pkg), pkg); err != nil {
		return err
	}
	if diff := cmp.Diff(asJSON(s.object().PackageSpec()), asJSON(pkg.PackageSpec())); diff != "" {
		return fmt.Errorf("the test applied another spec (-want +got):\n%s", diff)
	}
	template, image, err := w.render(ctx, s, pkg)
	if err != nil {
		return fmt.Errorf("render the desired objects: %w", err)
	}
	dep := s.scope.NewObjectDeployment()
	if err := env.Client.Get(ctx, client.ObjectKeyFromObject(pkg), dep); err != nil {
		return err
	}
	return errors.Join(
		judgeStatus(pkg, dep, image),
		judgeRevisions(ctx, s, pkg, dep),
		judgeObjects(ctx, s, dep, template),
	)
}

// asJSON normalises a value, so that equivalent values compare as equal.
func asJSON(v any) any {
	var out any
	if raw, err := json.Marshal(v); err == nil {
		_ = json.Unmarshal(raw, &out)
	}
	return out
}

// render renders the last spec for the final environment of the cluster.
func (w *world) render(ctx context.Context, s *subject, pkg corev1alpha1.GenericPackage) (*corev1alpha1.ObjectSetTemplateSpec, *image, error) {
	i := slices.IndexFunc(w.images, func(i image) bool { return i.reference == s.spec.Image })
	values, err := sources.Read(ctx, sources.Getter(env.Client), &s.spec, s.sources())
	if err != nil {
		return nil, nil, err
	}
	options := sources.Options(pkg, values)
	options.Environment = &manifestsv1alpha1.PackageEnvironment{Kubernetes: manifestsv1alpha1.PackageEnvironmentKubernetes{Version: w.version}}
	options.Namespaced = loader.BuiltInScope
	options.Others = func(string) []loader.Other { return nil }
	rendered, err := loader.Load(ctx, w.images[i].files, options)
	if err != nil {
		return nil, nil, err
	}
	return ptr.To(rendered.Template()), &w.images[i], nil
}

// judgeStatus checks the statuses of a Package and its deployment.
func judgeStatus(pkg corev1alpha1.GenericPackage, dep corev1alpha1.GenericObjectDeployment, image *image) error {
	var errs []error
	expect := func(what string, want, got any) {
		if diff := cmp.Diff(want, got); diff != "" {
			errs = append(errs, fmt.Errorf("%s (-want +got):\n%s", what, diff))
		}
	}
	status := pkg.PackageStatus()
	expect("observed generation", pkg.GetGeneration(), status.ObservedGeneration)
	expect("conditions", map[string]string{
		"Available": "True", "Progressing": "False", "Unpacked": "True", "Ready": "True",
	}, said(status.Conditions, pkg.GetGeneration()))
	resolved := ptr.Deref(status.Resolved, corev1alpha1.ResolvedPackage{})
	expect("resolved", [2]string{image.reference, image.digest}, [2]string{resolved.Image, resolved.Digest})
	annotations := dep.GetAnnotations()
	expect("digest of the deployment", image.digest, annotations[corev1alpha1.PackageDigestAnnotation])
	expect("unpacked hash of the deployment", status.UnpackedHash, annotations[corev1alpha1.UnpackedHashAnnotation])
	expect("image of the deployment", image.reference, annotations[corev1alpha1.PackageSourceImageAnnotation])
	expect("component of the deployment", pkg.PackageSpec().Component, annotations[corev1alpha1.PackageComponentAnnotation])
	expect("blocking", 0, len(status.Blocking))

	told := dep.ObjectDeploymentStatus()
	expect("observed generation of the deployment", dep.GetGeneration(), told.ObservedGeneration)
	expect("conditions of the deployment", map[string]string{
		"Available": "True", "Progressing": "False", "Ready": "True",
	}, said(told.Conditions, dep.GetGeneration()))
	expect("revision", told.Revision, status.Revision)
	expect("phases", told.Phases, status.Phases)
	return errors.Join(errs...)
}

// said returns conditions by their type, and whether they are out of date.
func said(conditions []metav1.Condition, generation int64) map[string]string {
	m := map[string]string{}
	for _, c := range conditions {
		m[c.Type] = string(c.Status)
		if c.ObservedGeneration != generation {
			m[c.Type] += fmt.Sprintf(" of generation %d, not %d", c.ObservedGeneration, generation)
		}
	}
	return m
}

// judgeRevisions looks at the deployment, at the one revision that is active, and at how many there
// are.
func judgeRevisions(ctx context.Context, s *subject, pkg corev1alpha1.GenericPackage, dep corev1alpha1.GenericObjectDeployment) error {
	spec := dep.ObjectDeploymentSpec()
	limit := ptr.Deref(pkg.PackageSpec().RevisionHistoryLimit, corev1alpha1.DefaultRevisionHistoryLimit)
	switch {
	case !metav1.IsControlledBy(dep, pkg):
		return fmt.Errorf("the deployment is owned by %v", dep.GetOwnerReferences())
	case spec.Paused || spec.DriftPolicy != s.spec.DriftPolicy || ptr.Deref(spec.RevisionHistoryLimit, -2) != limit:
		return fmt.Errorf("the deployment is paused %t, corrects %q, keeps %v", spec.Paused, spec.DriftPolicy, spec.RevisionHistoryLimit)
	}
	sets, err := setsOf(ctx, s)
	if err != nil {
		return err
	}
	var active []corev1alpha1.GenericObjectSet
	for _, set := range sets {
		if !metav1.IsControlledBy(set, dep) || set.GetDeletionTimestamp() != nil {
			return fmt.Errorf("revision %s is owned by %v, deleted %v", set.GetName(), set.GetOwnerReferences(), set.GetDeletionTimestamp())
		}
		if set.ObjectSetSpec().LifecycleState != corev1alpha1.ObjectSetLifecycleStateArchived {
			active = append(active, set)
		}
	}
	if len(active) != 1 || len(sets)-1 > int(limit) {
		return fmt.Errorf("%d active revisions, %d archived ones of %d at most", len(active), len(sets)-len(active), limit)
	}
	if n := active[0].ObjectSetSpec().Revision; n != dep.ObjectDeploymentStatus().Revision || active[0].ObjectSetSpec().LifecycleState == corev1alpha1.ObjectSetLifecycleStatePaused {
		return fmt.Errorf("revision %d is %s, the status has %d", n, active[0].ObjectSetSpec().LifecycleState, dep.ObjectDeploymentStatus().Revision)
	}
	return nil
}

// setsOf returns the revisions of a subject.
func setsOf(ctx context.Context, s *subject) ([]corev1alpha1.GenericObjectSet, error) {
	list := s.scope.NewObjectSetList()
	if err := env.Client.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.GenericObjectSets(), func(set corev1alpha1.GenericObjectSet) bool {
		return !strings.HasPrefix(set.GetName(), s.name+"-")
	}), nil
}

// judgeObjects compares the objects of a template with the live ones.
func judgeObjects(ctx context.Context, s *subject, dep corev1alpha1.GenericObjectDeployment, template *corev1alpha1.ObjectSetTemplateSpec) error {
	want, err := objectsOf(template)
	if err != nil {
		return err
	}
	live, err := liveOf(ctx, s)
	if err != nil {
		return err
	}
	got := objects{}
	for key, obj := range live {
		_, wanted := want[key]
		controller := metav1.GetControllerOf(obj)
		switch {
		case !wanted && controller == nil && s.leaves(obj.GetName()):
		case !wanted:
			return fmt.Errorf("%s is left, owned by %v", key, obj.GetOwnerReferences())
		case controller == nil || controller.UID != dep.GetUID() || len(obj.GetOwnerReferences()) != 1 || obj.GetDeletionTimestamp() != nil:
			return fmt.Errorf("%s is owned by %v, deleted %v", key, obj.GetOwnerReferences(), obj.GetDeletionTimestamp())
		default:
			if got[key], err = plain(obj); err != nil {
				return err
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("objects (-want +got):\n%s", diff)
	}
	return nil
}

func objectsOf(template *corev1alpha1.ObjectSetTemplateSpec) (objects, error) {
	c := objects{}
	for _, phase := range template.Phases {
		for i := range phase.Objects {
			obj := &unstructured.Unstructured{}
			if err := json.Unmarshal(phase.Objects[i].Object.Raw, &obj.Object); err != nil {
				return nil, err
			}
			var err error
			if c[obj.GetKind()+" "+obj.GetName()], err = plain(obj); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

// liveOf returns the live objects with names of a subject's objects, by kind and name.
func liveOf(ctx context.Context, s *subject) (map[string]*unstructured.Unstructured, error) {
	found := map[string]*unstructured.Unstructured{}
	for _, kind := range []string{"ConfigMap", "Secret"} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
		if err := env.Client.List(ctx, list, client.InNamespace(s.objects)); err != nil {
			return nil, err
		}
		for i := range list.Items {
			obj := &list.Items[i]
			typ, _ := obj.Object["type"].(string)
			if strings.HasPrefix(obj.GetName(), s.name+"-") && !slices.Contains([]string{s.name + "-values", s.name + "-login"}, obj.GetName()) &&
				!slices.Contains([]string{corev1alpha1.HashKeyType, corev1alpha1.SecretSliceType}, typ) {
				found[kind+" "+obj.GetName()] = obj
			}
		}
	}
	return found, nil
}

// plain returns the data of an object, and the labels and annotations that are not
// the engine's.
func plain(obj *unstructured.Unstructured) (map[string]any, error) {
	data, _, err := unstructured.NestedStringMap(obj.Object, "data")
	if err != nil {
		return nil, err
	}
	texts, _, err := unstructured.NestedStringMap(obj.Object, "stringData")
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	maps.Copy(all, data)
	for key, text := range texts {
		all[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	return map[string]any{"data": all, "labels": foreign(obj.GetLabels()), "annotations": foreign(obj.GetAnnotations())}, nil
}

func foreign(all map[string]string) map[string]string {
	own := map[string]string{}
	for key, value := range all {
		if !strings.Contains(key, corev1alpha1.GroupName) {
			own[key] = value
		}
	}
	return own
}

// judgeGone reports whether no object of a subject is left.
func judgeGone(ctx context.Context, s *subject) error {
	pkg := s.object()
	for _, obj := range []client.Object{pkg, s.scope.NewObjectDeployment()} {
		err := env.Client.Get(ctx, client.ObjectKeyFromObject(pkg), obj)
		if err == nil {
			return fmt.Errorf("%T is there, deleted %v", obj, obj.GetDeletionTimestamp())
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
	}
	sets, err := setsOf(ctx, s)
	if err != nil || len(sets) > 0 {
		return fmt.Errorf("%d revisions are left: %w", len(sets), err)
	}
	list := s.scope.NewObjectSliceList()
	if err := env.Client.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
		return err
	}
	for _, slice := range list.GenericObjectSlices() {
		if strings.HasPrefix(slice.GetName(), s.name+"-") {
			return fmt.Errorf("slice %s is left, deleted %v, finalizers %v", slice.GetName(), slice.GetDeletionTimestamp(), slice.GetFinalizers())
		}
	}
	live, err := liveOf(ctx, s)
	if err != nil {
		return err
	}
	for key, obj := range live {
		if metav1.GetControllerOf(obj) != nil || !s.leaves(obj.GetName()) {
			return fmt.Errorf("%s is left, owned by %v", key, obj.GetOwnerReferences())
		}
	}
	return nil
}

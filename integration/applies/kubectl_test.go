package applies_test

import (
	"context"
	"encoding/json"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// The field managers of kubectl's commands.
const (
	clientSideManager = "kubectl-client-side-apply"
	serverSideManager = "kubectl"
	lastApplied       = "kubectl.kubernetes.io/last-applied-configuration"
)

var lastAppliedPath = fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "annotations", lastApplied))

// serverSide is kubectl apply --server-side --force-conflicts, with its migration of objects
// that were applied on the client's side before.
func (l *lab) serverSide(ctx context.Context, template map[string]any) error {
	client, name := l.client(template), nameOf(template)
	body, err := json.Marshal(template)
	if err != nil {
		return err
	}
	apply := func() (*unstructured.Unstructured, error) {
		return client.Patch(ctx, name, types.ApplyPatchType, body, metav1.PatchOptions{
			FieldManager: serverSideManager, Force: ptr.To(true), FieldValidation: metav1.FieldValidationStrict,
		})
	}
	live, err := apply()
	if err != nil {
		return err
	}
	managers := sets.New[string]()
	for _, entry := range csaupgrade.FindFieldsOwners(live.GetManagedFields(), metav1.ManagedFieldsOperationUpdate, lastAppliedPath) {
		managers.Insert(entry.Manager)
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, managers, serverSideManager)
	if err != nil || patch == nil {
		return err
	}
	if _, err := client.Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	_, err = apply()
	return err
}

// clientSide is kubectl apply.
func (l *lab) clientSide(ctx context.Context, template map[string]any) error {
	client, name := l.client(template), nameOf(template)
	modified, err := annotated(template)
	if err != nil {
		return err
	}
	live, err := client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return l.post(ctx, template, clientSideManager, true)
	}
	if err != nil {
		return err
	}
	current, err := live.MarshalJSON()
	if err != nil {
		return err
	}
	patch, kind, err := l.threeWay(template, []byte(live.GetAnnotations()[lastApplied]), modified, current)
	if err != nil || string(patch) == "{}" {
		return err
	}
	_, err = client.Patch(ctx, name, kind, patch, metav1.PatchOptions{
		FieldManager: clientSideManager, FieldValidation: metav1.FieldValidationStrict,
	})
	return err
}

// threeWay returns the patch of kubectl apply: a strategic one of the kinds that have these.
func (l *lab) threeWay(template map[string]any, original, modified, current []byte) ([]byte, types.PatchType, error) {
	typed, err := l.scheme.New(gvkOf(template))
	if err != nil {
		patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current,
			mergepatch.RequireKeyUnchanged("apiVersion"), mergepatch.RequireKeyUnchanged("kind"), mergepatch.RequireMetadataKeyUnchanged("name"))
		return patch, types.MergePatchType, err
	}
	forms, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return nil, "", err
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(original, modified, current, forms, true)
	return patch, types.StrategicMergePatchType, err
}

// annotated returns a template with itself in the annotation of kubectl apply.
func annotated(template map[string]any) ([]byte, error) {
	raw, err := json.Marshal(template)
	if err != nil {
		return nil, err
	}
	with := &unstructured.Unstructured{Object: copied(template).(map[string]any)}
	annotations := with.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[lastApplied] = string(raw) + "\n"
	with.SetAnnotations(annotations)
	return json.Marshal(with.Object)
}

// post creates an object, with the annotation of kubectl apply if that does it.
func (l *lab) post(ctx context.Context, template map[string]any, manager string, annotate bool) error {
	object := copied(template).(map[string]any)
	if annotate {
		raw, err := annotated(template)
		if err != nil {
			return err
		}
		if object, err = decoded(raw); err != nil {
			return err
		}
		pruneNulls(object)
	}
	_, err := l.client(object).Create(ctx, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{
		FieldManager: manager, FieldValidation: metav1.FieldValidationStrict,
	})
	return err
}

func decoded(raw []byte) (map[string]any, error) {
	u := &unstructured.Unstructured{}
	err := u.UnmarshalJSON(raw)
	return u.Object, err
}

func pruneNulls(value any) {
	switch v := value.(type) {
	case map[string]any:
		for field, child := range v {
			if child == nil {
				delete(v, field)
			} else {
				pruneNulls(child)
			}
		}
	case []any:
		for _, child := range v {
			pruneNulls(child)
		}
	}
}

// origin creates an object in one of the ways that lead to it without Lockstep.
func (l *lab) origin(ctx context.Context, how string, template map[string]any) error {
	switch how {
	case "kubectl create":
		return l.post(ctx, template, "kubectl-create", false)
	case "kubectl apply":
		return l.clientSide(ctx, template)
	case "kubectl apply --server-side":
		return l.serverSide(ctx, template)
	case "helm":
		object := copied(template).(map[string]any)
		assign(object, []string{"metadata", "labels", "app.kubernetes.io/managed-by"}, "Helm")
		assign(object, []string{"metadata", "annotations", "meta.helm.sh/release-name"}, "shop")
		assign(object, []string{"metadata", "annotations", "meta.helm.sh/release-namespace"}, namespace)
		return l.post(ctx, object, "helm", false)
	}
	return fmt.Errorf("no origin %q", how)
}

// edit changes a live object as one of kubectl's commands does, and returns it before and after.
func (l *lab) edit(ctx context.Context, how string, template map[string]any, change func(map[string]any)) (before, after map[string]any, err error) {
	client, name := l.client(template), nameOf(template)
	live, err := client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	original, err := live.MarshalJSON()
	if err != nil {
		return nil, nil, err
	}
	changed := live.DeepCopy()
	change(changed.Object)
	modified, err := changed.MarshalJSON()
	if err != nil {
		return nil, nil, err
	}
	kind, patch := types.StrategicMergePatchType, []byte(nil)
	typed, schemaErr := l.scheme.New(gvkOf(template))
	if schemaErr != nil || how == "patch" {
		kind = types.MergePatchType
		patch, err = jsonpatch.CreateMergePatch(original, modified)
	} else {
		patch, err = strategicpatch.CreateTwoWayMergePatch(original, modified, typed)
	}
	if err != nil {
		return nil, nil, err
	}
	edited, err := client.Patch(ctx, name, kind, patch, metav1.PatchOptions{FieldManager: "kubectl-" + how, FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		return nil, nil, err
	}
	return live.Object, edited.Object, nil
}

// controlled lets a controller apply assignments to a live object.
func (l *lab) controlled(ctx context.Context, manager string, template map[string]any, values []assignment) (before, after map[string]any, err error) {
	client, name := l.client(template), nameOf(template)
	live, err := client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	object := map[string]any{"apiVersion": template["apiVersion"], "kind": template["kind"], "metadata": map[string]any{"name": name}}
	for _, a := range values {
		assign(object, a.path, a.value)
	}
	applied, err := client.Apply(ctx, name, &unstructured.Unstructured{Object: object}, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err != nil {
		return nil, nil, err
	}
	return live.Object, applied.Object, nil
}

// scale is kubectl scale.
func (l *lab) scale(ctx context.Context, template map[string]any, replicas int) (before, after map[string]any, err error) {
	client, name := l.client(template), nameOf(template)
	live, err := client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	if _, err := client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "kubectl"}, "scale"); err != nil {
		return nil, nil, err
	}
	scaled, err := client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	return live.Object, scaled.Object, nil
}

// replaceable returns an error unless kubectl replace could change an object to a template.
func (l *lab) replaceable(ctx context.Context, template map[string]any) error {
	client, name := l.client(template), nameOf(template)
	live, err := client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{Object: copied(template).(map[string]any)}
	object.SetResourceVersion(live.GetResourceVersion())
	object.SetFinalizers(live.GetFinalizers())
	_, err = client.Update(ctx, object, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: "kubectl-replace"})
	return err
}

func nameOf(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	return name
}

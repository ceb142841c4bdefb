package dryrun

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
)

// losses says what data an upgrade may lose: in what it deletes, and by what it
// takes out of CustomResourceDefinitions.
func (s *simulation) losses(ctx context.Context) []Loss {
	var found []Loss
	for _, key := range sortedKeys(s.objects) {
		o := s.objects[key]
		if o.live == nil {
			continue
		}
		replaced := o.now != nil && o.now.GetUID() != o.live.GetUID()
		switch {
		case (o.now == nil || replaced) && !o.released && o.changed:
			if text := s.deletion(ctx, key, o.live); text != "" {
				found = append(found, Loss{objectName(key), text})
			}
		case key.GroupKind() == statefulSetKind && o.now != nil:
			if text := scaledDown(o.live.Object, o.now.Object); text != "" {
				found = append(found, Loss{objectName(key), text})
			}
		case key.GroupKind() == crdKind && o.now != nil:
			for _, text := range definitionLosses(o.live.Object, o.now.Object) {
				found = append(found, Loss{objectName(key), text})
			}
		}
	}
	return found
}

func objectName(key objects.Key) string {
	key.Group = ""
	return key.String()
}

func sortedKeys(of map[objects.Key]*object) []objects.Key {
	return slices.SortedFunc(maps.Keys(of), objects.Key.Compare)
}

// deletion says what goes along with an object; empty for those that hold no data.
func (s *simulation) deletion(ctx context.Context, key objects.Key, live *unstructured.Unstructured) string {
	switch key.GroupKind() {
	case crdKind:
		return s.definitionGoes(ctx, live)
	case schema.GroupKind{Kind: "Namespace"}:
		return "everything in the namespace goes with it"
	case statefulSetKind:
		if retention(live.Object, "whenDeleted") == "Delete" {
			return "the claims that it made go with it, by spec.persistentVolumeClaimRetentionPolicy"
		}
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		return "its volume is released, and deleted where its reclaim policy says so"
	case schema.GroupKind{Kind: "PersistentVolume"}:
		return "what it stores may go with it"
	}
	return ""
}

var statefulSetKind = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}

// retention is what a StatefulSet says about its claims in one case.
func retention(set map[string]any, when string) string {
	policy, _, _ := unstructured.NestedString(set, "spec", "persistentVolumeClaimRetentionPolicy", when)
	return policy
}

// scaledDown says which claims a StatefulSet lets go that gets fewer replicas.
func scaledDown(before, after map[string]any) string {
	was, had, _ := unstructured.NestedInt64(before, "spec", "replicas")
	is, has, _ := unstructured.NestedInt64(after, "spec", "replicas")
	claims, _, _ := unstructured.NestedSlice(after, "spec", "volumeClaimTemplates")
	if !had || !has || is >= was || len(claims) == 0 || retention(after, "whenScaled") != "Delete" {
		return ""
	}
	return fmt.Sprintf("the claims of the replicas beyond %d go with them, by spec.persistentVolumeClaimRetentionPolicy", is)
}

// definitionGoes counts the objects that go with their definition.
func (s *simulation) definitionGoes(ctx context.Context, crd *unstructured.Unstructured) string {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	mapping, err := s.Mapper.RESTMapping(schema.GroupKind{Group: group, Kind: kind})
	if err != nil {
		return ""
	}
	list, err := s.Metadata.Resource(mapping.Resource).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "all " + plural + " go with it"
	}
	n := int64(len(list.Items))
	if list.RemainingItemCount != nil {
		n += *list.RemainingItemCount
	}
	switch n {
	case 0:
		return ""
	case 1:
		return "the only object of it goes with it"
	}
	return fmt.Sprintf("all %d %s go with it", n, plural)
}

// definitionLosses compares two states of a CustomResourceDefinition.
func definitionLosses(before, after map[string]any) []string {
	var found []string
	old, now := versionsOf(before), versionsOf(after)
	for _, name := range slices.Sorted(maps.Keys(old)) {
		is, stays := now[name]
		switch {
		case !stays:
			found = append(found, fmt.Sprintf("version %s is dropped: clients that use it fail, and objects cannot be read in it any more", name))
		case old[name]["served"] == true && is["served"] != true:
			found = append(found, fmt.Sprintf("version %s is not served any more: clients that use it fail", name))
		}
		if stays {
			found = append(found, schemaLosses(name, schemaOf(old[name]), schemaOf(is))...)
		}
	}
	if a, b := storageOf(old), storageOf(now); a != "" && b != "" && a != b {
		found = append(found, fmt.Sprintf("objects are stored in version %s instead of %s from now on: fields that it does not have go with their next write", b, a))
	}
	for _, field := range [][]string{{"spec", "scope"}, {"spec", "names", "kind"}, {"spec", "names", "plural"}} {
		a, _, _ := unstructured.NestedString(before, field...)
		b, _, _ := unstructured.NestedString(after, field...)
		if a != b {
			found = append(found, fmt.Sprintf("%s changes from %s to %s: existing objects are not found any more", strings.Join(field, "."), a, b))
		}
	}
	return found
}

func versionsOf(crd map[string]any) map[string]map[string]any {
	found := map[string]map[string]any{}
	list, _, _ := unstructured.NestedSlice(crd, "spec", "versions")
	for _, item := range list {
		if v, ok := item.(map[string]any); ok {
			name, _ := v["name"].(string)
			found[name] = v
		}
	}
	return found
}

func storageOf(versions map[string]map[string]any) string {
	for name, v := range versions {
		if v["storage"] == true {
			return name
		}
	}
	return ""
}

func schemaOf(version map[string]any) map[string]any {
	found, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
	return found
}

// schemaLosses returns the fields that a schema does not have any more: the API
// server prunes them from objects that it reads or writes.
func schemaLosses(version string, before, after map[string]any) []string {
	var all []pruned
	dropped(before, after, "", &all, 0)
	slices.SortFunc(all, func(a, b pruned) int { return cmp.Compare(a.path, b.path) })
	var found []string
	for i, p := range all {
		switch {
		case i == lossesShown:
			return append(found, fmt.Sprintf("%d more fields of %s leave the schema", len(all)-i, version))
		case p.unnamed:
			found = append(found, fmt.Sprintf("what %s has that the schema of %s does not name is kept no more: such values are pruned", p.path, version))
		default:
			found = append(found, fmt.Sprintf("field %s leaves the schema of %s: its values are pruned", p.path, version))
		}
	}
	return found
}

// lossesShown is how many fields of one version are named.
const lossesShown = 20

// pruned is a field that a schema does not have any more, or one in which it kept
// unnamed fields.
type pruned struct {
	path    string
	unnamed bool
}

func dropped(before, after map[string]any, path string, found *[]pruned, depth int) {
	const keeps = "x-kubernetes-preserve-unknown-fields"
	if before == nil || after == nil || after[keeps] == true || depth > limits.FieldsDepth {
		return
	}
	if before[keeps] == true {
		*found = append(*found, pruned{cmp.Or(path, "."), true})
	}
	old, _ := before["properties"].(map[string]any)
	now, _ := after["properties"].(map[string]any)
	for name, schema := range old {
		at := path + "." + name
		next, stays := now[name]
		if !stays {
			if _, open := after["additionalProperties"]; !open {
				*found = append(*found, pruned{at, false})
			}
			continue
		}
		a, _ := schema.(map[string]any)
		b, _ := next.(map[string]any)
		dropped(a, b, at, found, depth+1)
	}
	for inner, end := range map[string]string{"items": "[]", "additionalProperties": ".*"} {
		a, _ := before[inner].(map[string]any)
		b, _ := after[inner].(map[string]any)
		dropped(a, b, path+end, found, depth+1)
	}
}

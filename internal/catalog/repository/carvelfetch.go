package repository

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
)

// fetch sets the image or the files of a version, if these are its only source.
func (r *reader) fetch(v *corev1alpha1.AvailableVersion, steps []map[string]any) {
	const at = "template.spec.fetch"
	lost := &v.NotCarriedOver
	switch len(steps) {
	case 0:
		*lost = append(*lost, at)
		return
	case 1:
	default:
		for i, step := range steps {
			lose(lost, fmt.Sprintf("%s[%d]", at, i), step)
		}
		return
	}

	for _, tool := range slices.Sorted(maps.Keys(steps[0])) {
		step, ok := steps[0][tool].(map[string]any)
		field := at + "[0]." + tool
		switch {
		case !ok || v.Image != "" || v.Files != nil:
			lose(lost, at+"[0]", map[string]any{tool: true})
		case tool == "imgpkgBundle":
			v.Image = r.image(field+".image", step["image"])
			lose(lost, field, without(step, "image"))
		case tool == "image":
			v.Image = r.image(field+".url", step["url"])
			lose(lost, field, without(step, "url"))
		case tool == "inline" && step["paths"] != nil:
			v.Files = r.files(field+".paths", step["paths"])
			lose(lost, field, without(step, "paths"))
		default:
			*lost = append(*lost, field)
		}
	}
}

// image returns the reference of an image.
func (r *reader) image(at string, value any) string {
	text, _ := value.(string)
	if _, err := name.ParseReference(text); err != nil || len(text) > limits.ReferenceBytes {
		r.fail("spec."+at, "Write it as host/path@sha256:….", "%.100q is not an image reference", text)
		return ""
	}
	return text
}

// files returns the manifests of a version by their paths.
func (r *reader) files(at string, value any) map[string]string {
	paths, ok := value.(map[string]any)
	if !ok || len(paths) == 0 {
		r.fail("spec."+at, "Write at least one path with its content.", "it holds no files")
		return nil
	}

	out := make(map[string]string, len(paths))
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		text, ok := paths[p].(string)
		if !ok {
			r.fail("spec."+at, "Write the content of a file as a text.", "the content of %.100q is not a text", p)
		}
		if p == "" || len(p) > limits.PathBytes || path.Clean(p) != p || path.IsAbs(p) || p == ".." || strings.HasPrefix(p, "../") || printable(p) != p {
			r.fail("spec."+at, fmt.Sprintf("Write a path without .. of at most %d bytes.", limits.PathBytes), "%.100q is not a file path", p)
		}
		out[p] = text
	}

	return out
}

// lose records the keys of a step whose values are not empty.
func lose(lost *[]string, at string, step map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(step)) {
		*lost = append(*lost, fmt.Sprintf("%s.%.64s", at, printable(key)))
	}
}

// without returns a step without the given key and without empty values.
func without(step map[string]any, key string) map[string]any {
	out := map[string]any{}
	for k, v := range step {
		if k != key && !isEmpty(v) {
			out[k] = v
		}
	}
	return out
}

// isEmpty reports whether a value means the same as a missing one.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	case string:
		return v == ""
	}
	return v == false
}

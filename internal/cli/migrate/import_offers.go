package migrate

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/internal/catalog/versions"
)

// cannotInstall judges packages by what the input itself offers of them: Packages, and the files of inline repositories.
func cannotInstall(documents []map[string]any) func(refName, constraint string) string {
	files := map[string][]byte{}
	offeredFiles(documents, files)
	offered := map[string][]versions.Candidate{}
	if content, err := repository.Read(files); err == nil {
		for _, p := range content.Packages {
			for _, v := range p.Versions {
				candidate := offers.Offered{Version: v}.Candidate()
				candidate.Constraints = nil // of a cluster that is not known
				offered[p.Name] = append(offered[p.Name], candidate)
			}
		}
	}
	return func(refName, constraint string) string {
		request := versions.Request{Selection: corev1alpha1.VersionSelection{Version: constraint, Prereleases: &corev1alpha1.Prereleases{}}}
		choice := versions.Select(offered[refName], request)
		if choice.Index >= 0 {
			return ""
		}
		for _, considered := range choice.Considered {
			if strings.HasPrefix(considered.Why, "cannot be installed") {
				return considered.Version + " " + considered.Why
			}
		}
		return ""
	}
}

// offeredFiles collects documents of packages, and the files of inline repositories.
func offeredFiles(documents []map[string]any, files map[string][]byte) {
	for _, doc := range documents {
		apiVersion, _ := doc["apiVersion"].(string)
		kind, _ := doc["kind"].(string)
		var found map[string]any
		switch {
		case strings.HasPrefix(apiVersion, "data.packaging.carvel.dev/"):
			found = map[string]any{"": doc}
		case kind == "PackageRepository":
			found, _, _ = unstructured.NestedMap(doc, "spec", "fetch", "inline", "paths")
		}
		for _, value := range found {
			text, isText := value.(string)
			data := []byte(text)
			if !isText {
				data, _ = json.Marshal(value)
			}
			files[fmt.Sprintf("input-%06d.yaml", len(files))] = data
		}
		items, _ := doc["items"].([]any)
		var inner []map[string]any
		for _, item := range items {
			if m, ok := item.(map[string]any); ok {
				inner = append(inner, m)
			}
		}
		if len(inner) > 0 {
			offeredFiles(inner, files)
		}
	}
}

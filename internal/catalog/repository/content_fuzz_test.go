package repository_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/fuzzing"
)

// FuzzContent reads any repository twice. Both reads yield the same, sorted and within the limits,
// and problems are printable.
//
// Code: content.go, collect.go, carvel.go, carvelfetch.go, requirements.go, entries.go, entry.go,
// schema.go, schemawalk.go, merge.go, shard.go
func FuzzContent(f *testing.F) {
	f.Add([]byte(carvel()), []byte(webEntry()))
	f.Add([]byte(carvel("imgpkgBundle: {image: registry.example.com/shop:1.0.0}", "inline: {paths: {a.yaml: x}}")), []byte(carvel("- kapp: {}", "- kapp: {rawOptions: [a]}")))
	f.Add([]byte(isMeta+"metadata: {name: shop.example.com}\nspec: {iconSVGBase64: PHN2Zz4=}\n---\n"+carvel("version: 1.0.0", "version: 1.0.0\n  valuesSchema: {openAPIv3: {properties: {a: {default: 1}}}}")), []byte(head))
	f.Add([]byte(webEntry("versions", "configSchema: {type: object}, display: {name: A}, revision: '1.2', provides: [{apiVersion: a/v1, kind: B}], versions")), []byte(webEntry("v1.0.0", "v2.0.0")))
	f.Add([]byte(webEntry("versions", "scopes: [Cluster], constraints: [{uniqueInScope: {}}], dependencies: [{name: a, package: {name: b.c.d, version: '>1'}}], versions")),
		[]byte(carvel("version: 1.0.0", "version: 1.0.0\n  installationType: onePerCluster\n  dependencies: [{name: a, gvk: {apiVersion: v1, kind: X}}]", "      - imgpkgBundle: {image: registry.example.com/shop:1.0.0}", "", "      - kapp: {}", "")))

	for path, text := range filesIn(f, "testdata/carvel/packages") {
		f.Add(text, []byte(path))
	}

	f.Fuzz(func(t *testing.T, a, b []byte) {
		content, err := repository.Read(map[string][]byte{"a.yaml": a, "b/b.yaml": b})
		again, errAgain := repository.Read(map[string][]byte{"a.yaml": a, "b/b.yaml": b})
		if (err == nil) != (errAgain == nil) || err == nil && !reflect.DeepEqual(content, again) {
			t.Fatalf("read twice: %+v, %v; %+v, %v", content, err, again, errAgain)
		}
		if err != nil {
			fuzzing.CheckText(t, strings.ReplaceAll(err.Error(), "\n", " "))
			return
		}
		for _, text := range content.Problems {
			fuzzing.CheckText(t, text)
		}
		available, conflicts := repository.Merge([]repository.Offer{{Repository: "a", Content: content}}, nil)
		if len(conflicts) > 0 {
			t.Fatalf("conflicts without another owner: %v", conflicts)
		}
		for _, part := range available {
			data, err := json.Marshal(part)
			if err != nil || len(data) > limits.AvailablePartBytes {
				t.Fatalf("a part of %d bytes: %v", len(data), err)
			}
			for _, v := range part.Versions {
				if len(v.NotCarriedOver) > 0 != (v.Image == "" && v.Files == nil) {
					t.Fatalf("%s %s can be installed from %q and %v, without %v", part.PackageName, v.Version, v.Image, v.Files, v.NotCarriedOver)
				}
			}
		}
	})
}

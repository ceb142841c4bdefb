package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"

	"sigs.k8s.io/yaml"
)

// These files list others.
const (
	provenanceFile = "provenance.json"
	checksumsFile  = "SHA256SUMS"
)

// writeChecksums writes the checksums of all other files.
func (r *release) writeChecksums() error {
	sums, err := r.checksums()
	if err != nil {
		return err
	}
	var list []byte
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		list = fmt.Appendf(list, "%s  %s\n", sums[name], name)
	}
	return r.write(checksumsFile, list)
}

// checksums returns the checksums of the existing files, by name.
func (r *release) checksums() (map[string]string, error) {
	files, err := readFolder(r.folder)
	sums := map[string]string{}
	for _, f := range files {
		digest := sha256.Sum256(f.content)
		sums[f.path] = hex.EncodeToString(digest[:])
	}
	return sums, err
}

// writeKrew writes the manifests of the plugin: lockstep for the index of krew, which refuses names
// as general as package, and package for our own index.
func (r *release) writeKrew() error {
	sums, err := r.checksums()
	if err != nil {
		return err
	}

	var platforms []any
	for _, p := range r.platforms {
		platforms = append(platforms, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"os": p.os, "arch": p.arch}},
			"uri":      r.url + "/" + r.archive(p), "sha256": sums[r.archive(p)], "bin": programOf(p),
			"files": []any{map[string]any{"from": programOf(p), "to": "."}, map[string]any{"from": "LICENSE", "to": "."}},
		})
	}

	for _, name := range []string{"lockstep", "package"} {
		content, err := yaml.Marshal(map[string]any{
			"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin", "metadata": map[string]any{"name": name},
			"spec": map[string]any{
				"version": r.version, "homepage": "https://lockstep.run", "platforms": platforms,
				"shortDescription": "Build, install and watch packages",
				"description":      "Builds packages of Kubernetes objects, plans and installs them with Lockstep,\nwhich rolls them out phase by phase, and explains why one is not available.\n",
			},
		})
		if err != nil {
			return err
		}
		if err := r.write("krew-"+name+".yaml", content); err != nil {
			return err
		}
	}

	return nil
}

// writeProvenance writes the provenance of the files as an in-toto statement of SLSA.
func (r *release) writeProvenance() error {
	sums, err := r.checksums()
	if err != nil {
		return err
	}

	subjects := []any{map[string]any{"name": r.image, "digest": map[string]any{"sha256": r.digest[len("sha256:"):]}}}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		subjects = append(subjects, map[string]any{"name": name, "digest": map[string]any{"sha256": sums[name]}})
	}

	statement := map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "subject": subjects, "predicateType": "https://slsa.dev/provenance/v1",
		"predicate": map[string]any{
			"buildDefinition": map[string]any{
				"buildType":          "https://lockstep.run/releases/build/v1",
				"externalParameters": map[string]any{"version": r.version, "image": r.image, "url": r.url},
				"internalParameters": map[string]any{"created": r.created, "uncommittedChanges": r.changed},
				"resolvedDependencies": []any{
					map[string]any{"uri": "git+https://lockstep.run/lockstep", "digest": map[string]any{"gitCommit": r.commit}},
					map[string]any{"uri": "pkg:generic/go@" + runtime.Version()[len("go"):]},
				},
			},
			"runDetails": map[string]any{"builder": map[string]any{"id": "https://lockstep.run/releases/build/v1/hack/release"}},
		},
	}

	content, err := json.MarshalIndent(statement, "", "  ")
	if err != nil {
		return err
	}

	return r.write(provenanceFile, append(content, '\n'))
}

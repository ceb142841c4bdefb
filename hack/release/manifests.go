package main

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"github.com/Masterminds/semver/v3"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/config"
)

// imageInConfig is the name of the manager's image in the kustomization of config.
const imageInConfig = "lockstep.run/lockstep-manager"

// writeManifests writes the manifests of config as one YAML, with the image by its digest.
func (r *release) writeManifests(folder string) error {
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return fmt.Errorf("put the manifests together: %w", err)
	}

	document, err := resources.AsYaml()
	if err != nil {
		return err
	}

	document, err = replaceAll(document, "image: "+imageInConfig+":dev", "image: "+r.reference())
	if err != nil {
		return err
	}

	return r.write("lockstep-"+r.version+".yaml", document)
}

// reference names the image by its version and its digest.
func (r *release) reference() string { return r.image + ":" + r.version + "@" + r.digest }

// writeChart writes the chart as a package, with version and image.
func (r *release) writeChart(folder string) error {
	files, err := readFolder(folder)
	if err != nil {
		return err
	}

	var packed []file
	for _, f := range files {
		switch name := path.Base(f.path); {
		case name == "kustomization.yaml", name == ".helmignore":
			continue
		case f.path == "Chart.yaml":
			if f.content, err = r.chartMetadata(f.content); err != nil {
				return err
			}
		case f.path == "values.yaml":
			if f.content, err = replaceAll(f.content, "repository: "+imageInConfig, "repository: "+r.image); err != nil {
				return err
			}
		}
		f.path = "lockstep/" + f.path
		packed = append(packed, f)
	}

	return r.writeTar("lockstep-"+strings.TrimPrefix(r.version, "v")+".tgz", packed)
}

// chartMetadata adds the versions to Chart.yaml, and the data that Artifact Hub shows.
func (r *release) chartMetadata(content []byte) ([]byte, error) {
	version, err := semver.NewVersion(r.version)
	if err != nil {
		return nil, err
	}

	content, err = replaceAll(content, "version: 0.0.0-dev", "version: "+version.String(), "appVersion: dev", "appVersion: "+r.version)
	if err != nil {
		return nil, err
	}

	crds, err := config.Objects(config.FolderCRDs)
	if err != nil {
		return nil, err
	}

	var kinds []map[string]any
	for _, object := range crds {
		spec := object.Object["spec"].(map[string]any)
		served := spec["versions"].([]any)[0].(map[string]any)
		kind := spec["names"].(map[string]any)["kind"]
		schema := served["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
		description, _, _ := strings.Cut(schema["description"].(string), ".")
		kinds = append(kinds, map[string]any{
			"kind": kind, "displayName": kind, "name": object.GetName(), "version": served["name"], "description": strings.Join(strings.Fields(description), " ") + ".",
		})
	}

	listed, err := yaml.Marshal(kinds)
	if err != nil {
		return nil, err
	}

	images, err := yaml.Marshal([]map[string]string{{"name": "lockstep-manager", "image": r.reference()}})
	if err != nil {
		return nil, err
	}

	added, err := yaml.Marshal(map[string]string{
		"artifacthub.io/crds": string(listed), "artifacthub.io/images": string(images), "artifacthub.io/prerelease": fmt.Sprint(version.Prerelease() != ""),
		"lockstep.run/image-digest": r.digest,
	})
	if err != nil {
		return nil, err
	}

	indented := "  " + strings.ReplaceAll(strings.TrimSpace(string(added)), "\n", "\n  ") + "\n"
	return append(content, strings.ReplaceAll(indented, "\n  \n", "\n\n")...), nil // annotations are last
}

// replaceAll replaces texts. Each of them has to occur.
func replaceAll(content []byte, pairs ...string) ([]byte, error) {
	for i := 0; i < len(pairs); i += 2 {
		if !bytes.Contains(content, []byte(pairs[i])) {
			return nil, fmt.Errorf("there is no %q to replace", pairs[i])
		}
		content = bytes.ReplaceAll(content, []byte(pairs[i]), []byte(pairs[i+1]))
	}
	return content, nil
}
